"""A trace's tables as a DuckDB file in the cache: for many questions, or where a file cannot be scanned in place."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.errors import TraceError
from nsys_insight.ingest import (
    attach,
    bad_rows,
    cache_entries,
    cache_folder,
    database,
    private,
    raw,
    row_search,
)
from nsys_insight.ingest.database import DEFAULT
from nsys_insight.ingest.sqlite_file import opened, uri
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.ingest.words import rows_of
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.limits import Limits


# How many exports are copied at once.
_BUILDERS = 4
_IMPOSSIBLE = -(1 << 63)


def entry(file: Path, *, lasting: bool = True) -> Path:
    """Return where the copy of an export is or would be: named by the export's identity and what is read from it.

    It is in the cache folder, or without `lasting` in one that goes when the process ends.

    Raises:
        OSError: There is no usable cache folder.
    """
    import duckdb

    key = cache_folder.key(file, repr(raw.contract()), private.WITHOUT, duckdb.__version__)
    return cache_folder.folder(lasting=lasting) / f"{key}.duckdb"


def find(file: Path) -> Path | None:
    """Return the copy of an export, if there is one."""
    with suppress(OSError):
        return copy if cache_entries.use(copy := entry(file)) else None
    return None


def build(
    file: Path,
    limits: Limits = DEFAULT,
    *,
    in_place: bool = True,
    lasting: bool = True,
    connections: list[duckdb.DuckDBPyConnection] | None = None,
) -> Path:
    """Copy the tables of an export that the model reads into a DuckDB file and return it.

    It is in the cache folder. Where no cache folder can be written to, or without `lasting`, it is a temporary file,
    which is removed when the process ends.

    Two processes may do so at once. With `in_place`, DuckDB's extension reads the file, and call stacks and strings
    stay in the export (`attach.NOT_COPIED`). Without it, or where there is no extension, all rows come through ADBC,
    slower, and cells that do not fit their column's type are kept as far as they can be. The connection that copies is
    added to `connections`, so that it can be interrupted.

    Raises:
        TraceError: The file cannot be read.
        duckdb.Error: The extension met a cell that it cannot read.
        UnicodeDecodeError: The same, for text that is not UTF-8.
    """
    if lasting:
        with suppress(OSError):
            return _build(file, limits, connections, in_place=in_place, lasting=True)
    return _build(file, limits, connections, in_place=in_place, lasting=False)


def _build(
    file: Path, limits: Limits, connections: list[duckdb.DuckDBPyConnection] | None, *, in_place: bool, lasting: bool
) -> Path:
    import duckdb

    target = entry(file, lasting=lasting)
    with cache_entries.making(target, "DuckDB copy", file) as path:
        connection = database.connect(limits)
        if connections is not None:
            connections.append(connection)
        try:
            connection.execute(f"ATTACH {literal(str(path))} AS built {database.STORAGE}")
            source = attach.attach_sqlite(connection, file, lasting=lasting) if in_place else None
            with progress.at(f"reading {file.name}") as task:
                if source is None:
                    _copy_by_adbc(connection, file, task)
                else:
                    copied = {name: kept for name, kept in source.columns.items() if name not in attach.NOT_COPIED}
                    for table, types in _present(file, copied, task):
                        select = ", ".join(raw.cell(name, kind) for name, kind in types.items())
                        _create(connection, table, f"SELECT {select} FROM {source.relations[table]}", {})
                connection.execute("DETACH built")
        except duckdb.Error as error:
            if "No space left" in str(error):
                raise OSError(errno.ENOSPC, "no room for a copy of the trace", str(target.parent)) from None
            raise
        finally:
            connection.close()
    return target


def build_all(
    files: Sequence[Path],
    limits: Limits,
    connections: list[duckdb.DuckDBPyConnection],
    *,
    in_place: bool = True,
    lasting: bool = True,
) -> dict[Path, Path]:
    """Build the DuckDB files of exports, several at once; see `build`.

    The connections that do so are added to `connections`, for whoever is to stop them.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_BUILDERS) as pool:
        work = {
            file: pool.submit(build, file, limits, in_place=in_place, lasting=lasting, connections=connections)
            for file in files
        }
        wait_for(work.values(), connections)
    return {file: each.result() for file, each in work.items()}


def discard(database: Path) -> None:
    """Remove a damaged entry, so that it is built again when next asked for."""
    cache_entries.discard(database)


