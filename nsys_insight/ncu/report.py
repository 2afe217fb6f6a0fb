"""What ncu's metrics say, kernel by kernel: diagnostics, findings, what to do first, and a conclusion."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.ncu.rules import KernelFinding, Target, judge, targets_of
from nsys_insight.ncu.sections import Code, Seen, conclude, diagnose, next_measurement
from nsys_insight.ncu.strategies import Strategy, strategies_of
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.paths import query
from nsys_insight.sql.quoting import literal
from nsys_insight.text.kernel_names import readable

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData

# Minimum expected saving of a priority, in % of the launch.
_WORTH_PCT = 1.0
# Minimum saving that ncu's own rule must estimate to become the priority of a kernel without other estimates, in %.
_REMARK_PCT = 10.0
# Rule of ncu that is skipped: it fires for almost every kernel, and is about the allocation.
_NO_REMARK = "MemoryL2Compression"


@dataclass(frozen=True)
class KernelReport:
    """All about one kernel in one launch configuration; `launch` is the one of median duration that stands for all.

    `trace` is its row of the report `headroom` where a trace is given, and `wall_pct` what it takes of that
    trace's wall; `remarks` is what ncu's own rules said, `next` what to measure next.
    """

    row: dict[str, Any]
    launches: tuple[int, ...]
    total_ns: float
    share_pct: float
    diagnostics: dict[str, str]
    findings: list[KernelFinding]
    unjudged: dict[str, list[str]]
    remarks: list[dict[str, Any]]
    conclusion: dict[str, str]
    targets: list[Target]
    strategies: list[Strategy]
    next: list[str]
    trace: dict[str, Any] | None = None
    wall_pct: float | None = None

    @property
    def worst(self) -> str:
        """The severity of its worst finding, or an empty text."""
        return self.findings[0].severity if self.findings else ""


@dataclass(frozen=True)
class Priority:
    """One thing to do: for which kernel, and how much time it may save, of what.

    `saving_ns` is of the launches that ncu profiled, or of all in the trace where one is given.
    """

    kernel: KernelReport
    finding: KernelFinding
    saving_pct: float | None
    saving_ns: float | None
    basis: str


@dataclass(frozen=True)
class NcuReport:
    """The whole report."""

    name: str
    gpu: str
    kernels: list[KernelReport]
    priorities: list[Priority]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """What is known of the kernels from other sources than ncu.

    `trace_rows` are those of the report `headroom`, to rank by the trace's time, `wall_ns` that trace's wall.
    `baseline` is a row of `ncu roofline`. `code` is what machine code says, by the readable names of kernels.
    """

    trace_rows: list[dict[str, Any]] = field(default_factory=list)
    wall_ns: int | None = None
    baseline: dict[str, Any] | None = None
    code: dict[str, Code] = field(default_factory=dict)


def build(measured: NcuData, name: str, context: Context | None = None) -> NcuReport:
    """Judge everything in a store."""
    context = context or Context()
    findings, unjudged = judge(measured)
    targets = targets_of(measured)
    strategies = strategies_of(measured, findings)
    roofs = {launch: row for row in measured.rows(query("internal/ncu/roofline")) for launch in row["members"]}
    shared = {row["launch"]: row for row in measured.rows(query("internal/ncu/shared_memory"))}
    rows = measured.rows("FROM ncu_kernels ORDER BY launch")
    stalls = measured.rows("FROM ncu_stalls WHERE stall_pct > 0 ORDER BY launch, stall_pct DESC, reason")
    remarks = measured.rows(
        f"FROM ncu_rules WHERE type = 'OPT' AND speedup_type = 'global' AND rule <> '{_NO_REMARK}'"
        " ORDER BY launch, speedup_pct DESC NULLS LAST, rule, description"
    )
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_configuration(row), []).append(row)
    total = sum(row["duration_ns"] or 0 for row in rows)
    keys = _keys(measured, {row["kernel"] for row in rows} | {row["name"] for row in context.trace_rows})
    traced = {(keys[row["name"]], row["grid"], row["block"]): row for row in context.trace_rows}
    kernels = []
    for group in groups.values():
        row = sorted(group, key=lambda one: (one["duration_ns"] or 0, one["launch"]))[len(group) // 2]
        launch = row["launch"]
        spent = sum(one["duration_ns"] or 0 for one in group)
        lacking: dict[str, list[str]] = {}
        for one in unjudged:
            if one.launch == launch:
                for metric in one.metrics:
                    lacking.setdefault(metric, []).append(one.rule)
        seen = Seen(
            [stall for stall in stalls if stall["launch"] == launch],
            roofs.get(launch),
            shared.get(launch),
            context.baseline,
            context.code.get(readable(row["kernel"])),
        )
        of_trace = traced.get((keys[row["kernel"]], dimensions(row, "grid"), dimensions(row, "block")))
        possible = strategies.get(launch, [])
        kernels.append(
            KernelReport(
                row=row,
                launches=tuple(one["launch"] for one in group),
                total_ns=spent,
                share_pct=100 * spent / total if total else 0.0,
                diagnostics=diagnose(row, seen),
                findings=[one for one in findings if one.launch == launch],
                unjudged=lacking,
                remarks=[one for one in remarks if one["launch"] == launch],
                conclusion=conclude(row),
                targets=targets.get(launch, []),
                strategies=possible,
                next=next_measurement(row, seen, possible, lacking),
                trace=of_trace,
                wall_pct=100 * of_trace["total_ns"] / context.wall_ns if of_trace and context.wall_ns else None,
            )
        )
    kernels.sort(key=lambda one: (-((one.trace or {}).get("total_ns") or 0), -one.total_ns, one.row["launch"]))
    gpus = Counter(
        f"{row['gpu'] or 'a GPU'} (sm_{(row['compute_capability'] or '?').replace('.', '')})" for row in rows
    )
    return NcuReport(name, ", ".join(gpus), kernels, prioritise(kernels))


def prioritise(kernels: list[KernelReport]) -> list[Priority]:
    """Order what can be done by the time that it may save; what nobody can estimate comes last, by severity.

    A saving is ncu's own estimate of the rule that fits. Where a trace is given and there is none, it is bounded by
    what the kernel would save at its ceiling.
    """
    found = []
    for kernel in kernels:
        total = kernel.trace["total_ns"] if kernel.trace else kernel.total_ns
        ceiling = kernel.trace["recoverable_ns"] if kernel.trace else None
        for finding in kernel.findings:
            if finding.severity == "info":
                continue
            pct, saving, basis = None, None, "not estimated"
            if finding.saving_pct is not None:
                pct, saving, basis = finding.saving_pct, total * finding.saving_pct / 100, f"ncu: {finding.estimate}"
            if ceiling is not None and (saving is None or saving > ceiling):
                saving, basis = ceiling, "at most, at its ceiling"
                pct = 100 * ceiling / total if total else None
            if pct is None or pct >= _WORTH_PCT:
                found.append(Priority(kernel, finding, pct, saving, basis))
        if all(finding.saving_pct is None for finding in kernel.findings) and kernel.row["implementation"] != "library":
            found += [
                _carried(kernel, remark, total) for remark in kernel.remarks[:1] if remark["speedup_pct"] >= _REMARK_PCT
            ]
    return sorted(
        found,
        key=lambda one: (
            SEVERITIES.index(one.finding.severity) if one.finding.severity == "critical" else 1,
            -(one.saving_ns or 0),
            one.saving_ns is None,
            -one.kernel.total_ns,
            one.finding.rule,
        ),
    )


def _carried(kernel: KernelReport, remark: dict[str, Any], total: float) -> Priority:
    """Make a remark of ncu's own a priority, for a kernel about which no finding has an estimate."""
    name, pct = remark["rule"], remark["speedup_pct"]
    said = remark["description"].partition(". ")[0]
    finding = KernelFinding(kernel.row["launch"], name, "info", f"ncu: {said}", {}, remark["description"], pct, name)
    return Priority(kernel, finding, pct, total * pct / 100, f"ncu: {name}")


def dimensions(row: dict[str, Any], what: str) -> str:
    """Write a grid or block as 128x1x1."""
    return "x".join(str(row[f"{what}_{axis}"]) for axis in "xyz")


def _keys(measured: NcuData, names: set[str]) -> dict[str, str]:
    """Spell the names of kernels so that nsys's and ncu's are the same."""
    values = ", ".join(f"({literal(name)})" for name in sorted(names))
    found = measured.rows(f"SELECT name, kernel_key(name) AS key FROM (VALUES {values}) AS t(name)") if values else []
    return {row["name"]: row["key"] for row in found}


def _configuration(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kernel"], dimensions(row, "grid"), dimensions(row, "block"), row["device_id"]
