"""Idle time of the GPUs with what the host did then, found once for all views that tell its causes.

The views `gpu_idle`, `step_idle` and `step_budget` read two tables that are filled here when a query needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight import model
from nsys_insight.paths import query

if TYPE_CHECKING:
    import duckdb


def needed(sql: str) -> bool:
    """Tell whether a query reads what idle time is owed to."""
    return any("idle_time" in model.words(text) for text in (sql, *(view.create for view in model.needed(sql))))


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that the views read, without rows."""
    connection.execute(query("idle/tables"))


def statements() -> str:
    """What fills the tables, for the views that it names to be created first."""
    return query("idle/find")


def find(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `idle_time` and `idle_calls`."""
    create_tables(connection)
    connection.execute(statements())
