"""A comparison as answers: tables for people, one for machines, and what must be known beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.answer import Answer, Column, of_rows
from nsys_insight.comparison import PEAK_MEMORY, needs, quantity, sentence
from nsys_insight.kernel_text import fit, readable
from nsys_insight.units import label_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.comparison import Comparison, Row
    from nsys_insight.runs import Run

COLUMNS = (
    Column("part", "VARCHAR", "What is compared: decision (the headline row again, with what to do), run, family, kernel, or benchmark"),
    Column("name", "VARCHAR", "Which kernel, family or benchmark; NULL for the whole"),
    Column("metric", "VARCHAR", "What of it; its unit is that of before, after, delta and the deviations"),
    Column("before", "DOUBLE", "Mean before, per token or step"),
    Column("after", "DOUBLE", "Mean after"),
    Column("delta", "DOUBLE", "after - before"),
    Column("delta_pct", "DOUBLE", "delta as a percentage of before"),
    Column("low_pct", "DOUBLE", "Where the interval of delta_pct begins; all intervals together hold with 95 % confidence; NULL for single measurements", detail=True),
    Column("high_pct", "DOUBLE", "Where it ends", detail=True),
    Column("before_stddev", "DOUBLE", "Sample standard deviation of a step before, or of a run's mean where both sides have several runs", detail=True),
    Column("after_stddev", "DOUBLE", "The same after", detail=True),
    Column("before_calls", "DOUBLE", "How many of the kernel or family a step launches, before", detail=True),
    Column("after_calls", "DOUBLE", "The same after", detail=True),
    Column("before_registers", "BIGINT", "The most registers per thread of the kernel, before", detail=True),
    Column("after_registers", "BIGINT", "The same after", detail=True),
    Column("match", "VARCHAR", "How kernels were paired: by name; by identity, which leaves out tiles, types and numbers; or by a guess: other names at the same place in the step", detail=True),
    Column("verdict", "VARCHAR", "improved, regressed, changed (neither better nor worse), noise (less than a standard deviation, the interval holds 0, or a time of single runs differs by less than 2 %), new, gone; NULL where it cannot be told. Of the decision: accept, small (better by 3 % or less), revert, indistinguishable, unknown"),
)  # fmt: skip
# Named in a sentence: so many of what moved.
NAMED = 3
WIDTH = 60  # cells of a kernel's name in it


def answer(comparison: Comparison) -> Answer:
    """The whole comparison as one table, the decision first."""
    decided = [("decision", *values(row)[1:-1], comparison.decision) for row in comparison.headline[:1]]
    return of_rows(COLUMNS, [*decided, *map(values, comparison.rows)], **_facts(comparison, sentence(comparison)))


def tables(comparison: Comparison) -> list[Answer]:
    """The comparison for people: the decision with the budget of a step, the families, the kernels."""
    facts = _facts(comparison, sentence(comparison))
    found = []
    for part, title, names, named in (
        ("run", sentence(comparison), COLUMNS[2:11], ""),
        ("benchmark", sentence(comparison), COLUMNS[1:11], ""),
        ("family", f"Kernel families, time per {comparison.unit}", COLUMNS[1:13], "family"),
        ("kernel", f"Kernels, time per {comparison.unit}", COLUMNS[1:16], "name"),
    ):
        rows = [row for row in comparison.rows if row.part == part]
        if not rows:
            continue
        columns = [*names, COLUMNS[-1]]
        if named:
            # They are all times: one unit for a column, named in its header.
            columns = [_in_ns(column, named) for column in columns if column.name != "metric"]
        at = [place for place, column in enumerate(COLUMNS) if column in names or column is COLUMNS[-1]]
        kept = [place for place in at if not named or COLUMNS[place].name != "metric"]
        cells = [[values(row)[place] for place in kept] for row in rows]
        found.append(of_rows(columns, cells, **{**facts, "title": title, "notes": ()}))
    return found


def values(row: Row) -> tuple[Any, ...]:
    """A row's cells, in the order of `COLUMNS`."""
    found = row.difference
    return (
        row.part, row.name, row.metric, row.before, row.after, found.delta, row.delta_pct, row.pct(found.low),
        row.pct(found.high), found.before and found.before.stddev, found.after and found.after.stddev, *row.calls,
        *row.registers, row.match, row.verdict,
    )  # fmt: skip


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what must be known beside the numbers."""
    told = needs(comparison)
    if told:
        yield told
    for title, rows, describe in (
        ("the wall: ", _parts_of_the_wall(comparison), _change),
        ("kernels that got slower: ", _slower_kernels(comparison), _named),
        ("side effects: ", _side_effects(comparison), _named),
    ):
        if rows:
            yield title + "; ".join(map(describe, rows[:NAMED])) + (f"; and {len(rows) - NAMED} more" if len(rows) > NAMED else "")
    more = [row for row in comparison.moved("improved", "regressed", "noise") if row.part == "kernel" and _registers_grew(row)]
    if more:
        yield "more registers: " + "; ".join(
            f"{_short(row.name or '')} {row.registers[0]} → {row.registers[1]}" for row in more[:NAMED]
        )
    guessed = sum(row.match == "guess" for row in comparison.rows)
    if guessed:
        yield f"{guessed} of the kernels were paired by a guess: other names at the same place in the step"
    yield from _about_runs(comparison)


def _parts_of_the_wall(comparison: Comparison) -> list[Row]:
    """Of what the wall is made, what moved, the most first."""
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
        if row.part == "run" and (row.metric == PEAK_MEMORY or not row.metric.endswith("_ns"))
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


def _about_runs(comparison: Comparison) -> Iterator[str]:
    sides = (comparison.before, comparison.after)
    units = [f"{len(runs)} runs" if len(runs) > 1 else _size(runs[0]) for runs in sides]
    if comparison.unit in ("step", "token"):
        how = list(dict.fromkeys(f"{run.method}" for runs in sides for run in runs))
        yield f"steps are {' and '.join(how)}"
    if comparison.unit == "trace":
        yield (
            "no steps are found in both, so whole traces are compared: runs of different lengths differ; say what a step"
            " is with --step-range, or how many tokens there are with --tokens"
        )
    if comparison.by_run:
        yield f"{units[0]} against {units[1]}: a standard deviation is that of the runs' means"
    elif comparison.unit != "trace":
        yield (
            f"{units[0]} of one run against {units[1]} of another: how runs differ (clocks, placement, other load) cannot be"
            " seen; to be sure: --before a1 a2 a3 --after b1 b2 b3"
            if max(map(len, sides)) == 1
            else f"{units[0]} against {units[1]}: with several runs of both, their own spread would count"
        )
    if any(run.kernels is None for runs in sides for run in runs) and comparison.unit != "run":
        yield "CUDA graphs ran as a whole, so nobody knows their kernels; capture with --cuda-graph-trace=node to compare them"


def _size(run: Run) -> str:
    unit = {"run": "measurement", "trace": "trace"}.get(run.unit, "step")
    return f"{run.count} {unit}" + ("s" if run.count != 1 else "")


def _in_ns(column: Column, named: str) -> Column:
    if column.name == "name":
        return Column(named, column.type, column.description)
    if column.name in ("before", "after", "delta", "before_stddev", "after_stddev"):
        return Column(column.name + "_ns", column.type, column.description, column.detail)
    return column


def _facts(comparison: Comparison, title: str) -> dict[str, Any]:
    def labels(runs: Sequence[Run]) -> list[str]:
        return [run.label for run in runs]

    label: Callable[[Sequence[Run]], list[str]] = labels
    return {
        "report": "diff",
        "title": title,
        "notes": tuple(notes(comparison)),
        "empty": "Nothing was measured in both",
        "trace": {"before": label(comparison.before), "after": label(comparison.after), "unit": comparison.unit},
    }
