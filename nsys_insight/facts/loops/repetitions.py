"""Repetitions in a sequence of symbols: which periods it may have, and where the same or similar iterations occur."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.signedinteger[Any]]

# A loop has at least this number of iterations.
MIN_ITERATIONS = 3
# An iteration belongs to a loop if this share of its terms is that of the body.
SIMILAR_ITERATION = 0.7
# Lengths of the contexts whose distances propose periods, and how many periods of each are tried.
CONTEXTS, PERIODS = (6, 3, 1), 24
# Above this length, periods are proposed by three windows of a third of it.
PROPOSED_FROM = 450_000


def propose_periods(symbol: Ints) -> list[int]:
    """Return the distances at which contexts come back most often, ascending."""
    if len(symbol) > PROPOSED_FROM:
        third, middle = PROPOSED_FROM // 3, len(symbol) // 2
        windows = [symbol[:third], symbol[middle - third // 2 : middle + third // 2], symbol[-third:]]
        return sorted({period for window in windows for period in propose_periods(window)})
    periods: set[int] = set()
    for size in CONTEXTS:
        count = len(symbol) - size + 1
        if count < 2:
            continue
        context = np.zeros(count, np.uint64)
        for offset in range(size):
            context = context * np.uint64(1_000_003) + symbol[offset : offset + count].astype(np.uint64) + np.uint64(7)
        order = np.argsort(context, kind="stable")
        distances = np.diff(order)[context[order[1:]] == context[order[:-1]]]
        if not len(distances):
            continue
        counts = np.bincount(distances)
        for period in np.argsort(-counts)[:PERIODS].tolist():
            if counts[period] >= max(2, min(period, 50)):
                periods.add(period)
    return sorted(periods)


def find_occurrences(symbol: Ints, body: Sequence[int]) -> Ints:
    """Return where a body occurs, without overlaps."""
    period = len(body)
    positions = np.flatnonzero(symbol[: len(symbol) - period + 1] == body[0])
    for offset in range(1, period):
        positions = positions[symbol[positions + offset] == body[offset]]
    if len(positions) and (np.diff(positions) < period).any():
        separate = [int(positions[0])]
        for position in positions[1:].tolist():
            if position >= separate[-1] + period:
                separate.append(position)
        positions = np.array(separate)
    return positions


def choose_rotation(
    symbol: Ints, period: int, regions: Sequence[tuple[int, int]], ends: Collection[int] = ()
) -> list[int]:
    """Return the body as most of its repetitions begin or end; each region of repetitions has two votes.

    A single region has one vote for each of two bodies if it begins within an iteration. Then the body that ends with
    more of the symbols `ends` is chosen.
    """
    votes: Counter[tuple[int, ...]] = Counter()
    for start, stop in regions:
        votes[tuple(symbol[start : start + period].tolist())] += 1
        votes[tuple(symbol[stop - period : stop].tolist())] += 1
    best, _ = max(votes.items(), key=lambda vote: (vote[1], _count_ends(vote[0], ends)))
    return list(best)


def _count_ends(body: Sequence[int], ends: Collection[int]) -> int:
    return next((number for number, name in enumerate(reversed(body)) if name not in ends), len(body))


def canonicalize(body: Sequence[int]) -> tuple[int, ...]:
    """Return the least rotation of a body, which stands for all of them (Booth, 1980)."""
    size = len(body)
    first, second, length = 0, 1, 0
    while first < size and second < size and length < size:
        left, right = body[(first + length) % size], body[(second + length) % size]
        if left == right:
            length += 1
            continue
        if left > right:
            first += length + 1
        else:
            second += length + 1
        second += first == second
        length = 0
    start = min(first, second)
    return (*body[start:], *body[:start])


def compare_spans(symbol: Ints, marks: Ints, minor: Collection[int] = ()) -> tuple[NDArray[np.bool_], Counter[int]]:
    """Return which spans between marks are similar to most spans, and how often each symbol occurs in such a span."""
    spans = len(marks) - 1
    span_symbols = symbol[marks[0] : marks[-1]]
    base = int(span_symbols.max()) + 1
    pairs, counts = np.unique(np.repeat(np.arange(spans), np.diff(marks)) * base + span_symbols, return_counts=True)
    span, name = pairs // base, pairs % base
    by_symbol: dict[int, list[int]] = defaultdict(list)
    for key, count in zip(name.tolist(), counts.tolist(), strict=True):
        by_symbol[key].append(count)
    body: Counter[int] = Counter()
    for key, values in by_symbol.items():
        median = sorted([0] * (spans - len(values)) + values)[spans // 2]
        if median:
            body[key] = median
    common_counts = np.minimum(counts, [body[key] for key in name.tolist()])
    shared = np.bincount(span, common_counts, minlength=spans)
    is_similar = shared >= SIMILAR_ITERATION * np.maximum(np.diff(marks), body.total())
    # Equal copies and waits around other kernels are not the same iteration.
    is_major = ~np.isin(name, list(minor))
    majors = np.bincount(span[is_major], counts[is_major], minlength=spans)
    shared_majors = np.bincount(span[is_major], common_counts[is_major], minlength=spans)
    return is_similar & (2 * shared_majors >= majors), body


def find_stretches(is_similar: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return stretches of similar iterations, by their first and last; up to two different ones may lie between two."""
    stretches: list[list[int]] = []
    for number in np.flatnonzero(is_similar).tolist():
        if stretches and number - stretches[-1][1] <= 3:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    return [(first, last) for first, last in stretches if last - first + 1 >= MIN_ITERATIONS - 1]