def _present(file: Path, columns: Mapping[str, set[str]], task: progress.Task) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the part of the contract that a file has, table by table, and say which is being copied.

    Strings come last: those are copied to which the others refer.
    """
    present = {
        table: {name: kind for name, kind in types.items() if name in columns[table]}
        for table, types in sorted(raw.contract().items(), key=lambda item: item[0] == "StringIds")
        if columns.get(table, set()) & set(types)
    }
    cells = _cells(file, present)
    done, every = 0, sum(cells.values()) or 1
    for table, types in present.items():
        task.text, task.percent = f"reading {rows_of(table)}", 100 * done / every
        yield table, types
        done += cells[table]


def _create(connection: duckdb.DuckDBPyConnection, table: str, rows: str, made: Mapping[str, dict[str, str]]) -> None:
    """Create a table of the attached database `built`, where others were made, without what is private."""
    kept = private.handed_over(table, "built", made)
    connection.execute(f"CREATE TABLE built.{identifier(table)} AS FROM ({rows}){kept}")


def _cells(file: Path, tables: dict[str, dict[str, str]]) -> dict[str, int]:
    """How many cells are to be copied of each table, about: rows are not counted, which would take long."""
    cells = dict.fromkeys(tables, 0)
    with opened(file) as database:
        for table in tables.keys() & attach.sqlite_columns(file):
            cells[table] = len(tables[table]) * len(row_search.row_numbers(database, table))
    return cells


def _copy_by_adbc(connection: duckdb.DuckDBPyConnection, file: Path, task: progress.Task) -> None:
    """Copy the contract's part of a SQLite file into the attached database `built`, through ADBC and Arrow."""
    import adbc_driver_manager
    import adbc_driver_sqlite

    made: dict[str, dict[str, str]] = {}
    try:
        with (
            adbc_driver_sqlite.connect(uri(file)) as database,
            adbc_driver_manager.AdbcConnection(database) as reader,
        ):
            for table, types in _present(file, attach.sqlite_columns(file), task):
                with adbc_driver_manager.AdbcStatement(reader) as statement:
                    statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
                    statement.set_sql_query(_sqlite_select(table, types))
                    stream, _ = statement.execute_query()
                    connection.register("arrow", stream)
                    _create(connection, table, f"SELECT {_typed(types)} FROM arrow WHERE is_row = 1", made)
                    made[table] = types
                    connection.unregister("arrow")
    except adbc_driver_manager.Error as error:
        raise TraceError(
            f"{file} cannot be read: {error}",
            "export it again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
        ) from None


def _sqlite_select(table: str, types: dict[str, str]) -> str:
    """SQL for SQLite that gives each column one Arrow type, whatever its cells hold.

    The driver infers a column's type from the first batch and fails on what differs later. So a row of the right
    types comes first (is_row = 0), text comes as hexadecimal digits, which are always ASCII, and what ought to be a
    number and is none comes as NULL; or as one that cannot be, where `bad_rows` looks for these.
    """
    first = ["0 AS is_row"]
    rows = ["1"]
    for name, kind in types.items():
        column = identifier(name)
        if kind in ("VARCHAR", "BLOB"):
            first.append(f"'x' AS {column}")
            rows.append(f"CASE WHEN {column} IS NOT NULL THEN 'x' || hex({column}) END")
        else:
            first.append(f"0 AS {column}")
            rows.append(
                f"CASE typeof({column}) WHEN 'integer' THEN {column} WHEN 'real' THEN CAST({column} AS INTEGER)"
                f" WHEN 'null' THEN NULL ELSE {_IMPOSSIBLE if name in bad_rows.BOUNDED else 'NULL'} END"
            )
    return f"SELECT {', '.join(first)} UNION ALL SELECT {', '.join(rows)} FROM {identifier(table)}"


def _typed(types: dict[str, str]) -> str:
    """DuckDB's side of `_sqlite_select`: text back from its digits, with bytes that are not UTF-8 in hexadecimal."""
    columns = []
    for name, kind in types.items():
        column = identifier(name)
        value = f"{column}::{kind}"
        if kind == "VARCHAR":
            digits = f"unhex(substr({column}, 2))"
            value = f"coalesce(try(decode({digits})), {digits}::VARCHAR)"
        elif kind == "BLOB":
            value = f"unhex(substr({column}, 2))"
        columns.append(f"{value} AS {column}")
    return ", ".join(columns)
