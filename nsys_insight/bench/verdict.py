"""Whether one side is better than the other, and by how much: of turns, or of two series measured apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.bench.statistics import LEAST_REPETITIONS, MOST_CV_PCT, Interval, center, drift_pct_of, shift, spread
from nsys_insight.compare.comparison import LEAST_PCT, WORTHWHILE_PCT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.bench.result import Series

CONFIDENCE = 0.95
# A change of so many times the scatter is real, however much it is, if the sides do not overlap.
_CLEAR_FACTOR = 3.0


@dataclass(frozen=True)
class Verdict:
    """What is said of one metric.

    Attributes:
        name: The metric.
        word: better, worse, changed (unknown which is better), noise, refused (too much scatter or drift),
            unknown (there are too few values).
        change: The change as a share of before, with its interval; None where it cannot be worked out.
        reason: Why there is no verdict; empty if there is one.
    """

    name: str
    word: str
    change: Interval | None
    reason: str = ""

    @property
    def change_pct(self) -> float | None:
        """The change in percent of before."""
        return None if self.change is None else 100 * self.change.middle


def judge(before: Series, after: Series, *, turns: bool, confidence: float = CONFIDENCE) -> Verdict:
    """Judge a metric.

    Args:
        before: Its measurements before.
        after: Its measurements after.
        turns: Whether the two sides took turns, so that what slows the machine slows both.
        confidence: With which the interval of the change holds.
    """
    name = after.name
    change = changed(before.values, after.values, turns=turns, confidence=confidence)
    clear = _is_clear(before.values, after.values, change)
    for side, series in (("before", before), ("after", after)):
        found = spread(series.values, series.clocks)
        if found.is_wide and not clear:
            looks = f" ({'; '.join(found.causes)})" if found.causes else ""
            reason = f"{name} scatters by {found.cv_pct:.1f} % {side}, more than {MOST_CV_PCT:g} %{looks}"
            return Verdict(name, "refused", change, reason)
        if found.drift_pct is not None and not turns:
            return Verdict(name, "refused", change, f"{name} drifts by {found.drift_pct:+.1f} % {side}")
    if change is None or not math.isfinite(change.reach):
        return Verdict(
            name, "unknown", change, f"there are too few repetitions of {name}: {LEAST_REPETITIONS} at least"
        )
    # Measured apart, the machine may have gone on in between as it did within each series.
    hidden = sum(abs(drift_pct_of(series.values)) for series in (before, after))
    little = not turns and 100 * abs(change.middle) < max(LEAST_PCT, hidden)
    if not change.excludes_zero or little:
        return Verdict(name, "noise", change)
    if after.better is None:
        return Verdict(name, "changed", change, f"neither unit nor name says whether higher or lower {name} is better")
    return Verdict(name, "better" if (change.middle > 0) == (after.better == "higher") else "worse", change)


def _is_clear(before: Sequence[float], after: Sequence[float], change: Interval | None) -> bool:
    """Tell whether the sides lie so far apart that no scatter of theirs can have done it."""
    if change is None or min(len(before), len(after)) < LEAST_REPETITIONS:
        return False
    if not (max(before) < min(after) or max(after) < min(before)):
        return False
    widest = max(spread(side).cv_pct or 0 for side in (before, after))
    # As factors: 100 % up is as far as 50 % down.
    return change.middle > -1 and abs(math.log1p(change.middle)) > math.log1p(_CLEAR_FACTOR * widest / 100)


def changed(
    before: Sequence[float], after: Sequence[float], *, turns: bool, confidence: float = CONFIDENCE
) -> Interval | None:
    """The change as a share of before, of logarithms where all values are positive; None where it has no meaning."""
    if not before or not after:
        return None
    if min(*before, *after) > 0:
        old, new = [math.log(value) for value in before], [math.log(value) for value in after]
        found = _shift(old, new, turns=turns, confidence=confidence)
        if math.isinf(found.reach):
            return Interval(math.expm1(found.middle), found.low, found.high)
        return Interval(*map(math.expm1, (found.middle, found.low, found.high)))
    middle = abs(center(before).middle)
    if not middle:
        return None
    found = _shift(before, after, turns=turns, confidence=confidence)
    return Interval(found.middle / middle, found.low / middle, found.high / middle)


def _shift(before: Sequence[float], after: Sequence[float], *, turns: bool, confidence: float) -> Interval:
    if turns:
        return center([new - old for old, new in zip(before, after, strict=False)], confidence)
    return shift(before, after, confidence)


def decide(verdict: Verdict, *, tests: bool | None) -> str:
    """Decide by rule what to do with a change.

    Args:
        verdict: Of the metric that the change is about.
        tests: Whether the tests passed; None if nobody looked.
    """
    if tests is False or verdict.word == "worse":
        return "revert"
    if verdict.word == "better":
        if abs(verdict.change_pct or 0) <= WORTHWHILE_PCT:
            return "small"
        return "accept" if tests else "unchecked"
    return {"noise": "indistinguishable", "refused": "refused"}.get(verdict.word, "unknown")
