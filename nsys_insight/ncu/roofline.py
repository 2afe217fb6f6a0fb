"""Place kernels under the roofline by ncu's counts, and compare them with a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.paths import read_query
from nsys_insight.session.answer import Answer, Column, build_answer
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData

COLUMNS = (
    Column("name", "VARCHAR", "The kernel"),
    Column("report", "VARCHAR", "The ncu report it is in", is_detail=True),
    Column("grid", "VARCHAR", "Blocks in the grid"),
    Column("launches", "BIGINT", "Launches profiled; figures are their medians", is_detail=True),
    Column("duration_ns", "DOUBLE", "Duration under ncu"),
    Column("precision", "VARCHAR", "The precision of most of its operations"),
    Column("flop_count", "DOUBLE", "Operations in it, including those on tile padding; NULL if not counted"),
    Column("other_flop_count", "DOUBLE", "Operations in other precisions", is_detail=True),
    Column("bytes", "DOUBLE", "Bytes read from DRAM and written to it"),
    Column("l2_bytes", "DOUBLE", "Bytes between L1 and L2"),
    Column("l1_bytes", "DOUBLE", "Bytes of global and local access at L1", is_detail=True),
    Column("intensity_ratio", "DOUBLE", "Operations per byte of DRAM"),
    Column("l2_intensity_ratio", "DOUBLE", "Operations per byte between L1 and L2"),
    Column("l1_intensity_ratio", "DOUBLE", "Operations per byte at L1", is_detail=True),
    Column("tflop_per_s", "DOUBLE", "Attained, in 10^12 operations per second"),
    Column("compute_pct", "DOUBLE", "Share of the precision's peak at the clock under ncu"),
    Column("bytes_per_s", "DOUBLE", "Attained bandwidth of DRAM"),
    Column("bandwidth_pct", "DOUBLE", "Share of its peak at the clock under ncu"),
    Column("roof", "VARCHAR", "The lower roof at this intensity: memory or compute"),
    Column("roof_pct", "DOUBLE", "Attained share of that roof"),
    Column("l2_bytes_per_s", "DOUBLE", "What L2 sent to the SMs", is_detail=True),
    Column("l2_bandwidth_pct", "DOUBLE", "Share of its peak at the clock under ncu"),
    Column("l1_bytes_per_s", "DOUBLE", "Bytes per second from L1 to registers, global and local memory",
        is_detail=True),
    Column("l1_bandwidth_pct", "DOUBLE", "Share of its peak at the clock under ncu"),
    Column("l1_passes_pct", "DOUBLE", "Passes of the data stage of L1 and shared memory, share of their peak"),
    Column("ceiling", "VARCHAR", "The nearest ceiling: compute, DRAM, L2, or L1 by bytes or passes"),
    Column("ceiling_pct", "DOUBLE", "Attained share of that ceiling"),
)  # fmt: skip
BASELINE_COLUMNS = (
    Column("efficiency_pct", "DOUBLE", "The baseline's duration as a share of this one's: 100 is equally fast"),
    Column("work_ratio", "DOUBLE", "Operations as a multiple of the baseline's; far from 1, the problem differs"),
    Column("bytes_ratio", "DOUBLE", "Bytes of DRAM as a multiple of the baseline's"),
)
# Largest ratio of operations at which two kernels still do the same work. Tile padding adds a few percent.
_MAX_WORK_RATIO = 1.25


def answer(ncu_data: NcuData, *, kernel: str | None = None, baseline: dict[str, Any] | None = None) -> Answer:
    """Place the kernels of a store under the roofline, the longest first, and compare them with a baseline if given.

    Raises:
        UsageError: No kernel's name contains `kernel`.
    """
    rows = _read_rows(ncu_data, kernel)
    columns: tuple[Column, ...] = COLUMNS
    notes = []
    unknown_count = sum(row["flop_count"] is None for row in rows)
    if unknown_count:
        notes.append(
            f"operations of {unknown_count} of {len(rows)} kernels are not known: import the raw page of ncu --set"
            " full, which counts them; half-precision multiply-adds that may be moves do not count"
        )
    if baseline:
        columns = (*COLUMNS[:5], *BASELINE_COLUMNS, *COLUMNS[5:])
        rows = [row | _compare_with_baseline(row, baseline) for row in rows]
        notes.append(f"the baseline is {baseline['name']}, {value('duration_ns', baseline['duration_ns'])} under ncu")
        different_count = sum(not 1 / _MAX_WORK_RATIO <= (row["work_ratio"] or 1) <= _MAX_WORK_RATIO for row in rows)
        if different_count:
            notes.append(
                f"{different_count} of {len(rows)} do different work than the baseline: compare tflop_per_s,"
                " not durations"
            )
    cells = [[row[column.name] for column in columns] for row in rows]
    return build_answer(
        columns, cells, report="ncu roofline", title="Under the roofline, as ncu counted", notes=tuple(notes),
        empty="ncu profiled no kernel",
    )  # fmt: skip


def find_baseline(ncu_data: NcuData, kernel: str | None) -> dict[str, Any]:
    """Find the longest kernel of a store whose name contains `kernel`, as a baseline.

    Raises:
        UsageError: No kernel's name contains `kernel`.
        TraceError: The kernel's duration is unknown.
    """
    row = _read_rows(ncu_data, kernel)[0]
    if not row["duration_ns"]:
        raise TraceError("the duration of the baseline is unknown", "import its raw page, or its details page")
    return row


def _read_rows(ncu_data: NcuData, kernel: str | None) -> list[dict[str, Any]]:
    rows = ncu_data.rows(read_query("internal/ncu/roofline"))
    matching_rows = [row for row in rows if kernel is None or kernel.lower() in row["name"].lower()]
    if not matching_rows:
        names = ", ".join(dict.fromkeys(row["name"][:40] for row in rows[:8]))
        raise UsageError(f"no kernel is named {kernel!r}", f"there are: {names}")
    return matching_rows


def _compare_with_baseline(row: dict[str, Any], baseline: dict[str, Any]) -> dict[str, Any]:
    def compute_ratio(column: str) -> float | None:
        kernel_value, baseline_value = row[column], baseline[column]
        return kernel_value / baseline_value if kernel_value is not None and baseline_value else None

    duration_ratio = compute_ratio("duration_ns")
    return {
        "efficiency_pct": 100 / duration_ratio if duration_ratio else None,
        "work_ratio": compute_ratio("flop_count"),
        "bytes_ratio": compute_ratio("bytes"),
    }
