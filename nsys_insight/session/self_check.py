"""The check of a trace against its file: rows and sums of the views, and those of the tables as SQLite adds them up.

The numbers of the file come from Python's own module sqlite3, without DuckDB, the model or the cache. The two sides
share only the rules for rows that are left out.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nsys_insight.ingest.bad_rows import SIZE_BOUNDS
from nsys_insight.ingest.expected_schema import name_rows, read_expected_schema
from nsys_insight.ingest.files import File, Kind
from nsys_insight.ingest.identify import identify
from nsys_insight.ingest.sqlite_file import open_read_only, read_sqlite_columns
from nsys_insight.sql.quoting import literal
from nsys_insight.text.units import time_text, value

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsys_insight.ingest.source import Window

# A check of more rows runs on request. The two sides together read two million rows per second (`decode_eager`, tiled);
# planning takes half a tenth of a second.
MAX_ROWS, _ROWS_PER_S = 100_000, 2_000_000
_SINGULARS = {"copies": "copy", "graph launches": "graph launch"}


class _View(NamedTuple):
    """A view that shows the rows of one table: those that pass a test of SQLite. The others are no such events.

    An event that ends at `open_end` (the SQL of a time) has no end: the capture ended before it.
    """

    name: str
    table: str
    test: str = "1"
    size_column: str = "NULL"
    open_end: str = "NULL"


_VIEWS = (
    _View("kernels", "CUPTI_ACTIVITY_KIND_KERNEL"),
    _View("memcpys", "CUPTI_ACTIVITY_KIND_MEMCPY", size_column="size_bytes"),
    _View("memsets", "CUPTI_ACTIVITY_KIND_MEMSET", size_column="size_bytes"),
    _View("graph_launches", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
    _View("api_calls", "CUPTI_ACTIVITY_KIND_RUNTIME", "eventClass IS NOT 67"),  # such a row repeats a call
    _View("sync_events", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
    _View(
        "nvtx_ranges",
        "NVTX_EVENTS",
        "eventType IN (59, 60, 70, 71)",
        open_end="(SELECT max(duration) FROM ANALYSIS_DETAILS)",
    ),
)
# The columns that are the same in a call that nsys recorded twice.
_CALL_KEY = 'globalTid, correlationId, eventClass, start, "end", iif(correlationId IS NULL, rowid, 0)'


# Tables that describe a capture, or the meaning of numbers in other tables: they hold no events.
_DESCRIPTIONS = (
    "ANALYSIS_", "ENUM_", "EXPORT_", "GENERIC_EVENT_", "META_", "ProcessStreams", "TARGET_", "UnwindMethod", "sqlite_",
)  # fmt: skip


class Sums(NamedTuple):
    """The number of events, and the sums of their durations and sizes; None where no event has one."""

    rows: int = 0
    time_ns: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True)
class TableCheck:
    """The sums of a view and of its table.

    `file_rows` are all events of the table. `remarks` name those that do not count in its sums, and missing columns.
    """

    table: str
    view: Sums
    file: Sums
    file_rows: int
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Describe the sums of the view: 6,664 of 6,666 kernels (12.4 ms)."""
        total = f"{self.view.rows:,} of " if self.view.rows != self.file_rows else ""
        name = name_rows(self.table)
        name = name if self.file_rows != 1 else _SINGULARS.get(name, name.removesuffix("s"))
        sums = [value("size_bytes", self.view.size_bytes)] if self.view.size_bytes is not None else []
        sums += [time_text(self.view.time_ns)] if self.view.time_ns is not None else []
        return f"{total}{self.file_rows:,} {name}" + (f" ({', '.join(sums)})" if sums else "")

    @property
    def differences(self) -> list[str]:
        """Describe the sums that differ, with both values."""
        units = ("rows", "ns", "bytes")
        return [
            f"{self.table} has {_count(in_file)} {unit} in the file and {_count(in_view)} here"
            for unit, in_file, in_view in zip(units, self.file, self.view, strict=True)
            if in_file != in_view
        ]


@dataclass(frozen=True)
class FileCheck:
    """Whether the views of a trace hold what its file holds, as a sentence and table by table.

    `status` is equal, different, or unchecked; then there are no tables.
    """

    trace: str
    status: Literal["equal", "different", "unchecked"]
    text: str
    tables: tuple[TableCheck, ...] = ()

    def describe(self) -> dict[str, Any]:
        """Return the check as an object for JSON."""
        sums = [
            {**vars(table), "view": table.view._asdict(), "file": table.file._asdict(), "remarks": list(table.remarks)}
            for table in self.tables
        ]
        return {**vars(self), "tables": sums}


