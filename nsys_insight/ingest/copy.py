"""Copy the tables of a big export that the model reads to a DuckDB file, for sessions with many queries."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.errors import TraceError
from nsys_insight.ingest import bad_rows, private, row_search
from nsys_insight.ingest.expected_schema import cast_column, name_rows, read_expected_schema
from nsys_insight.ingest.source import NOT_COPIED
from nsys_insight.ingest.sqlite_file import open_read_only, read_only_uri, read_sqlite_types
from nsys_insight.ingest.tables_only import find_type
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.source import Source

# The schema of the tables in the DuckDB file.
SCHEMA = "copy"
_TARGET = f"target.{SCHEMA}"
_INVALID_NUMBER = -(1 << 63)
# DuckDB's types for those of SQLite.
_TYPES = {"INTEGER": "BIGINT", "TEXT": "VARCHAR", "REAL": "DOUBLE", "": "BLOB"}


def copy_export(connection: duckdb.DuckDBPyConnection, file: Path, source: Source | None) -> None:
    """Copy a SQLite export to the schema `copy` of the attached database `target`.

    If DuckDB's extension can read it, `source` is the attached export. Its call stacks and strings stay in the export
    (`source.NOT_COPIED`), as do the tables and columns that the model does not read. Without the extension everything
    comes through ADBC, which is slower. Cells that do not fit the type of their column are then preserved where
    possible.

    Raises:
        TraceError: The file cannot be read.
        duckdb.Error: The extension met a cell that it cannot read.
        UnicodeDecodeError: The same, for text that is not UTF-8.
    """
    connection.execute(f"CREATE SCHEMA {_TARGET}")
    with progress.show_task(f"reading {file.name}") as task:
        if source is None:
            _copy_by_adbc(connection, file, task)
            return
        copied_types = {
            table: {name: kind for name, kind in types.items() if name in source.columns.get(table, set())}
            for table, types in read_expected_schema().items()
            if table not in NOT_COPIED
        }
        for table, types in _list_tables_to_copy(file, copied_types, task):
            select = ", ".join(cast_column(name, kind) for name, kind in types.items())
            _create_table(connection, table, f"SELECT {select} FROM {source.relations[table]}", {})


def _list_tables_to_copy(
    file: Path, types_by_table: Mapping[str, dict[str, str]], task: progress.Task
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the tables that have columns, with the types of these, and update the progress.

    Strings come last, because only those are copied that other tables refer to.
    """
    types_by_table = {
        table: types
        for table, types in sorted(types_by_table.items(), key=lambda item: item[0] == "StringIds")
        if types
    }
    cells = _count_cells(file, types_by_table)
    copied_cells, cell_count = 0, sum(cells.values()) or 1
    for table, types in types_by_table.items():
        task.text, task.percent = f"reading {name_rows(table)}", 100 * copied_cells / cell_count
        yield table, types
        copied_cells += cells[table]


def _create_table(
    connection: duckdb.DuckDBPyConnection, table: str, rows: str, copied_types: Mapping[str, dict[str, str]]
) -> None:
    """Create a table of the database `target`, without private rows; the tables of `copied_types` exist already."""
    row_filter = private.write_row_filter(table, _TARGET, copied_types)
    connection.execute(f"CREATE TABLE {_TARGET}.{identifier(table)} AS FROM ({rows}){row_filter}")


def _count_cells(file: Path, tables: dict[str, dict[str, str]]) -> dict[str, int]:
    """Estimate the number of cells to copy for each table. An exact count of the rows would take long.

    Tables that the model does not read are small. Their row numbers can be flags.
    """
    cells = dict.fromkeys(tables, 0)
    with open_read_only(file) as database:
        for table in tables.keys() & read_sqlite_types(file).keys() & read_expected_schema().keys():
            cells[table] = len(tables[table]) * len(row_search.read_row_numbers(database, table))
    return cells


