"""What a report says of one kernel, section by section: the figures, or what to measure where there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.text.units import value, value_or_unknown

if TYPE_CHECKING:
    from nsys_insight.ncu.strategies import Strategy

# SM or DRAM throughput in % from which a kernel is near its roof: further optimization gains little.
_NEAR_PCT = 80.0
# SM and memory throughput below which neither is busy, in %.
_BUSY_PCT = 40.0
# Active warps of an SM that usually suffice to hide latency: common practice, measured on GA104.
_ENOUGH_WARPS = 8
_MEASURE = "not collected: ncu --set full, its raw page"


@dataclass(frozen=True)
class Code:
    """What machine code says of a kernel: instructions by class, its hottest loop, and what stands out."""

    mix: str
    loop: str
    compute_per_load: float | None
    reading: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What is known of a launch next to its row of `ncu_kernels`; None if it was not measured or given.

    `roof` is its row of `ncu roofline`, `shared` of `internal/ncu/shared_memory`, `baseline` that of another kernel.
    """

    stalls: list[dict[str, Any]]
    roof: dict[str, Any] | None = None
    shared: dict[str, Any] | None = None
    baseline: dict[str, Any] | None = None
    code: Code | None = None


def diagnose(row: dict[str, Any], seen: Seen) -> dict[str, str]:
    """Write the sections of one launch, a sentence each."""

    def text(*parts: tuple[str, str]) -> str:
        return ", ".join(f"{label} {value(column, row[column])}" for label, column in parts if row[column] is not None)

    limit = f", limited by {row['occupancy_limit']}" if row["occupancy_limit"] else ""
    occupancy = text(
        ("achieved", "occupancy_pct"), ("theoretical", "theoretical_occupancy_pct"), ("blocks per SM", "blocks_per_sm"),
        ("waves", "waves_per_sm_ratio"), ("blocks", "blocks_count"), ("on SMs:", "sm_count"),
        ("active warps", "active_warps_ratio"),
    )  # fmt: skip
    conflicts = text(("conflicts", "bank_conflicts_count"), ("in wavefronts:", "shared_wavefronts_count"))
    return {
        "baseline": _baseline(row, seen.baseline),
        "roofline": "; ".join(filter(None, (roofline(row), _attained(seen.roof)))) or _MEASURE,
        "memory": text(
            ("L1 hits", "l1_hit_pct"), ("L2 hits", "l2_hit_pct"), ("DRAM", "dram_pct"), ("moving", "dram_bytes_per_s"),
            ("sectors per load", "load_sectors_per_request_ratio"),
            ("bytes used of 32:", "load_bytes_per_sector_ratio"),
            ("sectors per store", "store_sectors_per_request_ratio"),
        ) or _MEASURE,
        "occupancy": _MEASURE if row["theoretical_occupancy_pct"] is None else occupancy + limit + _few_warps(row),
        "compute per load": _compute_per_load(row, seen.code),
        "machine code": _machine_code(seen.code),
        "pipes": text(
            ("tensor", "tensor_pct"), ("FMA", "fma_pct"), ("fp16 on FMA", "fma_half_pct"), ("ALU", "alu_pct"),
            ("XU", "xu_pct"), ("LSU", "lsu_pct"), ("fp64", "fp64_pct"), ("IPC", "ipc_ratio"),
        ) or _MEASURE,
        "warp stalls": _stalls(seen.stalls) or _MEASURE,
        "shared memory": _shared(seen.shared),
        "bank conflicts": conflicts or _MEASURE,
        "spills": text(("sectors", "spill_sectors_count"), ("registers", "registers_per_thread")) or _MEASURE,
        "divergence": text(("idle lanes", "divergence_pct"), ("uniform branches", "branch_uniform_pct")) or _MEASURE,
    }  # fmt: skip


def conclude(row: dict[str, Any]) -> dict[str, str]:
    """Write the block that sums a kernel up."""
    level = f" ({row['memory_level']})" if row["memory_level"] else ""
    return {
        "kernel": row["short_name"] or row["kernel"],
        "implementation": _implementation(row),
        "arch": f"sm_{(row['compute_capability'] or '?').replace('.', '')}",
        "class": f"{row['bound']}-bound{level}" if row["bound"] not in ("balanced", "unknown") else row["bound"],
        "duration": value_or_unknown("duration_ns", row["duration_ns"]),
        "roofline": roofline(row) or "unknown",
        "occupancy": value_or_unknown("occupancy_pct", row["occupancy_pct"]),
        "registers": value_or_unknown("registers_per_thread", row["registers_per_thread"]),
        "shared memory": value_or_unknown("shared_per_block_bytes", row["shared_per_block_bytes"]),
    }


