"""Estimates and intervals from ranks: right for any distribution, hardly moved by an outlier, the same each time.

Hodges and Lehmann's estimates (1963): the median of the means of all pairs of values, or of the differences between all
pairs of two samples; and the intervals that belong to Wilcoxon's tests, whose distributions are counted out. That of
one sample holds for values that are symmetric about their middle, as differences of two commands that take turns are
where the two do not differ; that of two samples, for samples that differ by a shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Below so many values nothing excludes a middle of 0 with 95 % confidence: 2 of 2^6 = 64 signs are 3 %.
LEAST = 6
# Above this many pairs the normal distribution stands for the counted one, which it then meets to a thousandth.
_COUNTED = 2500


@dataclass(frozen=True)
class Interval:
    """An estimate, and between what the truth lies; infinite where there are too few values to tell."""

    middle: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """Half of its width."""
        return (self.high - self.low) / 2 if math.isfinite(self.low) else math.inf

    @property
    def excludes_zero(self) -> bool:
        """Whether it lies on one side of 0."""
        return self.low > 0 or self.high < 0


def of_one(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The middle of one sample."""
    sample = np.asarray(values, dtype=float)
    rows, columns = np.triu_indices(len(sample))
    means = np.sort((sample[rows] + sample[columns]) / 2)
    return _cut(means, _signed_ranks(len(sample)), (1 - confidence) / 2)


def of_two(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> Interval:
    """By how much the second sample is shifted against the first."""
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    differences = np.sort(np.subtract.outer(new, old), axis=None)
    return _cut(differences, _rank_sums(len(old), len(new)), (1 - confidence) / 2)


def _cut(ordered: NDArray[np.float64], below: Sequence[float], tail: float) -> Interval:
    """The interval between the ordered values that leaves out as many on each side as the tail allows."""
    middle = float(np.median(ordered))
    out = next((count for count, share in enumerate(below) if share > tail), len(below))
    if not out:
        return Interval(middle, -math.inf, math.inf)
    return Interval(middle, float(ordered[out - 1]), float(ordered[len(ordered) - out]))


@cache
def _signed_ranks(count: int) -> tuple[float, ...]:
    """The probability that Wilcoxon's signed-rank sum of `count` values is at most 0, 1, 2 and so on."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        # Each rank counts or does not; shares, and not numbers of ways, for 2^1024 has no double.
        ways[rank:] = (ways[rank:] + ways[: len(ways) - rank]) / 2
        ways[:rank] /= 2
    return tuple(np.cumsum(ways).tolist())


@cache
def _rank_sums(few: int, many: int) -> tuple[float, ...]:
    """The probability that Mann and Whitney's U of two samples is at most 0, 1, 2 and so on."""
    total = few * many
    if total > _COUNTED:
        spread = math.sqrt(total * (few + many + 1) / 12)
        return tuple(NormalDist(total / 2, spread).cdf(count + 0.5) for count in range(total + 1))
    # The coefficients of the Gaussian binomial: the product of (1 - x^(many + i)) / (1 - x^i).
    ways = [1] + [0] * total
    for i in range(1, few + 1):
        for at in range(total, many + i - 1, -1):
            ways[at] -= ways[at - many - i]
        for at in range(i, total + 1):
            ways[at] += ways[at - i]
    every, summed, shares = math.comb(few + many, few), 0, []
    for number in ways:
        summed += number
        shares.append(summed / every)
    return tuple(shares)
