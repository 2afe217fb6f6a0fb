"""The facts about the ranks of a run: read trace by trace, matched across traces, and written for all traces."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from nsys_insight.facts import rank_numbers
from nsys_insight.facts.arrays import Ints, np, read_columns
from nsys_insight.facts.intervals import Intervals
from nsys_insight.facts.ranks import judge, pipeline
from nsys_insight.facts.ranks.budget import HostTime, TimeBudget, find_host_activity, find_stretches, measure_host
from nsys_insight.facts.ranks.messages import Messages, match_messages
from nsys_insight.facts.ranks.rank import locate_ranks, use_rank
from nsys_insight.facts.ranks.run import Run, align_run
from nsys_insight.facts.ranks.summary import (
    explain_unmatched,
    summarize_clocks,
    summarize_matches,
    summarize_numbers,
    summarize_pipeline,
)
from nsys_insight.facts.ranks.write import Windows, Writer
from nsys_insight.sql.rows import fetch_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.judge import Table, Verdict


# Read what the host did only in this number of the longest delays of a rank.
_MAX_DELAYS_READ = 64
# Measure the hosts of this number of ranks.
_MAX_HOSTS = 32


def fill(context: Context) -> None:
    """Fill the tables of `tables.toml`."""
    ranks, trace_starts, numbering, copies = rank_numbers.read_ranks(context)
    if not ranks:
        return
    run = align_run(ranks, trace_starts) if len(ranks) > 1 else None
    writer = Writer(context.connection, numbering)
    writer.write_ranks(ranks, context.labels, run, trace_starts, locate_ranks(context, ranks))
    if run is None:
        writer.write_run(
            ranks=len(ranks), numbered_by=numbering.source,
            **summarize_numbers(numbering, copies), **explain_unmatched(ranks),
        )  # fmt: skip
        return
    windows = _divide_run(context, run)
    members = run.main.group.ranks
    messages = match_messages(context, ranks, numbering.numbers, run.clocks)
    budgets = [_measure_rank(context, run, rank, windows, messages) for rank in members]
    wall, busy, waiting, transfer, idle = (
        _stack_columns([getattr(budget, name) for budget in budgets])
        for name in ("wall", "busy", "waiting", "transfer", "idle")
    )
    edges = {rank: _find_edges(run, rank, windows) for rank in members}
    stages = pipeline.find_pipeline(messages, ranks, edges) if len(wall) else None
    is_uneven = stages is not None or not messages.matches or not pipeline.is_even(messages, members)
    is_compared_with_itself = is_uneven and pipeline.has_relevant_messages(ranks, members, wall)
    judge_ranks = pipeline.judge_against_other_steps if is_compared_with_itself else judge.judge
    explain_delay = pipeline.explain_delay_against_other_steps if is_compared_with_itself else judge.explain_delay
    verdict = judge_ranks(wall, waiting, transfer, run.error)
    hosts: list[HostTime | None] = [None] * len(members)
    if not is_compared_with_itself and verdict.late_columns:
        for column in _choose_hosts(verdict, waiting):
            kernels = run.main.group.kernels[:, column]
            bounds = kernels[windows.first], kernels[windows.last]
            hosts[column] = measure_host(context, ranks[members[column]], budgets[column].occupied, bounds)
        if any(explain_delay(busy, idle, verdict, column).cause != "gpu" for column in verdict.late_columns):
            verdict = judge.limit_to_hosts(verdict, wall, [host.working if host else None for host in hosts])
    writer.write_collectives(run, windows)
    writer.write_messages(run, messages)
    writer.write_steps(run, windows, budgets, verdict, hosts)
    for column in verdict.late_columns:
        delay = explain_delay(busy, idle, verdict, column)
        rank, host, nvtx_range = run.ranks[members[column]], None, None
        if delay.cause in ("host", "both"):
            gaps = _find_longest_gaps(run, windows, budgets[column], verdict, column)
            host, nvtx_range = find_host_activity(context, rank, gaps)
        writer.write_delay(
            members[column], delay, host, nvtx_range, _compare_hosts(context, run, verdict, hosts, column)
        )
    writer.write_run(
        verdict=verdict.kind if len(windows.numbers) else None,
        compared_with="itself" if is_compared_with_itself else "others",
        unit=windows.unit, steps=len(windows.numbers), ranks=len(members), error_ns=round(run.error),
        numbered_by=numbering.source,
        has_unmatched_messages=is_compared_with_itself and not messages.matches,
        **summarize_clocks(run, trace_starts),
        **summarize_numbers(numbering, copies),
        **summarize_matches(run, numbering, windows.counted_by),
        **summarize_pipeline(
            stages, [numbering.numbers[member] for member in members], (wall, busy, waiting, verdict.late_ns)
        ),
    )  # fmt: skip


def _choose_hosts(verdict: Verdict, waiting: Table) -> list[int]:
    """Return the columns of the ranks whose hosts are measured: late ranks, then those that wait least."""
    order = np.argsort(waiting.mean(axis=0), kind="stable")
    columns = dict.fromkeys([*verdict.late_columns, *(int(column) for column in order)])
    return sorted(list(columns)[:_MAX_HOSTS])


def _compare_hosts(
    context: Context, run: Run, verdict: Verdict, hosts: Sequence[HostTime | None], column: int
) -> dict[str, Any]:
    """Compare the host of a late rank with the longest host time of the other ranks."""
    host = hosts[column]
    other_hosts = [
        (float(np.median(other.working)), index) for index, other in enumerate(hosts)
        if other is not None and index not in verdict.late_columns
    ]  # fmt: skip
    if host is None or not other_hosts:
        return {}
    steps = np.flatnonzero(verdict.late_ns[:, column])
    others_ns, longest = max(other_hosts)
    comparison: dict[str, Any] = {"host_ns": float(host.working[steps].mean()), "others_host_ns": others_ns}
    if (other := hosts[longest]) is not None and other.launch_call:
        comparison["launch_call_ratio"] = host.launch_call / other.launch_call
    stretches, others_stretches = (
        find_stretches(context, run.ranks[run.main.group.ranks[index]], time)
        for index, time in ((column, host), (longest, hosts[longest])) if time is not None
    )  # fmt: skip
    if len(stretches) == len(host.working) and others_stretches:
        late_stretches = [stretches[step] for step in steps]
        lengths = [stretch.length for stretch in late_stretches]
        others_length = float(np.mean([stretch.length for stretch in others_stretches]))
        name, count = Counter(stretch.next_operation for stretch in late_stretches).most_common(1)[0]
        if np.mean(lengths) - others_length >= judge.EXPLAINED_SHARE * verdict.late_ns[steps, column].mean():
            comparison |= {
                "stretch_ns": float(np.mean(lengths)), "min_stretch_ns": min(lengths), "max_stretch_ns": max(lengths),
                "others_stretch_ns": others_length,
                "stretch_before": name if 2 * count > len(late_stretches) else None,
            }  # fmt: skip
    return comparison


def _divide_run(context: Context, run: Run) -> Windows:
    """Divide the collectives of the main group by the steps of one of its ranks, or singly if no rank has steps."""
    main = run.main
    rows = np.flatnonzero(main.is_complete)
    for column, number in enumerate(main.group.ranks):
        rank = run.ranks[number]
        if column and rank.trace != run.ranks[main.group.ranks[0]].trace:
            break  # the steps of the first trace apply to all traces
        with use_rank(context, rank, "steps") as (statement,):
            step_rows = [row for row in fetch_rows(context.connection, statement) if row.process_id == rank.process_id]
        if step_rows:
            starts, ends = (np.array([getattr(row, name) for row in step_rows]) for name in ("start_ns", "end_ns"))
            kernel_starts = rank.start[main.group.kernels[rows, column]]
            indices = np.searchsorted(starts, kernel_starts, side="right") - 1
            is_in_step = (indices >= 0) & (kernel_starts < ends[indices])
            numbers = np.array([row.step for row in step_rows], dtype=np.int64)
            step_of = np.where(is_in_step, numbers[indices], -1)
            if len((windows := _build_windows("step", main.is_complete, rows, step_of, number)).numbers):
                return windows
    return _build_windows("collective", main.is_complete, rows, np.arange(len(rows)))


def _build_windows(unit: str, is_complete: Any, rows: Ints, step_of: Ints, counted_by: int | None = None) -> Windows:
    begins = np.flatnonzero(np.diff(step_of, prepend=-2))
    ends = np.append(begins[1:], len(step_of)) - 1
    # Before the first collective, it is unknown when the ranks were together.
    has_window = (step_of[begins] >= 0) & (begins > 0)
    step_of_all = np.full(len(is_complete), -1, dtype=np.int64)
    step_of_all[rows] = step_of
    numbers, first, last = step_of[begins][has_window], rows[begins[has_window] - 1], rows[ends[has_window]]
    return Windows(unit, numbers, first, last, step_of_all, counted_by)


def _measure_rank(context: Context, run: Run, number: int, windows: Windows, messages: Messages) -> TimeBudget:
    """Measure where a rank's time goes in each step, in its own trace's time."""
    rank = run.ranks[number]
    with use_rank(context, rank, "work") as (statement,):
        work = read_columns(context.connection, statement)
    waiting = messages.waiting[number].copy()
    for collectives in run.collectives:
        if number in collectives.group.ranks:
            column = collectives.group.ranks.index(number)
            rows = np.flatnonzero(collectives.is_complete)
            waiting[collectives.group.kernels[rows, column]] = collectives.waiting[rows, column]
    wait_ends = rank.start + waiting
    busy = Intervals.make_disjoint(work["start_ns"].astype(np.int64), work["end_ns"].astype(np.int64))
    return TimeBudget(busy, (rank.start, wait_ends), (wait_ends, rank.end), _find_edges(run, number, windows))


def _find_edges(run: Run, number: int, windows: Windows) -> tuple[Ints, Ints]:
    """Return the starts and ends of the steps on a rank of the main group, in its own trace's time."""
    kernels = run.main.group.kernels[:, run.main.group.ranks.index(number)]
    ends = run.ranks[number].end
    return ends[kernels[windows.first]], ends[kernels[windows.last]]


def _find_longest_gaps(
    run: Run, windows: Windows, budget: TimeBudget, verdict: Verdict, column: int
) -> list[tuple[int, int]]:
    """Return the longest gap of a rank's GPU in each step in which it is late, in its own trace's time."""
    ends = run.ranks[run.main.group.ranks[column]].end[run.main.group.kernels[:, column]]
    late = verdict.late_ns[:, column]
    steps = [step for step in np.argsort(-late, kind="stable")[:_MAX_DELAYS_READ] if late[step] > 0]
    return [
        gap
        for step in steps
        for gap in budget.occupied.find_gaps(int(ends[windows.first[step]]), int(ends[windows.last[step]]))[:1]
    ]


def _stack_columns(columns: Sequence[Ints]) -> Table:
    table: Table = np.column_stack(columns)
    return table
