"""Write the sections of a report about one kernel: the figures, or what to measure if figures are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.text.units import value, value_or_unknown

if TYPE_CHECKING:
    from nsys_insight.ncu.strategies import Strategy

# SM or DRAM throughput above which a kernel is near its roofline, in %. Further optimization gains little.
_NEAR_PCT = 80.0
# SM and memory throughput below which neither is busy, in %.
_BUSY_PCT = 40.0
# Active warps of an SM that usually suffice to hide latency: common practice, measured on GA104.
_ENOUGH_WARPS = 8
_NOT_COLLECTED = "not collected: ncu --set full, its raw page"


@dataclass(frozen=True)
class CodeSummary:
    """A kernel's machine code in short: instructions by class, the hottest loop, and what stands out."""

    mix: str
    loop: str
    compute_per_load: float | None
    reading: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchDetails:
    """Data about a launch in addition to its row of `ncu_kernels`; None if not measured or not given.

    `roof` is the launch's row of `ncu roofline`, `shared` its row of `internal/ncu/shared_memory`. `baseline` is
    another kernel's row of `ncu roofline`.
    """

    stalls: list[dict[str, Any]]
    roof: dict[str, Any] | None = None
    shared: dict[str, Any] | None = None
    baseline: dict[str, Any] | None = None
    code: CodeSummary | None = None


def diagnose(row: dict[str, Any], details: LaunchDetails) -> dict[str, str]:
    """Write the sections of one launch, one sentence each."""

    def join_figures(*figures: tuple[str, str]) -> str:
        return ", ".join(
            f"{label} {value(column, row[column])}" for label, column in figures if row[column] is not None
        )

    occupancy = join_figures(
        ("achieved", "occupancy_pct"), ("theoretical", "theoretical_occupancy_pct"), ("blocks per SM", "blocks_per_sm"),
        ("waves", "waves_per_sm_ratio"), ("blocks", "blocks_count"), ("on SMs:", "sm_count"),
        ("active warps", "active_warps_ratio"),
    )  # fmt: skip
    limit = f", limited by {row['occupancy_limit']}" if row["occupancy_limit"] else ""
    has_occupancy = row["theoretical_occupancy_pct"] is not None
    conflicts = join_figures(("conflicts", "bank_conflicts_count"), ("in wavefronts:", "shared_wavefronts_count"))
    return {
        "baseline": _compare_with_baseline(row, details.baseline),
        "roofline": "; ".join(filter(None, (describe_roofline(row), _describe_attained_rate(details.roof))))
        or _NOT_COLLECTED,
        "memory": join_figures(
            ("L1 hits", "l1_hit_pct"), ("L2 hits", "l2_hit_pct"), ("L1", "l1_pct"), ("L2", "l2_pct"),
            ("DRAM", "dram_pct"), ("moving", "dram_bytes_per_s"),
            ("sectors per load", "load_sectors_per_request_ratio"),
            ("bytes used of 32:", "load_bytes_per_sector_ratio"),
            ("sectors per store", "store_sectors_per_request_ratio"),
        ) or _NOT_COLLECTED,
        "occupancy": occupancy + limit + _warn_few_warps(row) if has_occupancy else _NOT_COLLECTED,
        "compute per load": _describe_compute_per_load(row, details.code),
        "machine code": _describe_machine_code(details.code),
        "pipes": join_figures(
            ("tensor", "tensor_pct"), ("FMA", "fma_pct"), ("fp16 on FMA", "fma_half_pct"), ("ALU", "alu_pct"),
            ("XU", "xu_pct"), ("LSU", "lsu_pct"), ("fp64", "fp64_pct"), ("IPC", "ipc_ratio"),
        ) or _NOT_COLLECTED,
        "warp stalls": _describe_stalls(details.stalls) or _NOT_COLLECTED,
        "shared memory": _describe_shared_memory(details.shared),
        "bank conflicts": conflicts or _NOT_COLLECTED,
        "spills": join_figures(("sectors", "spill_sectors_count")) or _NOT_COLLECTED,
        "registers": join_figures(("per thread", "registers_per_thread")) or _NOT_COLLECTED,
        "divergence": join_figures(("idle lanes", "divergence_pct"), ("uniform branches", "branch_uniform_pct"))
        or _NOT_COLLECTED,
    }  # fmt: skip


