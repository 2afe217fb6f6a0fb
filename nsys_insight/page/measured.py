"""What Nsight Compute measured of the same program, as findings about its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.units import label, value

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.ncu.report import Priority

READING = (
    "Sorted by what may save the most time of the trace. A saving is ncu's own estimate, or at most the "
    "kernel's distance to its ceiling; savings of one kernel overlap."
)
COLUMNS = (
    Column("finding", "VARCHAR", "What was found"),
    Column("name", "VARCHAR", "The kernel"),
    Column("severity", "VARCHAR", "critical, warning, info"),
    Column(
        "saving_ns",
        "DOUBLE",
        "What may be saved: in the trace if the kernel is in it, else in the launches that ncu profiled",
    ),
    Column("saving_pct", "DOUBLE", "The same as a share of the kernel's time"),
    Column("evidence", "VARCHAR", "The metrics that prove it"),
    Column("action", "VARCHAR", "What to do"),
    Column("basis", "VARCHAR", "Source of the saving"),
)


def findings(store: Path, headroom: list[dict[str, Any]]) -> Answer:
    """Judge the kernels of a file that `ncu import` wrote; `headroom` are the rows of the report of that name."""
    from nsys_insight.ncu.measured import Measured
    from nsys_insight.ncu.report import Beside, build

    with Measured(store) as measured:
        rows = [_row(one) for one in build(measured, store.name, Beside(headroom)).priorities]
    return of_rows(COLUMNS, rows, report="ncu report", title="What the Nsight Compute metrics show")


def _row(one: Priority) -> tuple[Any, ...]:
    finding = one.finding
    evidence = ", ".join(f"{label(column)} {value(column, given)}" for column, given in finding.evidence.items())
    return (
        finding.title, one.kernel.row["kernel"], finding.severity, one.saving_ns, one.saving_pct,
        evidence, finding.action, one.basis,
    )  # fmt: skip
