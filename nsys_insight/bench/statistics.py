"""Statistics of repetitions: estimates with intervals from ranks, and what their scatter looks like.

The estimates are those of Hodges and Lehmann (1963): the median of the means of all pairs of values, or of the
differences between all pairs of two samples. The intervals are those of Wilcoxon's tests, whose distributions are
counted. They hold for any distribution, an outlier hardly moves them, and they are the same each time. The interval of
one sample assumes values that are symmetric about their middle, as differences of two commands in turns are if the two
do not differ; that of two samples, samples that differ by a shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean, median, stdev
from typing import TYPE_CHECKING

import numpy as np

from nsys_insight.text.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# With fewer values no interval excludes 0 at 95 % confidence: 2 of 2^6 = 64 signs are 3 %.
LEAST_REPETITIONS = 6
# With more pairs the normal distribution approximates the counted one to a thousandth.
_MOST_COUNTED_PAIRS = 2500
# Most coefficient of variation of a usable baseline. (Common practice.)
MOST_CV_PCT = 5.0
# A drift: the chance of calling a series without a trend one, and the least movement from end to end.
_CHANCE, _LEAST_DRIFT_PCT = 0.01, 1.0
# An outlier is this many standard deviations off, told by the median deviation (Iglewicz and Hoaglin 1993: 3.5, of
# values which are normal; of 50 of those one in fifty series has one), and there are few of them.
_OUTLYING, _MOST_OUTLIERS = 4.5, 0.2
# Outliers are the cause of the scatter if it is a quarter less without them.
_EASED = 0.75
# Two modes lie so many of their own standard deviations apart (Ashman, Bird and Zepf 1994: 2; samples that are small
# and normal reach 4 by being cut in two), each with a fifth of the values.
_APART, _LEAST_OF_A_MODE, _MODAL = 6.0, 0.2, 8
# Clocks that moved less are equal; a metric follows the clock if their ranks correlate by this much.
_CLOCK_MOVED_PCT, _FOLLOWS = 2.0, 0.7


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval, which is infinite if there are too few values."""

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


