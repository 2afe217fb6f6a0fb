"""Invalid rows, such as a kernel that ends 200 years after the others: find, leave out and report them.

A trace as nsys wrote it has no such row, and a check of every table would cost a scan. So the relations of a trace
raise an error when a query meets an invalid row (`guard_column`). Only then is the trace opened again and every row
checked
(`drop_invalid_rows`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from nsys_insight.ingest.expected_schema import name_rows
from nsys_insight.ingest.source import ANY_TIME, RowChecks, Source, Window
from nsys_insight.ingest.sqlite_file import open_read_only
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb


# The text of the error that a query raises when it meets an invalid row.
_ERROR_TEXT = "a row of the trace is impossible"
# Tables whose first rows show when the trace was recorded. Times count from the start of the capture, or from the
# epoch.
_WINDOW_TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API", "GPU_METRICS")
_FIRST_ROWS = 101
# Fewer rows with times near the limit of 64 bits may be invalid ones.
_LEAST_ROWS = 4
# 52 days before or after. No nsys session is that long, and the sum of a thousand such times still fits.
_MAX_DISTANCE_NS = 1 << 52
# Longer than any session: two years.
_LONGEST_SESSION_NS = 1 << 56
_TIME_COLUMNS = ("start", "end", "timestamp")
_OPEN_ENDED_TABLES = ("NVTX_EVENTS",)

# 16 TiB: no copy, allocation or message is larger, and half a million of them still add up to less than 2^63.
_COUNT_BOUNDS, SIZE_BOUNDS, _DEVICE_BOUNDS = (0, (1 << 31) - 1), (0, 1 << 44), (0, (1 << 16) - 1)
_SIZE_COLUMNS = ("bytes", "size", "recvSize", "bytesProcessed")
# Times in the rows of a table that has no start: an impossible one is unknown.
_OTHER_TIME_COLUMNS = ("startedAt", "endedAt")
# Bounds of the other numbers that are summed or packed into one integer.
_COLUMN_BOUNDS: dict[str, Window] = {
    "correlationId": (0, (1 << 38) - 1),
    **dict.fromkeys((*_SIZE_COLUMNS, "localMemoryTotal"), SIZE_BOUNDS),
    "value": (-(1 << 53), 1 << 53),
    "copyCount": _COUNT_BOUNDS,
    **dict.fromkeys(("gpuId", "cudaId"), _DEVICE_BOUNDS),
    "registersPerThread": _COUNT_BOUNDS,
    **{f"{prefix}{axis}": _COUNT_BOUNDS for prefix in ("grid", "block", "cluster") for axis in "XYZ"},
    **{f"{kind}SharedMemory": _COUNT_BOUNDS for kind in ("static", "dynamic")},
    "sharedMemoryExecuted": _COUNT_BOUNDS,
    "localMemoryPerThread": _COUNT_BOUNDS,
    **dict.fromkeys(("numGangs", "numWorkers", "vectorLength"), _COUNT_BOUNDS),
}
BOUNDED_COLUMNS = frozenset({*_COLUMN_BOUNDS, *_TIME_COLUMNS, *_OTHER_TIME_COLUMNS, "deviceId"})
# The columns that identify a row of the tables that others are joined with: a repeated one would multiply their rows.
_KEYS = {
    "StringIds": ("id",),
    "PROCESSES": ("globalPid",),
    "TARGET_INFO_GPU": ("id",),
    "TARGET_INFO_GPU_METRICS": ("typeId", "metricId"),
    "TARGET_INFO_NETWORK_METRICS": ("metricsListId", "metricsIdx"),
    "NIC_ID_MAP": ("globalId",),
    "TARGET_INFO_NIC_INFO": ("nicId",),
    "OSRT_FILE_ACCESS_DESCRIPTORS": ("fileAccessId",),
    "ENUM_OSRT_FILE_ACCESS_EVENT_TYPE": ("id",),
}
# nsys starts the program in this process, which it then replaces.
_LAUNCHER = "nsys-launcher"
_GPU_TABLES = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"))
_COLUMN_TEXTS = {
    "correlationId": "correlation id", "deviceId": "device number", "gpuId": "GPU number",
    **dict.fromkeys(_SIZE_COLUMNS, "size"), "recvSize": "received size",
}  # fmt: skip


def guard_rows(connection: duckdb.DuckDBPyConnection, source: Source) -> Source:
    """Return a source whose relations raise an error when a query meets an invalid row.

    Times that are too high to be added up are shifted to begin at 0, and times that `nsys export` shifted are shifted
    back: `time_shift_ns` is what was subtracted.
    """
    window = _find_window(connection, source)
    if window is None and (shift_ns := _find_shift(connection, source)):
        source = _shift_times(source, shift_ns, beyond_ns=ANY_TIME[1])
        window = _find_window(connection, source)
    elif window and (shift_ns := _find_export_shift(connection, source, sum(window) // 2)):
        # A time that the export did not shift is far from those that it did, where the shift is the time since 1970.
        beyond_ns = shift_ns // 2 if shift_ns > _LONGEST_SESSION_NS else -1
        source = _shift_times(source, shift_ns, beyond_ns=beyond_ns)
        window = window[0] - shift_ns, window[1] - shift_ns
    return replace(source, row_checks=RowChecks(window or ANY_TIME))


def _find_shift(connection: duckdb.DuckDBPyConnection, source: Source) -> int:
    """Return the first time of a trace whose times are all near the limit of 64 bits; 0 for other traces."""
    first_times = []
    for table in _WINDOW_TABLES:
        if time_column := _time_column(source.columns.get(table, set())):
            times = _read_first_times(connection, source, table, time_column)
            first_times += [time for time in times if isinstance(time, int) and abs(time) > ANY_TIME[1]]
    has_one_time = len(first_times) >= _LEAST_ROWS and max(first_times) - min(first_times) < _MAX_DISTANCE_NS
    return min(first_times) if has_one_time else 0


def _find_export_shift(connection: duckdb.DuckDBPyConnection, source: Source, time_ns: int) -> int:
    """Return what `nsys export` added to all times of a trace that has rows near `time_ns`; 0 if it added nothing.

    `--ts-shift` and `--ts-normalize` write it to META_DATA_EXPORT. Where that row is missing, times that follow the
    start of the session, in nanoseconds since 1970, are normalized ones: no session lasts for years.
    """
    shifts: list[object] = []
    if source.columns.get("META_DATA_EXPORT", set()) >= {"name", "value"}:
        shift_of_export = "max(CASE WHEN name = 'EXPORT_CONFIG_TIME_SHIFT' THEN value END)"
        shifts += _read_first_times(connection, source, "META_DATA_EXPORT", shift_of_export)
    if time_ns > _LONGEST_SESSION_NS and "utcEpochNs" in source.columns.get("TARGET_INFO_SESSION_START_TIME", set()):
        shifts += _read_first_times(connection, source, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs")[:1]
    for shift in shifts:
        with suppress(TypeError, ValueError):
            shift_ns = int(str(shift))
            if shift_ns and abs(time_ns - shift_ns) < _LONGEST_SESSION_NS:
                return shift_ns
    return 0


def _shift_times(source: Source, shift_ns: int, *, beyond_ns: int) -> Source:
    """Subtract a time from all times beyond another. Rows are then no longer looked up in the export itself."""
    relations = dict(source.relations)
    for table, columns in source.columns.items():
        shifted_columns = ", ".join(
            f"""try_cast(CASE WHEN abs(try_cast({identifier(name)} AS HUGEINT)) > {beyond_ns}
                THEN try_cast({identifier(name)} AS HUGEINT) - ({shift_ns})::HUGEINT ELSE {identifier(name)} END
                AS BIGINT) AS {identifier(name)}"""
            for name in (*_TIME_COLUMNS, *_OTHER_TIME_COLUMNS)
            if name in columns and not table.startswith(("TARGET_", "META_"))
        )
        if shifted_columns:
            relations[table] = f"(SELECT * REPLACE ({shifted_columns}) FROM {relations[table]})"
    return replace(source, relations=relations, find_time_bounds=dict, export=None, time_shift_ns=shift_ns)


def drop_invalid_rows(
    connection: duckdb.DuckDBPyConnection, source: Source, types: Mapping[str, Mapping[str, str]]
) -> tuple[Source, list[str]]:
    """Check every row of a guarded source.

    Args:
        connection: The connection to which the source is attached.
        source: The source.
        types: The columns of each table of the expected schema, with their types.

    Returns:
        A source without the invalid rows, and sentences about what was left out.
    """
    row_checks, relations = replace(source.row_checks, is_filtered=True), dict(source.relations)
    left_out, backwards, endless, unknown_values = [], [], [], []
    repeats = _drop_repeated_keys(connection, source, relations)
    for table, column_types in types.items():
        columns = source.columns.get(table, set())
        numbers = [name for name, kind in column_types.items() if name in columns and kind not in ("VARCHAR", "BLOB")]
        if not numbers:
            continue
        time_test = _write_time_test(row_checks, columns)
        bounded = [name for name in numbers if name not in _TIME_COLUMNS and _column_bounds(row_checks, table, name)]
        if time_test != "true" or bounded:
            rows, invalid_count, reversed_count, endless_count, *unknown_counts = _count_invalid(
                connection, row_checks, relations[table], table, column_types, bounded, time_test
            )
            total_text = f"of {rows:,} {name_rows(table)}"
            left_out += [f"{invalid_count:,} {total_text}"] if invalid_count else []
            backwards += [f"{reversed_count:,} {total_text}"] if reversed_count else []
            endless += [f"{endless_count:,} {total_text}"] if endless_count else []
            unknown_values += [
                f"the {_COLUMN_TEXTS.get(name, name)} of {count:,} {total_text}"
                for name, count in zip(bounded, unknown_counts, strict=True)
                if count
            ]
        checked_columns = ", ".join(
            f"{_nullify_invalid(row_checks, table, name, column_types[name])} AS {identifier(name)}" for name in numbers
        )
        relations[table] = f"(SELECT * REPLACE ({checked_columns}) FROM {relations[table]} WHERE {time_test})"
    repeat_count = _count_repeated_calls(connection, source)
    unknown_verbs = "is impossible and counts" if len(unknown_values) == 1 else "are impossible and count"
    messages = [
        *([f"{repeat_count:,} API calls are in the trace twice and are counted once"] if repeat_count else []),
        *([f"{_join_texts(repeats)} are left out: their ids are taken"] if repeats else []),
        *([f"{_join_texts(left_out)} are left out: their times are impossible"] if left_out else []),
        *([f"{_join_texts(backwards)} end before they start and count as 0 ns"] if backwards else []),
        *([f"{_join_texts(endless)} have no end and count as 0 ns"] if endless else []),
        *([f"{_join_texts(unknown_values)} {unknown_verbs} as unknown"] if unknown_values else []),
    ]
    # Lookups in the file itself would still meet the invalid rows, so the new source has no export.
    return replace(source, row_checks=row_checks, relations=relations, find_time_bounds=dict, export=None), messages


def guard_column(row_checks: RowChecks, table: str, name: str, column_type: str, columns: set[str]) -> str:
    """Write the SQL for a column that raises an error when a query meets an invalid value.

    Where a row has a start and an end, the check of the end covers both. Two checks take twice as long, and no query
    reads only the starts of such rows. Other numbers raise an overflow error where they are summed.
    """
    column, (low, high) = identifier(name), row_checks.window
    if row_checks.is_filtered:
        return column
    if name == "end" and "start" in columns:
        start, end = f"start::{column_type}", f'"end"::{column_type}'
        test = f"{end} >= {start} AND {start} >= {low} AND {end} <= {high}"
        if table in _OPEN_ENDED_TABLES:
            test = f'{test} OR ("end" IS NULL AND {start} BETWEEN {low} AND {high})'
    elif name == _time_column(columns) and "end" not in columns:
        test = f"{column}::{column_type} >= {low} AND {column}::{column_type} <= {high}"
    elif name in (*_SIZE_COLUMNS, *_OTHER_TIME_COLUMNS):
        low, high = SIZE_BOUNDS if name in _SIZE_COLUMNS else (low, high)
        test = f"{column} IS NULL OR {column}::{column_type} BETWEEN {low} AND {high}"
    else:
        return column
    return raise_unless(test, column)


def raise_unless(test: str, value: str = "true") -> str:
    """Write the SQL for a value that raises an error unless a test is true."""
    return f"CASE WHEN {test} THEN {value} ELSE error({literal(_ERROR_TEXT)}) END"


def can_be_row_error(error: Exception) -> bool:
    """Return whether a query may have failed because of an invalid row."""
    import duckdb

    error_types = (duckdb.InvalidInputException, duckdb.OutOfRangeException, duckdb.ConversionException)
    return isinstance(error, error_types)


def is_too_large(error: Exception) -> bool:
    """Return whether a query failed because a sum does not fit into 64 bits. DuckDB adds integers up as INT128."""
    import duckdb

    is_range_error = isinstance(error, (duckdb.OutOfRangeException, duckdb.ConversionException))
    return is_range_error and any(text in str(error) for text in ("INT128", "Overflow"))


def _find_window(connection: duckdb.DuckDBPyConnection, source: Source) -> Window | None:
    """Return the period in which the times of a trace are valid, derived from its first rows; None if it has none."""
    for table in _WINDOW_TABLES:
        if time_column := _time_column(source.columns.get(table, set())):
            times = sorted(
                time for time in _read_first_times(connection, source, table, time_column) if isinstance(time, int)
            )
            if times and ANY_TIME[0] <= times[len(times) // 2] <= ANY_TIME[1]:
                return times[len(times) // 2] - _MAX_DISTANCE_NS, times[len(times) // 2] + _MAX_DISTANCE_NS
    return None


def _read_first_times(connection: duckdb.DuckDBPyConnection, source: Source, table: str, column: str) -> list[object]:
    """Return the times in the first rows of a table. SQLite reads them faster than DuckDB does."""
    import sqlite3

    if source.export is not None and table in source.export.tables:
        with suppress(sqlite3.Error), open_read_only(source.export.file) as database:
            return [
                time for (time,) in database.execute(f"SELECT {column} FROM {identifier(table)} LIMIT {_FIRST_ROWS}")
            ]
    first = f"SELECT try_cast({column} AS BIGINT) FROM {source.relations[table]} LIMIT {_FIRST_ROWS}"
    return [time for (time,) in connection.execute(first).fetchall()]


def _count_invalid(  # noqa: PLR0913, PLR0917 - one query with all counts
    connection: duckdb.DuckDBPyConnection,
    row_checks: RowChecks,
    rows: str,
    table: str,
    column_types: Mapping[str, str],
    bounded: Sequence[str],
    time_test: str,
) -> tuple[int, ...]:
    """Count the rows, invalid ones, those that end before they start, those without an end, and invalid values by name.

    A range of NVTX has no end if it was open when the capture ended.
    """
    reversed_test = '("end" IS NOT NULL AND try_cast("end" AS BIGINT) < try_cast(start AS BIGINT))'
    has_ends = {"start", "end"} <= column_types.keys() and '"end"' in time_test
    endless_test = '"end" IS NULL' if has_ends and table not in _OPEN_ENDED_TABLES else "false"
    counts = [
        "count(*)",
        f"count(*) FILTER (({time_test}) IS NOT TRUE)",
        f"count(*) FILTER (({time_test}) AND {reversed_test if has_ends else 'false'})",
        f"count(*) FILTER (({time_test}) AND {endless_test})",
        *(
            f"count({identifier(name)}) - count({_nullify_invalid(row_checks, table, name, column_types[name])})"
            for name in bounded
        ),
    ]
    counts_of_table: tuple[int, ...] = connection.execute(f"SELECT {', '.join(counts)} FROM {rows}").fetchall()[0]
    return counts_of_table


def check_keys(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
    """Raise an error, as an invalid row does, if two rows of a table have the same id.

    Raises:
        duckdb.InvalidInputException: The rows have to be checked.
    """
    import duckdb

    if not source.row_checks.is_filtered and any(_count_repeated_keys(connection, source, table)):
        raise duckdb.InvalidInputException(_ERROR_TEXT)


def _drop_repeated_keys(connection: duckdb.DuckDBPyConnection, source: Source, relations: dict[str, str]) -> list[str]:
    """Leave one row of each id in `relations`; return the counts of the others."""
    texts = []
    for table, key_columns in _KEYS.items():
        for repeats, rows in _count_repeated_keys(connection, source, table):
            count = repeats
            key, has_key = _write_key(key_columns)
            order = ", ".join(map(identifier, sorted(source.columns[table])))
            if table == "PROCESSES" and "name" in source.columns[table]:
                # nsys's launcher becomes the program: both have its id, and the program is what ran.
                order = f"name = '{_LAUNCHER}', {order}"
                count -= _count_launchers(connection, relations[table])
            is_first = f"row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1"
            relations[table] = f"(FROM {relations[table]} QUALIFY NOT ({has_key}) OR {is_first})"
            texts += [f"{count:,} of {rows:,} {name_rows(table)}"] if count else []
    return texts


def _count_launchers(connection: duckdb.DuckDBPyConnection, relation: str) -> int:
    """Return the number of processes that were nsys's launcher before they became the program."""
    query = f"""
    SELECT count(*)
    FROM (
        SELECT globalPid FROM {relation} GROUP BY globalPid
        HAVING count(*) = 2 AND count(*) FILTER (name = '{_LAUNCHER}') = 1
    )"""
    return int(connection.execute(query).fetchall()[0][0])


