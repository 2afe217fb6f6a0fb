"""Sentences of the report about what ncu measured, the same for a terminal and for Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ncu.report import dimensions
from nsys_insight.ncu.strategies import step_pct
from nsys_insight.text.units import label, value

if TYPE_CHECKING:
    from nsys_insight.ncu.report import KernelReport, NcuReport
    from nsys_insight.ncu.rules import KernelFinding
    from nsys_insight.ncu.strategies import Strategy
    from nsys_insight.ncu.targets import Target

_REMARKS = 3


def targets(kernel: KernelReport) -> list[tuple[Target, str]]:
    """Say of each target what the kernel reaches, and what it should."""

    def said(one: Target) -> str:
        return f"{'met' if one.is_met else 'missed'}: {one.value_pct:.1f} % of at least {one.target_pct:g} %"

    return [(one, said(one)) for one in kernel.targets]


def strategy(kernel: KernelReport, one: Strategy) -> list[str]:
    """Say what a strategy may save, why it is one, what it takes and what it does not go with."""
    gain = f"saves {one.least_pct:.0f} to {one.most_pct:.0f} % of the kernel's time, effort {one.effort}"
    if kernel.wall_pct is not None:
        low, high = step_pct(kernel.wall_pct, one.least_pct), step_pct(kernel.wall_pct, one.most_pct)
        gain += f"; {low:.2g} to {high:.2g} % of the trace's wall, of which the kernel takes {kernel.wall_pct:.3g} %"
    takes = [
        f"{abs(count):,} {'more' if count > 0 else fewer} {what}"
        for count, fewer, what in (
            (one.more_registers, "fewer", "registers per thread"),
            (one.more_shared_bytes, "less", "bytes of shared memory per block"),
        )
        if count
    ]
    numbers = {other.name: number for number, other in enumerate(kernel.strategies, 1)}
    return [
        gain,
        f"because {'; '.join(f'{finding.rule}: {proof(finding)}' for finding in one.findings)}",
        *([f"takes {' and '.join(takes)}"] if takes else []),
        *(f"not together with {numbers[name]}: {why}" for name, why in one.conflicts.items()),
        f"calculated as: {one.gain}",
    ]


def headline(report: NcuReport) -> str:
    """Say how many launches of how many kernels there are, on which GPU, and how long they took."""
    launches = sum(len(kernel.launches) for kernel in report.kernels)
    spent = value("duration_ns", sum(kernel.total_ns for kernel in report.kernels))
    kernels = _many(len(report.kernels), "kernel", "kernels")
    return (
        f"{report.name}: {_many(launches, 'launch', 'launches')} of {kernels} on"
        f" {report.gpu or 'no GPU'}, {spent} under ncu, which serializes kernels: compare shares, not durations."
    )


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def subject(kernel: KernelReport) -> str:
    """Say what a kernel is, how it was launched, and what it takes under ncu and in the trace."""
    row, trace = kernel.row, kernel.trace
    said = (
        f"{kernel.conclusion['class']}; {kernel.conclusion['implementation']}; grid {dimensions(row, 'grid')}, block"
        f" {dimensions(row, 'block')}; {_launches(kernel)}"
        f" {value('duration_ns', row['duration_ns'])}, {value('share_pct', kernel.share_pct)} of the time under ncu"
    )
    if trace:
        said += (
            f"; in the trace {trace['calls']:,} calls, {value('total_ns', trace['total_ns'])},"
            f" {value('share_pct', trace['kernel_time_pct'])} of kernel time (matched by {trace['match']})"
        )
        if trace["recoverable_ns"]:
            said += f", {value('total_ns', trace['recoverable_ns'])} less at its ceiling ({trace['ceiling']})"
        if trace["recoverable_per_token_ns"]:
            said += f", {value('total_ns', trace['recoverable_per_token_ns'])} per token"
    return said


def _launches(kernel: KernelReport) -> str:
    many = len(kernel.launches)
    return "one launch profiled," if many == 1 else f"{many:,} launches profiled, typically"


def proof(finding: KernelFinding) -> str:
    """Write the values that prove a finding."""
    return ", ".join(f"{label(column)} {value(column, given)}" for column, given in finding.evidence.items())


def estimate(finding: KernelFinding) -> str:
    """Say what ncu estimates of it; nothing where it does not."""
    if finding.saving_pct is None:
        return ""
    return f"; ncu's {finding.estimate} estimates {value('saving_pct', finding.saving_pct)} less time"


def beside(kernel: KernelReport) -> list[str]:
    """What ncu's own rules said and no finding carries, and what could not be judged."""
    carried = {finding.estimate for finding in kernel.findings}
    said = [
        f"ncu's {one['rule']} (up to {value('speedup_pct', one['speedup_pct'])}):"
        f" {one['description'].partition('. ')[0].removesuffix('.')}."
        for one in kernel.remarks
        if one["rule"] not in carried and (one["speedup_pct"] or 0) >= 5
    ][:_REMARKS]
    if kernel.unjudged:
        lacking = "; ".join(f"{metric} for {', '.join(rules)}" for metric, rules in kernel.unjudged.items())
        said.append(
            f"Some rules could not be judged (profile with --set full, import the raw page). Not collected: {lacking}."
        )
    return said
