"""Build a report from ncu's metrics, kernel by kernel: diagnostics, findings, what to do first, and a conclusion."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.ncu.rules import KernelFinding, Target, check_targets, evaluate_rules
from nsys_insight.ncu.sections import CodeSummary, LaunchDetails, conclude, diagnose, suggest_measurements
from nsys_insight.ncu.strategies import Strategy, rank_strategies
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.paths import read_query
from nsys_insight.sql.quoting import literal
from nsys_insight.text.kernel_names import make_readable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData

# Minimum expected saving of a priority, in % of the launch.
_MIN_SAVING_PCT = 1.0
# Minimum estimate of ncu's own rule, in %, to become the priority of a kernel that has no other estimate.
_MIN_REMARK_PCT = 10.0
# From this ratio of the GPU's highest clock to the clock under ncu, the difference is reported.
_MIN_CLOCK_RATIO = 1.1
# A rule of ncu that is skipped: it fires for almost every kernel, and is about the allocation.
_SKIPPED_REMARK = "MemoryL2Compression"


@dataclass(frozen=True)
class KernelReport:
    """Everything about one kernel in one launch configuration.

    Attributes:
        row: The launch of median duration, a row of `ncu_kernels`. It represents all launches.
        share_pct: Share of the durations of all profiled launches; None if no duration is known.
        missing_metrics: Metrics that were not collected, each with the rules that need it.
        remarks: What ncu's own rules report.
        next_steps: What to measure next.
        trace_row: The kernel's row of the report `headroom`, if a trace is given.
        wall_pct: The kernel's share of that trace's wall time.
    """

    row: dict[str, Any]
    launches: tuple[int, ...]
    total_ns: float
    share_pct: float | None
    diagnostics: dict[str, str]
    findings: list[KernelFinding]
    missing_metrics: dict[str, list[str]]
    remarks: list[dict[str, Any]]
    conclusion: dict[str, str]
    targets: list[Target]
    strategies: list[Strategy]
    next_steps: list[str]
    trace_row: dict[str, Any] | None = None
    wall_pct: float | None = None

    @property
    def worst_severity(self) -> str:
        """Return the severity of the worst finding; "" without findings."""
        return self.findings[0].severity if self.findings else ""


@dataclass(frozen=True)
class Priority:
    """One thing to do: for which kernel, how much time it may save, and where that estimate comes from.

    `saving_ns` covers the launches that ncu profiled, or all launches in the trace if one is given.
    """

    kernel: KernelReport
    finding: KernelFinding
    saving_pct: float | None
    saving_ns: float | None
    basis: str


@dataclass(frozen=True)
class NcuReport:
    """The complete report."""

    name: str
    gpu: str
    kernels: list[KernelReport]
    priorities: list[Priority]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """Data about the kernels from sources other than ncu's metrics.

    Attributes:
        trace_rows: Rows of the report `headroom`. Kernels are ranked by their time in that trace.
        wall_ns: The wall time of that trace.
        baseline: A row of `ncu roofline`.
        code: The machine code of kernels in short, by readable name.
    """

    trace_rows: list[dict[str, Any]] = field(default_factory=list)
    wall_ns: int | None = None
    baseline: dict[str, Any] | None = None
    code: dict[str, CodeSummary] = field(default_factory=dict)


def build(ncu_data: NcuData, name: str, context: Context | None = None) -> NcuReport:
    """Evaluate all kernels in a store."""
    context = context or Context()
    findings, skipped_rules = evaluate_rules(ncu_data)
    targets_by_launch = check_targets(ncu_data)
    strategies_by_launch = rank_strategies(ncu_data, findings)
    roofline_by_launch = {
        launch: row for row in ncu_data.rows(read_query("internal/ncu/roofline")) for launch in row["members"]
    }
    shared_by_launch = {row["launch"]: row for row in ncu_data.rows(read_query("internal/ncu/shared_memory"))}
    rows = ncu_data.rows("FROM ncu_kernels ORDER BY launch")
    stalls = ncu_data.rows("FROM ncu_stalls WHERE stall_pct > 0 ORDER BY launch, stall_pct DESC, reason")
    remarks = ncu_data.rows(
        f"FROM ncu_rules WHERE type = 'OPT' AND speedup_type = 'global' AND rule <> '{_SKIPPED_REMARK}'"
        " ORDER BY launch, speedup_pct DESC NULLS LAST, rule, description"
    )
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_get_configuration(row), []).append(row)
    total_ns = sum(row["duration_ns"] or 0 for row in rows)
    key_by_name = _read_kernel_keys(
        ncu_data, {row["kernel"] for row in rows} | {row["name"] for row in context.trace_rows}
    )
    trace_row_by_shape = {(key_by_name[row["name"]], row["grid"], row["block"]): row for row in context.trace_rows}
    kernels = []
    for group in groups.values():
        row = sorted(group, key=lambda row: (row["duration_ns"] or 0, row["launch"]))[len(group) // 2]
        launch = row["launch"]
        kernel_ns = sum(row["duration_ns"] or 0 for row in group)
        missing_metrics: dict[str, list[str]] = {}
        for skipped_rule in skipped_rules:
            if skipped_rule.launch == launch:
                for metric in skipped_rule.metrics:
                    missing_metrics.setdefault(metric, []).append(skipped_rule.rule)
        details = LaunchDetails(
            [stall for stall in stalls if stall["launch"] == launch],
            roofline_by_launch.get(launch),
            shared_by_launch.get(launch),
            context.baseline,
            context.code.get(make_readable(row["kernel"])),
        )
        trace_row = trace_row_by_shape.get(
            (key_by_name[row["kernel"]], format_dimensions(row, "grid"), format_dimensions(row, "block"))
        )
        kernel_strategies = strategies_by_launch.get(launch, [])
        kernels.append(
            KernelReport(
                row=row,
                launches=tuple(row["launch"] for row in group),
                total_ns=kernel_ns,
                share_pct=100 * kernel_ns / total_ns if kernel_ns else None,
                diagnostics=diagnose(row, details),
                findings=[finding for finding in findings if finding.launch == launch],
                missing_metrics=missing_metrics,
                remarks=[remark for remark in remarks if remark["launch"] == launch],
                conclusion=conclude(row),
                targets=targets_by_launch.get(launch, []),
                strategies=kernel_strategies,
                next_steps=suggest_measurements(row, details, kernel_strategies, missing_metrics),
                trace_row=trace_row,
                wall_pct=100 * trace_row["total_ns"] / context.wall_ns if trace_row and context.wall_ns else None,
            )
        )
    kernels.sort(
        key=lambda kernel: (
            -((kernel.trace_row or {}).get("total_ns") or 0), -kernel.total_ns, kernel.row["launch"]
        )
    )  # fmt: skip
    gpus = Counter(
        f"{row['gpu'] or 'a GPU'} (sm_{(row['compute_capability'] or '?').replace('.', '')})" for row in rows
    )
    return NcuReport(name, ", ".join(gpus), kernels, prioritize(kernels), _describe_clock(ncu_data))


def _describe_clock(ncu_data: NcuData) -> list[str]:
    """Return a note if the SMs ran at a lower clock under ncu than they can, as ncu's clock control makes them."""
    return [
        f"The SMs ran at {value('clock_hz', row['clock_hz'])} under ncu, and can run at"
        f" {value('clock_hz', row['most_hz'])}: compute-bound kernels may take up to {ratio:.2f} times as long as in"
        " the program, memory-bound ones about as long; to measure at the program's clock, profile with"
        " --clock-control none."
        for row in ncu_data.rows(read_query("internal/ncu/clock"))
        if (ratio := row["most_hz"] / row["clock_hz"]) >= _MIN_CLOCK_RATIO
    ]