def write_sum_query(labels: Sequence[str]) -> str:
    """Write the SQL that adds up the views of traces: a row for each trace and table."""
    label, grouping = ("trace", " GROUP BY trace") if len(labels) > 1 else (literal(labels[0]), "")
    return " UNION ALL ".join(
        f"SELECT {label} AS label, '{view.table}' AS table_name, count(*) AS rows, sum(duration_ns)::BIGINT AS time_ns,"
        f" sum({view.size_column})::BIGINT AS size_bytes FROM {view.name}{grouping}"
        for view in _VIEWS
    )


def collect_sums(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Sums]]:
    """Collect the rows of that query by trace and table."""
    sums: dict[str, dict[str, Sums]] = {}
    for row in rows:
        sums.setdefault(row["label"], {})[row["table_name"]] = Sums(*(row[name] for name in Sums._fields))
    return sums


def count_rows(file: File) -> int:
    """Return about how many rows the check of a file reads, without reading them; damage is left to the check.

    Raises:
        TraceError: The file is damaged.
    """
    import sqlite3

    row_count = 0
    if file.kind is Kind.SQLITE:
        tables = {view.table for view in _VIEWS} & read_sqlite_columns(file.path).keys()
        with suppress(sqlite3.Error), open_read_only(file.path) as database:
            for table in tables:
                row_count += database.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0
    return row_count


def count_unread_rows(file: File) -> dict[str, int]:
    """Return about how many rows each table of events has that nothing here reads; empty if the file is no export."""
    import sqlite3

    row_counts: dict[str, int] = {}
    if file.kind is Kind.SQLITE:
        tables = read_sqlite_columns(file.path).keys() - read_expected_schema().keys()
        with suppress(sqlite3.Error), open_read_only(file.path) as database:
            for table in sorted(table for table in tables if not table.startswith(_DESCRIPTIONS)):
                (count,) = database.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()
                row_counts |= {table: count} if count else {}
    return row_counts


def describe_unchecked(path: Path, file: File, row_count: int) -> FileCheck:
    """Say that a trace is not checked, and how long the check of all traces takes, from the number of their rows."""
    text = "Not compared: there is no SQLite export to compare with"
    if file.kind is Kind.SQLITE:
        seconds = math.ceil(row_count / _ROWS_PER_S)
        text = f"Not checked: --check compares rows and sums with {_name_file(path, file)} (about {seconds:,} s)"
    return FileCheck(file.label, "unchecked", text)


def check_file(path: Path, file: File, view_sums: Mapping[str, Sums], window: Window) -> FileCheck:
    """Compare the sums of the views with those of the file. `window` is the period in which times are possible.

    Raises:
        TraceError: The file is damaged.
    """
    import sqlite3

    if file.kind is not Kind.SQLITE:
        return describe_unchecked(path, file, 0)
    name = _name_file(path, file)
    try:
        tables = tuple(_check_tables(file.path, view_sums, window))
    except sqlite3.Error as error:
        return FileCheck(file.label, "unchecked", f"Not compared: SQLite cannot add up the rows of {name}: {error}")
    if differences := [text for table in tables for text in table.differences]:
        return FileCheck(file.label, "different", f"Different from {name}: {'; '.join(differences)}", tables)
    texts = (", ".join(map(str, tables)), *(remark for table in tables for remark in table.remarks))
    text = f"Equal to {name}, as SQLite adds it up: {'; '.join(texts)}"
    return FileCheck(
        file.label,
        "equal",
        text if tables else f"Nothing to compare: {name} has no CUDA events and no NVTX ranges",
        tables,
    )


def _name_file(path: Path, file: File) -> str:
    if file.path == path:
        return "the file"
    return f"the {'export' if identify(path) is Kind.REPORT else 'copy'} that is read"


def _check_tables(export: Path, view_sums: Mapping[str, Sums], window: Window) -> Iterator[TableCheck]:
    """Compare the views with the tables that have rows. Rows are judged only if their plain sums are not the view's."""
    columns_by_table = read_sqlite_columns(export)
    is_end_known = "duration" in columns_by_table.get("ANALYSIS_DETAILS", ())
    with open_read_only(export) as database:
        for complete_view in _VIEWS:
            view = complete_view if is_end_known else complete_view._replace(open_end="NULL")
            columns, sums = columns_by_table.get(view.table, set()), view_sums.get(view.table, Sums())
            if not columns:
                check = TableCheck(view.table, sums, Sums(), 0)
            else:
                check = _add_up(database, view, columns, sums) or _judge_rows(database, view, columns, sums, window)
                missing = sorted(_list_columns(view) - {"eventClass"} - columns)  # without it, each row is a call
                remarks = (f"{view.table} has no column {name}" for name in missing)
                check = replace(check, remarks=(*check.remarks, *remarks))
            if check.file_rows or check.view.rows or check.remarks:
                yield check


