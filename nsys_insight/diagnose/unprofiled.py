"""The step without nsys: what it takes, what bounds it, and what is left of savings of the host's time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.diagnose.findings import FindingRule

_LATE_HOST = "late-host"
_HOST_FAMILIES = ("launch", "fusion")
# Rules about work of the host other than launching. nsys may or may not make it longer.
_OTHER_WORK = ("cpu-work", "stall-place", "slow-launches", "host-input", "checkpoint-stall", "compile-in-loop",
    "paced-outside", "alternating")  # fmt: skip


@dataclass(frozen=True)
class Unprofiled:
    """What is known of the step (or token) without nsys, as in the view `unprofiled_step`.

    `sentence` is its time in words, after its time under nsys; None if it takes as long, or that is unknown. `unknown`
    says why it is unknown, although the host is late, and `misfit` why --step-time is not used.
    """

    source: str | None
    step_ns: float
    low_ns: float | None
    likely_ns: float | None
    high_ns: float | None
    late_ns: float
    late_low_ns: float | None
    late_high_ns: float | None
    sentence: str | None
    unknown: str | None
    misfit: str | None

    def limit(self, rule: FindingRule, high_ns: float, low_ns: float | None) -> tuple[float, float | None]:
        """Return what is left of the saving of a rule without nsys: the most and the least.

        A saving of launches loses its share of what nsys adds to the step. Of a saving of the host's other work, nsys
        may have added nothing, or all. The time of the GPU stays.
        """
        if not self.is_known:
            return high_ns, low_ns
        if not saves_host_time(rule):
            # Nothing saves more than the step takes.
            most_ns = self.high_ns if self.sentence and self.high_ns and rule.share_of == "step" else high_ns
            return min(high_ns, most_ns), None if low_ns is None else min(low_ns, most_ns)
        most_added_ns, least_added_ns = self.late_ns - (self.late_low_ns or 0), self.late_ns - (self.late_high_ns or 0)
        share = min(1.0, high_ns / self.late_ns) if self.late_ns else 0.0
        if rule.name in _OTHER_WORK:
            share, least_added_ns = 1.0, 0.0
        left_ns = max(high_ns - share * least_added_ns, 0.0)
        return left_ns, None if low_ns is None else min(left_ns, max(low_ns - share * most_added_ns, 0.0))

    @property
    def stretch(self) -> float:
        """Return how many times as long as without nsys, at most, the step takes: shares of it grow by this factor."""
        return self.step_ns / self.high_ns if self.sentence and self.high_ns else 1.0

    @property
    def is_known(self) -> bool:
        """Return whether the time of the step without nsys is measured or estimated."""
        return self.source is not None


def saves_host_time(rule: FindingRule) -> bool:
    """Return whether the saving of a rule is, at least in part, time in which the host launches late."""
    return rule.symptom == _LATE_HOST or _LATE_HOST in rule.explains or rule.family in _HOST_FAMILIES
