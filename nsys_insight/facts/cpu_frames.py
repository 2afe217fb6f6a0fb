"""The functions that call chains of samples and of calls of the operating system name, and these chains.

Table by table, for both have the same columns: DuckDB would take scans of both for one (docs/decisions.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

# The tables of chains, and what each is of. The statements name the first.
TABLES = {"SAMPLING_CALLCHAINS": "sample", "OSRT_CALLCHAINS": "os"}


def fill(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], prepare: Callable[[str], None]) -> None:
    """Fill `facts.cpu_frames` and `facts.cpu_chains`.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        prepare: Creates the views that a statement names.
    """
    for table, of in TABLES.items():
        # Most captures have none of them, and a statement without rows takes as long as one with a few.
        prepare(any_row := f"SELECT 1 FROM raw.{table} LIMIT 1")
        having = [part for part in parts if _found(connection, part, any_row)]
        if not having:
            continue
        statements = [
            bind(query(f"facts/cpu_frames/{name}").replace(next(iter(TABLES)), table), {"of": of})
            for name in ("names", "chains")
        ]
        for statement in statements:
            prepare(statement)
        for part in having:
            with several.inside(connection, part):
                for statement in statements:
                    connection.execute(statement)


def _found(connection: duckdb.DuckDBPyConnection, part: str, sql: str) -> bool:
    with several.inside(connection, part):
        return connection.execute(sql).fetchone() is not None
