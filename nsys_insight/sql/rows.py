"""Read and write rows by column name."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

# Longer statements take DuckDB's parser more time than they save.
_ROWS_PER_INSERT = 1000


def fetch_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    """Run a statement and return its rows, with cells as attributes (``row.start_ns``); a definition has no rows."""
    connection.execute(sql)
    return name_cells([name for name, *_ in connection.description or ()], connection.fetchall())


def name_cells(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Make the cells of rows available as attributes; the column names must be identifiers."""
    return list(map(_row_class(tuple(columns))._make, rows))


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Insert rows into a table. Each row maps columns to cells; all rows have the same columns."""
    all_rows = list(rows)
    for start in range(0, len(all_rows), _ROWS_PER_INSERT):
        columns = ", ".join(map(identifier, all_rows[start]))
        values = ", ".join(
            f"({', '.join(map(literal, row.values()))})" for row in all_rows[start : start + _ROWS_PER_INSERT]
        )
        connection.execute(f"INSERT INTO {table} ({columns}) VALUES {values}")


@cache
def _row_class(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)  # noqa: PYI024 - what the columns are called is the query's affair
