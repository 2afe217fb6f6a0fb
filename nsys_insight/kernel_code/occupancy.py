"""Occupancy without a trace: what an SM of each architecture holds, and how many blocks of a kernel fit on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.ingest.database import connect
from nsys_insight.model.catalog_tables import LIMITS, read_chips
from nsys_insight.model.views import create_macros
from nsys_insight.paths import read_query
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

# Active warps of an SM that usually suffice to hide latency (common practice, measured on GA104).
SUFFICIENT_WARPS = 8
_MAX_REGISTERS = 255
_MAX_SHARED_BYTES = 2**30

COLUMNS = read_columns("kernel_code/occupancy")
_PEAK_COLUMNS = read_columns("kernel_code/peaks")


class Requirements(NamedTuple):
    """What a kernel needs. A block of None means the best block size. Registers of None are not taken into account."""

    block: int | None
    registers: int | None
    shared_bytes: int


def parse_shared_bytes(text: str | None) -> int:
    """Parse the flag --shared; 0 without it.

    Raises:
        UsageError: The text is not a size, or more than any GPU has.
    """
    size = 0 if text is None else parse_bytes(text, flag="--shared")
    if size > _MAX_SHARED_BYTES:
        raise UsageError(f"--shared {text} is more than any SM has", "a block can use at most 227 KiB on sm_90")
    return size


def compute_occupancy(requirements: Sequence[Requirements]) -> list[dict[str, Any]]:
    """Compute the occupancy of each kernel on each architecture of the catalog.

    `number` in a row is the index of the kernel in `requirements`.
    """
    connection = connect()
    try:
        connection.execute(
            "CREATE TABLE requirements (number BIGINT, block BIGINT, registers BIGINT, shared_bytes BIGINT)"
        )
        if requirements:
            connection.executemany(
                "INSERT INTO requirements VALUES (?, ?, ?, ?)",
                [[number, *kernel] for number, kernel in enumerate(requirements)],
            )
        create_macros(connection, has_constructs=False)
        result = connection.execute(read_query("internal/kernel_code/occupancy"))
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    finally:
        connection.close()


def answer(requirements: Requirements, architecture: str | None) -> Answer:
    """Answer `occupancy --block … --registers … --shared …`, one row per architecture.

    Raises:
        UsageError: A number is more than any GPU has, or the architecture is not in the catalog.
    """
    if requirements.registers is not None and requirements.registers > _MAX_REGISTERS:
        raise UsageError(f"a thread can use at most {_MAX_REGISTERS} registers", "ptxas says how many it used")
    selected_capability = parse_capability(architecture) if architecture else None
    rows = [
        row for row in compute_occupancy([requirements]) if selected_capability in (None, row["compute_capability"])
    ]
    cells = [[row[column.name] for column in COLUMNS] for row in rows]
    notes = tuple(_list_notes(requirements, rows))
    return build_answer(COLUMNS, cells, report="occupancy", title="What fits on an SM", notes=notes)


def parse_capability(architecture: str) -> str:
    """Parse 9.0, 90, sm_90 or sm_90a as the compute capability 9.0.

    Raises:
        UsageError: The architecture is not in the catalog.
    """
    capabilities = [chip["compute_capability"] for chip in read_chips()]
    digits = re.sub(r"^(sm_?|compute_)|\.|[af]$", "", architecture.strip().lower())
    matching_capability = next((name for name in capabilities if name.replace(".", "") == digits), None)
    if matching_capability is None:
        raise UsageError(f"{architecture} is not in the catalog", f"one of: {', '.join(capabilities)}")
    return str(matching_capability)


def _list_notes(requirements: Requirements, rows: list[dict[str, Any]]) -> list[str]:
    notes = []
    if requirements.registers is None:
        notes.append("registers were not given and are not taken into account: --registers, as ptxas -v prints")
    low_occupancy = [row["compute_capability"] for row in rows if 0 < row["active_warps"] < SUFFICIENT_WARPS]
    if low_occupancy:
        names = ", ".join(low_occupancy)
        notes.append(f"fewer than {SUFFICIENT_WARPS} active warps on {names}: seldom enough to hide latency")
    without_block = [row["compute_capability"] for row in rows if not row["blocks_per_sm"]]
    if without_block:
        notes.append(f"on {', '.join(without_block)} not even one block fits")
    halved = [
        row["compute_capability"] for row in rows
        if row["double_buffered_blocks"] is not None and row["double_buffered_blocks"] < row["blocks_per_sm"]
    ]  # fmt: skip
    if halved and len(rows) > len(without_block):
        notes.append(f"a second buffer of the same size costs blocks on {', '.join(halved)}: see double_buffered_pct")
    return notes


def list_peaks(architecture: str) -> Answer:
    """List what an SM of an architecture (or of `all`) holds, and its operations per cycle by precision.

    Raises:
        UsageError: The architecture is not in the catalog.
    """
    selected_capability = None if architecture == "all" else parse_capability(architecture)
    rows = [
        (chip["compute_capability"], precision, rate, *(chip["limits"][name] for name in LIMITS))
        for chip in read_chips()
        if selected_capability in (None, chip["compute_capability"])
        for precision, rate in chip["flops_per_cycle"].items()
    ]
    return build_answer(_PEAK_COLUMNS, rows, report="peaks", title="What an SM holds, and computes in a cycle")
