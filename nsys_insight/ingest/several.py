"""Several traces over one connection: each has its model in a catalog of its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb


def catalogs(count: int) -> list[str]:
    """The names of the catalogs for so many traces; that of a single one is the connection's own, ""."""
    return [""] if count == 1 else [f"model_{number}" for number in range(count)]


@contextmanager
def inside(connection: duckdb.DuckDBPyConnection, catalog: str) -> Iterator[None]:
    """Create what is created in the block in `catalog`, which is made when it is first asked for.

    Blocks may lie within each other.
    """
    if not catalog:
        yield
        return
    before = connection.execute("SELECT current_database()").fetchall()[0][0]
    connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {catalog}; USE {catalog}")
    try:
        yield
    finally:
        connection.execute(f"USE {before}")