def next_measurement(
    row: dict[str, Any], seen: Seen, strategies: list[Strategy], lacking: dict[str, list[str]]
) -> list[str]:
    """Say what to measure next: what a section lacks, and what shows whether the first strategy worked."""
    name = row["short_name"] or row["kernel"]
    said = []
    if lacking or not seen.stalls or row["sm_pct"] is None:
        said.append(f"all metrics: ncu --set full --import-source yes --kernel-name {name} … PROGRAM, and its raw page")
    if seen.code is None:
        said.append(
            "machine code: ncu --import FILE.ncu-rep --csv --page source --print-source cuda,sass > FILE.source.csv,"
            " then ncu report … --sass FILE.source.csv"
        )
    if seen.baseline is None and row["family"] in ("gemm", "attention"):
        said.append("a baseline: profile the library's kernel of the same size, then ncu report … --against FILE")
    if strategies:
        first = strategies[0]
        metric = next(iter(first.findings[0].evidence), "duration_ns")
        said.append(
            f"make one change, then profile again: {first.title.lower()}, and nsys-insight ncu diff BEFORE AFTER"
            f" --kernel {name} --metric {metric}"
        )
    return said


def roofline(row: dict[str, Any]) -> str:
    """Say on which side of the roof a kernel is, peak compute against DRAM bandwidth, and how far below it."""
    sm, dram = row["sm_pct"], row["dram_pct"] if row["dram_pct"] is not None else row["memory_pct"]
    if sm is None or dram is None:
        return ""
    figures = f"SM {value('sm_pct', sm)}, DRAM {value('dram_pct', dram)} of peak"
    if row["fp32_flop_per_byte_ratio"]:
        figures += f", {value('ratio', row['fp32_flop_per_byte_ratio'])} fp32 FLOP per byte of DRAM"
    if max(sm, row["memory_pct"] or 0) < _BUSY_PCT:
        return f"far below both roofs: {figures}"
    side = "compute" if sm >= dram and row["bound"] != "memory" else "memory"
    near = ", near the roof" if max(sm, dram) > _NEAR_PCT else ", below the roof"
    return f"{side} side{near}: {figures}"


def _attained(roof: dict[str, Any] | None) -> str:
    """What ncu counted: operations per second, and the ceiling that is nearest."""
    if roof is None or roof["ceiling"] is None:
        return ""
    counted = ""
    if roof["flop_count"] and roof["compute_pct"] is not None:
        counted = (
            f"{roof['tflop_per_s']:.3g} TFLOP/s of {roof['precision']}"
            f" ({value('compute_pct', roof['compute_pct'])} of peak), "
        )
    return f"{counted}nearest ceiling {roof['ceiling']} at {value('ceiling_pct', roof['ceiling_pct'])}"


def _baseline(row: dict[str, Any], baseline: dict[str, Any] | None) -> str:
    if baseline is None:
        return "not given: ncu report … --against FILE, a profile of the library's kernel or of the previous version"
    if not row["duration_ns"]:
        return f"{baseline['name']}: the duration of this kernel was not collected"
    share = 100 * baseline["duration_ns"] / row["duration_ns"]
    return (
        f"{baseline['name']} took {value('duration_ns', baseline['duration_ns'])} under ncu, this one"
        f" {value('duration_ns', row['duration_ns'])}: {share:.0f} % of its speed"
    )


def _few_warps(row: dict[str, Any]) -> str:
    warps = row["active_warps_ratio"]
    return f" (fewer than {_ENOUGH_WARPS} active warps seldom hide latency)" if warps and warps < _ENOUGH_WARPS else ""


def _compute_per_load(row: dict[str, Any], code: Code | None) -> str:
    parts = []
    if row["fma_per_load_ratio"] is not None:
        parts.append(f"{row['fma_per_load_ratio']:,.3g} fp32 multiply-adds per global load, as executed")
    if row["fma_per_shared_pass_ratio"]:
        parts.append(f"{row['fma_per_shared_pass_ratio']:,.3g} per pass of shared memory")
    if code and code.compute_per_load is not None:
        parts.append(f"{code.compute_per_load:,.3g} multiply-adds of any kind per load in {code.loop}")
    return ", ".join(parts) or _MEASURE


def _machine_code(code: Code | None) -> str:
    if code is None:
        return "not given: ncu report … --sass FILE, a source page of ncu, a cubin, or a disassembly"
    return "; ".join([code.mix, *code.reading])


def _stalls(stalls: list[dict[str, Any]]) -> str:
    waits = [stall for stall in stalls if stall["reason"] != "selected"]
    issuing = next((stall["stall_pct"] for stall in stalls if stall["reason"] == "selected"), None)
    waiting = ", ".join(f"{stall['reason']} {value('stall_pct', stall['stall_pct'])}" for stall in waits[:4])
    return f"{waiting}; issuing {value('stall_pct', issuing)}" if waiting else ""


def _shared(shared: dict[str, Any] | None) -> str:
    """Say how far the cliff is: the shared memory at which one block fewer fits, and whether two buffers reach it."""
    if shared is None:
        return _MEASURE
    if not shared["shared_bytes"]:
        return "none used: a tile or a second buffer is free until blocks no longer fit"
    more = value("bytes", max(shared["cliff_bytes"], 0))
    own = f"{value('bytes', shared['shared_bytes'])} per block, {more} more until"
    now, doubled = shared["blocks_per_sm"], shared["double_buffered_blocks"]
    twice = "as many fit" if doubled >= now else f"{doubled} fit" if doubled else "none fits"
    warps = f" ({doubled * shared['warps']} warps)" if 0 < doubled < now else ""
    return f"{own} fewer than {now} {'block fits' if now == 1 else 'blocks fit'}; with two buffers {twice}{warps}"


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
