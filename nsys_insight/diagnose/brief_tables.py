"""The operations and calls of one step as tables, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.diagnose.brief_operations import (
    choose_operations,
    describe_details,
    describe_unit,
    find_main_stream,
    merge_operations,
    title_operation,
)
from nsys_insight.session.answer import Column, build_answer
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from nsys_insight.diagnose.brief import Brief
    from nsys_insight.session.answer import Answer

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
