"""The catalog of architectures as an answer, without a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.kernel_code.occupancy import capability
from nsys_insight.model.catalog_tables import LIMITS, chips
from nsys_insight.session.answer import Column, of_rows

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

_COLUMNS = (
    Column("compute_capability", "VARCHAR", "Compute capability"),
    Column("precision", "VARCHAR", "Precision of the operations: fp64, fp32: ordinary arithmetic; others: "
        "tensor cores"),
    Column("flop_per_cycle", "BIGINT", "Operations per SM and cycle, a multiply-add as two, dense"),
    Column("warps_per_sm", "BIGINT", "Most resident warps of an SM"),
    Column("blocks_per_sm", "BIGINT", "Most resident blocks of an SM"),
    Column("registers_per_sm", "BIGINT", "32-bit registers of an SM"),
    Column("shared_per_sm_bytes", "BIGINT", "Shared memory of an SM"),
    Column("shared_per_block_bytes", "BIGINT", "Most shared memory of a block that opts in"),
)  # fmt: skip


def answer(architecture: str) -> Answer:
    """List what an SM of an architecture (or of `all`) holds, and its operations per cycle by precision.

    Raises:
        UsageError: It is not in the catalog.
    """
    meant = None if architecture == "all" else capability(architecture)
    rows = [
        (chip["compute_capability"], precision, rate, *(chip["limits"][name] for name in LIMITS))
        for chip in chips()
        if meant in (None, chip["compute_capability"])
        for precision, rate in chip["flops_per_cycle"].items()
    ]
    return of_rows(_COLUMNS, rows, report="peaks", title="What an SM holds, and computes in a cycle")