def conclude(row: dict[str, Any]) -> dict[str, str]:
    """Write the block that summarizes a kernel."""
    level = f" ({row['memory_level']})" if row["memory_level"] else ""
    return {
        "kernel": row["short_name"] or row["kernel"],
        "implementation": _describe_implementation(row),
        "arch": f"sm_{(row['compute_capability'] or '?').replace('.', '')}",
        "class": f"{row['bound']}-bound{level}" if row["bound"] not in ("balanced", "unknown") else row["bound"],
        "duration": value_or_unknown("duration_ns", row["duration_ns"]),
        "roofline": describe_roofline(row) or "unknown",
        "occupancy": value_or_unknown("occupancy_pct", row["occupancy_pct"]),
        "registers": value_or_unknown("registers_per_thread", row["registers_per_thread"]),
        "shared memory": value_or_unknown("shared_per_block_bytes", row["shared_per_block_bytes"])
        + (", the driver's part included" if row["shared_per_block_bytes"] else ""),
    }


def suggest_measurements(
    row: dict[str, Any], details: LaunchDetails, strategies: list[Strategy], missing_metrics: dict[str, list[str]]
) -> list[str]:
    """Suggest what to measure next: what the sections lack, and what shows whether the first strategy worked."""
    name = row["short_name"] or row["kernel"]
    suggestions = []
    if missing_metrics or not details.stalls or row["sm_pct"] is None:
        suggestions.append(
            f"all metrics: ncu --set full --import-source yes --kernel-name {name} … PROGRAM, and its raw page"
        )
    if details.code is None:
        suggestions.append(
            "machine code: ncu --import FILE.ncu-rep --csv --page source --print-source cuda,sass > FILE.source.csv,"
            " then ncu report … --sass FILE.source.csv"
        )
    if details.baseline is None and row["family"] in ("gemm", "attention"):
        suggestions.append(
            "a baseline: profile the library's kernel of the same size, then ncu report … --against FILE"
        )
    if strategies:
        first_strategy = strategies[0]
        metric = next(iter(first_strategy.findings[0].evidence), "duration_ns")
        suggestions.append(
            f"make one change, then profile again: {first_strategy.title.lower()}, and nsys-insight ncu diff BEFORE"
            f" AFTER --kernel {name} --metric {metric}"
        )
    return suggestions


def describe_roofline(row: dict[str, Any]) -> str:
    """Describe on which side of the roof a kernel is (peak compute or DRAM bandwidth), and how far below it."""
    sm, dram = row["sm_pct"], row["dram_pct"] if row["dram_pct"] is not None else row["memory_pct"]
    if sm is None or dram is None:
        return ""
    figures = f"SM {value('sm_pct', sm)}, DRAM {value('dram_pct', dram)} of peak"
    if row["fp32_flop_per_byte_ratio"]:
        figures += f", {value('ratio', row['fp32_flop_per_byte_ratio'])} fp32 FLOP per byte of DRAM"
    if max(sm, row["memory_pct"] or 0) < _BUSY_PCT:
        return f"far below both roofs: {figures}"
    side = "compute" if sm >= dram and row["bound"] != "memory" else "memory"
    # The memory throughput is that of the busiest unit, which may be a cache.
    is_near_cache = (row["memory_pct"] or 0) > _NEAR_PCT
    distance = ", near the peak of L1 or L2" if is_near_cache else ", below the roof"
    if max(sm, dram) > _NEAR_PCT:
        distance = ", near the roof"
    return f"{side} side{distance}: {figures}"


def _describe_attained_rate(roof: dict[str, Any] | None) -> str:
    """Describe what ncu counted: operations per second, and the nearest ceiling."""
    if roof is None or roof["ceiling"] is None:
        return ""
    rate = ""
    if roof["flop_count"] and roof["compute_pct"] is not None:
        rate = (
            f"{roof['tflop_per_s']:.3g} TFLOP/s of {roof['precision']}"
            f" ({value('compute_pct', roof['compute_pct'])} of peak), "
        )
    return f"{rate}nearest ceiling {roof['ceiling']} at {value('ceiling_pct', roof['ceiling_pct'])}"


