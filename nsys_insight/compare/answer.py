"""Render a comparison: tables for people, one table for programs, the decision in one line, and notes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsys_insight.compare import members, phases
from nsys_insight.compare.comparison import SIGNIFICANT_VERDICTS, Comparison, Row, find_clocks
from nsys_insight.compare.noise import count_runs_needed
from nsys_insight.compare.runs import HEADLINE, PEAK_MEMORY, Run
from nsys_insight.compare.step_times import WITHOUT_NSYS
from nsys_insight.compare.verdict import MIN_CHANGE_PCT, Decision, Verdict
from nsys_insight.session.answer import Answer, Column, build_answer, read_columns
from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.units import count_noun, label_of, values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# Launches bound a step if the GPU waits for them for this share of it.
MIN_LAUNCH_SHARE = 0.5
NSYS_TIMES_NOTE = (
    "These times are under nsys, which makes launches slower: --step-time BEFORE,AFTER compares those without it"
)
COLUMNS = read_columns("compare/rows")
_DETAIL_COLUMNS = {column.name for column in COLUMNS if column.is_detail}
_VALUE_COLUMNS = {
    "before",
    "after",
    "delta",
    "delta_pct",
    "low_pct",
    "high_pct",
    "before_stddev",
    "after_stddev",
    "verdict",
}
_CALL_COLUMNS = {"before_calls", "after_calls"}
# Columns of the tables for people, by part.
_COLUMNS_OF_PART = {
    "run": {"metric", *_VALUE_COLUMNS},
    "benchmark": {"name", "metric", "better", *_VALUE_COLUMNS},
    "phase": {"name", "metric", *_VALUE_COLUMNS},
    "rank": {"name", "metric", *_VALUE_COLUMNS},
    "collective": {"name", "metric", *_VALUE_COLUMNS},
    "family": {"name", *_VALUE_COLUMNS, *_CALL_COLUMNS},
    "kernel": {"name", *_VALUE_COLUMNS, *_CALL_COLUMNS, "before_registers", "after_registers", "match"},
}
# The columns and the maximum number of rows of `summary_table`.
_SUMMARY_COLUMNS = {"name", "metric", "before", "after", "delta_pct", "verdict"}
MAX_STEP_ROWS = 6  # of two single steps
MAX_SUMMARY_ROWS = 9
# Maximum number of rows that a note names, and the width of a kernel's name in it.
MAX_NAMES = 3
NAME_WIDTH = 60


def answer(comparison: Comparison) -> Answer:
    """Return the complete comparison as one table. The decision comes first."""
    row = comparison.main_row
    decision_rows = [("decision", *row_cells(row)[1:-1], comparison.decision)] if row else []
    runs_by_side = {"before": comparison.before, "after": comparison.after}
    return build_answer(
        COLUMNS,
        [*decision_rows, *(_make_cells(row, comparison) for row in comparison.rows)],
        report="diff",
        title=describe_decision(comparison),
        notes=tuple(notes(comparison)),
        trace={side: [run.label for run in runs] for side, runs in runs_by_side.items()} | {"unit": comparison.unit},
    )


def tables(comparison: Comparison, *, brief: bool = False, has_all_rows: bool = False) -> list[Answer]:
    """Return the tables for people: the decision with the budget of a step, phases, families, kernels.

    Args:
        comparison: The comparison to show.
        brief: Leave out the details of families and kernels and shorten names, for a narrow page.
        has_all_rows: Include metrics that did not change.
    """
    decision_title, unit = describe_decision(comparison), comparison.unit
    answers = []
    for part, title in (
        ("run", decision_title),
        ("benchmark", decision_title),
        ("phase", "Phases and request latency"),
        ("rank", f"Ranks and processes, per {unit}"),
        ("collective", f"Collectives, per {unit} of a rank"),
        ("family", f"Kernel families, time per {unit}"),
        ("kernel", f"Kernels, time per {unit}"),
    ):
        rows = [row for row in comparison.rows if row.part == part]
        if part == "run" and not has_all_rows:
            rows = [
                row for row in rows if row.is_headline or (row.verdict is not Verdict.NOISE and row.before != row.after)
            ]
        is_of_kernels = part in ("family", "kernel")
        names = _COLUMNS_OF_PART[part] - (_DETAIL_COLUMNS if brief and is_of_kernels else set())
        columns, cells = _select_columns(rows, names, comparison)
        if is_of_kernels:
            # All values are times: the column header names the unit.
            columns = [_rename_for_part(column, part) for column in columns]
        if brief and part == "kernel":
            cells = [[_shorten_name(name), *numbers] for name, *numbers in cells]
        if rows:
            answers.append(build_answer(columns, cells, report="diff", title=title))
    return answers


def summary_table(comparison: Comparison) -> Answer:
    """Return what changed as one short table: the metrics that decide, and the most important ones that changed.

    Phases, ranks, collectives and kernels are only in `tables`; the notes name those that changed.
    """
    rows = [row for row in comparison.rows if row.part in ("run", "benchmark")]
    changed_rows = [row for row in rows if row.is_headline or row.verdict in SIGNIFICANT_VERDICTS]
    # A changed metric is less important than one that got better or worse. The order of the budget decides the rest.
    changed_rows.sort(key=lambda row: (not row.is_headline, row.verdict not in (Verdict.REGRESSED, Verdict.IMPROVED)))
    if _has_single_steps(comparison):
        # Two single steps have no verdicts: their times that differ most are shown.
        times = [row for row in rows if row.metric.endswith("_ns") and row.difference.delta]
        times.sort(key=lambda row: (not row.is_headline, -abs(row.difference.delta or 0)))
        changed_rows = times[:MAX_STEP_ROWS]
    shown_rows = [row for row in rows if row in changed_rows[:MAX_SUMMARY_ROWS]]
    has_names = any(row.part != "run" for row in shown_rows)
    columns, cells = _select_columns(shown_rows, _SUMMARY_COLUMNS - (set() if has_names else {"name"}), comparison)
    return build_answer(columns, cells, report="diff", title=describe_decision(comparison))


def _select_columns(
    rows: Iterable[Row], names: set[str], comparison: Comparison
) -> tuple[list[Column], list[list[Any]]]:
    """Return the columns of these names, and their cells in each row."""
    cells = [
        [cell for cell, column in zip(_make_cells(row, comparison), COLUMNS, strict=True) if column.name in names]
        for row in rows
    ]
    return [column for column in COLUMNS if column.name in names], cells


def _make_cells(row: Row, comparison: Comparison) -> tuple[Any, ...]:
    """Return a row's cells, where a side effect of an improvement is a change."""
    *cells, verdict = row_cells(row)
    is_side_effect = (
        comparison.decision in (Decision.ACCEPT, Decision.SMALL)
        and verdict is Verdict.REGRESSED
        and row.part == "run"
        and row.metric != PEAK_MEMORY
    )
    return (*cells, Verdict.DIFFERENT if is_side_effect else verdict)


