"""API calls around gaps: which one launched what ended a gap, and how long each lasted in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from nsys_insight.facts.intervals import Intervals
from nsys_insight.ingest.source import ANY_TIME

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.facts.intervals import Ints
    from nsys_insight.facts.reading import Columns


class LaunchCalls(NamedTuple):
    """The launch call of each of some operations: its thread, -1 where the trace lacks the call, and its times.

    They are looked up by their numbers in sorted ones, where SQL would hash all calls.
    """

    thread: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, wanted: Ints, near: Columns, look_up: Callable[[Ints], Columns]) -> Self:
        """Find the calls with some numbers.

        Args:
            wanted: The numbers; one below all others is of no call.
            near: Calls by `call`, their number, `thread`, `start_ns` and `end_ns`: most are among these.
            look_up: Gives calls by some numbers, in the same columns.
        """
        import numpy as np

        found = cls(*(np.full(len(wanted), -1, dtype=np.int64) for _ in cls._fields))
        left = found.fill(wanted, np.nonzero(wanted > ANY_TIME[0])[0], near)
        if len(left):
            found.fill(wanted, left, look_up(np.unique(wanted[left])))
        return found

    def fill(self, wanted: Ints, left: Ints, calls: Columns) -> Ints:
        """Fill in what is among some calls; return which of those that were left are not."""
        import numpy as np

        order = np.argsort(calls["call"], kind="stable")
        numbers = calls["call"][order]
        at = np.searchsorted(numbers, wanted[left])
        is_there = at < len(numbers)
        is_there[is_there] = numbers[at[is_there]] == wanted[left[is_there]]
        which = order[at[is_there]]
        for values, column in ((self.thread, "thread"), (self.start, "start_ns"), (self.end, "end_ns")):
            values[left[is_there]] = calls[column][which]
        return left[~is_there]


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
        """Cut calls to intervals on the same timeline."""
        parts, which = intervals.shared(Intervals.outermost(start, end))
        return cls(*parts, host[which])

    def time(self, kind: int, intervals: int) -> Ints:
        """How long the threads were in calls of a kind in each of so many intervals, right up to a hundred days."""
        import numpy as np

        is_kind = self.host == kind
        if not is_kind.any():
            return np.zeros(intervals, dtype=np.int64)
        return np.bincount(self.of, np.where(is_kind, self.end - self.start, 0), intervals).astype(np.int64)
