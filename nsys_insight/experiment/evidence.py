"""What traces and Nsight Compute say of a state, and of the change to it; as sentences for the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.compare.answer import decision_sentence, notes, quantity
from nsys_insight.compare.comparison import Comparison, compare
from nsys_insight.compare.runs import measure, whole
from nsys_insight.diagnose.diagnosis import diagnose
from nsys_insight.errors import UsageError
from nsys_insight.packs.step_options import AUTO
from nsys_insight.text.kernel_names import fit, readable

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.session.session import Session

_MOST = 5  # findings, kernels
# Notes of a comparison that name what got worse beside the headline.
SIDE_EFFECTS = ("side effects: ", "more registers: ", "kernels that got slower: ")


def of_trace(trace: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The evidence in a trace, and what it suggests to try."""
    found = diagnose(trace, AUTO)
    evidence = tuple(f"{one.evidence} → {one.title}" for one in found.findings[:_MOST])
    candidates = tuple(f"{one.action} ({one.title}; {one.command})" for one in found.findings[:_MOST] if one.action)
    return evidence, candidates


def of_traces(before: Session, after: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the comparison of two traces says, and of it the side effects."""
    runs = [measure(side, AUTO) for side in (before, after)]
    try:
        if None in runs:
            raise UsageError("no steps were found", "")  # noqa: TRY301 - as where the steps are other work
        compared: Comparison = compare([run for run in runs[:1] if run], [run for run in runs[1:] if run])
    except UsageError:
        compared = compare([whole(before)], [whole(after)])
    said = [decision_sentence(compared)]
    for row in compared.rows:
        if row.part == "run" and row.verdict in ("improved", "regressed") and row.metric != "wall_ns":
            old, new = quantity(row.metric, row.before, row.after)
            said.append(f"{row.metric} {old} → {new}: {row.verdict}")
    about = list(notes(compared))
    effects = [text.removeprefix("side effects: ") for text in about if text.startswith(SIDE_EFFECTS)]
    return (*said[: 1 + _MOST], *(text for text in about if not text.startswith(SIDE_EFFECTS))), tuple(effects)


def of_ncu(before: NcuData, after: NcuData) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the comparison of two measurements of ncu says of each kernel, and the registers that grew."""
    from nsys_insight.ncu import diff

    compared = diff.compare(before, after)
    said, effects = [f"decision of ncu diff: {diff.decision(compared)}"], []
    for one in compared[:_MOST]:
        name = fit(readable(one.name), 60)
        old, new = quantity("duration_ns", one.before_ns, one.after_ns)
        said.append(f"{name} {old} → {new}: {one.verdict}")
        if one.before and one.after:
            had, has = (side.row["registers_per_thread"] for side in (one.before, one.after))
            if had is not None and has is not None and has > had:
                effects.append(f"more registers: {name} {had} → {has}")
    return tuple(said), tuple(effects)
