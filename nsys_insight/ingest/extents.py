"""When the first CUDA event of a trace began and the last one ended, without reading every row of a big table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import row_search
from nsys_insight.ingest.sqlite_file import opened
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

# Tables whose events make the wall. A row of event class 67 repeats an API call and lies around it (see api_calls).
EVENTS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "coalesce(eventClass, 0) <> 67",
    "CUPTI_ACTIVITY_KIND_KERNEL": "true",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "true",
    "CUPTI_ACTIVITY_KIND_MEMSET": "true",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "true",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "true",
}
NEEDED = {
    table: {"start", "end"} | ({"eventClass"} if "eventClass" in test else set()) for table, test in EVENTS.items()
}
Extents = dict[str, tuple[int | None, int | None]]

# nsys writes the rows of a table in order of start. Where a table has more than BIG rows and near.PROBES of them,
# evenly spread, are in that order, the first FIRST rows hold the first start, the last LAST rows the last end: unless a
# call lasts longer than the LAST calls after it, and then ends after everything else in the trace.
BIG, FIRST, LAST = 1_000_000, 10_000, 250_000


def known(path: Path, columns: dict[str, set[str]]) -> Extents:
    """First start and last end of the events in each big table of a SQLite export whose rows are in order."""
    found: Extents = {}
    with opened(path) as database:
        for table, condition in EVENTS.items():
            if NEEDED[table] <= columns.get(table, set()) and _is_big_and_in_order(database, table):
                name = identifier(table)
                first = f"SELECT min(start) FROM (SELECT * FROM {name} ORDER BY rowid LIMIT {FIRST}) WHERE {condition}"
                last = (
                    f'SELECT max("end") FROM (SELECT * FROM {name} ORDER BY rowid DESC LIMIT {LAST}) WHERE {condition}'
                )
                found[table] = (database.execute(first).fetchone()[0], database.execute(last).fetchone()[0])
    return found


def _is_big_and_in_order(database: sqlite3.Connection, table: str) -> bool:
    rows = row_search.Rows(database, table)
    return len(rows.numbers) > BIG and rows.are_in_order


def select(known_extents: Extents, *, schema: str = "raw", tables: Iterable[str] = EVENTS) -> str:
    """SQL for the first start and the last end (start_ns, end_ns) of all events: as known, else those in `schema`."""
    parts = [
        f"SELECT {known_extents[table][0]}::BIGINT, {known_extents[table][1]}::BIGINT"
        if table in known_extents and None not in known_extents[table]
        else f'SELECT min(start), max("end") FROM {schema}.{identifier(table)} WHERE {EVENTS[table]}'
        for table in tables
    ]
    together = " UNION ALL ".join(parts)
    return f"SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM ({together}) AS t(start_ns, end_ns)"
