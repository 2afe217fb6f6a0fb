"""Place kernels under the roofline by ncu's counts, and compare them with a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.paths import read_query
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData

COLUMNS, BASELINE_COLUMNS = read_columns("ncu/roofline"), read_columns("ncu/baseline")
# Largest ratio of operations at which two kernels still do the same work. Tile padding adds a few percent.
_MAX_WORK_RATIO = 1.25


def answer(ncu_data: NcuData, *, kernel: str | None = None, baseline: dict[str, Any] | None = None) -> Answer:
    """Place the kernels of a store under the roofline, the longest first, and compare them with a baseline if given.

    Raises:
        UsageError: No kernel's name contains `kernel`.
    """
    rows = _read_rows(ncu_data, kernel)
    columns = COLUMNS
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
