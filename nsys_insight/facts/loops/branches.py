"""Iterations that begin alike and then take one of a few ways, as the data decide: an if in the loop of a solver.

    a b x  a b y z  a b x  a b x  a b y z      5 iterations that begin with a b

Ways that take turns in a fixed order are no branches: they are a body of several parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

# Fewer iterations do not tell data from an order.
MIN_BRANCHING = 10
# This share of the iterations takes one of at most so many ways. It breaks for programs with two conditions in a loop
# that take all their combinations, and with three.
MOST, MAX_WAYS = 0.9, 4
# A way that more of them take is the loop, and the others are the same with rare work after it.
MAX_USUAL = 0.75
# What all iterations begin with has this number of terms, and this share of their operations. Iterations that share
# less may be calls of one function at several places.
MIN_COMMON_TERMS, MIN_COMMON_SHARE = 3, 0.5
# Ways that come back after up to this number of iterations take turns.
MAX_TURNS = 8
# The symbols that occur most often are tried.
TRIED_SYMBOLS = 60
_BASE = np.uint64(6_364_136_223_846_793_005)
_INVERSE = np.uint64(pow(int(_BASE), -1, 2**64))


class Branches(NamedTuple):
    """The terms that iterations start with, where the last one ends, and the terms of one iteration of each way."""

    starts: Ints
    end: int
    ways: list[slice]


def find_branches(symbol: Ints, first: Ints, is_mark: NDArray[np.bool_]) -> Branches | None:
    """Return the branching iterations that cover most of the terms; None if there are none.

    Args:
        symbol: What the terms are: equal for those that may replace each other.
        first: The first operation of each term.
        is_mark: Whether an iteration may begin with the term.
    """
    names, counts = np.unique(symbol[is_mark], return_counts=True)
    is_frequent = counts >= MIN_BRANCHING
    names, counts = names[is_frequent], counts[is_frequent]
    powers, inverse_powers = _list_powers(_BASE, len(symbol)), _list_powers(_INVERSE, len(symbol))
    terms = np.cumsum((symbol.astype(np.uint64) + np.uint64(1)) * powers[:-1])
    hashes = np.concatenate([np.zeros(1, np.uint64), terms])
    best: tuple[int, Branches] | None = None
    for name in names[np.argsort(-counts)][:TRIED_SYMBOLS].tolist():
        starts = np.flatnonzero(symbol == name)
        if starts[-1] - starts[0] < MIN_COMMON_SHARE * len(symbol):
            continue
        span_hashes = (hashes[starts[1:]] - hashes[starts[:-1]]) * inverse_powers[starts[:-1]]
        _, samples, way, way_counts = np.unique(span_hashes, return_index=True, return_inverse=True, return_counts=True)
        usual = np.argsort(-way_counts)[:MAX_WAYS]
        usual = usual[way_counts[usual] > 1]
        if len(usual) < 2 or way_counts[usual].sum() < MOST * len(way):
            continue
        spans = [slice(int(starts[sample]), int(starts[sample + 1])) for sample in samples[usual]]
        ways = [symbol[span].tolist() for span in spans]
        beginning = _find_beginnings(ways)
        short_way = np.full(len(way_counts), -1)
        short_way[usual] = beginning
        ids = short_way[way]
        if np.bincount(ids + 1).max() > MAX_USUAL * len(ids) or _take_turns(ids):
            continue
        common = _count_common([ways[number] for number in set(beginning)])
        shared = (first[starts[:-1] + common] - first[starts[:-1]]).sum() if common >= MIN_COMMON_TERMS else 0
        if shared < MIN_COMMON_SHARE * (first[starts[-1]] - first[starts[0]]):
            continue
        if best is None or common > best[0]:
            end = _find_end(symbol[starts[-1] :].tolist(), ways, common)
            best = (common, Branches(starts if end else starts[:-1], int(starts[-1]) + end, spans))
    return best[1] if best else None


def _list_powers(base: np.uint64, count: int) -> NDArray[np.uint64]:
    """Return the powers of a base from 0 up to `count`, modulo 2^64."""
    return np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(count, base)]))


def _take_turns(way: Ints) -> bool:
    """Return whether the ways come back in a fixed order."""
    return any(np.mean(way[turns:] == way[:-turns]) >= MOST for turns in range(1, MAX_TURNS + 1))


def _find_beginnings(ways: Sequence[Sequence[int]]) -> list[int]:
    """Return for each way the shortest way that it begins with.

    What comes after it may be work around the loop: a layer and the end of the step are no two ways.
    """
    order = sorted(range(len(ways)), key=lambda number: len(ways[number]))
    return [next(short for short in order if way[: len(ways[short])] == ways[short]) for way in ways]


def _count_common(ways: Sequence[Sequence[int]]) -> int:
    """Return how many terms the ways begin with."""
    return next(i for i in range(len(ways[0])) if len({way[i] for way in ways}) > 1)


def _find_end(terms: list[int], ways: Sequence[list[int]], common: int) -> int:
    """Return how far the last iteration goes: as far as one of the ways, or as what all have in common."""
    lengths = [len(way) for way in ways if terms[: len(way)] == way]
    return max(lengths, default=common if terms[:common] == ways[0][:common] else 0)
