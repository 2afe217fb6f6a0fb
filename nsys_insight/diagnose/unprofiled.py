"""What is left of savings of the host's time without nsys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from nsys_insight.diagnose.findings import FindingRule, Unprofiled

_LATE_HOST = "late-host"
_HOST_FAMILIES = ("launch", "fusion")
# Savings of these consist of idle time of the GPU, in which the host works, more slowly under nsys.
_IDLE_CAUSES = frozenset({_LATE_HOST, "start", "wait", "copy"})
# Measured without nsys, kernels in a graph follow each other without gaps, and take 0.94 to 1.04 of what nsys records
# for each of them (docs/evidence/unprofiled.md).
_SHORTEST_KERNELS, _MOST_LATE = 0.9, 1.1


def limit_saving(
    step: Unprofiled, rule: FindingRule, high_ns: float, low_ns: float | None, explains: Collection[str] = ()
) -> tuple[float, float | None]:
    """Return what is left of the saving of a rule without nsys: the most and the least.

    The time of the GPU stays. A saving of launches loses its share of what nsys adds to the step. Of a saving of the
    host's other work, nsys may have added nothing, or all. Other savings may be of the GPU's work and of idle time:
    of idle time remains the share that the step has without nsys. `explains` are the symptoms of the finding.
    """
    if not step.is_known:
        return high_ns, low_ns
    if not saves_host_time(rule):
        return _limit_mixed_saving(step, rule, high_ns, low_ns, explains)
    most_added_ns, least_added_ns = step.late_ns - (step.late_low_ns or 0), step.late_ns - (step.late_high_ns or 0)
    share = min(1.0, high_ns / step.late_ns) if step.late_ns else 0.0
    if rule.is_host_work:
        share, least_added_ns = 1.0, 0.0
    left_ns = max(high_ns - share * least_added_ns, 0.0)
    if step.is_measured and step.high_ns:
        left_ns = min(left_ns, step.high_ns)
    if rule.shortens_kernels and step.is_measured and step.high_ns:
        most_ns = min(_MOST_LATE * (step.late_high_ns or 0), step.high_ns - _SHORTEST_KERNELS * step.busy_ns)
        left_ns = min(high_ns, max(left_ns, most_ns))
    return left_ns, None if low_ns is None else min(left_ns, max(low_ns - share * most_added_ns, 0.0))


def _limit_mixed_saving(
    step: Unprofiled, rule: FindingRule, high_ns: float, low_ns: float | None, explains: Collection[str]
) -> tuple[float, float | None]:
    """Return what is left of a saving of the GPU's work, of idle time, or of both.

    At most, the saving is of the GPU's work as far as it lasts; at least, it is of idle time, if that is its cause.
    Measured steps that take longer than the trace's are of a slower GPU: the most grows in proportion.
    """
    if not (step.sentence and step.high_ns and rule.share_of == "step"):
        return high_ns, low_ns
    most_lost, least_lost = 1 - step.idle_left(step.low_ns), 1 - step.idle_left(step.high_ns)
    busy_ns, idle_ns = step.busy_ns, max(step.wall_ns - step.busy_ns, 0.0)
    most_ns = (high_ns - least_lost * max(high_ns - busy_ns, 0.0)) * max(step.high_ns / step.wall_ns, 1.0)
    most_ns = min(most_ns, step.high_ns)
    if low_ns is None:
        return most_ns, None
    is_idle = rule.symptom in _IDLE_CAUSES or not _IDLE_CAUSES.isdisjoint(explains or rule.explains)
    low_idle_ns = min(low_ns, idle_ns) if is_idle else max(low_ns - busy_ns, 0.0)
    return most_ns, min(most_ns, low_ns - most_lost * low_idle_ns)


def saves_host_time(rule: FindingRule) -> bool:
    """Return whether the saving of a rule is time in which the host launches late.

    Rules about waits and copies are not: how much of their savings is launches is unknown, and their estimates have
    a low bound for it.
    """
    is_cause = _LATE_HOST in rule.explains and not {"wait", "copy"} & set(rule.explains)
    return rule.symptom == _LATE_HOST or is_cause or rule.family in _HOST_FAMILIES
