"""Match the collectives of several ranks with each other: by communicator and order, if the times agree.

Ranks call the collectives of a communicator in the same order, but their captures may begin at different collectives.
Each rank is shifted against the others so that operations, sizes and ends agree: all ranks leave a collective together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.arrays import Ints, np
from nsys_insight.facts.ranks.clocks import fit
from nsys_insight.facts.ranks.rank import SYNCHRONIZING, Rank

if TYPE_CHECKING:
    from collections.abc import Sequence


# Two ranks need at least this number of common collectives, and this share of them has to overlap in time.
MIN_COMMON, _MIN_OVERLAP = 3, 0.9
# A capture begins or ends at most this number of collectives before another one.
_MAX_SHIFT = 2_000
# Number of ends to compare for one shift; factor over the smallest residual of a straight line above which a shift is
# dropped; number of shifts to fit with a clock at most, those closest to the traces' own clocks.
_SAMPLE, _ROUGH_FACTOR, _MAX_FITS = 400, 4.0, 64
# Among shifts nearly as good as the best, take the one closest to the clocks; but only if the next one is twice as far.
_SIMILAR_FACTOR, _TICK_NS, _CLOSER_FACTOR = 2.0, 2_000, 2.0
# Without the communicator's id, the ends of collectives have to agree within this share of their length, or within
# this number of ns.
_ENDS_SHARE, _ENDS_NS = 0.25, 5_000


class _Sequence(NamedTuple):
    """The collectives of a communicator as one rank ran them. An operation is the hash of its name."""

    trace: int
    operation: Ints
    is_synchronizing: np.ndarray[Any, np.dtype[np.bool_]]
    size: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    def cut_rows(self, rows: slice) -> _Sequence:
        """Return a contiguous segment."""
        operation, is_synchronizing, size = self.operation[rows], self.is_synchronizing[rows], self.size[rows]
        return _Sequence(self.trace, operation, is_synchronizing, size, self.start[rows], self.end[rows])


@dataclass(frozen=True)
class Group:
    """Ranks of a communicator with their matched collectives.

    `kernels` has a row for each collective and a column for each rank: the index of the rank's kernel, or -1 where its
    capture lacks the collective. `ranks` are indices in the list of all ranks.
    """

    name: str
    ranks: list[int]
    kernels: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def complete_rows(self) -> Ints:
        """Return the rows of the collectives that all ranks have."""
        rows: Ints = np.flatnonzero((self.kernels >= 0).all(axis=1))
        return rows


def match_groups(ranks: Sequence[Rank], trace_starts: Sequence[int | None]) -> list[Group]:
    """Match the collectives of ranks.

    Args:
        ranks: The ranks.
        trace_starts: When each trace began, on its host's clock, in ns; None where the trace lacks it.
    """
    members: dict[str, list[int]] = {}
    for number, rank in enumerate(ranks):
        for name in dict.fromkeys(rank.group):
            if name and len(rank.find_collectives(name)) >= MIN_COMMON:
                members.setdefault(name, []).append(number)
    groups = (_match_group(name, ranks, numbers, trace_starts) for name, numbers in members.items() if len(numbers) > 1)
    return [group for group in groups if group and len(group.ranks) > 1]


def _match_group(
    name: str, ranks: Sequence[Rank], numbers: list[int], trace_starts: Sequence[int | None]
) -> Group | None:
    kernels = {number: ranks[number].find_collectives(name) for number in numbers}
    sequences = {number: _build_sequence(ranks[number], kernels[number]) for number in numbers}
    longest = max(numbers, key=lambda number: len(kernels[number]))
    shifts = {longest: 0}
    for number in numbers:
        if number == longest:
            continue
        reference, other = sequences[longest], sequences[number]
        if reference.trace == other.trace:
            shift = _find_shift_on_one_clock(reference, other)
        else:
            start_offset = subtract_starts(trace_starts[reference.trace], trace_starts[other.trace])
            shift = _find_shift(reference, other, start_offset)
        if shift is not None and _has_plausible_times(reference, other, shift, is_named=not name.startswith("stream ")):
            shifts[number] = shift
    if len(shifts) < 2:
        return None
    low = min(shifts.values())
    high = max(shift + len(kernels[number]) for number, shift in shifts.items())
    members = sorted(shifts)
    table = np.full((high - low, len(members)), -1, dtype=np.int64)
    for column, number in enumerate(members):
        begin = shifts[number] - low
        table[begin : begin + len(kernels[number]), column] = kernels[number]
    return Group(name, members, table)


def _build_sequence(rank: Rank, kernels: Ints) -> _Sequence:
    operations = [rank.operation[kernel] for kernel in kernels]
    return _Sequence(
        rank.trace,
        np.array([hash(operation) for operation in operations], dtype=np.int64),
        np.array([operation in SYNCHRONIZING for operation in operations], dtype=bool),
        # In an exchange, each rank sends its own amount.
        np.where([operation == "AlltoAll" for operation in operations], -1, rank.size[kernels]),
        rank.start[kernels],
        rank.end[kernels],
    )


def subtract_starts(first: int | None, second: int | None) -> int | None:
    """Return how much later the second trace began than the first, in ns; None if either start is unknown."""
    return None if first is None or second is None else second - first


def _cut_to_overlap(reference: _Sequence, other: _Sequence, shift: int) -> tuple[_Sequence, _Sequence]:
    """Cut two sequences to the rows they have in common if `other` begins at row `shift` of the reference."""
    begin = max(shift, 0)
    end = max(min(len(reference), shift + len(other)), begin)
    return reference.cut_rows(slice(begin, end)), other.cut_rows(slice(begin - shift, end - shift))


def _find_shift_on_one_clock(reference: _Sequence, other: _Sequence) -> int | None:
    """Find the row of the reference at which `other` begins: the row that ends when its first few collectives do."""
    ends = other.end[: 4 * MIN_COMMON]
    nearest = np.clip(np.searchsorted(reference.end, ends), 1, len(reference) - 1)
    nearest -= np.abs(reference.end[nearest - 1] - ends) <= np.abs(reference.end[nearest] - ends)
    shifts, counts = np.unique(nearest - np.arange(len(ends)), return_counts=True)
    shift = int(shifts[np.argmax(counts)])
    return shift if _has_same_calls(*_cut_to_overlap(reference, other, shift)) else None


def _find_shift(reference: _Sequence, other: _Sequence, start_offset: int | None) -> int | None:
    """Find the same row if each trace has its own clock: where the ends differ only by an offset and a drift."""
    scores = []
    for shift in _select_shifts(reference, other, start_offset or 0):
        reference_rows, other_rows = _cut_to_overlap(reference, other, shift)
        sample = slice(None, None, max(1, len(reference_rows) // _SAMPLE))
        clock = fit(reference_rows.end[sample], other_rows.end[sample])
        clock_distance = abs(clock.offset + start_offset) if start_offset is not None else 0.0
        scores.append((clock.error, shift, clock_distance))
    if not scores:
        return None
    best = min(error for error, _, _ in scores)
    similar = [score for score in scores if score[0] <= _SIMILAR_FACTOR * best + _TICK_NS]
    if len(similar) > 1 and start_offset is None:
        # Nothing distinguishes the shifts. Equally long sequences may both be complete, from the first collective to
        # the last.
        return 0 if len(reference) == len(other) and any(shift == 0 for _, shift, _ in similar) else None
    nearest, *farther = sorted(similar, key=lambda score: score[2])
    return nearest[1] if not farther or farther[0][2] >= _CLOSER_FACTOR * nearest[2] else None


def _select_shifts(reference: _Sequence, other: _Sequence, start_offset: int) -> list[int]:
    """Select the shifts that may be right by a straight line through the ends, which is quick to fit."""
    rough = []
    reference_kinds, other_kinds = _number_collectives(reference, other)
    has_all_sizes = bool((reference.size >= 0).all() and (other.size >= 0).all())
    # This loop runs thousands of times for each rank.
    for shift in range(max(MIN_COMMON - len(other), -_MAX_SHIFT), min(len(reference) - MIN_COMMON, _MAX_SHIFT) + 1):
        begin = max(shift, 0)
        end = min(len(reference), shift + len(other))
        rows, other_rows = slice(begin, end), slice(begin - shift, end - shift)
        if 2 * (end - begin) < min(len(reference), len(other)) or end - begin < MIN_COMMON:
            continue
        if not np.array_equal(reference_kinds[rows], other_kinds[other_rows]):
            continue
        if not has_all_sizes and not _has_same_calls(reference.cut_rows(rows), other.cut_rows(other_rows)):
            continue
        stride = max(1, (end - begin) // _SAMPLE)
        reference_ends, other_ends = reference.end[begin:end:stride], other.end[begin - shift : end - shift : stride]
        times = (reference_ends - reference_ends[0]).astype(float)
        differences = (other_ends - reference_ends).astype(float)
        times -= times.mean()
        offset = differences.mean()
        slope = (times @ differences) / max(times @ times, 1.0)
        residuals = differences - offset - slope * times
        rough.append((float(np.sqrt((residuals @ residuals) / len(residuals))), shift, abs(offset + start_offset)))
    best = min((error for error, _, _ in rough), default=0.0)
    good = [score for score in rough if score[0] <= _ROUGH_FACTOR * best + _ROUGH_FACTOR * _TICK_NS]
    return [shift for _, shift, _ in sorted(good, key=lambda score: score[2])[:_MAX_FITS]]


def _number_collectives(reference: _Sequence, other: _Sequence) -> tuple[Ints, Ints]:
    """Assign a number to each kind of collective: operation and size, or only the operation if a size is unknown."""
    sizes = np.concatenate((reference.size, other.size))
    pairs = np.column_stack(
        (np.concatenate((reference.operation, other.operation)), sizes if (sizes >= 0).all() else 0 * sizes)
    )
    numbers: Ints = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers[: len(reference)], numbers[len(reference) :]


def _has_same_calls(reference: _Sequence, other: _Sequence) -> bool:
    """Return whether operations and known sizes are equal."""
    has_sizes = (reference.size >= 0) & (other.size >= 0)
    return bool(
        len(reference) >= MIN_COMMON
        and np.array_equal(reference.operation, other.operation)
        and np.array_equal(reference.size[has_sizes], other.size[has_sizes])
    )


def _has_plausible_times(reference: _Sequence, other: _Sequence, shift: int, *, is_named: bool) -> bool:
    """Return whether the times confirm a match: both ranks are in each collective at the same time."""
    first, second = _cut_to_overlap(reference, other, shift)
    has_enough = np.count_nonzero(first.is_synchronizing) >= MIN_COMMON
    is_fitted = first.is_synchronizing if has_enough else np.ones(len(first), dtype=bool)
    clock = fit(first.end[is_fitted], second.end[is_fitted])
    is_one_clock = reference.trace == other.trace
    start, end = (second.start, second.end) if is_one_clock else (clock.apply(second.start), clock.apply(second.end))
    # The root of a broadcast may leave before the others arrive.
    overlapping = (np.maximum(first.start, start) <= np.minimum(first.end, end))[is_fitted]
    if np.count_nonzero(overlapping) < _MIN_OVERLAP * len(overlapping):
        return False
    longest = np.maximum(first.end - first.start, end - start)
    return is_named or clock.error <= max(_ENDS_NS, _ENDS_SHARE * float(np.median(longest)))
