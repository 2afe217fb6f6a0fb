"""Statistics of repetitions: estimates with rank-based intervals, and a description of the scatter.

The estimates are those of Hodges and Lehmann (1963): the median of the means of all pairs of values, or the median of
the differences between all pairs of two samples. The intervals come from Wilcoxon's tests, with exact distributions.
They hold for any distribution, are robust against outliers, and are deterministic.

The interval of one sample assumes values that are symmetric about their center. Differences of two commands in turn are
symmetric if the commands do not differ. The interval of two samples assumes that the samples differ by a shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, correlation, fmean, median, stdev
from typing import TYPE_CHECKING

import numpy as np

from nsys_insight.text.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# With fewer values, no interval excludes 0 at 95% confidence: 2 of 2^6 = 64 sign patterns are 3%.
MIN_REPETITIONS = 6
# With more pairs, the normal distribution approximates the exact one to a thousandth.
_MAX_EXACT_PAIRS = 2500
# Maximum coefficient of variation of a usable baseline. (Common practice.)
MAX_CV_PCT = 5.0
# A drift: the probability of a false alarm without a trend, and the minimum change from end to end.
_DRIFT_SIGNIFICANCE, _MIN_DRIFT_PCT = 0.01, 1.0
# An outlier is this many standard deviations off, estimated from the median deviation, and there are few of them.
# Iglewicz and Hoaglin (1993) use 3.5. With normal values, one in fifty series of 50 values has an outlier.
_OUTLIER_DEVIATIONS, _MAX_OUTLIER_SHARE = 4.5, 0.2
# Outliers are the cause of the scatter if it is a quarter smaller without them.
_MAX_REMAINING_CV = 0.75
# Two modes are this many of their own standard deviations apart, each with a fifth of the values. Ashman, Bird and Zepf
# (1994) use 2, but small normal samples that are cut in two reach 4. The third value is the minimum sample size.
_MIN_MODE_DISTANCE, _MIN_MODE_SHARE, _MIN_VALUES_FOR_MODES = 6.0, 0.2, 8
# Clocks with a smaller range are equal. A metric follows the clock if their ranks correlate by this much.
_MIN_CLOCK_RANGE_PCT, _MIN_CLOCK_CORRELATION = 2.0, 0.7


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval. The interval is infinite with too few values."""

    estimate: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Return half of the width."""
        return (self.high - self.low) / 2 if math.isfinite(self.low) else math.inf

    @property
    def excludes_zero(self) -> bool:
        """Return whether the interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


