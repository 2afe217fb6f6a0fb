"""Collect evidence from traces and Nsight Compute on a state and a change, as sentences for the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.compare.answer import describe_decision, notes
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.measure import measure_runs
from nsys_insight.compare.verdict import Verdict
from nsys_insight.diagnose.diagnosis import diagnose
from nsys_insight.packs.step_options import AUTO
from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.units import values

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.session.session import Session

_MAX_ITEMS = 5  # findings, kernels
# Notes of a comparison on regressions outside the headline start with these texts.
SIDE_EFFECTS = ("side effects: ", "more registers: ", "kernels that got slower: ")


def collect_trace_evidence(trace: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the evidence in a trace, and the changes that it suggests."""
    diagnosis = diagnose(trace, AUTO)
    findings = diagnosis.findings[:_MAX_ITEMS]
    evidence = tuple(f"{finding.evidence} → {finding.title}" for finding in findings)
    candidates = tuple(
        f"{finding.action} ({finding.title}; {finding.command})" for finding in findings if finding.action
    )
    return evidence, candidates


def compare_traces(before: Session, after: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compare two traces. Return the result and the side effects, as sentences."""
    comparison = compare(*measure_runs([[before], [after]]))
    sentences = [describe_decision(comparison)]
    for row in comparison.rows:
        if row.part == "run" and row.verdict in (Verdict.IMPROVED, Verdict.REGRESSED) and row.metric != "wall_ns":
            old, new = values(row.metric, (row.before, row.after))
            sentences.append(f"{row.metric} {old} → {new}: {row.verdict}")
    comparison_notes = list(notes(comparison))
    effects = [text.removeprefix("side effects: ") for text in comparison_notes if text.startswith(SIDE_EFFECTS)]
    other_notes = (text for text in comparison_notes if not text.startswith(SIDE_EFFECTS))
    return (*sentences[: 1 + _MAX_ITEMS], *other_notes), tuple(effects)


def compare_ncu(before: NcuData, after: NcuData) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compare two ncu measurements. Return a sentence for each kernel, and the kernels that use more registers."""
    from nsys_insight.ncu import diff

    kernel_pairs = diff.compare(before, after)
    sentences, effects = [f"decision of ncu diff: {diff.decide(kernel_pairs)}"], []
    for pair in kernel_pairs[:_MAX_ITEMS]:
        name = fit(make_readable(pair.name), 60)
        old, new = values("duration_ns", (pair.before_ns, pair.after_ns))
        sentences.append(f"{name} {old} → {new}: {pair.verdict}")
        if pair.before and pair.after:
            registers_before, registers_after = (side.row["registers_per_thread"] for side in (pair.before, pair.after))
            if registers_before is not None and registers_after is not None and registers_after > registers_before:
                effects.append(f"more registers: {name} {registers_before} → {registers_after}")
    return tuple(sentences), tuple(effects)
