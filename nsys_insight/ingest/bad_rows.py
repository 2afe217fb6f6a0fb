"""Rows that cannot be true, such as a kernel that ends 200 years after the others: set aside, counted, and said.

A trace as nsys wrote it has none, and to look for them would cost a scan of every table. So the relations of a trace
raise an error where a query meets one (`guarded`). Only then is the trace opened once more, and all of its rows are
looked at (`looked_at`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from nsys_insight.ingest.source import ANY_TIME, Screen
from nsys_insight.ingest.sqlite_file import opened
from nsys_insight.ingest.words import rows_of
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from nsys_insight.ingest.source import Source, Window


# What DuckDB says where a query meets such a row.
_MET = "a row of the trace is impossible"
# Tables whose first rows tell about when a trace was: times are from its start, or of the epoch.
_TELLING = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API", "GPU_METRICS")
_FIRST = 101
# Fifty days, before or after: no session of nsys is that long, and a thousand such times still add up.
_REACH = 1 << 52
_TIMES = ("start", "end", "timestamp")
_MAY_BE_OPEN = ("NVTX_EVENTS",)

_COUNTS, _SIZES = (0, (1 << 31) - 1), (0, 1 << 53)
# What other numbers can be, where they are added or packed into one.
_POSSIBLE: dict[str, Window] = {
    "correlationId": (0, (1 << 38) - 1),
    "bytes": _SIZES,
    "localMemoryTotal": _SIZES,
    "value": (-(1 << 53), 1 << 53),
    "copyCount": _COUNTS,
    "registersPerThread": _COUNTS,
    **{f"{of}{axis}": _COUNTS for of in ("grid", "block", "cluster") for axis in "XYZ"},
    **{f"{kind}SharedMemory": _COUNTS for kind in ("static", "dynamic")},
    "sharedMemoryExecuted": _COUNTS,
    "localMemoryPerThread": _COUNTS,
}
BOUNDED = frozenset({*_POSSIBLE, *_TIMES, "deviceId"})
_DEVICES = (0, (1 << 16) - 1)
_GPU_WORK = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"))
_WORDS = {"correlationId": "correlation id", "bytes": "size", "deviceId": "device number", "value": "value"}


def screened(connection: duckdb.DuckDBPyConnection, source: Source) -> Source:
    """Return a source whose relations raise an error where a query meets a row that cannot be true."""
    return replace(source, screen=Screen(_window(connection, source)))


def looked_at(
    connection: duckdb.DuckDBPyConnection, source: Source, types: Mapping[str, Mapping[str, str]]
) -> tuple[Source, list[str]]:
    """Look at all rows of a screened source, whose tables of the contract have columns of these types.

    Returns:
        A source without the rows that cannot be, and sentences of what was left out.
    """
    screen, relations = replace(source.screen, looked=True), dict(source.relations)
    left_out, backwards, unknown = [], [], []
    for table, kinds in types.items():
        columns = source.columns.get(table, set())
        numbers = [name for name, kind in kinds.items() if name in columns and kind not in ("VARCHAR", "BLOB")]
        if not numbers:
            continue
        kept = _is_kept(screen, columns)
        bounded = [name for name in numbers if name not in _TIMES and _bounds(screen, table, name)]
        if kept != "true" or bounded:
            rows, impossible, reverse, *cells = _counted(
                connection, screen, relations[table], table, kinds, bounded, kept
            )
            of = f"of {rows:,} {rows_of(table)}"
            left_out += [f"{impossible:,} {of}"] if impossible else []
            backwards += [f"{reverse:,} {of}"] if reverse else []
            unknown += [
                f"the {_WORDS.get(name, name)} of {count:,} {of}"
                for name, count in zip(bounded, cells, strict=True)
                if count
            ]
        replaced = ", ".join(f"{_possible(screen, table, name, kinds[name])} AS {identifier(name)}" for name in numbers)
        relations[table] = f"(SELECT * REPLACE ({replaced}) FROM {relations[table]} WHERE {kept})"
    twice = _twice(connection, source)
    said = [
        *([f"{twice:,} API calls are in the trace twice and are counted once"] if twice else []),
        *([f"{_joined(left_out)} are left out: their times are impossible"] if left_out else []),
        *([f"{_joined(backwards)} end before they start and count as 0 ns"] if backwards else []),
        *([f"{_joined(unknown)} is impossible and counts as unknown"] if unknown else []),
    ]
    # What looks rows up in the file itself would meet the others.
    return replace(source, screen=screen, relations=relations, find_extents=dict, export=None), said


def guarded(screen: Screen, table: str, name: str, kind: str, columns: set[str]) -> str:
    """SQL for a column of a table that raises an error where a query meets a value that cannot be.

    Where a row has a start and an end, the end tells of both: a test for each takes twice as long, and nothing reads
    the starts of such rows alone. Other numbers raise errors by themselves where they are added up.
    """
    column, (low, high) = identifier(name), screen.window
    if screen.looked:
        return column
    if name == "end" and "start" in columns:
        start, end = f"start::{kind}", f'"end"::{kind}'
        test = f"{end} >= {start} AND {start} >= {low} AND {end} <= {high}"
        if table in _MAY_BE_OPEN:
            test = f'{test} OR ("end" IS NULL AND {start} BETWEEN {low} AND {high})'
    elif name == _time(columns) and "end" not in columns:
        test = f"{column}::{kind} >= {low} AND {column}::{kind} <= {high}"
    elif name == "bytes":
        test = f"{column} IS NULL OR {column}::{kind} BETWEEN {_SIZES[0]} AND {_SIZES[1]}"
    else:
        return column
    return must(test, column)


def must(test: str, value: str = "true") -> str:
    """SQL for a value that raises an error unless a test is true."""
    return f"CASE WHEN {test} THEN {value} ELSE error({literal(_MET)}) END"


def may_have_met(error: Exception) -> bool:
    """Tell whether a query may have failed for a row that cannot be true."""
    import duckdb

    kinds = (duckdb.InvalidInputException, duckdb.OutOfRangeException, duckdb.ConversionException)
    return isinstance(error, kinds)


def _window(connection: duckdb.DuckDBPyConnection, source: Source) -> Window:
    """When a trace was, by its first rows."""
    for table in _TELLING:
        if time := _time(source.columns.get(table, set())):
            times = sorted(each for each in _first_times(connection, source, table, time) if isinstance(each, int))
            if times and ANY_TIME[0] <= times[len(times) // 2] <= ANY_TIME[1]:
                return times[len(times) // 2] - _REACH, times[len(times) // 2] + _REACH
    return ANY_TIME


def _first_times(connection: duckdb.DuckDBPyConnection, source: Source, table: str, column: str) -> list[object]:
    """The times of the first rows of a table; of a SQLite file asked of SQLite itself, which is quicker."""
    import sqlite3

    if source.export is not None and table in source.export.tables:
        with suppress(sqlite3.Error), opened(source.export.file) as database:
            return [time for (time,) in database.execute(f"SELECT {column} FROM {identifier(table)} LIMIT {_FIRST}")]
    first = f"SELECT try_cast({column} AS BIGINT) FROM {source.relations[table]} LIMIT {_FIRST}"
    return [time for (time,) in connection.execute(first).fetchall()]


def _counted(  # noqa: PLR0913, PLR0917 - what is counted
    connection: duckdb.DuckDBPyConnection,
    screen: Screen,
    rows: str,
    table: str,
    kinds: Mapping[str, str],
    bounded: Sequence[str],
    kept: str,
) -> tuple[int, ...]:
    """How many rows there are, how many cannot be, end before they start, and have no possible value in a column."""
    ends = '("end" IS NOT NULL AND try_cast("end" AS BIGINT) < try_cast(start AS BIGINT))'
    has_ends = {"start", "end"} <= kinds.keys() and '"end"' in kept
    counts = [
        "count(*)",
        f"count(*) FILTER (({kept}) IS NOT TRUE)",
        f"count(*) FILTER (({kept}) AND {ends if has_ends else 'false'})",
        *(f"count({identifier(name)}) - count({_possible(screen, table, name, kinds[name])})" for name in bounded),
    ]
    counted: tuple[int, ...] = connection.execute(f"SELECT {', '.join(counts)} FROM {rows}").fetchall()[0]
    return counted


def _twice(connection: duckdb.DuckDBPyConnection, source: Source) -> int:
    """How many API calls repeat another one in all that tells calls apart."""
    table, which = "CUPTI_ACTIVITY_KIND_RUNTIME", ["globalTid", "correlationId", "eventClass", "start", "end"]
    if not set(which) <= source.columns.get(table, set()):
        return 0
    row = ", ".join(map(identifier, which))
    counted = (
        f"SELECT count(*) - count(DISTINCT ({row})) FROM {source.relations[table]} WHERE correlationId IS NOT NULL"
    )
    return int(connection.execute(counted).fetchall()[0][0])


def _possible(screen: Screen, table: str, name: str, kind: str) -> str:
    """SQL for a column of a table that is NULL where its value cannot be."""
    value = f"try_cast({identifier(name)} AS {kind})"
    bounds = _bounds(screen, table, name)
    return f"CASE WHEN {value} BETWEEN {bounds[0]} AND {bounds[1]} THEN {value} END" if bounds else value


def _is_kept(screen: Screen, columns: set[str]) -> str:
    """SQL that tells whether the times of a row can be."""
    time, (low, high) = _time(columns), screen.window
    if not time:
        return "true"
    test = f"try_cast({time} AS BIGINT) BETWEEN {low} AND {high}"
    return (
        f'{test} AND ("end" IS NULL OR try_cast("end" AS BIGINT) BETWEEN {low} AND {high})'
        if "end" in columns
        else test
    )


def _time(columns: set[str]) -> str:
    return "start" if "start" in columns else "timestamp" if "timestamp" in columns else ""


def _bounds(screen: Screen, table: str, name: str) -> Window | None:
    if name in _TIMES:
        return screen.window
    if name == "deviceId":
        return _DEVICES if table in _GPU_WORK else None
    return _POSSIBLE.get(name)


def _joined(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
