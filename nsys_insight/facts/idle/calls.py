"""API calls around gaps: the call that launched the operation which ends a gap, and the time of each call in a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from nsys_insight.facts.arrays import Columns, Ints, np
from nsys_insight.facts.intervals import Intervals
from nsys_insight.ingest.source import ANY_TIME

if TYPE_CHECKING:
    from collections.abc import Callable


class LaunchCalls(NamedTuple):
    """The launch calls of some operations: the thread of each, -1 where the trace lacks the call, and its times.

    They are looked up by a binary search. SQL would hash all calls.
    """

    thread: Ints
    start: Ints
    end: Ints

    @classmethod
    def find(cls, call_numbers: Ints, near_calls: Columns, look_up: Callable[[Ints], Columns]) -> Self:
        """Find calls by their numbers.

        Args:
            call_numbers: The numbers. The lowest possible number stands for no call.
            near_calls: Calls with their number `call`, `thread`, `start_ns` and `end_ns`. Most calls are among these.
            look_up: Returns the calls with the given numbers, in the same columns.
        """
        launches = cls(*(np.full(len(call_numbers), -1, dtype=np.int64) for _ in cls._fields))
        missing = launches.fill(call_numbers, np.nonzero(call_numbers > ANY_TIME[0])[0], near_calls)
        if len(missing):
            launches.fill(call_numbers, missing, look_up(np.unique(call_numbers[missing])))
        return launches

    def fill(self, call_numbers: Ints, missing: Ints, calls: Columns) -> Ints:
        """Fill in the missing calls that are among `calls`. Return the indices of those that are still missing."""
        order = np.argsort(calls["call"], kind="stable")
        numbers = calls["call"][order]
        position = np.searchsorted(numbers, call_numbers[missing])
        is_there = position < len(numbers)
        is_there[is_there] = numbers[position[is_there]] == call_numbers[missing[is_there]]
        call_index = order[position[is_there]]
        for values, column in ((self.thread, "thread"), (self.start, "start_ns"), (self.end, "end_ns")):
            values[missing[is_there]] = calls[column][call_index]
        return missing[~is_there]


class CallsIn(NamedTuple):
    """The pieces of calls in some intervals: the index of the interval, and what the call does (`host`).

    The pieces in an interval do not overlap: a call inside another call does not count.
    """

    start: Ints
    end: Ints
    interval: Ints
    host: Ints

    @classmethod
    def find(cls, intervals: Intervals, start: Ints, end: Ints, host: Ints) -> Self:
        """Cut calls to intervals on the same timeline."""
        pieces, call_index = intervals.intersect(Intervals.make_disjoint(start, end))
        return cls(*pieces, host[call_index])

    def sum_times(self, kind: int, intervals: int) -> Ints:
        """Return the time in calls of a kind in each of `intervals` intervals; exact up to a hundred days."""
        is_kind = self.host == kind
        if not is_kind.any():
            return np.zeros(intervals, dtype=np.int64)
        return np.bincount(self.interval, np.where(is_kind, self.end - self.start, 0), intervals).astype(np.int64)