def row_cells(row: Row) -> tuple[Any, ...]:
    """Return a row's cells in the order of `COLUMNS`."""
    difference = row.difference
    stddevs = [side and side.stddev for side in (difference.before, difference.after)]
    return (
        row.part, row.name, row.metric, row.before, row.after, difference.delta, row.delta_pct, row.pct(difference.low),
        row.pct(difference.high), *stddevs, *row.calls, *row.registers, row.match, row.better, row.verdict,
    )  # fmt: skip


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield the notes: what a reader needs in addition to the numbers."""
    if advice := describe_detectable_difference(comparison):
        yield advice
    changed_times = _changed_times(comparison)
    nsys_note = NSYS_TIMES_NOTE if _is_bound_by_launches(comparison) else ""
    if sentence := _describe_step_times(comparison) or (not changed_times and nsys_note):
        yield sentence
    yield from _phase_notes(comparison)
    yield from members.describe_members(comparison.before, comparison.after)
    if changed_times:
        times_text = _join_texts(list(map(_describe_change, changed_times)))
        yield f"wall time{_nsys_suffix(comparison)}: {times_text}{nsys_note and '. '}{nsys_note}"
    more_registers = [
        f"{_shorten_name(row.name or '')} {row.registers[0]} → {row.registers[1]}"
        for row in comparison.rows
        if _has_more_registers(row)
    ]
    for title, texts in (
        ("kernels that got slower", map(_describe_values, _kernels_with(comparison, Verdict.REGRESSED))),
        ("kernels that got faster", map(_describe_values, _kernels_with(comparison, Verdict.IMPROVED))),
        ("side effects", map(_describe_values, _side_effects(comparison))),
        ("more registers", more_registers),
    ):
        if text := _join_texts(list(texts)):
            yield f"{title}: {text}"
    guess_count = sum(row.match == "guess" for row in comparison.rows)
    if guess_count:
        yield f"{guess_count} of the kernels were paired by a guess: different names at the same place in the step"
    yield from _run_notes(comparison)


def _nsys_suffix(comparison: Comparison) -> str:
    return " under nsys" if any(row.metric == WITHOUT_NSYS for row in comparison.headline) else ""


def _describe_step_times(comparison: Comparison) -> str | None:
    """Say what a change is worth without nsys, if that was measured, and whether it is one only under nsys."""
    measured_row = next((row for row in comparison.headline if row.metric == WITHOUT_NSYS), None)
    wall = next((row for row in comparison.rows if (row.part, row.metric) == ("run", HEADLINE)), None)
    if measured_row is None or wall is None:
        return None
    times = [
        f"{before} → {after}" for before, after in (values(r.metric, (r.before, r.after)) for r in (wall, measured_row))
    ]
    text = f"{times[0]} per {comparison.unit} under nsys; {times[1]} without (measured), which decides"
    words = {Verdict.IMPROVED: "faster", Verdict.REGRESSED: "slower"}
    if wall.verdict in words and measured_row.verdict is not wall.verdict:
        text += f". Only under nsys, a {comparison.unit} got {words[wall.verdict]}"
    return text


def _is_bound_by_launches(comparison: Comparison) -> bool:
    """Return whether the GPU waits for launches, which nsys makes longer, for most of a step that was not measured."""
    if comparison.unit not in ("step", "token") or any(row.metric == WITHOUT_NSYS for row in comparison.headline):
        return False
    times = (
        (run.metrics.get(HEADLINE), run.metrics.get("idle_launch_ns"))
        for run in (*comparison.before, *comparison.after)
    )
    return any(wall and launch and launch.mean > MIN_LAUNCH_SHARE * wall.mean for wall, launch in times)


def _phase_notes(comparison: Comparison) -> Iterator[str]:
    """Yield which phases got faster or slower, and which are not compared.

    A phase that nearly all steps are of is left out: the decision is about the same steps.
    """
    main_phases = {phases.find_main_phase(run) for run in (*comparison.before, *comparison.after)}
    rows = [
        row
        for row in comparison.rows
        if row.part == "phase" and phases.is_deciding(row.name or "", row.metric) and {row.name} != main_phases
    ]
    changes_by_verdict = {
        verdict: [_describe_phase(row) for row in rows if row.verdict == verdict]
        for verdict in (Verdict.IMPROVED, Verdict.REGRESSED)
    }
    if sentence := phases.describe_phases(
        changes_by_verdict[Verdict.IMPROVED][:MAX_NAMES], changes_by_verdict[Verdict.REGRESSED][:MAX_NAMES]
    ):
        yield sentence
    if names := phases.list_unpaired(comparison.before, comparison.after):
        name_list = _join_texts(names)
        yield f"phases that are not compared, because one side lacks them or prefills other prompts: {name_list}"


def _describe_phase(row: Row) -> str:
    before, after = values(row.metric, (row.before, row.after))
    return f"{phases.label_phase(row.name or '', row.metric)} {before} → {after}"


def _changed_times(comparison: Comparison) -> list[Row]:
    """Return the rows of GPU time and idle time that changed, the largest change first."""
    rows = [row for row in comparison.rows_with_verdict(Verdict.IMPROVED, Verdict.REGRESSED) if row.part == "run"]
    time_rows = [row for row in rows if row.metric == "gpu_busy_ns" or row.metric.startswith("idle_")]
    return sorted(time_rows, key=lambda row: -abs(row.difference.delta or 0))


def _kernels_with(comparison: Comparison, verdict: Verdict) -> list[Row]:
    return [row for row in comparison.rows_with_verdict(verdict) if row.part == "kernel"]


def _side_effects(comparison: Comparison) -> list[Row]:
    """Return the other regressed metrics, without kernels and the times that add up to the headline."""
    return [
        row
        for row in comparison.rows_with_verdict(Verdict.REGRESSED)
        if row.part == "run" and (row.metric == PEAK_MEMORY or not row.metric.endswith(("_ns", "_per_s")))
    ]


def _describe_change(row: Row) -> str:
    (text,) = values(row.metric, [abs(row.difference.delta or 0)])
    return f"{label_of(row.metric)} {'+' if (row.difference.delta or 0) > 0 else '-'}{text}"


def _describe_values(row: Row) -> str:
    before, after = values(row.metric, (row.before, row.after))
    return f"{_shorten_name(row.name) if row.name else label_of(row.metric)} {before} → {after}"


def _shorten_name(name: str) -> str:
    return fit(make_readable(name), NAME_WIDTH)


def _has_more_registers(row: Row) -> bool:
    before, after = row.registers
    return before is not None and after is not None and after > before and row.match in ("name", "identity")


def _join_texts(texts: list[str]) -> str:
    remainder = [f"and {len(texts) - MAX_NAMES} more"] if len(texts) > MAX_NAMES else []
    return "; ".join([*texts[:MAX_NAMES], *remainder])


def _run_notes(comparison: Comparison) -> Iterator[str]:
    sides = (comparison.before, comparison.after)
    sizes = [f"{len(runs)} runs" if len(runs) > 1 else _count_samples(runs[0]) for runs in sides]
    if comparison.unit in ("step", "token"):
        methods = list(dict.fromkeys(f"{run.method}" for runs in sides for run in runs))
        yield f"steps are {' and '.join(methods)}"
        yield from dict.fromkeys(run.doubt for runs in sides for run in runs if run.doubt)
    if comparison.unit == "trace":
        yield (
            "no steps with the same work were found in both, so whole traces are compared: runs of "
            "different lengths differ; define a step with --step-range, or give the number of tokens with --tokens"
        )
    if comparison.by_run:
        yield f"{sizes[0]} against {sizes[1]}: a standard deviation is that of the runs' means"
    elif comparison.unit != "trace" and not _has_single_steps(comparison):
        yield (
            (
                f"{sizes[0]} of one run against {sizes[1]} of another. Run-to-run variation is unknown. "
                "Compare several runs: --before 'a*.nsys-rep' --after 'b*.nsys-rep'"
            )
            if max(map(len, sides)) == 1
            else f"{sizes[0]} against {sizes[1]}: with several runs of each, the spread between runs would count"
        )
    if any(run.kernels is None for runs in sides for run in runs) and comparison.unit != "run":
        yield (
            "CUDA graphs ran as a whole, so their kernels are unknown; capture with --cuda-graph-trace=node to compare"
            " them"
        )


def _count_samples(run: Run) -> str:
    return count_noun(run.count, {"run": "measurement", "trace": "trace"}.get(run.unit, "step"))


def _rename_for_part(column: Column, part: str) -> Column:
    if column.name == "name":
        return replace(column, name="family") if part == "family" else column
    if column.name in ("before", "after", "delta", "before_stddev", "after_stddev"):
        return replace(column, name=column.name + "_ns")
    return column


def describe_decision(comparison: Comparison) -> str:
    """Return the decision in one line."""
    decision_text = comparison.decision.text
    row = comparison.main_row
    if row is None:
        return decision_text
    before, after = values(row.metric, (row.before, row.after))
    subject = " ".join(filter(None, (row.name, label_of(row.metric))))
    change = f" ({row.delta_pct:+.1f}%)" if row.delta_pct is not None else ""
    per_unit = "" if comparison.unit == "run" else f" per {comparison.unit}"
    labels = [runs[0].label for runs in (comparison.before, comparison.after) if len(runs) == 1]
    files = f", {labels[0]} → {labels[1]}" if len(set(labels)) == 2 else ""
    if comparison.decision is Decision.UNKNOWN and _has_single_steps(comparison):
        decision_text = "One step each"
    return f"{decision_text}: {subject} {before} → {after}{per_unit}{change}{files}"


def _has_single_steps(comparison: Comparison) -> bool:
    """Return whether each side is one step of one run."""
    runs = [*comparison.before, *comparison.after]
    return len(runs) == 2 and all(run.count == 1 and run.unit in ("step", "token") for run in runs)


def describe_detectable_difference(comparison: Comparison) -> str | None:  # noqa: PLR0911 - a reason each
    """Say what a decision needs if it is missing, and which difference would have been detected.

    Return None if the comparison has a decision.
    """
    if comparison.decision not in (Decision.INDISTINGUISHABLE, Decision.UNKNOWN) or not comparison.headline:
        return None
    unclear_metrics = [
        row.metric for row in comparison.headline if row.verdict is Verdict.DIFFERENT and row.better is None
    ]
    if comparison.decision is Decision.UNKNOWN and unclear_metrics:
        return (
            f"neither name nor unit says whether higher or lower {unclear_metrics[0]} is better: use"
            f" --higher or --lower {unclear_metrics[0].partition(' [')[0]}"
        )
    if comparison.other_input:
        return (
            f"the inputs have different sizes, so nothing is called better or worse: {comparison.other_input}. Capture"
            " both with the same input"
        )
    if clocks := find_clocks(comparison.before, comparison.after):
        before, after = (f"{clock / 1e9:.2f}" for clock in clocks)
        return (
            f"the SMs ran at {before} GHz before and at {after} GHz after, so no time is judged: lock the clocks"
            " (nvidia-smi --lock-gpu-clocks), and capture both again"
        )
    row = comparison.headline[0]
    difference = row.difference
    if comparison.decision is Decision.UNKNOWN or difference.low is None or difference.high is None or not row.before:
        if row.metric == WITHOUT_NSYS:
            return (
                f"a difference of two measured times of less than {MIN_CHANGE_PCT:g}% can be noise: measure with bench"
            )
        reason = "one measurement of each side cannot distinguish a difference from noise"
        remedy = "give several runs of each, --before 'a*.nsys-rep' --after 'b*.nsys-rep', or define a step (see steps)"
        return reason if _has_single_steps(comparison) else f"{reason}: {remedy}"
    detectable_pct = row.pct(max(difference.spread, (difference.high - difference.low) / 2)) or 0
    if detectable_pct > 100:
        return "there are too few steps, or they vary too much, for a decision"
    runs = count_runs_needed(difference)
    runs_text = f" To confirm this one, use at least {runs} runs per side." if runs else ""
    return f"Smallest detectable change: {detectable_pct:.1f}%.{runs_text}"
