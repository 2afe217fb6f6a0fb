"""Tell a difference from noise: repeated measurements, their spread, and an interval of the difference of two means.

The steps of one run are not independent: a slow moment of the machine slows several in a row. So the interval comes
from a bootstrap over blocks of consecutive steps. All rows of a comparison are asked at once, and of fifty rows of pure
noise a 95 % interval would call two or three a difference; so the interval is as wide as the *largest* deviation among
all rows needs, weighing the same blocks alike for all rows, for they move together (the multiplier bootstrap of the
largest t, Chernozhukov, Chetverikov and Kato 2013, whose normal weights also do for the few blocks of a short run).
"""

from __future__ import annotations

import math
import operator
import random
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bootstrap resamples, and the fixed seed that makes the answer reproducible.
RESAMPLES, SEED = 1000, 1
# Half of the 5 % of false alarms is for the headline, which is tested first.
CONFIDENCE = 0.975
# Allowed numbers of blocks: more than 40 do not improve the interval, and rows with equal numbers share weights.
BLOCKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 40)
# Minimum number of blocks, of at least two steps, however correlated the steps are: with two blocks a change of ten
# standard deviations counted as noise. It has a price. Of 200 comparisons of pure noise, five rows each that share most
# of what they deviate by, so many in a hundred raise a false alarm, by the correlation of neighboring steps:
#
#            0.0  0.3  0.5  0.7  0.9
#  8 steps     0    4   12   26   74
# 12 steps     2    3    8   20   60
# 20 steps     1    4    8    9   34
# 32 steps     0    1    2    8   23
# 64 steps     0    0    0    4   10
#
# Widening the error by what an autoregressive series leaves between its blocks, estimated over all rows and at most
# twofold, halves that; but of changes of five deviations in 8 steps three in four are seen then, not nearly all. A rate
# of false discoveries (Benjamini and Hochberg 1995) bounds less than the largest deviation does. Who must be sure
# compares several runs of each side.
LEAST_BLOCKS = 4


