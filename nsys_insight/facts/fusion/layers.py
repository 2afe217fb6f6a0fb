"""The layers of a step: the parts of a sequence that are repetitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# How often the rarest operation of a layer comes in it, at most.
PER_LAYER = 8


@dataclass(frozen=True, order=True)
class Layers:
    """A part of a stream in which `count` periods follow each other."""

    start: int
    period: int
    count: int


def layers_of(tokens: Sequence[int]) -> list[Layers]:
    """Find the parts of a sequence that are repetitions, the largest first cut, in their order.

    A part is one only if it is a quarter of what is looked at, and 8 operations: two kernels twice are no layers.
    """
    found: list[Layers] = []
    parts = [(0, len(tokens))]
    while parts:
        start, end = parts.pop()
        tried = [_longest(tokens, start, end, period) for period in _periods(tokens[start:end])]
        best = max(
            (layers for layers in tried if layers.count > 1),
            key=lambda layers: (layers.period * layers.count, -layers.period),
            default=None,
        )
        if best is None or best.period * best.count < max(8, (end - start) / 4):
            continue
        found.append(best)
        parts += [(start, best.start), (best.start + best.period * best.count, end)]
    return sorted(found)


def _periods(tokens: Sequence[int]) -> list[int]:
    """The distances after which tokens come back most: the next time, or up to the PER_LAYER-th next."""
    places: dict[int, list[int]] = defaultdict(list)
    for at, token in enumerate(tokens):
        places[token].append(at)
    votes: Counter[int] = Counter()
    for found in places.values():
        for times in range(1, min(PER_LAYER, len(found) - 1) + 1):
            distances = Counter(later - at for at, later in zip(found, found[times:], strict=False))
            ((distance, often),) = distances.most_common(1)
            if 2 * often >= len(found) - times:
                votes[distance] += often
    return [distance for distance, _ in votes.most_common(30)]


def _longest(tokens: Sequence[int], start: int, end: int, period: int) -> Layers:
    """The longest part in which every token comes back after the period."""
    best, begin = Layers(start, period, 0), start
    for at in range(start, end):
        if at + period < end and tokens[at] == tokens[at + period]:
            continue
        count = (at - begin) // period + 1 if at > begin else 0
        if count > best.count:
            best = Layers(begin, period, count)
        begin = at + 1
    return best
