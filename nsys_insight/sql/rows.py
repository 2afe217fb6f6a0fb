"""Rows read and written by the names of their columns."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

# Rows of one INSERT: longer statements take DuckDB's parser more time than they save.
_PIECE = 1000


def named_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    """Run a query and return its rows, each with its cells as attributes: ``row.start_ns``; none of a definition."""
    connection.execute(sql)
    return named([name for name, *_ in connection.description or ()], connection.fetchall())


def named(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Give rows their cells as attributes; the columns' names must be identifiers."""
    return list(map(_row(tuple(columns))._make, rows))


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Add rows to a table, each as its cells by column; all have the same columns."""
    found = list(rows)
    for at in range(0, len(found), _PIECE):
        columns = ", ".join(map(identifier, found[at]))
        values = ", ".join(f"({', '.join(map(literal, row.values()))})" for row in found[at : at + _PIECE])
        connection.execute(f"INSERT INTO {table} ({columns}) VALUES {values}")


@cache
def _row(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)  # noqa: PYI024 - what the columns are called is the query's affair
