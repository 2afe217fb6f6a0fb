"""Separate differences from noise: repeated measurements, their spread, and an interval of the difference of two means.

The steps of one run are not independent: a slow phase of the machine slows several consecutive steps. So the interval
comes from a bootstrap over blocks of consecutive steps.

All rows of a comparison are tested together. With a 95% interval per row, two or three of fifty rows of pure noise
would count as differences. So the interval is wide enough for the *largest* deviation among all rows. Rows vary
together, so all rows use the same weights for the same blocks. This is the multiplier bootstrap of the largest t
(Chernozhukov, Chetverikov and Kato 2013). Its normal weights also suit the few blocks of a short run.
"""

from __future__ import annotations

import math
import operator
import random
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

# Number of bootstrap resamples, and the fixed seed that makes the answer reproducible.
RESAMPLES, SEED = 1000, 1
# Half of the 5% of false alarms is reserved for the headline, which is tested first.
CONFIDENCE = 0.975
# Allowed numbers of blocks: more than 40 do not improve the interval, and rows with equal numbers share weights.
BLOCK_COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 40)
# Minimum number of blocks for any correlation of the steps. With two blocks, a change of ten standard deviations
# counted as noise. The price is more false alarms. The table gives their rate in %, by the
# correlation of neighboring steps, in 200 comparisons of pure noise, with five rows that share most of their deviation:
#
#            0.0  0.3  0.5  0.7  0.9
#  5 steps     3   11   14   28   74
#  8 steps     0    4   12   26   74
# 12 steps     2    3    8   20   60
# 20 steps     1    4    8    9   34
# 32 steps     0    1    2    8   23
# 64 steps     0    0    0    4   10
#
# A wider error would halve these rates: widened by the correlation that an autoregressive series leaves between its
# blocks, estimated over all rows and at most twofold. But it would detect only three of four changes of five deviations
# in 8 steps, instead of nearly all. A false discovery rate (Benjamini and Hochberg 1995) is a weaker bound than the
# largest deviation. Users who must be sure compare several runs of each side.
MIN_BLOCKS = 4


