"""What the time of a rank goes to: work, waiting in collectives for others, transfer, and nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.ranks.rank import Ints


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
