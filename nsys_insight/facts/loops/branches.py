"""Iterations that begin alike and then take one of a few branches, as the data decide: an if in the loop of a solver.

    a b x  a b y z  a b x  a b x  a b y z      5 iterations that begin with a b

Ways that take turns in a fixed order are no branches: they are a body of several parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.arrays import np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.signedinteger[Any]]

# Fewer iterations do not tell data from an order.
MIN_BRANCHING = 10
# This share of the iterations takes one of up to this number of branches. It breaks for programs with two conditions in
# a loop that take all their combinations, and with three.
COVERED_SHARE, MAX_BRANCHES = 0.9, 4
# A branch that more of them take is the loop, and the others are the same with rare work after it.
MAX_BRANCH_SHARE = 0.75
# What all iterations begin with has this number of terms, and this share of their operations. Iterations that share
# less may be calls of one function at several places.
MIN_COMMON_TERMS, MIN_COMMON_SHARE = 3, 0.5
# Branches that come back after up to this number of iterations take turns.
MAX_TURNS = 8
# The symbols that occur most often are tried.
TRIED_SYMBOLS = 60
_BASE = np.uint64(6_364_136_223_846_793_005)
_INVERSE = np.uint64(pow(int(_BASE), -1, 2**64))


class Branches(NamedTuple):
    """The terms that iterations start with, where the last one ends, and the terms of one iteration of each branch."""

    starts: Ints
    end: int
    spans: list[slice]


def find_branches(symbol: Ints, first: Ints, is_mark: NDArray[np.bool_]) -> Branches | None:
    """Return the branching iterations that cover most of the terms; None if nothing branches.

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
    best: tuple[tuple[int, int], Branches] | None = None
    for name in names[np.argsort(-counts)][:TRIED_SYMBOLS].tolist():
        starts = np.flatnonzero(symbol == name)
        if starts[-1] - starts[0] < MIN_COMMON_SHARE * len(symbol):
            continue
        span_hashes = (hashes[starts[1:]] - hashes[starts[:-1]]) * inverse_powers[starts[:-1]]
        _, samples, branch, branch_counts = np.unique(
            span_hashes, return_index=True, return_inverse=True, return_counts=True
        )
        frequent = np.argsort(-branch_counts)[:MAX_BRANCHES]
        frequent = frequent[branch_counts[frequent] > 1]
        if len(frequent) < 2 or branch_counts[frequent].sum() < COVERED_SHARE * len(branch):
            continue
        spans = [slice(int(starts[sample]), int(starts[sample + 1])) for sample in samples[frequent]]
        branches = [symbol[span].tolist() for span in spans]
        beginning = _find_beginnings(branches)
        short_branch = np.full(len(branch_counts), -1)
        short_branch[frequent] = beginning
        ids = short_branch[branch]
        if np.bincount(ids + 1).max() > MAX_BRANCH_SHARE * len(ids) or _take_turns(ids):
            continue
        common = _count_common([branches[number] for number in set(beginning)])
        ends = np.minimum(starts[:-1] + common, len(first) - 1)
        shared = (first[ends] - first[starts[:-1]]).sum() if common >= MIN_COMMON_TERMS else 0
        if shared < MIN_COMMON_SHARE * (first[starts[-1]] - first[starts[0]]):
            continue
        # Fewer iterations begin with what only one branch has; each of them holds several of the others.
        rank = (len(starts), common)
        if best is None or rank > best[0]:
            end = _find_end(symbol[starts[-1] :].tolist(), branches, common)
            best = (rank, Branches(starts if end else starts[:-1], int(starts[-1]) + end, spans))
    return best[1] if best else None


def _list_powers(base: np.uint64, count: int) -> NDArray[np.uint64]:
    """Return the powers of a base from 0 up to `count`, modulo 2^64."""
    return np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(count, base)]))


def _take_turns(branch: Ints) -> bool:
    """Return whether the branches come back in a fixed order."""
    return any(np.mean(branch[turns:] == branch[:-turns]) >= COVERED_SHARE for turns in range(1, MAX_TURNS + 1))


def _find_beginnings(branches: Sequence[Sequence[int]]) -> list[int]:
    """Return for each branch the shortest branch that it begins with.

    What comes after it may be work around the loop: a layer and the end of the step are no two branches.
    """
    order = sorted(range(len(branches)), key=lambda number: len(branches[number]))
    return [next(short for short in order if branch[: len(branches[short])] == branches[short]) for branch in branches]


def _count_common(branches: Sequence[Sequence[int]]) -> int:
    """Return how many terms the branches begin with."""
    return next(i for i in range(len(branches[0])) if len({branch[i] for branch in branches}) > 1)


def _find_end(terms: list[int], branches: Sequence[list[int]], common: int) -> int:
    """Return how far the last iteration goes: as far as one of the branches, or as what all have in common."""
    lengths = [len(branch) for branch in branches if terms[: len(branch)] == branch]
    return max(lengths, default=common if terms[:common] == branches[0][:common] else 0)
