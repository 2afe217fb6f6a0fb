"""What the time of a rank goes to: work, waiting for others, transfer, or nothing; and what its host did then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import insert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.rank import Ints, Rank

# A call or a range that held the thread for half of the time is what it did.
_HALF = 0.5


class Busy:
    """The union of intervals, which tells how much of it lies before any time."""

    def __init__(self, starts: Sequence[Ints], ends: Sequence[Ints]) -> None:
        """Unite intervals that come in several parts."""
        import numpy as np

        start, end = np.concatenate(starts), np.concatenate(ends)
        order = np.argsort(start, kind="stable")
        start, end = start[order], np.maximum.accumulate(end[order]) if len(order) else end
        begins = np.ones(len(start), dtype=bool)
        begins[1:] = start[1:] > end[:-1]
        last = np.flatnonzero(begins)
        self.start: Ints = start[begins]
        self.end: Ints = end[np.append(last[1:] - 1, len(end) - 1)] if len(last) else end[:0]
        self._before = np.concatenate(([0], np.cumsum(self.end - self.start)))

    def until(self, times: Ints) -> Ints:
        """How much of it lies before each time."""
        import numpy as np

        begun = np.searchsorted(self.start, times)
        last = np.concatenate((self.start[:1], self.end))[begun] if len(self.start) else times
        found: Ints = self._before[begun] - np.where(begun > 0, np.maximum(last - times, 0), 0)
        return found

    def within(self, starts: Ints, ends: Ints) -> Ints:
        """How much of it lies in each window."""
        between: Ints = self.until(ends) - self.until(starts)
        return between

    def gaps(self, start: int, end: int) -> list[tuple[int, int]]:
        """The times between in a window, the longest first."""
        import numpy as np

        inside = (self.end > start) & (self.start < end)
        edges = np.concatenate(([start], np.column_stack((self.start[inside], self.end[inside])).ravel(), [end]))
        pairs = np.clip(edges, start, end).reshape(-1, 2)
        found = [(int(begin), int(until)) for begin, until in pairs if until > begin]
        return sorted(found, key=lambda gap: gap[0] - gap[1])


class Spent:
    """The parts of a rank's time in windows.

    Attributes:
        busy: Work other than collectives.
        waiting: Nothing but collectives to which others had not come.
        transfer: Nothing but other communication.
        idle: The rest.
    """

    def __init__(
        self, work: Busy, waits: tuple[Ints, Ints], others: tuple[Ints, Ints], windows: tuple[Ints, Ints]
    ) -> None:
        """Lay what was waited and communicated besides over the work, and cut all of it to windows."""
        with_waits = Busy([work.start, waits[0]], [work.end, waits[1]])
        self.all = Busy([with_waits.start, others[0]], [with_waits.end, others[1]])
        starts, ends = windows
        self.wall: Ints = ends - starts
        self.busy: Ints = work.within(starts, ends)
        self.waiting: Ints = with_waits.within(starts, ends) - self.busy
        communicating = self.all.within(starts, ends)
        self.transfer: Ints = communicating - self.busy - self.waiting
        self.idle: Ints = self.wall - communicating


def host_in(context: Context, rank: Rank, gaps: Sequence[tuple[int, int]]) -> tuple[str | None, str | None]:
    """Tell what a late rank's host did while its GPU was idle and the others waited.

    That is what the thread did that launched what ended the gaps, a call or "CPU work", and in which NVTX range.
    """
    connection = context.connection
    values = {"process": rank.process_id, "gpu": rank.gpu_id}
    statements = {name: bind(query(f"facts/ranks/{name}"), values) for name in ("gaps", "calls", "ranges")}
    context.of_trace(context.catalogs[rank.trace]).prepare(*statements.values())
    with several.inside(connection, context.catalogs[rank.trace]):
        connection.execute("CREATE OR REPLACE TABLE internal.rank_gaps (gap BIGINT, start_ns BIGINT, end_ns BIGINT)")
        rows = [{"gap": at, "start_ns": start, "end_ns": end} for at, (start, end) in enumerate(gaps)]
        insert(connection, "internal.rank_gaps", rows)
        connection.execute(statements["gaps"])
        total = connection.execute("SELECT sum(end_ns - start_ns)::BIGINT FROM internal.rank_threads").fetchall()[0][0]
        calls, ranges = (connection.execute(statements[name]).fetchall() for name in ("calls", "ranges"))
        connection.execute("DROP TABLE internal.rank_gaps; DROP TABLE internal.rank_threads")
    if not total:
        return None, None
    call = next((name for name, time_ns in calls if time_ns >= _HALF * total), None)
    place = next((name for name, time_ns in ranges if time_ns >= _HALF * total), None)
    return call or "CPU work", place
