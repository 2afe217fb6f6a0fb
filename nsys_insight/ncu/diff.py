"""Compare two measurements of one program: what got faster, what got slower, and whether to continue."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.ncu import report as reports
from nsys_insight.session.answer import Answer, Column, build_answer

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.ncu.report import KernelReport

# A change counts if it is above 3%, and above the standard deviation of both measurements; the rest is noise.
# A kernel is at its ceiling if SM throughput is above 80% or DRAM throughput above 85% of the peak. (Common
# practice.)
MIN_CHANGE_PCT = 3.0
SM_CEILING_PCT = 80.0
DRAM_CEILING_PCT = 85.0

COLUMNS = (
    Column("name", "VARCHAR"), Column("before_ns", "DOUBLE"), Column("after_ns", "DOUBLE"),
    Column("delta_pct", "DOUBLE"), Column("verdict", "VARCHAR"), Column("metric", "VARCHAR"),
    Column("before", "DOUBLE"), Column("after", "DOUBLE"), Column("new_findings", "VARCHAR"),
    Column("gone_findings", "VARCHAR"), Column("match", "VARCHAR"),
)  # fmt: skip
# The metric to compare in addition to the duration, by what bounds the kernel.
_TARGETS = {"memory": "dram_pct", "compute": "sm_pct", "latency": "occupancy_pct"}


@dataclass(frozen=True)
class KernelComparison:
    """One kernel before and after; one of the two may be missing.

    `metric` is the column of `ncu_kernels` with the target metric. `match` is what agrees between the two.
    """

    name: str
    before: KernelReport | None
    after: KernelReport | None
    match: str
    before_ns: float | None
    after_ns: float | None
    metric: str
    before_metric: float | None
    after_metric: float | None
    new_findings: tuple[str, ...]
    gone_findings: tuple[str, ...]
    verdict: str

    @property
    def delta_pct(self) -> float | None:
        """Return the change of the duration, in % of the duration before; positive is slower."""
        if self.before_ns is None or self.after_ns is None or not self.before_ns:
            return None
        return 100 * (self.after_ns - self.before_ns) / self.before_ns

    @property
    def is_at_ceiling(self) -> bool:
        """Return whether the kernel is at its ceiling after the change."""
        return self.after is not None and _is_at_ceiling(self.after.row)


def compare(before: NcuData, after: NcuData, metric: str | None = None) -> list[KernelComparison]:
    """Pair the kernels of two measurements and compare each pair, the longest first.

    Kernels pair by name, grid and block. The rest pair by name, then by function, because a change may alter the grid
    or the template's arguments.
    """
    old_kernels, new_kernels = reports.build(before, "before").kernels, reports.build(after, "after").kernels
    durations = {
        id(kernel): _read_durations(ncu_data, kernel)
        for ncu_data, kernels in ((before, old_kernels), (after, new_kernels))
        for kernel in kernels
    }
    comparisons = []
    for match, key in (
        (
            "name, grid, block",
            lambda row: (
                row["kernel"],
                reports.format_dimensions(row, "grid"),
                reports.format_dimensions(row, "block"),
            ),
        ),
        ("name", lambda row: row["kernel"]),
        ("function", lambda row: row["short_name"]),
    ):
        unmatched_kernels: dict[Any, KernelReport] = {}
        for kernel in old_kernels:
            unmatched_kernels.setdefault(key(kernel.row), kernel)
        for kernel in list(new_kernels):
            partner = unmatched_kernels.pop(key(kernel.row), None)
            if partner is not None:
                old_kernels.remove(partner)
                new_kernels.remove(kernel)
                pair_durations = durations[id(partner)], durations[id(kernel)]
                comparisons.append(_compare(partner, kernel, pair_durations, match, metric))
    comparisons += [_compare(kernel, None, (durations[id(kernel)], []), "none", metric) for kernel in old_kernels]
    comparisons += [_compare(None, kernel, ([], durations[id(kernel)]), "none", metric) for kernel in new_kernels]
    return sorted(
        comparisons, key=lambda comparison: (-(comparison.before_ns or comparison.after_ns or 0), comparison.name)
    )


def decide(comparisons: list[KernelComparison]) -> str:
    """Decide how to go on: roll back what made a kernel slower, stop at the ceiling or a plateau, else continue."""
    pairs = [pair for pair in comparisons if pair.before is not None and pair.after is not None]
    if any(pair.verdict == "regressed" for pair in pairs):
        return "roll back"
    improvements = [pair for pair in pairs if pair.verdict == "improved"]
    if improvements and not all(pair.is_at_ceiling for pair in improvements):
        return "continue"
    return "stop" if pairs else "continue"


def answer(comparisons: list[KernelComparison]) -> Answer:
    """Return the comparison as an answer, one row per kernel."""
    rows = [
        (
            kernel.name, kernel.before_ns, kernel.after_ns, kernel.delta_pct, kernel.verdict, kernel.metric,
            kernel.before_metric, kernel.after_metric, ", ".join(kernel.new_findings) or None,
            ", ".join(kernel.gone_findings) or None, kernel.match,
        )
        for kernel in comparisons
    ]  # fmt: skip
    return build_answer(COLUMNS, rows, report="ncu diff", title="Before and after", empty="nothing")


def _compare(
    before: KernelReport | None,
    after: KernelReport | None,
    durations: tuple[list[float], list[float]],
    match: str,
    metric: str | None,
) -> KernelComparison:
    """Compare a kernel of two measurements, or describe one that only one of them has."""
    kernel = before or after
    assert kernel is not None  # noqa: S101 - one of the two is given
    target = metric or _TARGETS.get(kernel.row["bound"], "sm_pct")
    old_rules, new_rules = (
        _list_rules(side) - _list_skipped_rules(other) for side, other in ((before, after), (after, before))
    )
    old_ns, new_ns = (statistics.median(side) if side else None for side in durations)
    spread_ns = max(statistics.stdev(side) if len(side) > 1 else 0.0 for side in durations)
    verdict = "gone" if after is None else "new" if before is None else ""
    shown_row = (after or kernel).row
    return KernelComparison(
        name=shown_row["short_name"] or shown_row["kernel"],
        before=before,
        after=after,
        match=match,
        before_ns=old_ns,
        after_ns=new_ns,
        metric=target,
        before_metric=before.row[target] if before else None,
        after_metric=after.row[target] if after else None,
        new_findings=tuple(sorted(new_rules - old_rules)),
        gone_findings=tuple(sorted(old_rules - new_rules)),
        verdict=verdict or _find_verdict(old_ns, new_ns, spread_ns, shown_row),
    )


def _find_verdict(before_ns: float | None, after_ns: float | None, spread_ns: float, row: dict[str, Any]) -> str:
    if before_ns is None or after_ns is None:
        return "unknown"
    change_ns = after_ns - before_ns
    if abs(change_ns) > max(spread_ns, before_ns * MIN_CHANGE_PCT / 100):
        return "improved" if change_ns < 0 else "regressed"
    return "at the ceiling" if _is_at_ceiling(row) else "plateau"


def _is_at_ceiling(row: dict[str, Any]) -> bool:
    return (row["sm_pct"] or 0) > SM_CEILING_PCT or (row["dram_pct"] or 0) > DRAM_CEILING_PCT


def _list_rules(kernel: KernelReport | None) -> set[str]:
    return {finding.rule for finding in kernel.findings} if kernel else set()


def _list_skipped_rules(kernel: KernelReport | None) -> set[str]:
    """List the rules that lacked metrics in one measurement. They count neither as new nor as gone."""
    return {rule for rules in kernel.missing_metrics.values() for rule in rules} if kernel else set()


def _read_durations(ncu_data: NcuData, kernel: KernelReport) -> list[float]:
    launches = ", ".join(map(str, kernel.launches))
    rows = ncu_data.rows(
        f"SELECT duration_ns FROM ncu_kernels WHERE launch IN ({launches}) AND duration_ns IS NOT NULL"
    )
    return [row["duration_ns"] for row in rows]