def estimate_center(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Estimate the center of one sample."""
    sample = np.asarray(values, dtype=float)
    rows, columns = np.triu_indices(len(sample))
    means = np.sort((sample[rows] + sample[columns]) / 2)
    return _make_interval(means, _signed_rank_distribution(len(sample)), (1 - confidence) / 2)


def estimate_shift(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> Interval:
    """Estimate the shift from the first sample to the second."""
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    differences = np.sort(np.subtract.outer(new, old), axis=None)
    return _make_interval(differences, _rank_sum_distribution(len(old), len(new)), (1 - confidence) / 2)


def _make_interval(sorted_values: NDArray[np.float64], cumulative: Sequence[float], tail: float) -> Interval:
    """Return the interval that excludes as many of the sorted values on each side as the tail probability allows."""
    estimate = float(np.median(sorted_values))
    excluded_count = next((count for count, share in enumerate(cumulative) if share > tail), len(cumulative))
    if not excluded_count:
        return Interval(estimate, -math.inf, math.inf)
    return Interval(
        estimate, float(sorted_values[excluded_count - 1]), float(sorted_values[len(sorted_values) - excluded_count])
    )


@cache
def _signed_rank_distribution(count: int) -> tuple[float, ...]:
    """Return the probabilities that Wilcoxon's signed-rank sum of `count` values is at most 0, 1, 2 and so on."""
    probabilities = np.zeros(count * (count + 1) // 2 + 1)
    probabilities[0] = 1.0
    for rank in range(1, count + 1):
        # Each rank is in the sum or not. Probabilities instead of counts, because 2^1024 does not fit a double.
        probabilities[rank:] = (probabilities[rank:] + probabilities[: len(probabilities) - rank]) / 2
        probabilities[:rank] /= 2
    return tuple(np.cumsum(probabilities).tolist())


@cache
def _rank_sum_distribution(smaller: int, larger: int) -> tuple[float, ...]:
    """Return the probabilities that Mann and Whitney's U of two samples is at most 0, 1, 2 and so on."""
    total = smaller * larger
    if total > _MAX_EXACT_PAIRS:
        spread = math.sqrt(total * (smaller + larger + 1) / 12)
        return tuple(NormalDist(total / 2, spread).cdf(count + 0.5) for count in range(total + 1))
    # The coefficients of the Gaussian binomial: the product of (1 - x^(larger + i)) / (1 - x^i).
    counts = [1] + [0] * total
    for i in range(1, smaller + 1):
        for power in range(total, larger + i - 1, -1):
            counts[power] -= counts[power - larger - i]
        for power in range(i, total + 1):
            counts[power] += counts[power - i]
    total_count, running_count, probabilities = math.comb(smaller + larger, smaller), 0, []
    for way_count in counts:
        running_count += way_count
        probabilities.append(running_count / total_count)
    return tuple(probabilities)


@dataclass(frozen=True)
class Spread:
    """The scatter of the repetitions of one metric.

    Attributes:
        count: Number of repetitions.
        mean: Their mean.
        stddev: Their sample standard deviation; None for a single one.
        cv_pct: Coefficient of variation: stddev as a percentage of the mean; None if it cannot be determined.
        causes: Description of the scatter, in sentences.
        drift_pct: Change of the series from end to end in percent; None without a trend.
    """

    count: int
    mean: float
    stddev: float | None
    cv_pct: float | None
    causes: tuple[str, ...] = ()
    drift_pct: float | None = None

    @property
    def is_wide(self) -> bool:
        """Return whether the repetitions scatter too much for a verdict."""
        return self.cv_pct is not None and self.cv_pct > MAX_CV_PCT


def describe_spread(values: Sequence[float], clocks: Sequence[float | None] = ()) -> Spread:
    """Describe the scatter of repetitions.

    Args:
        values: The measurements, in order.
        clocks: GPU clock in each repetition, in MHz, if it is known.
    """
    count, mean = len(values), fmean(values)
    if count < 2 or not mean:
        return Spread(count, mean, stdev(values) if count > 1 else None, None)
    deviation = stdev(values)
    cv = 100 * deviation / abs(mean)
    causes = []
    drift = _detect_drift(values)
    if drift is not None:
        causes.append(f"drift: {drift:+.1f}% from the first repetitions to the last")
    outliers = _find_outliers(values)
    if outliers:
        regular_values = [value for number, value in enumerate(values, 1) if number not in outliers]
        cv_without_outliers = (
            100 * stdev(regular_values) / abs(fmean(regular_values))
            if len(regular_values) > 1 and fmean(regular_values)
            else 0
        )
        outlier_list = ", ".join(map(str, outliers))
        outliers = outliers if cv_without_outliers < _MAX_REMAINING_CV * cv else ()
    if outliers:
        outlier_text = (
            f"repetition {outlier_list} is an outlier"
            if len(outliers) == 1
            else f"repetitions {outlier_list} are outliers"
        )
        causes.append(f"outlier: {outlier_text}; without, the coefficient of variation is {cv_without_outliers:.1f}%")
    elif modes := _find_modes(values):
        low, high, share = modes
        low_text, high_text = _format_value(low), _format_value(high)
        causes.append(f"bimodal: {share:.0%} of the repetitions are around {high_text}, the others around {low_text}")
    if text := _describe_clock(values, clocks):
        causes.append(text)
    return Spread(count, mean, deviation, cv, tuple(causes), drift)


def estimate_drift_pct(values: Sequence[float]) -> float:
    """Estimate the change of a series from end to end in percent, even if random, by the Theil-Sen slope."""
    n, mean = len(values), fmean(values)
    if n < 3 or not mean:
        return 0.0
    slopes = [(values[j] - values[i]) / (j - i) for i in range(n) for j in range(i + 1, n)]
    return 100 * median(slopes) * (n - 1) / abs(mean)


def _detect_drift(values: Sequence[float]) -> float | None:
    """Return the change of a series in percent; None if it is small or Kendall's test (1938) finds no trend."""
    n = len(values)
    if n < 6:
        return None
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    trend = sum((values[j] > values[i]) - (values[j] < values[i]) for i, j in pairs)
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    if 2 * NormalDist().cdf(-max(abs(trend) - 1, 0) / deviation) > _DRIFT_SIGNIFICANCE:
        return None
    drift_pct = estimate_drift_pct(values)
    return drift_pct if abs(drift_pct) >= _MIN_DRIFT_PCT else None


def _find_outliers(values: Sequence[float]) -> tuple[int, ...]:
    center = median(values)
    typical_deviation = 1.4826 * median(abs(value - center) for value in values)
    # Timers are coarse: a value that differs slightly from otherwise equal values is not an outlier.
    limit = _OUTLIER_DEVIATIONS * max(typical_deviation, 1e-3 * abs(center))
    if len(values) < 6:
        return ()
    outliers = [number for number, value in enumerate(values, 1) if abs(value - center) > limit]
    return tuple(outliers) if 0 < len(outliers) <= max(1, _MAX_OUTLIER_SHARE * len(values)) else ()


def _find_modes(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return the medians of two distant groups of values and the share of the higher group; None without groups."""
    n = len(values)
    if n < _MIN_VALUES_FOR_MODES:
        return None
    sorted_values = sorted(values)
    min_group_size = max(2, math.ceil(_MIN_MODE_SHARE * n))
    best: tuple[float, int] | None = None
    for split in range(min_group_size, n - min_group_size + 1):
        low, high = sorted_values[:split], sorted_values[split:]
        pooled_stddev = math.sqrt((stdev(low) ** 2 + stdev(high) ** 2) / 2)
        distance = (fmean(high) - fmean(low)) / pooled_stddev if pooled_stddev else math.inf
        if high[0] > low[-1] and (best is None or distance > best[0]):
            best = (distance, split)
    if best is None or best[0] < _MIN_MODE_DISTANCE:
        return None
    low, high = sorted_values[: best[1]], sorted_values[best[1] :]
    if fmean(high) - fmean(low) < 1e-2 * abs(fmean(values)):
        return None
    return median(low), median(high), len(high) / n


def _describe_clock(values: Sequence[float], clocks: Sequence[float | None]) -> str | None:
    """Describe a metric that followed a varying clock; None if it did not."""
    pairs = [(value, clock) for value, clock in zip(values, clocks, strict=False) if clock]
    if len(pairs) < 6:
        return None
    readings = [clock for _, clock in pairs]
    if 100 * (max(readings) - min(readings)) / max(readings) < _MIN_CLOCK_RANGE_PCT:
        return None
    metric_values = [value for value, _ in pairs]
    if max(metric_values) == min(metric_values):
        return None
    if abs(correlation(_rank_values(metric_values), _rank_values(readings))) < _MIN_CLOCK_CORRELATION:
        return None
    return (
        f"clock: the SM clock was between {min(readings):.0f} and {max(readings):.0f} MHz, and the metric followed it"
    )


def _rank_values(values: Sequence[float]) -> list[float]:
    """Return the rank of each value. Equal values get their mean rank."""
    sorted_values = sorted(values)
    return [sorted_values.index(value) + (sorted_values.count(value) - 1) / 2 for value in values]


def _format_value(value: float) -> str:
    return f"{value:,.4g}" if math.isfinite(value) else UNKNOWN
