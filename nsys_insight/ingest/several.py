"""Several traces over one connection: each has its model in a catalog of its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

# The catalogs of each connection: its own, and those of the blocks that are under way, the innermost last.
_blocks: WeakKeyDictionary[duckdb.DuckDBPyConnection, list[str]] = WeakKeyDictionary()


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
    blocks = _blocks.get(connection)
    if blocks is None:
        blocks = _blocks[connection] = [connection.execute("SELECT current_database()").fetchall()[0][0]]
    if blocks[-1] == catalog:
        yield
        return
    connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {catalog}; USE {catalog}")
    blocks.append(catalog)
    try:
        yield
    finally:
        blocks.pop()
        connection.execute(f"USE {blocks[-1]}")