def _copy_by_adbc(connection: duckdb.DuckDBPyConnection, file: Path, task: progress.Task) -> None:
    """Copy all tables from a SQLite file to the database `target`, through ADBC and Arrow.

    Tables that the model does not read are for the schema `raw`. One that cannot be read is left out.
    """
    import adbc_driver_manager
    import adbc_driver_sqlite
    import duckdb

    copied_types: dict[str, dict[str, str]] = {}
    try:
        with (
            adbc_driver_sqlite.connect(read_only_uri(file)) as database,
            adbc_driver_manager.AdbcConnection(database) as reader,
        ):
            for table, types in _list_tables_to_copy(file, _read_types(file), task):
                is_expected = table in read_expected_schema()
                skipped_errors = () if is_expected else (adbc_driver_manager.Error, duckdb.InvalidInputException)
                with suppress(*skipped_errors), adbc_driver_manager.AdbcStatement(reader) as statement:
                    batch_rows = "65536" if is_expected else "1024"  # the cells of other tables can be large
                    statement.set_options(**{"adbc.sqlite.query.batch_rows": batch_rows})
                    statement.set_sql_query(_write_sqlite_select(table, types))
                    stream, _ = statement.execute_query()
                    connection.register("arrow", stream)
                    rows = f"SELECT {_decode_columns(types)} FROM arrow WHERE is_row = 1"
                    _create_table(connection, table, rows, copied_types)
                    copied_types[table] = types
                    connection.unregister("arrow")
    except adbc_driver_manager.Error as error:
        raise TraceError(
            f"{file} cannot be read: {error}",
            "export it again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
        ) from None


def _read_types(file: Path) -> dict[str, dict[str, str]]:
    """Return the DuckDB types of all columns of a SQLite file: the expected ones, else those of the declarations."""
    return {
        table: {name: _TYPES.get(kind := find_type(table, name, declared), kind) for name, declared in types.items()}
        for table, types in read_sqlite_types(file).items()
    }


def _write_sqlite_select(table: str, types: dict[str, str]) -> str:
    """Write the SQL for SQLite that returns one Arrow type per column, even where cells have other types.

    The driver infers the type of a column from the first batch and fails if a later cell differs. So the first row has
    the right types (is_row = 0), and text is encoded as hexadecimal digits, which are always ASCII. A cell that should
    be an integer and is neither one nor the text of one becomes NULL. Where `bad_rows` checks the column, it becomes an
    invalid number instead.
    """
    typed_row = ["0 AS is_row"]
    rows = ["1"]
    for name, kind in types.items():
        column = identifier(name)
        if kind in ("VARCHAR", "BLOB"):
            typed_row.append(f"'x' AS {column}")
            rows.append(f"CASE WHEN {column} IS NOT NULL THEN 'x' || hex({column}) END")
        elif kind == "DOUBLE":
            typed_row.append(f"0.0 AS {column}")
            rows.append(f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN CAST({column} AS REAL) END")
        else:
            typed_row.append(f"0 AS {column}")
            invalid = str(_INVALID_NUMBER) if name in bad_rows.BOUNDED_COLUMNS else "NULL"
            integer = f"CAST({column} AS INTEGER)"
            rows.append(
                f"CASE typeof({column}) WHEN 'integer' THEN {column} WHEN 'null' THEN NULL"
                f" WHEN 'real' THEN CASE WHEN {integer} = {column} THEN {integer} ELSE {invalid} END"
                f" WHEN 'text' THEN CASE WHEN CAST({integer} AS TEXT) = {column} THEN {integer} ELSE {invalid} END"
                f" ELSE {invalid} END"
            )
    return f"SELECT {', '.join(typed_row)} UNION ALL SELECT {', '.join(rows)} FROM {identifier(table)}"


def _decode_columns(types: dict[str, str]) -> str:
    """Write the SQL for DuckDB that decodes the text of `_write_sqlite_select`; invalid UTF-8 stays in hexadecimal."""
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
