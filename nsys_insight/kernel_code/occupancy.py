"""What an SM of each architecture holds, and what of a kernel fits on it, without a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.ingest.database import connect
from nsys_insight.model.catalog_tables import LIMITS, chips
from nsys_insight.model.views import create_macros
from nsys_insight.paths import query
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

# Active warps of an SM that usually suffice to hide latency (common practice, measured on GA104).
ENOUGH_WARPS = 8
_MOST_REGISTERS = 255
_MOST_SHARED = 2**30

COLUMNS = (
    Column("compute_capability", "VARCHAR", "The architecture"),
    Column("block", "BIGINT", "Threads in a block: as given, else the best size"),
    Column("registers_per_thread", "BIGINT", "Registers per thread; NULL where they were not given and do not count"),
    Column("shared_bytes", "BIGINT", "Shared memory per block"),
    Column("occupancy_pct", "DOUBLE", "Resident warps as a share of the most that an SM can hold"),
    Column("blocks_per_sm", "BIGINT", "Blocks that an SM holds at once"),
    Column("active_warps", "BIGINT", f"The warps of these blocks; {ENOUGH_WARPS} usually suffice to hide latency"),
    Column("limited_by", "VARCHAR", "What limits the number of blocks"),
    Column("next_step", "VARCHAR", "What one more block per SM would need"),
    Column("shared_cliff_bytes", "BIGINT", "Shared memory that a block can add before one block fewer fits"),
    Column("double_buffered_blocks", "BIGINT", "Blocks that fit with twice the shared memory: two buffers for one"),
    Column("double_buffered_pct", "DOUBLE", "Occupancy with these blocks"),
    Column("best_block", "BIGINT", "Largest block of the highest occupancy, as cudaOccupancyMaxPotentialBlockSize"),
    Column("best_pct", "DOUBLE", "Occupancy with this block size"),
)
_PEAK_COLUMNS = (
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


class Wanted(NamedTuple):
    """What a kernel needs. A block of None is the best one; registers of None do not count."""

    block: int | None
    registers: int | None
    shared_bytes: int


def shared_of(text: str | None) -> int:
    """Read --shared; without it there is none.

    Raises:
        UsageError: It is no size, or one that no GPU could have.
    """
    found = 0 if text is None else parse_bytes(text, flag="--shared")
    if found > _MOST_SHARED:
        raise UsageError(f"--shared {text} is more than any SM has", "a block can use at most 227 KiB on sm_90")
    return found


def fitting(wanted: Sequence[Wanted]) -> list[dict[str, Any]]:
    """Say what fits of each kernel on each architecture of the catalog; `number` is the kernel's place in `wanted`."""
    connection = connect()
    try:
        connection.execute("CREATE TABLE wanted (number BIGINT, block BIGINT, registers BIGINT, shared_bytes BIGINT)")
        if wanted:
            connection.executemany(
                "INSERT INTO wanted VALUES (?, ?, ?, ?)", [[number, *one] for number, one in enumerate(wanted)]
            )
        create_macros(connection)
        result = connection.execute(query("internal/kernel_code/occupancy"))
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    finally:
        connection.close()


def answer(wanted: Wanted, architecture: str | None) -> Answer:
    """Answer `occupancy --block … --registers … --shared …`, a row an architecture.

    Raises:
        UsageError: A number is none that a GPU could have, or the architecture is not in the catalog.
    """
    if wanted.registers is not None and wanted.registers > _MOST_REGISTERS:
        raise UsageError(f"a thread can use at most {_MOST_REGISTERS} registers", "ptxas says how many it used")
    meant = capability(architecture) if architecture else None
    found = [row for row in fitting([wanted]) if meant in (None, row["compute_capability"])]
    rows = [[row[column.name] for column in COLUMNS] for row in found]
    return of_rows(COLUMNS, rows, report="occupancy", title="What fits on an SM", notes=tuple(_notes(wanted, found)))


def capability(architecture: str) -> str:
    """Read 9.0, 90, sm_90 or sm_90a as the compute capability 9.0.

    Raises:
        UsageError: It is not in the catalog.
    """
    import re

    known = [chip["compute_capability"] for chip in chips()]
    digits = re.sub(r"^(sm_?|compute_)|\.|[af]$", "", architecture.strip().lower())
    found = next((one for one in known if one.replace(".", "") == digits), None)
    if found is None:
        raise UsageError(f"{architecture} is not in the catalog", f"one of: {', '.join(known)}")
    return str(found)


def _notes(wanted: Wanted, rows: list[dict[str, Any]]) -> list[str]:
    said = []
    if wanted.registers is None:
        said.append("registers were not given and are not taken into account: --registers, as ptxas -v prints")
    few = [row["compute_capability"] for row in rows if 0 < row["active_warps"] < ENOUGH_WARPS]
    if few:
        said.append(f"fewer than {ENOUGH_WARPS} active warps on {', '.join(few)}: seldom enough to hide latency")
    none = [row["compute_capability"] for row in rows if not row["blocks_per_sm"]]
    if none:
        said.append(f"on {', '.join(none)} not even one block fits")
    halved = [
        row["compute_capability"] for row in rows
        if row["double_buffered_blocks"] is not None and row["double_buffered_blocks"] < row["blocks_per_sm"]
    ]  # fmt: skip
    if halved and len(rows) > len(none):
        said.append(f"a second buffer of the same size costs blocks on {', '.join(halved)}: see double_buffered_pct")
    return said


def peaks(architecture: str) -> Answer:
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
    return of_rows(_PEAK_COLUMNS, rows, report="peaks", title="What an SM holds, and computes in a cycle")
