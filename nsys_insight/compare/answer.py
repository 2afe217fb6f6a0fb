"""A comparison as answers and sentences: tables for people, one for machines, the decision in a line, and notes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsys_insight.compare import phases
from nsys_insight.compare.comparison import WORTHWHILE_PCT
from nsys_insight.compare.noise import runs_needed
from nsys_insight.compare.runs import PEAK_MEMORY
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text import units as text_units
from nsys_insight.text.kernel_names import fit, readable
from nsys_insight.text.units import label_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.compare.comparison import Comparison, Row
    from nsys_insight.compare.runs import Run

_MEANINGS = {
    "part": "What is compared: decision (the headline row with what to do), run, phase, family, kernel, or benchmark",
    "name": "Which phase (requests: their latencies), kernel, family or benchmark; NULL for the whole run",
    "metric": "What is compared; before, after, delta and the deviations are in its unit",
    "before": "Mean before, per token or step",
    "after": "Mean after",
    "delta": "after - before",
    "delta_pct": "delta as a percentage of before",
    "low_pct": (
        "Lower end of delta_pct's interval; all intervals together have 95 % confidence; NULL for single measurements"
    ),
    "high_pct": "Where it ends",
    "before_stddev": (
        "Sample standard deviation over the steps before; over the runs' means where both sides have several runs"
    ),
    "after_stddev": "The same after",
    "before_calls": "Kernels of this name or family that a step launches, before",
    "after_calls": "The same after",
    "before_registers": "The most registers per thread of the kernel, before",
    "after_registers": "The same after",
    "match": (
        "How kernels were paired: by name; by identity, which ignores tiles, types and numbers; or by "
        "a guess: different names at the same place in the step"
    ),
    "better": "Whether higher or lower values of the metric are better; NULL if neither is, or unknown",
    "verdict": "improved, regressed, changed (neither better nor worse, or a kernel that took the place of a faster"
    " one), little (a time that differs by less than 1 % of the step), noise (less than a standard deviation, the"
    " interval holds 0, or times of single runs that differ by less than 2 %), new, gone; NULL where it"
    " cannot be determined."
    " Of the decision: accept, small (better by 3 % or less), revert, indistinguishable, unknown",
}
_TEXTS = {"part", "name", "metric", "match", "better", "verdict"}
_COUNTS = {"before_registers", "after_registers"}
_DETAILS = {"low_pct", "high_pct", "before_stddev", "after_stddev", "before_calls", "after_calls", *_COUNTS, "match"}
COLUMNS = tuple(
    Column(
        name, "VARCHAR" if name in _TEXTS else "BIGINT" if name in _COUNTS else "DOUBLE", text, detail=name in _DETAILS
    )
    for name, text in _MEANINGS.items()
)
_ALWAYS = {"before", "after", "delta", "delta_pct", "low_pct", "high_pct", "before_stddev", "after_stddev", "verdict"}
_CALLS = {"before_calls", "after_calls"}
# What people are shown of each part.
_SHOWN = {
    "run": {"metric", *_ALWAYS},
    "benchmark": {"name", "metric", "better", *_ALWAYS},
    "phase": {"name", "metric", *_ALWAYS},
    "family": {"name", *_ALWAYS, *_CALLS},
    "kernel": {"name", *_ALWAYS, *_CALLS, "before_registers", "after_registers", "match"},
}
# Most rows named in a note, and the width of a kernel's name in it.
NAMED = 3
WIDTH = 60


def answer(comparison: Comparison) -> Answer:
    """The whole comparison as one table, the decision first."""
    decided = [("decision", *values(row)[1:-1], comparison.decision) for row in comparison.headline[:1]]
    sides = {"before": comparison.before, "after": comparison.after}
    return of_rows(
        COLUMNS,
        [*decided, *map(values, comparison.rows)],
        report="diff",
        title=decision_sentence(comparison),
        notes=tuple(notes(comparison)),
        trace={side: [run.label for run in runs] for side, runs in sides.items()} | {"unit": comparison.unit},
    )


def tables(comparison: Comparison, *, brief: bool = False) -> list[Answer]:
    """The comparison for people: the decision with the budget of a step, the families, the kernels.

    Args:
        comparison: What to show.
        brief: Leave out the details of families and kernels, and shorten names, for a page that is narrow.
    """
    decided, per = decision_sentence(comparison), comparison.unit
    found = []
    for part, title in (
        ("run", decided),
        ("benchmark", decided),
        ("phase", "Phases that NVTX ranges name, per step of each, and the latencies of requests"),
        ("family", f"Kernel families, time per {per}"),
        ("kernel", f"Kernels, time per {per}"),
    ):
        rows = [row for row in comparison.rows if row.part == part]
        shown = [column for column in COLUMNS if column.name in _SHOWN[part]]
        if brief and part in ("family", "kernel"):
            shown = [column for column in shown if not column.detail]
        cells = [[value for value, column in zip(values(row), COLUMNS, strict=True) if column in shown] for row in rows]
        if part in ("family", "kernel"):
            # They are all times: one unit for a column, named in its header.
            shown = [_in_ns(column, part) for column in shown]
        if brief and part == "kernel":
            cells = [[_short(name), *rest] for name, *rest in cells]
        if rows:
            found.append(of_rows(shown, cells, report="diff", title=title))
    return found


def values(row: Row) -> tuple[Any, ...]:
    """A row's cells, in the order of `COLUMNS`."""
    found = row.difference
    return (
        row.part, row.name, row.metric, row.before, row.after, found.delta, row.delta_pct, row.pct(found.low),
        row.pct(found.high), found.before and found.before.stddev, found.after and found.after.stddev, *row.calls,
        *row.registers, row.match, row.better, row.verdict,
    )  # fmt: skip


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what must be known beside the numbers."""
    if needed := needed_to_decide(comparison):
        yield needed
    yield from _about_phases(comparison)
    for title, rows, describe in (
        ("wall time: ", _wall_parts(comparison), _change),
        ("kernels that got slower: ", _slower_kernels(comparison), _named),
        ("side effects: ", _side_effects(comparison), _named),
    ):
        if rows:
            yield title + _listed([describe(row) for row in rows])
    grown = [row for row in comparison.rows if _registers_grew(row)]
    if grown:
        yield "more registers: " + _listed(
            [f"{_short(row.name or '')} {row.registers[0]} → {row.registers[1]}" for row in grown]
        )
    guessed = sum(row.match == "guess" for row in comparison.rows)
    if guessed:
        yield f"{guessed} of the kernels were paired by a guess: different names at the same place in the step"
    yield from _about_runs(comparison)


def _about_phases(comparison: Comparison) -> Iterator[str]:
    """Say which phases got faster or slower, and which are not compared."""
    rows = [row for row in comparison.rows if row.part == "phase" and phases.decides(row.name or "", row.metric)]
    said = {verdict: [_phase(row) for row in rows if row.verdict == verdict] for verdict in ("improved", "regressed")}
    if told := phases.sentence(said["improved"][:NAMED], said["regressed"][:NAMED]):
        yield told
    if names := phases.left_out(comparison.before, comparison.after):
        yield f"phases that are not compared, because one side lacks them or prefills other prompts: {_listed(names)}"


def _phase(row: Row) -> str:
    before, after = quantity(row.metric, row.before, row.after)
    return f"{phases.called(row.name or '', row.metric)} {before} → {after}"


def _wall_parts(comparison: Comparison) -> list[Row]:
    """The parts of the wall time that moved, the largest change first."""
    rows = [row for row in comparison.moved("improved", "regressed") if row.part == "run"]
    parts = [row for row in rows if row.metric == "gpu_busy_ns" or row.metric.startswith("idle_")]
    return sorted(parts, key=lambda row: -abs(row.difference.delta or 0))


def _slower_kernels(comparison: Comparison) -> list[Row]:
    return [row for row in comparison.moved("regressed") if row.part == "kernel"]


def _side_effects(comparison: Comparison) -> list[Row]:
    """What got worse beside the headline, but for kernels and times that add up to it."""
    return [
        row
        for row in comparison.moved("regressed")
        if row.part == "run" and (row.metric == PEAK_MEMORY or not row.metric.endswith(("_ns", "_per_s")))
    ]


def _change(row: Row) -> str:
    (text,) = quantity(row.metric, abs(row.difference.delta or 0))
    return f"{label_of(row.metric)} {'+' if (row.difference.delta or 0) > 0 else '-'}{text}"


def _named(row: Row) -> str:
    before, after = quantity(row.metric, row.before, row.after)
    return f"{_short(row.name) if row.name else label_of(row.metric)} {before} → {after}"


def _short(name: str) -> str:
    return fit(readable(name), WIDTH)


def _registers_grew(row: Row) -> bool:
    before, after = row.registers
    return before is not None and after is not None and after > before and row.match in ("name", "identity")


def _listed(texts: list[str]) -> str:
    more = [f"and {len(texts) - NAMED} more"] if len(texts) > NAMED else []
    return "; ".join([*texts[:NAMED], *more])


def _about_runs(comparison: Comparison) -> Iterator[str]:
    sides = (comparison.before, comparison.after)
    units = [f"{len(runs)} runs" if len(runs) > 1 else _size(runs[0]) for runs in sides]
    if comparison.unit in ("step", "token"):
        how = list(dict.fromkeys(f"{run.method}" for runs in sides for run in runs))
        yield f"steps are {' and '.join(how)}"
    if comparison.unit == "trace":
        yield (
            "no steps with the same work were found in both, so whole traces are compared: runs of "
            "different lengths differ; define a step with --step-range, or give the number of tokens with --tokens"
        )
    if comparison.by_run:
        yield f"{units[0]} against {units[1]}: a standard deviation is that of the runs' means"
    elif comparison.unit != "trace":
        yield (
            (
                f"{units[0]} of one run against {units[1]} of another: differences between runs (clocks, "
                "placement, other load) are unknown; to be sure: --before a1 a2 a3 --after b1 b2 b3"
            )
            if max(map(len, sides)) == 1
            else f"{units[0]} against {units[1]}: with several runs of each, the spread between runs would count"
        )
    if any(run.kernels is None for runs in sides for run in runs) and comparison.unit != "run":
        yield (
            "CUDA graphs ran as a whole, so their kernels are unknown; capture with --cuda-graph-trace=node to compare"
            " them"
        )


def _size(run: Run) -> str:
    unit = {"run": "measurement", "trace": "trace"}.get(run.unit, "step")
    return f"{run.count} {unit}" + ("s" if run.count != 1 else "")


def _in_ns(column: Column, part: str) -> Column:
    if column.name == "name":
        return replace(column, name="family") if part == "family" else column
    if column.name in ("before", "after", "delta", "before_stddev", "after_stddev"):
        return replace(column, name=column.name + "_ns")
    return column


def quantity(metric: str, *values: float | None) -> list[str]:
    """Write values of a metric in one unit, each with it."""
    return text_units.values(metric, values)


def decision_sentence(comparison: Comparison) -> str:
    """Say what was decided, in one line."""
    said = {
        "accept": "accept",
        "revert": "revert",
        "small": f"better, but by less than {WORTHWHILE_PCT:g} %",
        "indistinguishable": "indistinguishable",
        "unknown": "cannot be determined",
    }[comparison.decision]
    rows = comparison.headline
    if len(rows) > 1:
        decides = "regressed" if comparison.decision == "revert" else "improved"
        rows = sorted(
            [row for row in rows if row.verdict == decides] or rows, key=lambda row: -abs(row.delta_pct or 0)
        )[:1]
    if not rows:
        return said
    row = rows[0]
    before, after = quantity(row.metric, row.before, row.after)
    what = " ".join(filter(None, (row.name, label_of(row.metric))))
    change = f" ({row.delta_pct:+.1f} %)" if row.delta_pct is not None else ""
    per = "" if comparison.unit == "run" else f" per {comparison.unit}"
    return f"{said}: {what} {before} → {after}{per}{change}"


def needed_to_decide(comparison: Comparison) -> str | None:
    """What it takes to decide an indistinguishable difference, and which difference would have been detected."""
    if comparison.decision not in ("indistinguishable", "unknown") or not comparison.headline:
        return None
    unclear = [row.metric for row in comparison.headline if row.verdict == "changed" and row.better is None]
    if comparison.decision == "unknown" and unclear:
        return (
            f"neither name nor unit says whether higher or lower {unclear[0]} is better: use"
            f" --higher or --lower {unclear[0].partition(' [')[0]}"
        )
    row = comparison.headline[0]
    found = row.difference
    if comparison.decision == "unknown" or found.low is None or found.high is None or not row.before:
        return (
            "one measurement of each side cannot distinguish a difference from noise: give several runs of "
            "each, --before a1 a2 a3 --after b1 b2 b3, or define a step (see nsys-insight steps)"
        )
    shown = row.pct(max(found.spread, (found.high - found.low) / 2)) or 0
    if shown > 100:
        return "there are too few steps, or they vary too much, for a decision"
    runs = runs_needed(found)
    took = f"; to detect this one takes at least {runs} runs of each" if runs else ""
    return f"a difference of {shown:.1f} % or more would have been detected{took}"
