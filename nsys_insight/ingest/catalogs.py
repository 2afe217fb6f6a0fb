"""The DuckDB catalogs of several traces on one connection: each trace has its model in a catalog of its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

# The active catalogs of each connection: its own, then those of the open blocks, the innermost last.
_catalog_stacks: WeakKeyDictionary[duckdb.DuckDBPyConnection, list[str]] = WeakKeyDictionary()


def name_catalogs(count: int) -> list[str]:
    """Name the catalogs of `count` traces; that of a single trace is the connection's own, ""."""
    return [""] if count == 1 else [f"model_{number}" for number in range(count)]


def open_cursor(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Open a cursor with the connection's default catalog: DuckDB's own begins with that of the database."""
    ((catalog,),) = connection.execute("SELECT current_database()").fetchall()
    cursor = connection.cursor()
    cursor.execute(f"USE {identifier(catalog)}")
    return cursor


@contextmanager
def use_catalog(connection: duckdb.DuckDBPyConnection, catalog: str) -> Iterator[None]:
    """Make `catalog` the default in a block, and create it on first use. Blocks can be nested."""
    if not catalog:
        yield
        return
    catalog_stack = _catalog_stacks.get(connection)
    if catalog_stack is None:
        catalog_stack = _catalog_stacks[connection] = [connection.execute("SELECT current_database()").fetchall()[0][0]]
    if catalog_stack[-1] == catalog:
        yield
        return
    connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {catalog}; USE {catalog}")
    catalog_stack.append(catalog)
    try:
        yield
    finally:
        catalog_stack.pop()
        connection.execute(f"USE {catalog_stack[-1]}")