@dataclass(frozen=True)
class Samples:
    """Measurements of one quantity, in order of time.

    Attributes:
        values: One value per step, or per group of steps (their mean), or per run (its mean).
        steps_per_value: Size of these groups; 1 for single steps.
        independent: Whether the values come from separate runs. Values of the steps of one run are correlated.
    """

    values: tuple[float, ...]
    steps_per_value: float = 1
    independent: bool = False

    @cached_property
    def mean(self) -> float:
        """Return the mean."""
        return fmean(self.values)

    @cached_property
    def stddev(self) -> float | None:
        """Return the sample standard deviation of a step (or run); None for a single value."""
        return stdev(self.values) * math.sqrt(self.steps_per_value) if len(self.values) > 1 else None

    @cached_property
    def blocks(self) -> tuple[float, ...]:
        """Return the means of blocks of consecutive values. The blocks are longer if neighboring values correlate more.

        The length is Carlstein's (1986) for autoregressive series: (√6 r / (1 - r²))^(2/3) n^(1/3). Here r is the
        estimated correlation of neighbors, corrected for its bias of -(1 + 3r) / n.
        """
        n = len(self.values)
        if self.independent:
            return self.values
        length = 1.0
        if n > 3:
            deviations = [value - self.mean for value in self.values]
            autocorrelation = _dot_product(deviations, deviations[1:]) / (_dot_product(deviations, deviations) or 1)
            autocorrelation = min(0.95, max(0.0, (n * autocorrelation + 1) / (n - 3)))
            length = max(length, (math.sqrt(6) * autocorrelation / (1 - autocorrelation**2)) ** (2 / 3) * n ** (1 / 3))
        max_blocks = max(n / length, min(n, MIN_BLOCKS))
        count = max((size for size in BLOCK_COUNTS if size <= max_blocks), default=min(n, 2))
        return tuple(fmean(self.values[n * block // count : n * (block + 1) // count]) for block in range(count))

    def add(self, other: Samples) -> Samples:
        """Return the sums of two quantities that were measured in the same steps."""
        return Samples(
            tuple(map(sum, zip(self.values, other.values, strict=True))), self.steps_per_value, self.independent
        )


@dataclass(frozen=True)
class Difference:
    """The difference between two samples: after minus before.

    Attributes:
        before: Samples before; None if missing.
        after: Samples after; None if missing.
        low: Lower end of the interval of the difference, not below -before for quantities that are never negative; None
            for a single measurement.
        high: Upper end of the interval.
    """

    before: Samples | None
    after: Samples | None
    low: float | None = None
    high: float | None = None

    @property
    def delta(self) -> float | None:
        """Return the difference of the means; None if a side is missing."""
        return None if self.before is None or self.after is None else self.after.mean - self.before.mean

    @property
    def spread(self) -> float:
        """Return the larger of the two standard deviations; 0 if both are unknown."""
        return max((side.stddev or 0 for side in (self.before, self.after) if side), default=0)

    @property
    def is_real(self) -> bool:
        """Return whether the means differ by more than either standard deviation, and the interval excludes 0."""
        if self.delta is None or self.low is None or self.high is None:
            return False
        return abs(self.delta) > self.spread and (self.low > 0 or self.high < 0)


def compute_differences(pairs: Sequence[tuple[Samples | None, Samples | None]]) -> list[Difference]:
    """Compare pairs of samples. The intervals hold for all pairs together."""
    unbounded = [Difference(before, after) for before, after in pairs]
    errors = [_standard_error(difference) for difference in unbounded]
    testable = [
        (difference, error)
        for difference, error in zip(unbounded, errors, strict=True)
        if error is not None and error > 0
    ]
    tail = _tail_probability([difference for difference, _ in testable])
    return [
        _bound(difference, error, tail) if error is not None else difference
        for difference, error in zip(unbounded, errors, strict=True)
    ]


def _bound(difference: Difference, error: float, tail: float) -> Difference:
    """Add the interval. Quantities that are never negative cannot fall by more than their mean."""
    if difference.before is None or difference.after is None or difference.delta is None:
        return difference
    half_width = error * student_quantile(tail, _degrees_of_freedom(difference)) if error else 0.0
    low = difference.delta - half_width
    if min(*difference.before.values, *difference.after.values) >= 0:
        low = max(low, -difference.before.mean)
    return replace(difference, low=low, high=difference.delta + half_width)


def student_quantile(tail: float, freedom: float) -> float:
    """Return the value that a t-distributed variable exceeds with probability `tail`.

    The result is exact for 1 and 2 degrees of freedom, which are used for all below 3. From 3 on, it is the
    approximation of Abramowitz and Stegun, 26.7.5.
    """
    if freedom < 2:
        return 1 / math.tan(math.pi * tail)
    if freedom < 3:
        central_probability = 1 - 2 * tail
        return central_probability * math.sqrt(2 / (1 - central_probability * central_probability))
    z = -NormalDist().inv_cdf(tail)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * freedom**4)
    )


def count_runs_needed(difference: Difference) -> int | None:
    """Return the minimum number of runs per side that detects this difference; None if a thousand do not.

    One run does not show the spread between runs. It is assumed to be no larger than the spread of steps explains.
    """
    error = _standard_error(difference)
    if not difference.delta or error is None:
        return None
    sides = [side for side in (difference.before, difference.after) if side]
    run_error = max(side.stddev or 0 for side in sides) if sides[0].independent else error / math.sqrt(2)
    if abs(difference.delta) <= run_error:
        return None
    tail = (1 - CONFIDENCE) / 2
    return next(
        (
            n
            for n in range(3, 1001)
            if abs(difference.delta) > student_quantile(tail, 2 * n - 2) * run_error * math.sqrt(2 / n)
        ),
        None,
    )


def _block_variances(difference: Difference) -> list[tuple[float, int]]:
    """Return for each side the variance of the blocks and their number. Sides with a single block are left out."""
    sides = [side for side in (difference.before, difference.after) if side]
    return [(stdev(side.blocks) ** 2, len(side.blocks)) for side in sides if len(side.blocks) > 1]


def _standard_error(difference: Difference) -> float | None:
    """Return the standard error of the difference; None if a side is missing or has a single measurement."""
    variances = _block_variances(difference)
    return math.sqrt(sum(variance / count for variance, count in variances)) if len(variances) == 2 else None


def _degrees_of_freedom(difference: Difference) -> float:
    """Return Welch's degrees of freedom."""
    variances = _block_variances(difference)
    total = sum(variance / count for variance, count in variances)
    return total**2 / sum((variance / count) ** 2 / (count - 1) for variance, count in variances)


def _tail_probability(testable: Sequence[Difference]) -> float:
    """Return the one-sided error probability per row at which all intervals together hold with `CONFIDENCE`."""
    if not testable:
        return (1 - CONFIDENCE) / 2
    import numpy as np

    rows = []
    for difference in testable:
        sides = [
            [(value - fmean(side.blocks)) / len(side.blocks) for value in side.blocks]
            for side in (difference.before, difference.after)
            if side
        ]
        rows.append((sides, math.sqrt(sum(value * value for values in sides for value in values))))
    weights = _draw_weights(tuple(sorted({len(values) for sides, _ in rows for values in sides})))
    largest_deviations = np.zeros(RESAMPLES)
    for sides, error in rows:
        deviations = sum(weight[len(values)] @ np.array(values) for values, weight in zip(sides, weights, strict=True))
        np.maximum(largest_deviations, np.abs(deviations) / error, out=largest_deviations)
    critical_value = float(np.sort(largest_deviations)[math.ceil(CONFIDENCE * RESAMPLES) - 1])
    return max(NormalDist().cdf(-critical_value), 1e-9)


@lru_cache(maxsize=4)
def _draw_weights(sizes: tuple[int, ...]) -> list[dict[int, NDArray[np.float64]]]:
    """Draw the weights of each side: for each number of blocks a matrix with a row for each resample."""
    import numpy as np

    random_source = random.Random(SEED)  # noqa: S311 - no secret
    draws = np.array([[random_source.gauss() for _ in range(2 * sum(sizes))] for _ in range(RESAMPLES)])
    matrices = np.split(draws, list(accumulate(2 * sizes))[:-1], axis=1)
    return [
        dict(zip(sizes, matrices[: len(sizes)], strict=True)),
        dict(zip(sizes, matrices[len(sizes) :], strict=True)),
    ]


def _dot_product(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(map(operator.mul, left, right))
