"""The words for a change, for `diff` and `bench`: the verdict on a metric, and the decision about the change.

Each has its own estimator: `compare.noise` for steps, which are not independent, and `bench.statistics` for repetitions
that took turns.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from nsys_insight.compare.direction import Better

# Gains above this percentage are worth a change.
WORTHWHILE_PCT = 3.0
# Smaller differences between the times of single runs count as noise: in two runs of one program on one machine
# (decode_eager, 32 steps), kernels with a spread of 1% differed by up to 1.4%.
MIN_CHANGE_PCT = 2.0


class Verdict(StrEnum):
    """What happened to a metric."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    DIFFERENT = "changed"  # neither direction is better, or it is unknown which is
    NEGLIGIBLE = "negligible"
    NOISE = "noise"
    NEW = "new"
    MISSING = "gone"
    REFUSED = "refused"  # too much scatter or drift
    UNKNOWN = "unknown"  # too few repetitions


class Decision(StrEnum):
    """What to do with a change."""

    ACCEPT = "accept"
    UNCHECKED = "unchecked"
    SMALL = "small"
    REVERT = "revert"  # `bench` and `experiment try` exit with 1
    INDISTINGUISHABLE = "indistinguishable"
    REFUSED = "refused"
    UNKNOWN = "unknown"

    @property
    def text(self) -> str:
        """Return the decision as the beginning of a sentence."""
        return _TEXTS[self]


_TEXTS = {
    Decision.ACCEPT: "Improved",
    Decision.UNCHECKED: "Improved, but correctness was not checked",
    Decision.SMALL: f"Improved by less than {WORTHWHILE_PCT:g}%",
    Decision.REVERT: "Regressed",
    Decision.INDISTINGUISHABLE: "No significant change",
    Decision.REFUSED: "No verdict",
    Decision.UNKNOWN: "Cannot be determined",
}


def judge_direction(change: float, better: Better | None) -> Verdict:
    """Return the verdict on a change that is not noise; `better` says which values are."""
    if better is None:
        return Verdict.DIFFERENT
    return Verdict.IMPROVED if (change > 0) == (better == "higher") else Verdict.REGRESSED


def decide(changes: Collection[tuple[Verdict | None, float | None]], *, tests_passed: bool | None = True) -> Decision:
    """Decide by rule what to do with a change.

    Args:
        changes: The verdict on each metric that decides, and its change in percent; None where it is unknown.
        tests_passed: Whether the tests passed; None if there were no tests.
    """
    verdicts = {verdict for verdict, _ in changes}
    if tests_passed is False or Verdict.REGRESSED in verdicts:
        return Decision.REVERT
    gains_pct = [abs(change_pct or 0) for verdict, change_pct in changes if verdict is Verdict.IMPROVED]
    if gains_pct:
        if max(gains_pct) <= WORTHWHILE_PCT:
            return Decision.SMALL
        return Decision.ACCEPT if tests_passed else Decision.UNCHECKED
    if Verdict.NOISE in verdicts:
        return Decision.INDISTINGUISHABLE
    return Decision.REFUSED if Verdict.REFUSED in verdicts else Decision.UNKNOWN