def _add_up(database: sqlite3.Connection, view: _View, columns: set[str], sums: Sums) -> TableCheck | None:
    """Add up all events of a table unchanged; return None if the view has other sums."""
    import sqlite3

    query = f'SELECT count(*), sum("end" - start), sum(size) FROM {_select_rows(view, columns)}'
    with suppress(sqlite3.Error):  # an impossible time does not fit into 64 bits
        rows, *sums_of_rows = database.execute(query).fetchone()
        file_sums = Sums(rows, *(None if number is None else round(number) for number in sums_of_rows))
        if file_sums == sums:
            return TableCheck(view.table, sums, file_sums, sums.rows)
    return None


def _judge_rows(database: sqlite3.Connection, view: _View, columns: set[str], sums: Sums, window: Window) -> TableCheck:
    """Add up the events of a table that count, and count the others by reason."""
    rows = all_rows = _select_rows(view, columns)
    if view.name == "api_calls" and {"globalTid", "correlationId", "start", "end"} <= columns:
        rows = f"(SELECT * FROM {rows} GROUP BY {_CALL_KEY})"
    start, end, size = (_read_integer(name) for name in ("start", '"end"', "size"))
    times = f"BETWEEN {window[0]} AND {window[1]}"
    is_possible = f'({start} {times} AND ("end" IS NULL OR {end} {times})) IS TRUE' if "start" in columns else "1"
    is_open = f"{end} IS {view.open_end} AND {end} IS NOT NULL"
    is_size = f"({size} BETWEEN {SIZE_BOUNDS[0]} AND {SIZE_BOUNDS[1]}) IS TRUE"
    events, all_events, time_ns, size_bytes, *counts = database.execute(
        f"""WITH events AS (
            SELECT {start} AS start_ns, iif({is_open}, NULL, {end}) AS end_ns, {size} AS read_size,
                {is_possible} AS is_possible, {is_open} AS is_open, {is_size} AS is_size, size IS NOT NULL AS has_size
            FROM {rows}
        )
        SELECT count(*), (SELECT count(*) FROM {all_rows}), sum(iif(is_possible, max(end_ns - start_ns, 0), NULL)),
            sum(iif(is_possible AND is_size, read_size, NULL)),
            sum(is_possible), sum(is_possible AND end_ns < start_ns), sum(has_size AND NOT is_size),
            sum(is_possible AND is_open)
        FROM events"""
    ).fetchone()
    count, reversed_count, unsized_count, open_count = (number or 0 for number in counts)
    name, total = name_rows(view.table), f"of {events:,} {name_rows(view.table)}"
    remarks = {
        f"{all_events - events:,} {name} are in the file twice and are counted once": all_events - events,
        f"{events - count:,} {total} are left out: their times are impossible": events - count,
        f"{reversed_count:,} {total} end before they start and count as 0 ns": reversed_count,
        f"the size of {unsized_count:,} {total} is impossible and counts as unknown": unsized_count,
        f"{open_count:,} {total} were open when the capture ended and count without a time": open_count,
    }
    file_sums = Sums(count, time_ns, size_bytes)
    return TableCheck(
        view.table, sums, file_sums, all_events, tuple(text for text, number in remarks.items() if number)
    )


def _list_columns(view: _View) -> set[str]:
    names = {"start", "end", *(["bytes"] if view.size_column != "NULL" else [])}
    return names | {name for name in ("eventType", "eventClass") if name in view.test}


def _select_rows(view: _View, columns: set[str]) -> str:
    """Write the SQL for the events of a table, with their sizes. A column that it lacks is NULL."""
    size = "bytes" if "bytes" in _list_columns(view) & columns else "NULL"
    nulls = "".join(f', NULL AS "{name}"' for name in sorted(_list_columns(view) - columns))
    return f"(SELECT * FROM (SELECT rowid, {size} AS size, *{nulls} FROM {view.table}) WHERE {view.test})"


def _count(number: int | None) -> str:
    return "no" if number is None else f"{number:,}"


def _read_integer(name: str) -> str:
    """Write the SQL for an integer, also as text or as a float. Anything else is NULL."""
    return f"iif(CAST({name} AS INTEGER) = {name}, CAST({name} AS INTEGER), NULL)"
