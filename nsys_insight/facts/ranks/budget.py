"""Where the time of a rank goes: work, waiting for others, transfer, or idle; and what its host does in a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.arrays import Ints, np, read_columns
from nsys_insight.facts.intervals import Intervals
from nsys_insight.facts.ranks.rank import Rank, use_rank
from nsys_insight.sql.rows import fetch_rows, insert_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context

# A call or an NVTX range explains the idle time if the thread was in it for this share of the time.
_MAJORITY = 0.5
# A long call is a wait for the GPU if the GPU is occupied for this share of it: the queue of launches is full.
_OCCUPIED_SHARE = 0.9


@dataclass(frozen=True)
class HostTime:
    """The host's time in each step, in ns: from its first launch call to the next one's, and how much of it it works.

    `launch_call` is the median duration of its launch calls, in ns.
    """

    starts: Ints
    ends: Ints
    working: Ints
    launch_call: int


class Stretch(NamedTuple):
    """The longest time of a step in which no launching thread is in a CUDA call, in ns, and what it launches next."""

    length: int
    next_operation: str | None


class TimeBudget:
    """Where a rank's time goes in each window, in ns.

    Attributes:
        wall: Length of the window.
        busy: Work other than communication.
        waiting: Only collectives that other ranks have not reached yet.
        transfer: Only other communication.
        idle: The rest.
        occupied: The union of work and communication.
    """

    def __init__(
        self, work: Intervals, waits: tuple[Ints, Ints], transfers: tuple[Ints, Ints], windows: tuple[Ints, Ints]
    ) -> None:
        """Attribute time to work first, then to waits, then to other communication, and cut it to the windows."""
        with_waits = _unite(work, waits)
        self.occupied = _unite(with_waits, transfers)
        starts, ends = windows
        self.wall: Ints = ends - starts
        self.busy: Ints = work.measure_within(starts, ends)
        self.waiting: Ints = with_waits.measure_within(starts, ends) - self.busy
        occupied_ns = self.occupied.measure_within(starts, ends)
        self.transfer: Ints = occupied_ns - self.busy - self.waiting
        self.idle: Ints = self.wall - occupied_ns


def _unite(intervals: Intervals, times: tuple[Ints, Ints]) -> Intervals:
    starts, ends = times
    return Intervals.make_disjoint(np.concatenate((intervals.start, starts)), np.concatenate((intervals.end, ends)))


def measure_host(context: Context, rank: Rank, occupied: Intervals, edges: tuple[Ints, Ints]) -> HostTime | None:
    """Measure how long a host works in each step; None where the trace lacks its calls.

    A host that keeps ahead of its GPU works in a step at another time than the GPU. So its steps are counted from
    launch call to launch call of the same collectives, and the time in which it waits for the GPU is left out.

    Args:
        context: The traces.
        rank: The rank.
        occupied: When its GPU works or communicates.
        edges: The indices of the NCCL kernels that end the step before, and this step.
    """
    with use_rank(context, rank, "launched", "blocked") as statements:
        calls, blocked = (
            read_columns(context.connection, f"FROM ({statement}) ORDER BY start_ns") for statement in statements
        )
    rows = np.searchsorted(calls["start_ns"], rank.start)
    if not len(calls["start_ns"]) or not np.array_equal(
        calls["start_ns"][np.minimum(rows, len(calls["start_ns"]) - 1)], rank.start
    ):
        return None
    call_times = calls["called_ns"][rows].astype(np.int64)
    start, end = blocked["start_ns"].astype(np.int64), blocked["end_ns"].astype(np.int64)
    is_busy = occupied.measure_within(start, end) >= _OCCUPIED_SHARE * (end - start)
    is_wait = blocked["is_wait"].astype(bool) | is_busy
    waits = Intervals.make_disjoint(start[is_wait], end[is_wait])
    starts, ends = (call_times[kernels] for kernels in edges)
    working = ends - starts - waits.measure_within(starts, ends)
    return HostTime(starts, ends, working, int(np.median(calls["call_ns"])))


def find_stretches(context: Context, rank: Rank, host: HostTime) -> list[Stretch]:
    """Find the longest stretch outside of CUDA calls in each step of a host."""
    with use_rank(context, rank, "calls_in_order") as (statement,):
        rows = fetch_rows(context.connection, statement)
    if not rows:
        return []
    start, end = (np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in ("start_ns", "end_ns"))
    calls = Intervals.make_disjoint(start, end)
    stretches = []
    for first, last in zip(host.starts, host.ends, strict=True):
        gaps = calls.find_gaps(int(first), int(last))
        if gaps:
            later_calls = rows[int(np.searchsorted(start, gaps[0][1])) :]
            operation = next((row.what for row in later_calls if row.what is not None), None)
            stretches.append(Stretch(gaps[0][1] - gaps[0][0], operation))
    return stretches


def find_host_activity(context: Context, rank: Rank, gaps: Sequence[tuple[int, int]]) -> tuple[str | None, str | None]:
    """Find what a late rank's host did while its GPU was idle and the others waited.

    Returns:
        What the thread did that launched the operations at the ends of the gaps, a call or "CPU work", and in which
        NVTX range. None where it is unknown.
    """
    connection = context.connection
    with use_rank(context, rank, "gaps", "calls", "ranges") as (find_threads, *what_they_did):
        connection.execute("CREATE OR REPLACE TABLE internal.rank_gaps (gap BIGINT, start_ns BIGINT, end_ns BIGINT)")
        rows = [{"gap": number, "start_ns": start, "end_ns": end} for number, (start, end) in enumerate(gaps)]
        insert_rows(connection, "internal.rank_gaps", rows)
        connection.execute(find_threads)
        total = connection.execute("SELECT sum(end_ns - start_ns)::BIGINT FROM internal.rank_threads").fetchall()[0][0]
        calls, ranges = (connection.execute(statement).fetchall() for statement in what_they_did)
        connection.execute("DROP TABLE internal.rank_gaps; DROP TABLE internal.rank_threads")
    if not total:
        return None, None
    call = next((name for name, time_ns in calls if time_ns >= _MAJORITY * total), None)
    nvtx_range = next((name for name, time_ns in ranges if time_ns >= _MAJORITY * total), None)
    return call or "CPU work", nvtx_range
