"""The functions that call chains name, and the chains: of CUDA calls, of calls of the operating system, of samples.

Table by table, for two of them have the same columns: DuckDB would take scans of both for one (docs/decisions.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import python_frames
from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

# The tables of chains, and what each is of. The statements name the first.
TABLES = {"CUDA_CALLCHAINS": "api", "OSRT_CALLCHAINS": "os", "SAMPLING_CALLCHAINS": "sample"}


def fill(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], prepare: Callable[[str], None]) -> None:
    """Fill `facts.frames`, `facts.chain_frames` and `facts.python_chains`.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        prepare: Creates the views that a statement names.
    """
    for table, of in TABLES.items():
        statements = [
            bind(query(f"facts/frames/{name}").replace(next(iter(TABLES)), table), {"of": of})
            for name in ("names", "chains")
        ]
        for statement in statements:
            prepare(statement)
        for part in parts:
            with several.inside(connection, part):
                for statement in statements:
                    connection.execute(statement)
    python_frames.add(connection, parts, prepare)
