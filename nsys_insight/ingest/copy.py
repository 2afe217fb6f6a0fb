"""Copying the tables of an export that the model reads into a DuckDB file, where much is asked of a big trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.errors import TraceError
from nsys_insight.ingest import bad_rows, private, row_search
from nsys_insight.ingest.contract import cell, contract
from nsys_insight.ingest.source import NOT_COPIED
from nsys_insight.ingest.sqlite_file import opened, sqlite_columns, uri
from nsys_insight.ingest.words import rows_of
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.source import Source

# Where the tables are in the DuckDB file.
SCHEMA = "copy"
_BUILT = f"built.{SCHEMA}"
_IMPOSSIBLE = -(1 << 63)


def copy_export(connection: duckdb.DuckDBPyConnection, file: Path, source: Source | None) -> None:
    """Copy a SQLite export into the schema `copy` of the attached database `built`.

    Where DuckDB's extension can read it, `source` is the attached export, of which call stacks and strings stay where
    they are (`source.NOT_COPIED`). Without it all rows come through ADBC, slower, and cells that do not fit their
    column's type are kept as far as they can be.

    Raises:
        TraceError: The file cannot be read.
        duckdb.Error: The extension met a cell that it cannot read.
        UnicodeDecodeError: The same, for text that is not UTF-8.
    """
    connection.execute(f"CREATE SCHEMA {_BUILT}")
    with progress.at(f"reading {file.name}") as task:
        if source is None:
            _copy_by_adbc(connection, file, task)
            return
        copied = {table: columns for table, columns in source.columns.items() if table not in NOT_COPIED}
        for table, types in _present(file, copied, task):
            select = ", ".join(cell(name, kind) for name, kind in types.items())
            _create(connection, table, f"SELECT {select} FROM {source.relations[table]}", {})


def _present(file: Path, columns: Mapping[str, set[str]], task: progress.Task) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the part of the contract that a file has, table by table, and say which is being copied.

    Strings come last: those are copied to which the others refer.
    """
    present = {
        table: {name: kind for name, kind in types.items() if name in columns[table]}
        for table, types in sorted(contract().items(), key=lambda item: item[0] == "StringIds")
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
    kept = private.handed_over(table, _BUILT, made)
    connection.execute(f"CREATE TABLE {_BUILT}.{identifier(table)} AS FROM ({rows}){kept}")


def _cells(file: Path, tables: dict[str, dict[str, str]]) -> dict[str, int]:
    """How many cells are to be copied of each table, about: rows are not counted, which would take long."""
    cells = dict.fromkeys(tables, 0)
    with opened(file) as database:
        for table in tables.keys() & sqlite_columns(file):
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
            for table, types in _present(file, sqlite_columns(file), task):
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