def center(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The center of one sample."""
    sample = np.asarray(values, dtype=float)
    rows, columns = np.triu_indices(len(sample))
    means = np.sort((sample[rows] + sample[columns]) / 2)
    return _cut(means, _signed_ranks(len(sample)), (1 - confidence) / 2)


def shift(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> Interval:
    """The shift from the first sample to the second."""
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
    if total > _MOST_COUNTED_PAIRS:
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


@dataclass(frozen=True)
class Spread:
    """How the repetitions of one metric scatter.

    Attributes:
        count: How many there are.
        mean: Their mean.
        stddev: Their sample standard deviation; None of a single one.
        cv_pct: That as a percentage of the mean; None where it cannot be determined.
        causes: What the scatter looks like, in sentences.
        drift_pct: By how much the series moved from end to end, if it moved.
        outliers: Which repetitions are outliers, from 1.
    """

    count: int
    mean: float
    stddev: float | None
    cv_pct: float | None
    causes: tuple[str, ...] = ()
    drift_pct: float | None = None
    outliers: tuple[int, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether they scatter too much for a verdict."""
        return self.cv_pct is not None and self.cv_pct > MOST_CV_PCT


def spread(values: Sequence[float], clocks: Sequence[float | None] = ()) -> Spread:
    """Describe repetitions, in their order.

    Args:
        values: What was measured.
        clocks: The GPU's clock in each repetition, MHz, where it is known.
    """
    count, mean = len(values), fmean(values)
    if count < 2 or not mean:
        return Spread(count, mean, stdev(values) if count > 1 else None, None)
    deviation = stdev(values)
    cv = 100 * deviation / abs(mean)
    causes = []
    drift = _drift(values)
    if drift is not None:
        causes.append(f"drift: {drift:+.1f} % from the first repetitions to the last")
    outliers = _outliers(values)
    if outliers:
        rest = [value for at, value in enumerate(values, 1) if at not in outliers]
        without = 100 * stdev(rest) / abs(fmean(rest)) if len(rest) > 1 and fmean(rest) else 0
        listed = ", ".join(map(str, outliers))
        outliers = outliers if without < _EASED * cv else ()
    if outliers:
        which = f"repetition {listed} is an outlier" if len(outliers) == 1 else f"repetitions {listed} are outliers"
        causes.append(f"outlier: {which}; without, the coefficient of variation is {without:.1f} %")
    elif modes := _modes(values):
        low, high, share = modes
        causes.append(
            f"bimodal: {share:.0%} of the repetitions are around {_short(high)}, the others around {_short(low)}"
        )
    if text := _clock(values, clocks):
        causes.append(text)
    return Spread(count, mean, deviation, cv, tuple(causes), drift, outliers)


def drift_pct_of(values: Sequence[float]) -> float:
    """By how many percent a series moves from end to end, also by chance: the slope is that of Theil (1950) and Sen."""
    n, mean = len(values), fmean(values)
    if n < 3 or not mean:
        return 0.0
    slopes = [(values[other] - values[one]) / (other - one) for one in range(n) for other in range(one + 1, n)]
    return 100 * median(slopes) * (n - 1) / abs(mean)


def _drift(values: Sequence[float]) -> float | None:
    """By how many percent a series moves, if Kendall's test (1938) finds a trend, and it is not little."""
    n = len(values)
    if n < 6:
        return None
    pairs = [(one, other) for one in range(n) for other in range(one + 1, n)]
    rising = sum((values[other] > values[one]) - (values[other] < values[one]) for one, other in pairs)
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    if 2 * NormalDist().cdf(-max(abs(rising) - 1, 0) / deviation) > _CHANCE:
        return None
    found = drift_pct_of(values)
    return found if abs(found) >= _LEAST_DRIFT_PCT else None


def _outliers(values: Sequence[float]) -> tuple[int, ...]:
    middle = median(values)
    usual = 1.4826 * median(abs(value - middle) for value in values)
    usual = max(usual, 1e-3 * abs(middle))  # timers are coarse: one value next to equal ones is not an outlier
    if len(values) < 6:
        return ()
    off = [at for at, value in enumerate(values, 1) if abs(value - middle) > _OUTLYING * usual]
    return tuple(off) if 0 < len(off) <= max(1, _MOST_OUTLIERS * len(values)) else ()


def _modes(values: Sequence[float]) -> tuple[float, float, float] | None:
    """The middles of two groups that lie far apart, and the share of the higher one."""
    n = len(values)
    if n < _MODAL:
        return None
    ordered = sorted(values)
    least = max(2, math.ceil(_LEAST_OF_A_MODE * n))
    best: tuple[float, int] | None = None
    for at in range(least, n - least + 1):
        low, high = ordered[:at], ordered[at:]
        own = math.sqrt((stdev(low) ** 2 + stdev(high) ** 2) / 2)
        apart = (fmean(high) - fmean(low)) / own if own else math.inf
        if high[0] > low[-1] and (best is None or apart > best[0]):
            best = (apart, at)
    if best is None or best[0] < _APART:
        return None
    low, high = ordered[: best[1]], ordered[best[1] :]
    if fmean(high) - fmean(low) < 1e-2 * abs(fmean(values)):
        return None
    return median(low), median(high), len(high) / n


def _clock(values: Sequence[float], clocks: Sequence[float | None]) -> str | None:
    """Say that the clock moved, and that the metric went with it."""
    pairs = [(value, clock) for value, clock in zip(values, clocks, strict=False) if clock]
    if len(pairs) < 6:
        return None
    seen = [clock for _, clock in pairs]
    if 100 * (max(seen) - min(seen)) / max(seen) < _CLOCK_MOVED_PCT:
        return None
    if abs(_correlation(_ranked([value for value, _ in pairs]), _ranked(seen))) < _FOLLOWS:
        return None
    return f"clock: the SM clock was between {min(seen):.0f} and {max(seen):.0f} MHz, and the metric followed it"


def _ranked(values: Sequence[float]) -> list[float]:
    """The ranks; of equal values their mean."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    a, b = [x - fmean(one) for x in one], [y - fmean(other) for y in other]
    size = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / size if size else 0.0


def _short(value: float) -> str:
    return f"{value:,.4g}" if math.isfinite(value) else UNKNOWN