def prioritize(kernels: list[KernelReport]) -> list[Priority]:
    """Order what can be done by the time that it may save. Findings without an estimate come last, by severity.

    A saving is the estimate of the matching rule of ncu. If a trace is given, the saving is at most what the kernel
    would save at its ceiling; that is also the saving if ncu has no estimate.
    """
    priorities = []
    for kernel in kernels:
        total_ns = kernel.trace_row["total_ns"] if kernel.trace_row else kernel.total_ns
        ceiling_ns = kernel.trace_row["recoverable_ns"] if kernel.trace_row else None
        for finding in kernel.findings:
            if finding.severity == "info":
                continue
            pct, saving_ns, basis = None, None, "not estimated"
            if finding.saving_pct is not None:
                pct, saving_ns, basis = (
                    finding.saving_pct,
                    total_ns * finding.saving_pct / 100,
                    f"ncu: {finding.estimate}",
                )
            if ceiling_ns is not None and (saving_ns is None or saving_ns > ceiling_ns):
                saving_ns, basis = ceiling_ns, "at most, at its ceiling"
                pct = 100 * ceiling_ns / total_ns if total_ns else None
            if pct is None or pct >= _MIN_SAVING_PCT:
                priorities.append(Priority(kernel, finding, pct, saving_ns, basis))
        if all(finding.saving_pct is None for finding in kernel.findings) and kernel.row["implementation"] != "library":
            priorities += [
                _promote_remark(kernel, remark, total_ns)
                for remark in kernel.remarks[:1]
                if remark["speedup_pct"] >= _MIN_REMARK_PCT
            ]
    return sorted(
        priorities,
        key=lambda priority: (
            SEVERITIES.index(priority.finding.severity) if priority.finding.severity == "critical" else 1,
            -(priority.saving_ns or 0),
            priority.saving_ns is None,
            -priority.kernel.total_ns,
            priority.finding.rule,
        ),
    )


def _promote_remark(kernel: KernelReport, remark: dict[str, Any], total_ns: float) -> Priority:
    """Make one of ncu's own remarks a priority, for a kernel whose findings have no estimate."""
    name, pct = remark["rule"], remark["speedup_pct"]
    summary = remark["description"].partition(". ")[0]
    finding = KernelFinding(kernel.row["launch"], name, "info", f"ncu: {summary}", {}, remark["description"], pct, name)
    return Priority(kernel, finding, pct, total_ns * pct / 100, f"ncu: {name}")


def format_dimensions(row: dict[str, Any], kind: str) -> str:
    """Format a grid or block as 128x1x1; an unknown size is "?"."""
    sizes = (row[f"{kind}_{axis}"] for axis in "xyz")
    return "x".join("?" if size is None else str(size) for size in sizes)


def _read_kernel_keys(ncu_data: NcuData, names: set[str]) -> dict[str, str]:
    """Read the keys of kernel names. nsys and ncu spell names differently; the keys agree."""
    values = ", ".join(f"({literal(name)})" for name in sorted(names))
    key_rows = (
        ncu_data.rows(f"SELECT name, kernel_key(name) AS key FROM (VALUES {values}) AS t(name)") if values else []
    )
    return {row["name"]: row["key"] for row in key_rows}


def _get_configuration(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kernel"], format_dimensions(row, "grid"), format_dimensions(row, "block"), row["device_id"]
