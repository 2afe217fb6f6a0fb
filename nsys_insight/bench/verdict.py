"""Decide whether one side is better than the other, and by how much. The sides took turns, or ran in sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from nsys_insight.bench.statistics import (
    MAX_CV_PCT,
    MIN_REPETITIONS,
    Interval,
    describe_spread,
    estimate_center,
    estimate_drift_pct,
    estimate_shift,
)
from nsys_insight.compare.verdict import MIN_CHANGE_PCT, Verdict, judge_direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.bench.result import Series

CONFIDENCE = 0.95
# A change above this multiple of the scatter is real for any scatter, if the values of the sides do not overlap.
_CLEAR_FACTOR = 3.0


@dataclass(frozen=True)
class MetricVerdict:
    """The verdict on one metric, with the change.

    Attributes:
        before: Measurements of the metric before.
        after: Measurements after.
        verdict: The verdict.
        change: Change as a share of before, with its interval; None if it cannot be calculated.
        reason: Reason why there is no verdict; empty if there is one.
    """

    before: Series
    after: Series
    verdict: Verdict
    change: Interval | None
    reason: str = ""

    @cached_property
    def centers(self) -> tuple[float, float]:
        """Return the center of the metric before and after."""
        return estimate_center(self.before.values).estimate, estimate_center(self.after.values).estimate

    @property
    def change_pct(self) -> float | None:
        """Return the change in percent of before."""
        return None if self.change is None else 100 * self.change.estimate

    @property
    def interval_pct(self) -> tuple[float, float] | tuple[None, None]:
        """Return the ends of the interval of the change in percent of before; None if they are unknown."""
        if self.change is None or not math.isfinite(self.change.half_width):
            return None, None
        return 100 * self.change.low, 100 * self.change.high


def judge_metric(before: Series, after: Series, *, turns: bool, confidence: float = CONFIDENCE) -> MetricVerdict:
    """Return the verdict on a metric.

    Args:
        before: Measurements before.
        after: Measurements after.
        turns: Whether the two sides took turns, so that a slow machine slows both.
        confidence: Confidence of the interval of the change.
    """
    name, judged = after.name, partial(MetricVerdict, before, after)
    change = estimate_change(before.values, after.values, turns=turns, confidence=confidence)
    is_clear = _is_clear(before.values, after.values, change)
    for side, series in (("before", before), ("after", after)):
        side_spread = describe_spread(series.values, series.clocks)
        if side_spread.is_wide and not is_clear:
            causes_text = f" ({'; '.join(side_spread.causes)})" if side_spread.causes else ""
            reason = f"{name} varies by {side_spread.cv_pct:.1f}% {side} (limit: {MAX_CV_PCT:g}%){causes_text}"
            return judged(Verdict.REFUSED, change, reason)
        if side_spread.drift_pct is not None and not turns:
            return judged(Verdict.REFUSED, change, f"{name} drifts by {side_spread.drift_pct:+.1f}% {side}")
    if change is None or not math.isfinite(change.half_width):
        return judged(Verdict.UNKNOWN, change, f"there are too few repetitions of {name}: {MIN_REPETITIONS} at least")
    # Between two separate measurements, the machine may have drifted as much as within each of them.
    hidden_drift_pct = sum(abs(estimate_drift_pct(series.values)) for series in (before, after))
    is_too_small = not turns and 100 * abs(change.estimate) < max(MIN_CHANGE_PCT, hidden_drift_pct)
    if not change.excludes_zero or is_too_small:
        return judged(Verdict.NOISE, change)
    unclear = f"neither unit nor name says whether higher or lower {name} is better" if after.better is None else ""
    return judged(judge_direction(change.estimate, after.better), change, unclear)


def _is_clear(before: Sequence[float], after: Sequence[float], change: Interval | None) -> bool:
    """Return whether the sides differ by much more than their scatter."""
    if change is None or min(len(before), len(after)) < MIN_REPETITIONS:
        return False
    if not (max(before) < min(after) or max(after) < min(before)):
        return False
    max_cv_pct = max(describe_spread(side).cv_pct or 0 for side in (before, after))
    # Compare factors: +100% is as far as -50%.
    return change.estimate > -1 and abs(math.log1p(change.estimate)) > math.log1p(_CLEAR_FACTOR * max_cv_pct / 100)


def estimate_change(
    before: Sequence[float], after: Sequence[float], *, turns: bool, confidence: float = CONFIDENCE
) -> Interval | None:
    """Estimate the change as a share of before; None if it has no meaning. Positive values use logarithms."""
    if not before or not after:
        return None
    if min(*before, *after) > 0:
        old, new = [math.log(value) for value in before], [math.log(value) for value in after]
        shift = _estimate_shift(old, new, turns=turns, confidence=confidence)
        if math.isinf(shift.half_width):
            return Interval(math.expm1(shift.estimate), shift.low, shift.high)
        return Interval(*map(math.expm1, (shift.estimate, shift.low, shift.high)))
    center = abs(estimate_center(before).estimate)
    if not center:
        return None
    shift = _estimate_shift(before, after, turns=turns, confidence=confidence)
    return Interval(shift.estimate / center, shift.low / center, shift.high / center)


def _estimate_shift(before: Sequence[float], after: Sequence[float], *, turns: bool, confidence: float) -> Interval:
    if turns:
        return estimate_center([new - old for old, new in zip(before, after, strict=False)], confidence)
    return estimate_shift(before, after, confidence)