def _compare_with_baseline(row: dict[str, Any], baseline: dict[str, Any] | None) -> str:
    if baseline is None:
        return "not given: ncu report … --against FILE, a profile of the library's kernel or of the previous version"
    if not row["duration_ns"]:
        return f"{baseline['name']}: the duration of this kernel was not collected"
    share = 100 * baseline["duration_ns"] / row["duration_ns"]
    return (
        f"{baseline['name']} took {value('duration_ns', baseline['duration_ns'])} under ncu, this one"
        f" {value('duration_ns', row['duration_ns'])}: {share:.0f}% of its speed"
    )


def _warn_few_warps(row: dict[str, Any]) -> str:
    warps = row["active_warps_ratio"]
    return f" (fewer than {_ENOUGH_WARPS} active warps seldom hide latency)" if warps and warps < _ENOUGH_WARPS else ""


def _describe_compute_per_load(row: dict[str, Any], code: CodeSummary | None) -> str:
    figures = []
    if row["fma_per_load_ratio"] is not None:
        figures.append(f"{row['fma_per_load_ratio']:,.3g} fp32 multiply-adds per global load, as executed")
    if row["fma_per_shared_pass_ratio"]:
        figures.append(f"{row['fma_per_shared_pass_ratio']:,.3g} per pass of shared memory")
    if code and code.compute_per_load is not None:
        figures.append(f"{code.compute_per_load:,.3g} multiply-adds of any kind per load in {code.loop}")
    return ", ".join(figures) or _NOT_COLLECTED


def _describe_machine_code(code: CodeSummary | None) -> str:
    if code is None:
        return "not given: ncu report … --sass FILE, a source page of ncu, a cubin, or a disassembly"
    return "; ".join([code.mix, *code.reading])


def _describe_stalls(stalls: list[dict[str, Any]]) -> str:
    waits = [stall for stall in stalls if stall["reason"] != "selected"]
    issuing = next((stall["stall_pct"] for stall in stalls if stall["reason"] == "selected"), None)
    waiting = ", ".join(f"{stall['reason']} {value('stall_pct', stall['stall_pct'])}" for stall in waits[:4])
    return f"{waiting}; issuing {value('stall_pct', issuing)}" if waiting else ""


def _describe_shared_memory(shared: dict[str, Any] | None) -> str:
    """Describe the distance to the cliff, where one block fewer fits, and the effect of two buffers."""
    if shared is None:
        return _NOT_COLLECTED
    if not shared["shared_bytes"]:
        return "none used: a tile or a second buffer is free until blocks no longer fit"
    spare = value("bytes", max(shared["cliff_bytes"], 0))
    usage = f"{value('bytes', shared['shared_bytes'])} per block, {spare} more until"
    blocks, buffered_blocks = shared["blocks_per_sm"], shared["double_buffered_blocks"]
    effect = (
        "as many fit" if buffered_blocks >= blocks else f"{buffered_blocks} fit" if buffered_blocks else "none fits"
    )
    warps = f" ({buffered_blocks * shared['warps']} warps)" if 0 < buffered_blocks < blocks else ""
    return (
        f"{usage} fewer than {blocks} {'block fits' if blocks == 1 else 'blocks fit'}; with two buffers {effect}{warps}"
    )


def _describe_implementation(row: dict[str, Any]) -> str:
    name_facts = [
        f"{label} {row[column]}"
        for label, column in (
            ("sm", "name_arch"), ("", "name_math"), ("tile", "name_tile"), ("stages", "name_stages"),
            ("alignment", "name_alignment"), ("", "name_schedule"),
        )
        if row[column] is not None
    ]  # fmt: skip
    shown_facts = name_facts if row["implementation"] in ("cutlass", "library") else []
    return str(row["implementation"]) + (f" ({', '.join(part.strip() for part in shown_facts)})" if shown_facts else "")
