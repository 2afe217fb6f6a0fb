"""Intervals on one timeline, as NumPy arrays: what two sets of them share, and what one has and another lacks."""

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


class Tracks(NamedTuple):
    """Threads one after the other on a concatenated timeline: what is looked up in each is looked up in all at once.

    The time of a thread from `from_ns` to `to_ns` plus `shift_ns` is its position on the timeline, from 0 on.
    """

    thread: Ints
    from_ns: Ints
    to_ns: Ints
    shift_ns: Ints

    @classmethod
    def around(cls, thread: Ints, start: Ints, end: Ints) -> Self:
        """Lay out the threads of some intervals, each from its first start to its last end."""
        import numpy as np

        order = np.argsort(thread, kind="stable")
        threads, begins = np.unique(thread[order], return_index=True)
        first, last = np.minimum.reduceat(start[order], begins), np.maximum.reduceat(end[order], begins)
        widths = last - first + 1
        return cls(threads, first, last, np.cumsum(widths) - widths - first)

    def shift_of(self, thread: Ints) -> Ints:
        """Give the offset from times on these threads, which all have a track, to positions on the timeline."""
        import numpy as np

        shift: Ints = self.shift_ns[np.searchsorted(self.thread, thread)]
        return shift

    def place(self, thread: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Give the positions of intervals of threads, as far as they overlap a track; and which of the intervals do."""
        import numpy as np

        if len(self.thread) == 1:  # most often: then nothing is to be looked up
            track = np.zeros(1, dtype=np.int64)
        else:
            track = np.minimum(np.searchsorted(self.thread, thread), len(self.thread) - 1)
        meets = (
            (thread == self.thread[track]) & (end > start) & (end > self.from_ns[track]) & (start < self.to_ns[track])
        )
        (placed,) = np.nonzero(meets)
        track = track if len(self.thread) == 1 else track[placed]
        first, last, shift = self.from_ns[track], self.to_ns[track], self.shift_ns[track]
        return np.maximum(start[placed], first) + shift, np.minimum(end[placed], last) + shift, placed