def _count_repeated_keys(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> list[tuple[int, int]]:
    """Return how many rows of a table repeat an id, and how many there are; nothing if none does."""
    key_columns = _KEYS.get(table, ())
    if not key_columns or not set(key_columns) <= source.columns.get(table, set()):
        return []
    key, has_key = _write_key(key_columns)
    repeats = f"count(*) FILTER ({has_key}) - count(DISTINCT row({key})) FILTER ({has_key})"
    query = f"SELECT {repeats}, count(*) FROM {source.relations[table]}"
    counts: list[tuple[int, int]] = connection.execute(query).fetchall()
    return [count for count in counts if count[0]]


def _write_key(columns: Sequence[str]) -> tuple[str, str]:
    """Write the SQL for the columns of a key, and for whether a row has one."""
    names = list(map(identifier, columns))
    return ", ".join(names), " AND ".join(f"{name} IS NOT NULL" for name in names)


def _count_repeated_calls(connection: duckdb.DuckDBPyConnection, source: Source) -> int:
    """Return the number of API calls that repeat another one in every identifying column."""
    table, key_columns = "CUPTI_ACTIVITY_KIND_RUNTIME", ["globalTid", "correlationId", "eventClass", "start", "end"]
    if not set(key_columns) <= source.columns.get(table, set()):
        return 0
    row = ", ".join(map(identifier, key_columns))
    query = f"SELECT count(*) - count(DISTINCT ({row})) FROM {source.relations[table]} WHERE correlationId IS NOT NULL"
    return int(connection.execute(query).fetchall()[0][0])


def _nullify_invalid(row_checks: RowChecks, table: str, name: str, column_type: str) -> str:
    """Write the SQL for a column that is NULL where its value is invalid."""
    value = f"try_cast({identifier(name)} AS {column_type})"
    bounds = _column_bounds(row_checks, table, name)
    return f"CASE WHEN {value} BETWEEN {bounds[0]} AND {bounds[1]} THEN {value} END" if bounds else value


def _write_time_test(row_checks: RowChecks, columns: set[str]) -> str:
    """Write the SQL that tests whether the times of a row are valid."""
    time_column, (low, high) = _time_column(columns), row_checks.window
    if not time_column:
        return "true"
    test = f"try_cast({time_column} AS BIGINT) BETWEEN {low} AND {high}"
    return (
        f'{test} AND ("end" IS NULL OR try_cast("end" AS BIGINT) BETWEEN {low} AND {high})'
        if "end" in columns
        else test
    )


def _time_column(columns: set[str]) -> str:
    return "start" if "start" in columns else "timestamp" if "timestamp" in columns else ""


def _column_bounds(row_checks: RowChecks, table: str, name: str) -> Window | None:
    if name in (*_TIME_COLUMNS, *_OTHER_TIME_COLUMNS):
        return row_checks.window
    if name == "deviceId":
        return _DEVICE_BOUNDS if table in _GPU_TABLES else None
    return _COLUMN_BOUNDS.get(name)


def _join_texts(texts: list[str]) -> str:
    return ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else texts[0]
