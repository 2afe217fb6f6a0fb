"""Collectives of several ranks matched with each other: by communicator and order, where the times bear it out.

Ranks call the collectives of a communicator in one order, but their captures need not begin with the same one. A rank
is laid beside the others so that operations and sizes agree and that the ends do: everybody leaves together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.ranks.clocks import fit
from nsys_insight.facts.ranks.rank import TOGETHER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from nsys_insight.facts.ranks.rank import Ints, Rank

# So many collectives have to be common to two ranks, and so many of them to overlap in time.
_LEAST, _OVERLAPPING = 3, 0.9
# A capture begins or ends at most so many collectives before another one.
_FARTHEST = 2_000
# So many ends tell how well two ranks fit. What leaves four times as much over as the best by a straight line is not
# tried further, and at most so many ways are: those that the clocks are nearest to.
_SOME, _ROUGHLY, _TRIED = 400, 4.0, 64
# Among alignments nearly as good as the best, the one closest to the clocks is taken; and only if the next one is twice
# as far.
_AS_GOOD, _TICK_NS, _NEARER = 2.0, 2_000, 2.0
# Without the communicator's id, ends of collectives agree within this share of how long they take, or so many ns.
_SHARE, _ENDS_NS = 0.25, 5_000


class _Sequence(NamedTuple):
    """The collectives of a communicator as one rank ran them; operations by their hash."""

    trace: int
    operation: Ints
    is_together: np.ndarray[Any, np.dtype[np.bool_]]
    size: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    def part(self, part: slice) -> _Sequence:
        """Some of them."""
        operation, is_together, size = self.operation[part], self.is_together[part], self.size[part]
        return _Sequence(self.trace, operation, is_together, size, self.start[part], self.end[part])


@dataclass(frozen=True)
class Group:
    """Ranks of a communicator, with their collectives: row by row one, `at` has which kernel it is of each rank.

    -1 is none: its capture does not have it. `ranks` are numbers in the list of all ranks.
    """

    name: str
    ranks: list[int]
    at: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def whole(self) -> Ints:
        """The collectives that all ranks have."""
        import numpy as np

        found: Ints = np.flatnonzero((self.at >= 0).all(axis=1))
        return found


def groups(ranks: Sequence[Rank], start_of: Sequence[int | None]) -> list[Group]:
    """Match the collectives of ranks.

    Args:
        ranks: The ranks.
        start_of: When each trace began, by its host's clock, in ns; None where it does not say.
    """
    members: dict[str, list[int]] = {}
    for number, rank in enumerate(ranks):
        for name in dict.fromkeys(rank.group):
            if name and len(rank.of_group(name)) >= _LEAST:
                members.setdefault(name, []).append(number)
    found = (_group(name, ranks, numbers, start_of) for name, numbers in members.items() if len(numbers) > 1)
    return [group for group in found if group and len(group.ranks) > 1]


def _group(name: str, ranks: Sequence[Rank], numbers: list[int], start_of: Sequence[int | None]) -> Group | None:
    import numpy as np

    kernels = {number: ranks[number].of_group(name) for number in numbers}
    sequences = {number: _sequence(ranks[number], kernels[number]) for number in numbers}
    first = max(numbers, key=lambda number: len(kernels[number]))
    shifts = {first: 0}
    for number in numbers:
        if number == first:
            continue
        one, other = sequences[first], sequences[number]
        if one.trace == other.trace:
            shift = _shift_on_one_clock(one, other)
        else:
            shift = _shift(one, other, apart(start_of[one.trace], start_of[other.trace]))
        if shift is not None and _bears_out(one, other, shift, is_named=not name.startswith("stream ")):
            shifts[number] = shift
    if len(shifts) < 2:
        return None
    low = min(shifts.values())
    high = max(shift + len(kernels[number]) for number, shift in shifts.items())
    members = sorted(shifts)
    at = np.full((high - low, len(members)), -1, dtype=np.int64)
    for column, number in enumerate(members):
        begin = shifts[number] - low
        at[begin : begin + len(kernels[number]), column] = kernels[number]
    return Group(name, members, at)


def _sequence(rank: Rank, kernels: Ints) -> _Sequence:
    import numpy as np

    operations = [rank.operation[at] for at in kernels]
    return _Sequence(
        rank.trace,
        np.array([hash(operation) for operation in operations], dtype=np.int64),
        np.array([operation in TOGETHER for operation in operations], dtype=bool),
        rank.size[kernels],
        rank.start[kernels],
        rank.end[kernels],
    )


def apart(one: int | None, other: int | None) -> int | None:
    """How much later the second trace began."""
    return None if one is None or other is None else other - one


def _beside(one: _Sequence, other: _Sequence, shift: int) -> tuple[_Sequence, _Sequence]:
    """What lies beside each other where the other one begins `shift` after the one."""
    begin = max(shift, 0)
    end = max(min(len(one), shift + len(other)), begin)
    return one.part(slice(begin, end)), other.part(slice(begin - shift, end - shift))


def _shift_on_one_clock(one: _Sequence, other: _Sequence) -> int | None:
    """Tell at which collective of the one the other one's begin: where its first few end."""
    import numpy as np

    ends = other.end[: 4 * _LEAST]
    near = np.clip(np.searchsorted(one.end, ends), 1, len(one) - 1)
    near -= np.abs(one.end[near - 1] - ends) <= np.abs(one.end[near] - ends)
    shifts, counts = np.unique(near - np.arange(len(ends)), return_counts=True)
    shift = int(shifts[np.argmax(counts)])
    return shift if _agree(*_beside(one, other, shift)) else None


