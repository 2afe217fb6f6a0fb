"""When threads are in API calls, and for how long between two times: by running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from nsys_insight.facts.intervals import Intervals

if TYPE_CHECKING:
    from nsys_insight.facts.intervals import Ints

    # Times, and how many calls begin before each.
    Times = tuple[Ints, Ints]


class ThreadCalls(NamedTuple):
    """When threads are in API calls, in order of time: of a call inside another one counts nothing."""

    start: Ints
    end: Ints
    host: Ints

    @classmethod
    def of(cls, line_start: Ints, line_end: Ints, host: Ints) -> Self:
        """Put calls in order, in which what counts of each is after the latest end so far."""
        counted = Intervals.outermost(line_start, line_end)
        return cls(counted.start, counted.end, host[counted.of])

    def begun(self, times: Ints) -> Ints:
        """How many calls begin before each time."""
        import numpy as np

        begun: Ints = np.searchsorted(self.start, times)
        return begun

    def time_between(self, start: Times, end: Times, kind: int) -> Ints:
        """How long the threads were in calls of a kind between times; each has with it how many calls begin before."""
        import numpy as np

        is_kind = self.host == kind
        if not is_kind.any():
            return np.zeros(len(start[0]), dtype=np.int64)
        sums = np.concatenate(([0], np.cumsum(np.where(is_kind, self.end - self.start, 0))))
        last_end = np.concatenate(([0], np.where(is_kind, self.end, 0)))
        until_start, until_end = (sums[begun] - np.maximum(last_end[begun] - times, 0) for times, begun in (start, end))
        between: Ints = until_end - until_start
        return between

    def met(self, starts: Ints, ends: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints]:
        """Which calls lie in which gaps: the number of the gap and that of the call, pair by pair.

        Args:
            starts: When the gaps begin, no time before 0.
            ends: When they end.
            first: How many calls begin before each gap.
            last: How many begin before its end.
        """
        import numpy as np

        last_end = np.concatenate(([0], self.end))
        first = first - (last_end[first] > starts)
        count = np.where(ends > starts, last - first, 0)
        gaps = np.repeat(np.arange(len(starts)), count)
        return gaps, np.arange(len(gaps)) - np.repeat(np.cumsum(count) - count - first, count)
