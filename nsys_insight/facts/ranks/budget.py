"""Where the time of a rank goes: work, waiting for others, transfer, or idle; and what its host does meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.intervals import Intervals
from nsys_insight.ingest.catalogs import use_catalog
from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import insert_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.rank import Ints, Rank

# A call or an NVTX range explains the idle time if the thread was in it for this share of the time.
_MAJORITY = 0.5


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
    import numpy as np

    starts, ends = times
    return Intervals.make_disjoint(np.concatenate((intervals.start, starts)), np.concatenate((intervals.end, ends)))


def find_host_activity(context: Context, rank: Rank, gaps: Sequence[tuple[int, int]]) -> tuple[str | None, str | None]:
    """Find what a late rank's host did while its GPU was idle and the others waited.

    Returns:
        What the thread did that launched the operations at the ends of the gaps, a call or "CPU work", and in which
        NVTX range. None where it is unknown.
    """
    connection = context.connection
    values = {"process": rank.process_id, "gpu": rank.gpu_id}
    statements = {name: bind(read_query(f"facts/ranks/{name}"), values) for name in ("gaps", "calls", "ranges")}
    context.for_trace(context.catalogs[rank.trace]).prepare(*statements.values())
    with use_catalog(connection, context.catalogs[rank.trace]):
        connection.execute("CREATE OR REPLACE TABLE internal.rank_gaps (gap BIGINT, start_ns BIGINT, end_ns BIGINT)")
        rows = [{"gap": number, "start_ns": start, "end_ns": end} for number, (start, end) in enumerate(gaps)]
        insert_rows(connection, "internal.rank_gaps", rows)
        connection.execute(statements["gaps"])
        total = connection.execute("SELECT sum(end_ns - start_ns)::BIGINT FROM internal.rank_threads").fetchall()[0][0]
        calls, ranges = (connection.execute(statements[name]).fetchall() for name in ("calls", "ranges"))
        connection.execute("DROP TABLE internal.rank_gaps; DROP TABLE internal.rank_threads")
    if not total:
        return None, None
    call = next((name for name, time_ns in calls if time_ns >= _MAJORITY * total), None)
    nvtx_range = next((name for name, time_ns in ranges if time_ns >= _MAJORITY * total), None)
    return call or "CPU work", nvtx_range
