"""Intervals on one line of time, as NumPy arrays: what two sets of them share, and what one has and another lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    import numpy as np

    Ints = np.ndarray[Any, np.dtype[np.int64]]


class Intervals(NamedTuple):
    """Disjoint intervals in order, each with the number of what it is a part of."""

    start: Ints
    end: Ints
    of: Ints

    @classmethod
    def outermost(cls, start: Ints, end: Ints) -> Self:
        """Put intervals in order; of one that overlaps those before it, what is after their ends is left."""
        import numpy as np

        order = np.argsort(start, kind="stable")
        if (np.diff(start[order]) == 0).any():  # two keys take five times as long
            order = np.lexsort((-end, start))
        start, end = start[order], end[order]
        if (end > start).all() and (start[1:] >= end[:-1]).all():  # most often, and the rest takes three times as long
            return cls(start, end, order)
        start[1:] = np.maximum(start[1:], np.maximum.accumulate(end)[:-1])
        kept = end > start
        return cls(start[kept], end[kept], order[kept])

    def shared(self, other: Intervals) -> tuple[Self, Ints]:
        """Cut these, which may overlap, to another set: the parts, and for each which of the others it lies in."""
        import numpy as np

        first = np.searchsorted(other.end, self.start, side="right")
        count = np.maximum(np.searchsorted(other.start, self.end) - first, 0)
        count[self.end <= self.start] = 0
        mine = np.repeat(np.arange(len(count)), count)
        theirs = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count - first, count)
        start = np.maximum(self.start[mine], other.start[theirs])
        end = np.minimum(self.end[mine], other.end[theirs])
        return type(self)(start, end, self.of[mine]), other.of[theirs]

    def without(self, other: Intervals) -> Self:
        """Cut another set out of these."""
        import numpy as np

        limits = np.iinfo(np.int64)
        between = Intervals(
            np.concatenate(([limits.min], other.end)), np.concatenate((other.start, [limits.max])), other.of[:0]
        )
        between = between._replace(of=np.arange(len(between.start)))
        kept = between.end > between.start
        parts, _ = self.shared(Intervals(*(values[kept] for values in between)))
        return parts
