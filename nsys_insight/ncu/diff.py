"""Compare two measurements of one program: what got faster, what got slower, and whether to continue."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.ncu import report as reports
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.units import label, value

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.ncu.data import NcuData
    from nsys_insight.ncu.report import KernelReport

# A change counts from 3 %, and from more than either side's standard deviation; below it is noise. A kernel is at its
# ceiling with SM throughput above 80 % or DRAM throughput above 85 % of the peak. (Common practice.)
LEAST_PCT = 3.0
SM_CEILING_PCT = 80.0
DRAM_CEILING_PCT = 85.0

COLUMNS = (
    Column("name", "VARCHAR"), Column("before_ns", "DOUBLE"), Column("after_ns", "DOUBLE"),
    Column("delta_pct", "DOUBLE"), Column("verdict", "VARCHAR"), Column("metric", "VARCHAR"),
    Column("before", "DOUBLE"), Column("after", "DOUBLE"), Column("new_findings", "VARCHAR"),
    Column("gone_findings", "VARCHAR"), Column("match", "VARCHAR"),
)  # fmt: skip
# The metric to compare next to the duration, by what bounds the kernel.
_TARGETS = {"memory": "dram_pct", "compute": "sm_pct", "latency": "occupancy_pct"}


@dataclass(frozen=True)
class Compared:
    """One kernel before and after; either may be missing.

    `metric` is the target metric's column of `ncu_kernels`, `match` what agrees between the two.
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
        """How much longer it takes, in % of before."""
        if self.before_ns is None or self.after_ns is None or not self.before_ns:
            return None
        return 100 * (self.after_ns - self.before_ns) / self.before_ns

    @property
    def at_ceiling(self) -> bool:
        """Whether the kernel is at its ceiling after the change."""
        return self.after is not None and _at_ceiling(self.after.row)


def compare(before: NcuData, after: NcuData, metric: str | None = None) -> list[Compared]:
    """Pair the kernels of two measurements and judge each pair, the longest first.

    Kernels pair by name, grid and block; those left over by name, then by function: a change may alter the grid, or the
    template's arguments.
    """
    old, new = reports.build(before, "before").kernels, reports.build(after, "after").kernels
    times = {
        id(kernel): _durations(measured, kernel)
        for measured, kernels in ((before, old), (after, new))
        for kernel in kernels
    }
    compared = []
    for match, key in (
        (
            "name, grid, block",
            lambda row: (row["kernel"], reports.dimensions(row, "grid"), reports.dimensions(row, "block")),
        ),
        ("name", lambda row: row["kernel"]),
        ("function", lambda row: row["short_name"]),
    ):
        left: dict[Any, KernelReport] = {}
        for kernel in old:
            left.setdefault(key(kernel.row), kernel)
        for kernel in list(new):
            partner = left.pop(key(kernel.row), None)
            if partner is not None:
                old.remove(partner)
                new.remove(kernel)
                compared.append(_pair(partner, kernel, (times[id(partner)], times[id(kernel)]), match, metric))
    compared += [_alone(kernel, None, times[id(kernel)], metric) for kernel in old]
    compared += [_alone(None, kernel, times[id(kernel)], metric) for kernel in new]
    return sorted(compared, key=lambda one: (-(one.before_ns or one.after_ns or 0), one.name))


def decision(compared: list[Compared]) -> str:
    """Say how to go on: roll back what made a kernel slower, stop at the ceiling or a plateau, else continue."""
    pairs = [one for one in compared if one.before is not None and one.after is not None]
    if any(one.verdict == "regressed" for one in pairs):
        return "roll back"
    improved = [one for one in pairs if one.verdict == "improved"]
    if improved and not all(one.at_ceiling for one in improved):
        return "continue"
    return "stop" if pairs else "continue"


def answer(compared: list[Compared]) -> Answer:
    """The comparison as an answer, a row a kernel."""
    rows = [
        (
            one.name, one.before_ns, one.after_ns, one.delta_pct, one.verdict, one.metric, one.before_metric,
            one.after_metric, ", ".join(one.new_findings) or None, ", ".join(one.gone_findings) or None, one.match,
        )
        for one in compared
    ]  # fmt: skip
    return of_rows(COLUMNS, rows, report="ncu diff", title="Before and after", empty="nothing")


