"""API calls as far as they lie in intervals of their threads, such as gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from nsys_insight.facts.intervals import Intervals

if TYPE_CHECKING:
    from nsys_insight.facts.intervals import Ints


class CallsIn(NamedTuple):
    """The parts of calls in some intervals, each `of` one of these by its number, with what the call does.

    No two overlap in an interval: of a call inside another one counts nothing.
    """

    start: Ints
    end: Ints
    of: Ints
    host: Ints

    @classmethod
    def find(cls, intervals: Intervals, start: Ints, end: Ints, host: Ints) -> Self:
        """Cut calls to intervals on the same line of time."""
        parts, which = intervals.shared(Intervals.outermost(start, end))
        return cls(*parts, host[which])

    def time(self, kind: int, intervals: int) -> Ints:
        """How long the threads were in calls of a kind in each of so many intervals, right up to a hundred days."""
        import numpy as np

        is_kind = self.host == kind
        if not is_kind.any():
            return np.zeros(intervals, dtype=np.int64)
        return np.bincount(self.of, np.where(is_kind, self.end - self.start, 0), intervals).astype(np.int64)
