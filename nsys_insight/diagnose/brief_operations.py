"""The operations of one step, merged by name, as a brief shows them: as lines of text, and as a table for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.session.answer import Answer, Column, build_answer
from nsys_insight.text import units
from nsys_insight.text.operation_names import shorten_operation
from nsys_insight.text.units import count_noun, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.diagnose.brief import Brief, Rows
    from nsys_insight.diagnose.findings import DiagnosisResult

_NAME_CHARS, NEST_NAME_CHARS = 52, 32
# From these on, a kernel's resources are unusual: more shared memory than a block has without opting in, registers
# for which at most a quarter of the warps fit, and few resident warps.
_MUCH_SHARED_BYTES, _MANY_REGISTERS, _LOW_OCCUPANCY_PCT = 48 * 1024 + 1, 128, 25.0
# Families whose kernels are written to use as much as they can get.
_HEAVY_FAMILIES = ("gemm", "attention", "comm")
_MIN_IDLE_NS = 500  # less idle time before an operation than this is not shown
_MANY_SHARE = 0.05  # an operation with this share of the executions or of the idle time is shown, even if it is short
_BIG_COPY_BYTES = 64 * 1024  # smaller and larger copies are listed apart
TIMES = "\N{MULTIPLICATION SIGN}"
MIN_CALL_NS = 1_000  # shorter calls that do not wait are not listed
# The tables for people: the columns of the reports, with merged rows.
MAX_TABLE_ROWS = 12
_OPERATION_COLUMNS = (
    Column("calls", "DOUBLE", "Executions per step", position=0),
    Column("avg_ns", "DOUBLE", "Mean duration", position=1),
    Column(
        "gpu_pct", "DOUBLE", "Share of the time of all operations", position=2, share_of="the time of all operations"
    ),
    Column("idle_before_ns", "DOUBLE", "GPU idle time before it per step", position=3),
    Column("name", "VARCHAR", "The operation", position=4),
    Column("details", "VARCHAR", "Grid and block, or bytes and memories", position=5),
)
_CALL_COLUMNS = (
    Column("calls", "DOUBLE", "Calls per step", position=0),
    Column("avg_ns", "DOUBLE", "Mean duration", position=1),
    Column("max_ns", "DOUBLE", "Longest", position=2),
    Column("call", "VARCHAR", "The function", position=3),
    Column("waits_for", "VARCHAR", "What the call waits for", position=4),
    Column("copy_bytes", "DOUBLE", "Bytes of the copies that it waits for", position=5),
)


class Operation(NamedTuple):
    """The executions of one name and memory kind in a step, of all grids."""

    name: str
    calls: float
    time_ns: float
    idle_ns: float
    row: dict[str, Any]
    grids: int
    sizes: tuple[float, float] | None


def merge_operations(rows: Rows) -> list[Operation]:
    """Merge rows with the same short name and memories into one; the first row has the most time."""
    merged: dict[tuple[Any, ...], Operation] = {}
    for row in rows:
        name = shorten_operation(row["name"], row["provenance"], _NAME_CHARS)
        size = row["size_bytes"]
        is_big = size is not None and row["kind"] == "copy" and size >= _BIG_COPY_BYTES
        key = (name, row["source_memory"], row["target_memory"], is_big)
        other = merged.get(key)
        sizes = None if size is None else (size, size)
        if other is None:
            merged[key] = Operation(name, row["calls"], row["time_ns"], row["idle_before_ns"], row, 1, sizes)
            continue
        merged[key] = other._replace(
            calls=other.calls + row["calls"],
            time_ns=other.time_ns + row["time_ns"],
            idle_ns=other.idle_ns + row["idle_before_ns"],
            grids=other.grids + 1,
            sizes=(min(other.sizes[0], size), max(other.sizes[1], size)) if other.sizes and sizes else other.sizes,
        )
    return sorted(merged.values(), key=lambda operation: (-operation.time_ns, -operation.calls, operation.name))


def choose_operations(operations: Sequence[Operation]) -> tuple[list[Operation], list[Operation]]:
    """Choose the operations that are shown first: by time, by number and by the idle time before them."""
    total_calls, total_idle_ns = sum(o.calls for o in operations), sum(o.idle_ns for o in operations)
    frequent = _take_largest(operations, lambda operation: operation.calls, _MANY_SHARE * total_calls)
    delayed = _take_largest(operations, lambda operation: operation.idle_ns, _MANY_SHARE * total_idle_ns)
    important = [*operations[:3], *delayed[:1], *frequent[:1]]
    return important, [operation for operation in [*operations[:5], *delayed, *frequent] if operation not in important]


def _take_largest(
    operations: Sequence[Operation], size: Callable[[Operation], float], min_size: float
) -> list[Operation]:
    """Return the three operations with the largest size, of those with at least `min_size`."""
    return sorted((o for o in operations if size(o) >= max(min_size, 1e-9)), key=lambda o: -size(o))[:3]


def sum_families(rows: Rows) -> list[tuple[str, float]]:
    """Return the time of each family, the longest first; of copies, memsets and graphs, that of the kind."""
    times: dict[str, float] = {}
    for row in rows:
        family = row["family"] or row["kind"]
        times[family] = times.get(family, 0) + row["time_ns"]
    return sorted(times.items(), key=lambda item: (-item[1], item[0]))


def find_main_stream(rows: Rows) -> str | None:
    """Return the streams of most of the time; None if there is one stream."""
    times: dict[str, float] = {}
    for row in rows:
        times[row["streams"]] = times.get(row["streams"], 0) + row["time_ns"]
    return max(times, key=lambda streams: times[streams]) if len(times) > 1 else None


def describe_operation(operation: Operation, total_ns: float, devices: int, main_stream: str | None) -> str:
    """Describe an operation in one line: count, mean, share, idle time before it, name and details."""
    share = 100 * operation.time_ns / total_ns if total_ns else 0
    parts = [
        f"{number(operation.calls)} {TIMES} {time_text(operation.time_ns / operation.calls)}",
        pct(share),
        f"idle {time_text(operation.idle_ns)}" if operation.idle_ns >= _MIN_IDLE_NS else "",
        title_operation(operation),
        describe_details(operation, devices, main_stream),
    ]
    return ", ".join(filter(None, parts))


def title_operation(operation: Operation) -> str:
    """Return the name, after what the catalog of constructs says that it does, unless the name says so itself."""
    construct = operation.row["construct"]
    if not construct or operation.name.lower().startswith(construct.split()[0].lower()):  # such as PyTorch
        return operation.name
    return f"{construct}: {operation.name}"


def describe_details(operation: Operation, devices: int, main_stream: str | None) -> str:
    """Describe the shape or the bytes of an operation, and where it runs if it runs elsewhere than the others."""
    row = operation.row
    parts = list(_describe_kernel(operation) if row["kind"] == "kernel" else _describe_bytes(operation))
    if devices > 1 and row["devices"] and len(row["devices"].split(", ")) < devices:
        parts.append(f"GPU {row['devices']}")
    if main_stream is not None and row["streams"] != main_stream:
        parts.append(f"stream {row['streams']}")
    return ", ".join(filter(None, parts))


def _describe_kernel(operation: Operation) -> Iterator[str]:
    row = operation.row
    if row["grid"] and row["block"]:
        other_shapes = f" and {count_noun(operation.grids - 1, 'shape')}" if operation.grids > 1 else ""
        yield f"{_dims(row['grid'])} {TIMES} {_dims(row['block'])}{other_shapes}"
    if row["local_bytes"]:
        yield f"{size_text(row['local_bytes'])} local memory per thread"
    if row["family"] in _HEAVY_FAMILIES:
        return
    has_much_shared = (row["shared_bytes"] or 0) >= _MUCH_SHARED_BYTES
    has_many_registers = (row["registers_per_thread"] or 0) >= _MANY_REGISTERS
    if has_much_shared:
        yield f"{size_text(row['shared_bytes'])} shared memory per block"
    if has_many_registers:
        yield f"{row['registers_per_thread']} registers"
    if (has_much_shared or has_many_registers) and (row["occupancy_pct"] or 100) <= _LOW_OCCUPANCY_PCT:
        yield f"occupancy {pct(row['occupancy_pct'])}"


def _describe_bytes(operation: Operation) -> Iterator[str]:
    row = operation.row
    sides = [memory for memory in (row["source_memory"], row["target_memory"]) if memory]
    # Pages of managed memory have no such kind.
    memories = "" if set(sides) == {"unknown"} else " → ".join(sides)
    size = ""
    if operation.sizes:
        size = " to ".join(dict.fromkeys(map(size_text, operation.sizes)))
    yield " ".join(filter(None, (size, memories)))
    if operation.grids == 1 and row["bandwidth_bytes_per_s"] and row["size_bytes"] >= _BIG_COPY_BYTES:
        yield units.value("bytes_per_s", row["bandwidth_bytes_per_s"])


def build_operation_table(brief: Brief) -> Answer:
    """Return the operations of one step as a table: those that a page shows first, with merged rows."""
    operations = merge_operations(brief.operations)
    total_ns = sum(operation.time_ns for operation in operations)
    important, notable = choose_operations(operations)
    ordered = [*important, *notable, *(o for o in operations if o not in important and o not in notable)]
    shown_operations = ordered[:MAX_TABLE_ROWS]
    devices = len({part for row in brief.operations for part in (row["devices"] or "").split(", ")})
    main_stream = find_main_stream(brief.operations)
    rows = [
        [
            operation.calls, operation.time_ns / operation.calls, 100 * operation.time_ns / max(total_ns, 1),
            operation.idle_ns, title_operation(operation), describe_details(operation, devices, main_stream),
        ]
        for operation in operations if operation in shown_operations
    ]  # fmt: skip
    hidden = (
        f"; {len(operations) - len(shown_operations)} more names: step-operations"
        if len(shown_operations) < len(operations)
        else ""
    )
    title = f"Operations {describe_unit(brief.diagnosis)} ({time_text(total_ns)}{hidden})"
    return build_answer(_OPERATION_COLUMNS, rows, report="step-operations", title=title)


def build_call_table(brief: Brief) -> Answer:
    """Return the API calls of one step as a table."""
    rows = [
        [row["calls"], row["avg_ns"], row["max_ns"], row["name"], row["waits_for"], row["copy_bytes"]]
        for row in brief.calls
        if row["avg_ns"] >= MIN_CALL_NS or row["waits_for"]
    ]
    return build_answer(_CALL_COLUMNS, rows, report="step-calls", title=f"API calls {describe_unit(brief.diagnosis)}")


def _dims(text: str) -> str:
    """Write a grid or block without its dimensions of 1 at the end: 132x1x1 is 132."""
    return re.sub(r"(?<=\d)(?:x1){1,2}$", "", text)


def number(count: float) -> str:
    """Write a count: 196; 0.11; 2.5."""
    if abs(count - round(count)) < 0.005 * max(count, 1) and count >= 0.95:
        return f"{round(count):,}"
    return f"{count:,.1f}" if count >= 0.95 else f"{count:.2g}"


def pct(share: float | None) -> str:
    """Write a share with three digits."""
    return "unknown" if share is None else f"{share:.3g}%" if share >= 0.1 else "<0.1%"


def size_text(size: float) -> str:
    """Write a size in bytes."""
    return units.value("bytes", size)


def describe_unit(diagnosis: DiagnosisResult) -> str:
    """Return what counts refer to: "of one step", or "of the entire trace"."""
    if diagnosis.unit == "trace":
        return "of the entire scope" if diagnosis.trace["scope"] else "of the entire trace"
    return f"of one {diagnosis.unit}"