def append_log(path: Path, change: str, compared: list[Compared]) -> str:
    """Append an iteration to a Markdown log, and return what was written."""
    from datetime import datetime

    known = path.read_text(encoding="utf-8") if path.exists() else "# Iterations\n"
    number = known.count("\n## ") + 1
    lines = [
        f"\n## {number}. {' '.join(change.split())}\n",
        f"{datetime.now().astimezone():%Y-%m-%d}, decision: **{decision(compared)}**\n",
    ]
    lines += ["| kernel | before | after | change | target | verdict | findings |", "|---|---:|---:|---:|---|---|---|"]
    for one in compared:
        findings = [f"gone: {name}" for name in one.gone_findings] + [f"new: {name}" for name in one.new_findings]
        target = f"{label(one.metric)} {value(one.metric, one.before_metric)} → {value(one.metric, one.after_metric)}"
        delta = "" if one.delta_pct is None else f"{one.delta_pct:+.1f} %"
        cells = (
            f"`{one.name}`", value("duration_ns", one.before_ns), value("duration_ns", one.after_ns), delta, target,
            one.verdict, ", ".join(findings),
        )  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    written = "\n".join(lines) + "\n"
    with path.open("a", encoding="utf-8") as stream:
        stream.write(("" if path.exists() and known.strip() and path.stat().st_size else "# Iterations\n") + written)
    return written


def _pair(
    before: KernelReport, after: KernelReport, times: tuple[list[float], list[float]], match: str, metric: str | None
) -> Compared:
    target = metric or _TARGETS.get(before.row["bound"], "sm_pct")
    had = {finding.rule for finding in before.findings} - _not_judged(after)
    has = {finding.rule for finding in after.findings} - _not_judged(before)
    old_ns, new_ns = (statistics.median(side) if side else None for side in times)
    return Compared(
        name=after.row["short_name"] or after.row["kernel"],
        before=before,
        after=after,
        match=match,
        before_ns=old_ns,
        after_ns=new_ns,
        metric=target,
        before_metric=before.row[target],
        after_metric=after.row[target],
        new_findings=tuple(sorted(has - had)),
        gone_findings=tuple(sorted(had - has)),
        verdict=_verdict(old_ns, new_ns, max(map(_spread, times)), after.row),
    )


def _alone(before: KernelReport | None, after: KernelReport | None, times: list[float], metric: str | None) -> Compared:
    kernel = before or after
    assert kernel is not None  # noqa: S101 - one of the two is given
    target = metric or _TARGETS.get(kernel.row["bound"], "sm_pct")
    spent, rules = statistics.median(times) if times else None, tuple(sorted({one.rule for one in kernel.findings}))
    gone = before is not None
    return Compared(
        name=kernel.row["short_name"] or kernel.row["kernel"],
        before=before,
        after=after,
        match="none",
        before_ns=spent if gone else None,
        after_ns=None if gone else spent,
        metric=target,
        before_metric=kernel.row[target] if gone else None,
        after_metric=None if gone else kernel.row[target],
        new_findings=() if gone else rules,
        gone_findings=rules if gone else (),
        verdict="gone" if gone else "new",
    )


def _verdict(before: float | None, after: float | None, spread: float, row: dict[str, Any]) -> str:
    if before is None or after is None:
        return "unknown"
    change = after - before
    if abs(change) > max(spread, before * LEAST_PCT / 100):
        return "improved" if change < 0 else "regressed"
    return "at the ceiling" if _at_ceiling(row) else "plateau"


def _at_ceiling(row: dict[str, Any]) -> bool:
    return (row["sm_pct"] or 0) > SM_CEILING_PCT or (row["dram_pct"] or 0) > DRAM_CEILING_PCT


def _not_judged(kernel: KernelReport) -> set[str]:
    """The rules that lack metrics on one side: they are neither new nor gone."""
    return {rule for rules in kernel.unjudged.values() for rule in rules}


def _spread(times: list[float]) -> float:
    return statistics.stdev(times) if len(times) > 1 else 0.0


def _durations(measured: NcuData, kernel: KernelReport) -> list[float]:
    launches = ", ".join(map(str, kernel.launches))
    rows = measured.rows(
        f"SELECT duration_ns FROM ncu_kernels WHERE launch IN ({launches}) AND duration_ns IS NOT NULL"
    )
    return [row["duration_ns"] for row in rows]