@dataclass(frozen=True)
class Samples:
    """Measurements of one quantity, in the order in which they were made.

    Attributes:
        values: One value for each step, or the mean of each `each` steps, or the mean of each run.
        each: How many steps a value is the mean of.
        independent: Whether the values are those of runs; those of the steps of a run are related.
    """

    values: tuple[float, ...]
    each: float = 1
    independent: bool = False

    @cached_property
    def mean(self) -> float:
        """The mean."""
        return fmean(self.values)

    @cached_property
    def stddev(self) -> float | None:
        """Sample standard deviation of a step (or run); None for a single one."""
        return stdev(self.values) * math.sqrt(self.each) if len(self.values) > 1 else None

    @cached_property
    def blocks(self) -> tuple[float, ...]:
        """The means of blocks of consecutive values, the longer the more a value resembles the one before.

        The length is Carlstein's (1986) for autoregressive series: (√6 r / (1 - r²))^(2/3) n^(1/3), r being the
        correlation of neighbours, estimated and freed of its bias, which is -(1 + 3r) / n.
        """
        n = len(self.values)
        if self.independent:
            return self.values
        length = 1.0
        if n > 3:
            off = [value - self.mean for value in self.values]
            related = _dot(off, off[1:]) / (_dot(off, off) or 1)
            related = min(0.95, max(0.0, (n * related + 1) / (n - 3)))
            length = max(length, (math.sqrt(6) * related / (1 - related**2)) ** (2 / 3) * n ** (1 / 3))
        most = max(n / length, min(n / 2, LEAST_BLOCKS))
        count = max((size for size in BLOCKS if size <= most), default=min(n, 2))
        return tuple(fmean(self.values[n * at // count : n * (at + 1) // count]) for at in range(count))

    def plus(self, other: Samples) -> Samples:
        """The sums of two quantities that were measured in the same steps."""
        return Samples(tuple(map(sum, zip(self.values, other.values, strict=True))), self.each, self.independent)


@dataclass(frozen=True)
class Difference:
    """After less before.

    Attributes:
        before: What was measured before; None if it did not exist.
        after: What was measured after, likewise.
        low: Where the interval of the difference begins; None for a single measurement.
        high: Where it ends.
    """

    before: Samples | None
    after: Samples | None
    low: float | None = None
    high: float | None = None

    @property
    def delta(self) -> float | None:
        """The difference of the means; None where one is missing."""
        return None if self.before is None or self.after is None else self.after.mean - self.before.mean

    @property
    def spread(self) -> float:
        """The larger of the two standard deviations; 0 where neither is known."""
        return max((side.stddev or 0 for side in (self.before, self.after) if side), default=0)

    @property
    def is_real(self) -> bool:
        """Whether the means differ by more than either standard deviation, and the interval does not hold 0."""
        if self.delta is None or self.low is None or self.high is None:
            return False
        return abs(self.delta) > self.spread and (self.low > 0 or self.high < 0)


def differences(pairs: Sequence[tuple[Samples | None, Samples | None]]) -> list[Difference]:
    """Compare pairs of samples, with intervals that hold for all of them together."""
    found = [Difference(before, after) for before, after in pairs]
    errors = [_standard_error(difference) for difference in found]
    asked = [
        (difference, error) for difference, error in zip(found, errors, strict=True) if error is not None and error > 0
    ]
    tail = _tail([difference for difference, _ in asked])
    return [
        difference
        if error is None or difference.delta is None
        else Difference(
            difference.before,
            difference.after,
            difference.delta - (reach := error * student(tail, _freedom(difference)) if error else 0.0),
            difference.delta + reach,
        )
        for difference, error in zip(found, errors, strict=True)
    ]


def student(tail: float, freedom: float) -> float:
    """What a t-distributed value exceeds with probability `tail`.

    Exact for 1 and 2 degrees of freedom, which stand for all up to 3; then Abramowitz and Stegun, 26.7.5.
    """
    if freedom < 2:
        return 1 / math.tan(math.pi * tail)
    if freedom < 3:
        below = 1 - 2 * tail
        return below * math.sqrt(2 / (1 - below * below))
    z = -NormalDist().inv_cdf(tail)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * freedom**4)
    )


def runs_needed(difference: Difference) -> int | None:
    """How many runs of each side it takes, at the least, to tell this difference; None if a thousand do not.

    The runs' own spread is not known from one run, and is taken to be no more than their steps explain.
    """
    error = _standard_error(difference)
    if not difference.delta or error is None:
        return None
    sides = [side for side in (difference.before, difference.after) if side]
    of_a_run = max(side.stddev or 0 for side in sides) if sides[0].independent else error / math.sqrt(2)
    if abs(difference.delta) <= of_a_run:
        return None
    tail = (1 - CONFIDENCE) / 2
    return next(
        (n for n in range(3, 1001) if abs(difference.delta) > student(tail, 2 * n - 2) * of_a_run * math.sqrt(2 / n)),
        None,
    )


def _variances(difference: Difference) -> list[tuple[float, int]]:
    """The variance of a block, and how many there are, on each side."""
    sides = [side for side in (difference.before, difference.after) if side]
    return [(stdev(side.blocks) ** 2, len(side.blocks)) for side in sides if len(side.blocks) > 1]


def _standard_error(difference: Difference) -> float | None:
    """The standard error of the difference; None where a side is missing or is a single measurement."""
    parts = _variances(difference)
    return math.sqrt(sum(variance / count for variance, count in parts)) if len(parts) == 2 else None


def _freedom(difference: Difference) -> float:
    """Welch's degrees of freedom."""
    parts = _variances(difference)
    total = sum(variance / count for variance, count in parts)
    return total**2 / sum((variance / count) ** 2 / (count - 1) for variance, count in parts)


def _tail(asked: Sequence[Difference]) -> float:
    """The one-sided error probability of a row at which all intervals hold together with `CONFIDENCE`."""
    if not asked:
        return (1 - CONFIDENCE) / 2
    draw = random.Random(SEED)  # noqa: S311 - no secret
    rows = []
    for difference in asked:
        sides = [
            [(value - fmean(side.blocks)) / len(side.blocks) for value in side.blocks]
            for side in (difference.before, difference.after)
            if side
        ]
        rows.append((sides, math.sqrt(sum(value * value for values in sides for value in values))))
    sizes = sorted({len(values) for sides, _ in rows for values in sides})
    largest = []
    for _ in range(RESAMPLES):
        weights = [{size: [draw.gauss() for _ in range(size)] for size in sizes} for _ in range(2)]
        worst = 0.0
        for sides, error in rows:
            off = sum(_dot(weight[len(values)], values) for values, weight in zip(sides, weights, strict=True))
            worst = max(worst, abs(off) / error)
        largest.append(worst)
    reach = sorted(largest)[math.ceil(CONFIDENCE * RESAMPLES) - 1]
    return max(NormalDist().cdf(-reach), 1e-9)


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(map(operator.mul, one, other))
