"""What ncu's metrics say, kernel by kernel: diagnostics, findings, what to do first, and a conclusion."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.ncu.rules import KernelFinding, judge
from nsys_insight.ncu.targets import Target, targets_of
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.sql.quoting import literal
from nsys_insight.text.quantities import shown, value

if TYPE_CHECKING:
    from nsys_insight.ncu.measured import Measured

# Under which a finding's expected saving is not worth a place among the priorities, in % of the launch.
_WORTH_PCT = 1.0
# A remark of ncu's own stands for a kernel without other estimates from so much of its time, in %.
_REMARK_PCT = 10.0
# SM or DRAM throughput from which a kernel is near its roof, in %: where the loop of optimising stops.
_NEAR_PCT = 80.0
# SM and memory throughput below which neither is busy, in %.
_BUSY_PCT = 40.0
# Says of nearly every kernel that compressible memory might help: a remark about the allocation, not the kernel.
_NO_REMARK = "MemoryL2Compression"


@dataclass(frozen=True)
class KernelReport:
    """All about one kernel in one launch configuration; `launch` is the one of median duration that stands for all.

    `trace` is its row of the report `headroom` where a trace is given, `remarks` what ncu's own rules said.
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
    trace: dict[str, Any] | None = None

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


def build(measured: Measured, name: str, trace_rows: list[dict[str, Any]] | None = None) -> NcuReport:
    """Judge everything in a store; `trace_rows` are those of the report `headroom`, to rank by the trace's time."""
    findings, unjudged = judge(measured)
    targets = targets_of(measured)
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
    keys = _keys(measured, {row["kernel"] for row in rows} | {row["name"] for row in trace_rows or []})
    traced = {(keys[row["name"]], row["grid"], row["block"]): row for row in trace_rows or []}
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
        kernels.append(
            KernelReport(
                row=row,
                launches=tuple(one["launch"] for one in group),
                total_ns=spent,
                share_pct=100 * spent / total if total else 0.0,
                diagnostics=diagnose(row, [stall for stall in stalls if stall["launch"] == launch]),
                findings=[one for one in findings if one.launch == launch],
                unjudged=lacking,
                remarks=[one for one in remarks if one["launch"] == launch],
                conclusion=conclude(row),
                targets=targets.get(launch, []),
                trace=traced.get((keys[row["kernel"]], dimensions(row, "grid"), dimensions(row, "block"))),
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


def diagnose(row: dict[str, Any], stalls: list[dict[str, Any]]) -> dict[str, str]:
    """Write the diagnostics of one launch, a sentence each, with the figures that were collected."""
    unknown = "not collected"

    def text(*parts: tuple[str, str]) -> str:
        return ", ".join(f"{label} {value(column, row[column])}" for label, column in parts if row[column] is not None)

    waits = [stall for stall in stalls if stall["reason"] != "selected"]
    issuing = next((stall["stall_pct"] for stall in stalls if stall["reason"] == "selected"), None)
    waiting = ", ".join(f"{stall['reason']} {value('stall_pct', stall['stall_pct'])}" for stall in waits[:4])
    limit = f", limited by {row['occupancy_limit']}" if row["occupancy_limit"] else ""
    occupancy = text(
        ("achieved", "occupancy_pct"), ("theoretical", "theoretical_occupancy_pct"), ("blocks per SM", "blocks_per_sm"),
        ("waves", "waves_per_sm_ratio"), ("blocks", "blocks_count"), ("on SMs:", "sm_count"),
    )  # fmt: skip
    conflicts = text(("conflicts", "bank_conflicts_count"), ("in wavefronts:", "shared_wavefronts_count"))
    return {
        "roofline": _roofline(row) or unknown,
        "memory": text(
            ("L1 hits", "l1_hit_pct"), ("L2 hits", "l2_hit_pct"), ("DRAM", "dram_pct"), ("moving", "dram_bytes_per_s"),
            ("sectors per load", "load_sectors_per_request_ratio"),
            ("bytes used of 32:", "load_bytes_per_sector_ratio"),
            ("sectors per store", "store_sectors_per_request_ratio"),
        ) or unknown,
        "warp stalls": f"{waiting}; issuing {value('stall_pct', issuing)}" if waiting else unknown,
        "pipes": text(
            ("tensor", "tensor_pct"), ("FMA", "fma_pct"), ("fp16 on FMA", "fma_half_pct"), ("ALU", "alu_pct"),
            ("XU", "xu_pct"), ("LSU", "lsu_pct"), ("fp64", "fp64_pct"), ("IPC", "ipc_ratio"),
        ) or unknown,
        "occupancy": occupancy + limit if occupancy else unknown,
        "bank conflicts": conflicts or unknown,
        "spills": text(("sectors", "spill_sectors_count"), ("registers", "registers_per_thread")) or unknown,
        "divergence": text(("idle lanes", "divergence_pct"), ("uniform branches", "branch_uniform_pct")) or unknown,
    }  # fmt: skip


def conclude(row: dict[str, Any]) -> dict[str, str]:
    """Write the block that sums a kernel up."""
    level = f" ({row['memory_level']})" if row["memory_level"] else ""
    return {
        "kernel": row["short_name"] or row["kernel"],
        "implementation": _implementation(row),
        "arch": f"sm_{(row['compute_capability'] or '?').replace('.', '')}",
        "class": f"{row['bound']}-bound{level}" if row["bound"] not in ("balanced", "unknown") else row["bound"],
        "duration": shown("duration_ns", row["duration_ns"]),
        "roofline": _roofline(row) or "unknown",
        "occupancy": shown("occupancy_pct", row["occupancy_pct"]),
        "registers": shown("registers_per_thread", row["registers_per_thread"]),
        "shared memory": shown("shared_per_block_bytes", row["shared_per_block_bytes"]),
    }


def dimensions(row: dict[str, Any], what: str) -> str:
    """Write a grid or block as 128x1x1."""
    return "x".join(str(row[f"{what}_{axis}"]) for axis in "xyz")


def _keys(measured: Measured, names: set[str]) -> dict[str, str]:
    """Spell the names of kernels so that nsys's and ncu's are the same."""
    values = ", ".join(f"({literal(name)})" for name in sorted(names))
    found = measured.rows(f"SELECT name, kernel_key(name) AS key FROM (VALUES {values}) AS t(name)") if values else []
    return {row["name"]: row["key"] for row in found}


def _configuration(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kernel"], dimensions(row, "grid"), dimensions(row, "block"), row["device_id"]


def _implementation(row: dict[str, Any]) -> str:
    named = [
        f"{label} {row[column]}"
        for label, column in (
            ("sm", "name_arch"), ("", "name_math"), ("tile", "name_tile"), ("stages", "name_stages"),
            ("alignment", "name_alignment"), ("", "name_schedule"),
        )
        if row[column] is not None
    ]  # fmt: skip
    known = named if row["implementation"] in ("cutlass", "library") else []
    return str(row["implementation"]) + (f" ({', '.join(part.strip() for part in known)})" if known else "")


def _roofline(row: dict[str, Any]) -> str:
    """Say on which side of the roof a kernel is, peak compute against DRAM bandwidth, and how far below it."""
    sm, dram = row["sm_pct"], row["dram_pct"] if row["dram_pct"] is not None else row["memory_pct"]
    if sm is None or dram is None:
        return ""
    figures = f"SM {value('sm_pct', sm)}, DRAM {value('dram_pct', dram)} of peak"
    if row["fp32_flop_per_byte_ratio"]:
        figures += f", {value('ratio', row['fp32_flop_per_byte_ratio'])} fp32 FLOP per byte of DRAM"
    if max(sm, row["memory_pct"] or 0) < _BUSY_PCT:
        return f"far below both roofs: {figures}"
    side = "compute" if sm >= dram else "memory"
    near = ", near the roof" if max(sm, dram) > _NEAR_PCT else ", below the roof"
    return f"{side} side{near}: {figures}"
