"""Intervals on one timeline, as NumPy arrays: union, intersection and difference of sets, and how much they cover."""

from __future__ import annotations

from typing import NamedTuple, Self

from nsys_insight.facts.arrays import Ints, np


class Intervals(NamedTuple):
    """Disjoint intervals in order of time. `owner` is the index of the element that an interval is a part of."""

    start: Ints
    end: Ints
    owner: Ints

    @classmethod
    def make_disjoint(cls, start: Ints, end: Ints) -> Self:
        """Sort intervals, and cut from each one what earlier intervals cover."""
        order = np.argsort(start, kind="stable")
        if (np.diff(start[order]) == 0).any():  # a sort by two keys takes five times as long
            order = np.lexsort((-end, start))
        start, end = start[order], end[order]
        # Usually nothing overlaps. The rest takes three times as long.
        if (end > start).all() and (start[1:] >= end[:-1]).all():
            return cls(start, end, order)
        start[1:] = np.maximum(start[1:], np.maximum.accumulate(end)[:-1])
        has_length = end > start
        return cls(start[has_length], end[has_length], order[has_length])

    def intersect(self, other: Intervals) -> tuple[Self, Ints]:
        """Cut these intervals, which may overlap, to another set.

        Return the pieces, and for each piece the owner of the other set's interval that it lies in.
        """
        first = np.searchsorted(other.end, self.start, side="right")
        count = np.maximum(np.searchsorted(other.start, self.end) - first, 0)
        count[self.end <= self.start] = 0
        own_index = np.repeat(np.arange(len(count)), count)
        other_index = np.arange(len(own_index)) - np.repeat(np.cumsum(count) - count - first, count)
        start = np.maximum(self.start[own_index], other.start[other_index])
        end = np.minimum(self.end[own_index], other.end[other_index])
        return type(self)(start, end, self.owner[own_index]), other.owner[other_index]

    def subtract(self, other: Intervals) -> Self:
        """Cut another set out of these intervals."""
        limits = np.iinfo(np.int64)
        between = Intervals(
            np.concatenate(([limits.min], other.end)), np.concatenate((other.start, [limits.max])), other.owner[:0]
        )
        between = between._replace(owner=np.arange(len(between.start)))
        has_length = between.end > between.start
        pieces, _ = self.intersect(Intervals(*(values[has_length] for values in between)))
        return pieces

    def measure_before(self, times: Ints) -> Ints:
        """Return how much of the disjoint intervals lies before each time, in ns."""
        started = np.searchsorted(self.start, times)
        last_end = np.concatenate((times[:1], self.end))[started] if len(self.end) else times
        covered = np.concatenate(([0], np.cumsum(self.end - self.start)))[started]
        ns: Ints = covered - np.where(started > 0, np.maximum(last_end - times, 0), 0)
        return ns

    def measure_within(self, starts: Ints, ends: Ints) -> Ints:
        """Return how much of the disjoint intervals lies in each window, in ns."""
        ns: Ints = self.measure_before(ends) - self.measure_before(starts)
        return ns

    def find_gaps(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the gaps between the disjoint intervals in a window, longest first."""
        overlaps = (self.end > start) & (self.start < end)
        edges = np.concatenate(([start], np.column_stack((self.start[overlaps], self.end[overlaps])).ravel(), [end]))
        pairs = np.clip(edges, start, end).reshape(-1, 2)
        gaps = [(int(gap_start), int(gap_end)) for gap_start, gap_end in pairs if gap_end > gap_start]
        return sorted(gaps, key=lambda gap: gap[0] - gap[1])


class Tracks(NamedTuple):
    """Threads laid one after the other on a concatenated timeline, so that one search covers all threads.

    The position of a time between `from_ns` and `to_ns` is the time plus `shift_ns`. Positions begin at 0.
    """

    thread: Ints
    from_ns: Ints
    to_ns: Ints
    shift_ns: Ints

    @classmethod
    def lay_out(cls, thread: Ints, start: Ints, end: Ints) -> Self:
        """Lay out the threads of some intervals, each from its first start to its last end."""
        order = np.argsort(thread, kind="stable")
        threads, first_indices = np.unique(thread[order], return_index=True)
        from_ns = np.minimum.reduceat(start[order], first_indices)
        to_ns = np.maximum.reduceat(end[order], first_indices)
        widths = to_ns - from_ns + 1
        return cls(threads, from_ns, to_ns, np.cumsum(widths) - widths - from_ns)

    def find_shift(self, thread: Ints) -> Ints:
        """Return the shift of each of these threads, which all have a track."""
        shift: Ints = self.shift_ns[np.searchsorted(self.thread, thread)]
        return shift

    def project(self, thread: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Cut intervals of threads to the tracks.

        Return the start and end positions of those that overlap a track, and their indices.
        """
        if len(self.thread) == 1:  # the usual case needs no search
            track = np.zeros(1, dtype=np.int64)
        else:
            track = np.minimum(np.searchsorted(self.thread, thread), len(self.thread) - 1)
        overlaps = (
            (thread == self.thread[track]) & (end > start) & (end > self.from_ns[track]) & (start < self.to_ns[track])
        )
        (indices,) = np.nonzero(overlaps)
        track = track if len(self.thread) == 1 else track[indices]
        from_ns, to_ns, shift = self.from_ns[track], self.to_ns[track], self.shift_ns[track]
        return np.maximum(start[indices], from_ns) + shift, np.minimum(end[indices], to_ns) + shift, indices