def _shift(one: _Sequence, other: _Sequence, began_apart: int | None) -> int | None:
    """Tell the same where each has a clock of its own: where the ends differ by one offset and a drift."""
    scores = []
    for shift in _worth_fitting(one, other, began_apart or 0):
        mine, its = _beside(one, other, shift)
        some = slice(None, None, max(1, len(mine) // _SOME))
        clock = fit(mine.end[some], its.end[some])
        scores.append((clock.error, shift, abs(clock.offset + began_apart) if began_apart is not None else 0.0))
    if not scores:
        return None
    best = min(error for error, _, _ in scores)
    as_good = [score for score in scores if score[0] <= _AS_GOOD * best + _TICK_NS]
    if len(as_good) > 1 and began_apart is None:
        # Nothing tells one from the other but that both may have been captured from the first to the last one.
        return 0 if len(one) == len(other) and any(shift == 0 for _, shift, _ in as_good) else None
    nearest, *others = sorted(as_good, key=lambda score: score[2])
    return nearest[1] if not others or others[0][2] >= _NEARER * nearest[2] else None


def _worth_fitting(one: _Sequence, other: _Sequence, began_apart: int) -> list[int]:
    """Choose the ways to lay one beside the other that may be right: by a straight line, which is quick to fit."""
    import numpy as np

    rough = []
    what, other_what = _numbered(one, other)
    is_all = bool((one.size >= 0).all() and (other.size >= 0).all())
    # All that is done here is done thousands of times for each rank.
    for shift in range(max(_LEAST - len(other), -_FARTHEST), min(len(one) - _LEAST, _FARTHEST) + 1):
        begin = max(shift, 0)
        end = min(len(one), shift + len(other))
        here, there = slice(begin, end), slice(begin - shift, end - shift)
        if 2 * (end - begin) < min(len(one), len(other)) or end - begin < _LEAST:
            continue
        if not np.array_equal(what[here], other_what[there]):
            continue
        if not is_all and not _agree(one.part(here), other.part(there)):
            continue
        some = max(1, (end - begin) // _SOME)
        mine, its = one.end[begin:end:some], other.end[begin - shift : end - shift : some]
        at = (mine - mine[0]).astype(float)
        apart_ns = (its - mine).astype(float)
        at -= at.mean()
        off = apart_ns.mean()
        slope = (at @ apart_ns) / max(at @ at, 1.0)
        left = apart_ns - off - slope * at
        rough.append((float(np.sqrt((left @ left) / len(left))), shift, abs(off + began_apart)))
    best = min((left for left, _, _ in rough), default=0.0)
    near = [found for found in rough if found[0] <= _ROUGHLY * best + _ROUGHLY * _TICK_NS]
    return [shift for _, shift, _ in sorted(near, key=lambda found: found[2])[:_TRIED]]


def _numbered(one: _Sequence, other: _Sequence) -> tuple[Ints, Ints]:
    """Number what two ranks' collectives are: operation and size, or the operation alone where a size is not known."""
    import numpy as np

    sizes = np.concatenate((one.size, other.size))
    pairs = np.column_stack(
        (np.concatenate((one.operation, other.operation)), sizes if (sizes >= 0).all() else 0 * sizes)
    )
    numbers: Ints = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers[: len(one)], numbers[len(one) :]


def _agree(one: _Sequence, other: _Sequence) -> bool:
    """Tell whether operations and sizes are the same."""
    import numpy as np

    known = (one.size >= 0) & (other.size >= 0)
    return bool(
        len(one) >= _LEAST
        and np.array_equal(one.operation, other.operation)
        and np.array_equal(one.size[known], other.size[known])
    )


def _bears_out(one: _Sequence, other: _Sequence, shift: int, *, is_named: bool) -> bool:
    """Tell whether the times bear it out that these are the same collectives: both ranks are in them at a time."""
    import numpy as np

    mine, its = _beside(one, other, shift)
    chosen = mine.is_together if np.count_nonzero(mine.is_together) >= _LEAST else np.ones(len(mine), dtype=bool)
    clock = fit(mine.end[chosen], its.end[chosen])
    is_one_clock = one.trace == other.trace
    start, end = (its.start, its.end) if is_one_clock else (clock.apply(its.start), clock.apply(its.end))
    overlapping = np.maximum(mine.start, start) <= np.minimum(mine.end, end)
    if np.count_nonzero(overlapping) < _OVERLAPPING * len(mine):
        return False
    longest = np.maximum(mine.end - mine.start, end - start)
    return is_named or clock.error <= max(_ENDS_NS, _SHARE * float(np.median(longest)))
