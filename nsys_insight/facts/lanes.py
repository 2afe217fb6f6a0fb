"""Threads laid one after the other on a single line of time: what is looked up in each is looked up in all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from nsys_insight.facts.intervals import Ints


class Lanes(NamedTuple):
    """Each thread's time from `from_ns` to `to_ns`, which plus `shift_ns` is its place on the line, from 0 on."""

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
        """Give what leads from a time of each of these threads, all of them in lanes, to its place."""
        import numpy as np

        shift: Ints = self.shift_ns[np.searchsorted(self.thread, thread)]
        return shift

    def place(self, thread: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Put intervals of threads on the line, as far as they lie in a lane for some time; and which these are."""
        import numpy as np

        if len(self.thread) == 1:  # most often: then nothing is to be looked up
            lane = np.zeros(1, dtype=np.int64)
        else:
            lane = np.minimum(np.searchsorted(self.thread, thread), len(self.thread) - 1)
        meets = (thread == self.thread[lane]) & (end > start) & (end > self.from_ns[lane]) & (start < self.to_ns[lane])
        (placed,) = np.nonzero(meets)
        lane = lane if len(self.thread) == 1 else lane[placed]
        first, last, shift = self.from_ns[lane], self.to_ns[lane], self.shift_ns[lane]
        return np.maximum(start[placed], first) + shift, np.minimum(end[placed], last) + shift, placed
