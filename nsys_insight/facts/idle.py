"""Idle time of the GPUs with what the host did then: facts behind all views of what causes idle time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.paths import query

if TYPE_CHECKING:
    import duckdb

TABLES = frozenset({"idle_time", "idle_calls"})


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that the views read, without rows."""
    connection.execute(query("facts/idle/tables"))


def statements() -> str:
    """What fills the tables, for the views that it names to be created first."""
    return query("facts/idle/find")


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `facts.idle_time` and `facts.idle_calls`."""
    create_tables(connection)
    connection.execute(statements())
