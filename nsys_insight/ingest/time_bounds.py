"""The start of the first CUDA event of a trace and the end of the last one, without a scan of the big tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import row_search
from nsys_insight.ingest.sqlite_file import open_read_only
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

# The tables whose events define the wall time, with conditions on their rows. A row of event class 67 repeats an API
# call and encloses it (see api_calls). A synchronization lies within its call; one without a call is of nsys, which
# synchronizes when cudaProfilerStop ends the capture, up to milliseconds later.
EVENT_CONDITIONS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "coalesce(eventClass, 0) <> 67",
    "CUPTI_ACTIVITY_KIND_KERNEL": "true",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "true",
    "CUPTI_ACTIVITY_KIND_MEMSET": "true",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "true",
}
NEEDED_COLUMNS = {
    table: {"start", "end"} | ({"eventClass"} if "eventClass" in test else set())
    for table, test in EVENT_CONDITIONS.items()
}
TimeBounds = dict[str, tuple[int | None, int | None]]

# nsys writes the rows of a table in order of start. A table with more than MIN_ROWS rows counts as ordered if
# row_search.PROBE_COUNT evenly spread rows are. Its first FIRST_ROWS rows then hold the first start, and its last
# LAST_ROWS rows the last end. The exception is a call that lasts longer than the LAST_ROWS calls after it, and ends
# after everything else in the trace.
MIN_ROWS, FIRST_ROWS, LAST_ROWS = 1_000_000, 10_000, 250_000


def read_time_bounds(path: Path, columns: dict[str, set[str]]) -> TimeBounds:
    """Return the first start and the last end of the events in each big, ordered table of a SQLite export."""
    bounds: TimeBounds = {}
    with open_read_only(path) as database:
        for table, condition in EVENT_CONDITIONS.items():
            if NEEDED_COLUMNS[table] <= columns.get(table, set()) and _is_big_and_in_order(database, table):
                name = identifier(table)
                first_rows = f"SELECT * FROM {name} ORDER BY rowid LIMIT {FIRST_ROWS}"
                last_rows = f"SELECT * FROM {name} ORDER BY rowid DESC LIMIT {LAST_ROWS}"
                (start,) = database.execute(f"SELECT min(start) FROM ({first_rows}) WHERE {condition}").fetchone()
                (end,) = database.execute(f'SELECT max("end") FROM ({last_rows}) WHERE {condition}').fetchone()
                bounds[table] = (start, end)
    return bounds


def _is_big_and_in_order(database: sqlite3.Connection, table: str) -> bool:
    rows = row_search.Rows(database, table)
    return len(rows.numbers) > MIN_ROWS and rows.are_in_order


def select_time_bounds(
    known_bounds: TimeBounds, *, schema: str = "raw", tables: Iterable[str] = EVENT_CONDITIONS
) -> str:
    """Write the SQL for the first start and the last end (start_ns, end_ns) of all events.

    An event that ends before its start counts as 0 ns: it ends at its start.

    Args:
        known_bounds: The bounds of tables that need no query.
        schema: The schema of the other tables.
        tables: The tables.
    """
    selects = [
        f"SELECT {known_bounds[table][0]}::BIGINT, {known_bounds[table][1]}::BIGINT"
        if table in known_bounds and None not in known_bounds[table]
        else 'SELECT min(start), greatest(max("end"), max(start))'
        f" FROM {schema}.{identifier(table)} WHERE {EVENT_CONDITIONS[table]}"
        for table in tables
    ]
    union = " UNION ALL ".join(selects)
    return f"SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM ({union}) AS t(start_ns, end_ns)"
