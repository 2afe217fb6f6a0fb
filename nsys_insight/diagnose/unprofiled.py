"""What is left of savings of the host's time without nsys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.diagnose.findings import FindingRule, Unprofiled

_LATE_HOST = "late-host"
_HOST_FAMILIES = ("launch", "fusion")


def limit_saving(
    step: Unprofiled, rule: FindingRule, high_ns: float, low_ns: float | None
) -> tuple[float, float | None]:
    """Return what is left of the saving of a rule without nsys: the most and the least.

    A saving of launches loses its share of what nsys adds to the step. Of a saving of the host's other work, nsys
    may have added nothing, or all. The time of the GPU stays.
    """
    if not step.is_known:
        return high_ns, low_ns
    if not saves_host_time(rule):
        # Nothing saves more than the step takes.
        most_ns = step.high_ns if step.sentence and step.high_ns and rule.share_of == "step" else high_ns
        return min(high_ns, most_ns), None if low_ns is None else min(low_ns, most_ns)
    most_added_ns, least_added_ns = step.late_ns - (step.late_low_ns or 0), step.late_ns - (step.late_high_ns or 0)
    share = min(1.0, high_ns / step.late_ns) if step.late_ns else 0.0
    if rule.is_host_work:
        share, least_added_ns = 1.0, 0.0
    left_ns = max(high_ns - share * least_added_ns, 0.0)
    return left_ns, None if low_ns is None else min(left_ns, max(low_ns - share * most_added_ns, 0.0))


def saves_host_time(rule: FindingRule) -> bool:
    """Return whether the saving of a rule is time in which the host launches late.

    Rules about waits and copies are not: how much of their savings is launches is unknown, and their estimates have
    a low bound for it.
    """
    is_cause = _LATE_HOST in rule.explains and not {"wait", "copy"} & set(rule.explains)
    return rule.symptom == _LATE_HOST or is_cause or rule.family in _HOST_FAMILIES
