"""Where CUDA calls were made: by the frames of their call chains or, in a trace without any, by what is around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import several
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb


def fill(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], prepare: Callable[[str], None]) -> None:
    """Fill `facts.callers`, `facts.called_from` and `facts.call_places`.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        prepare: Creates the views that a statement names.
    """
    chains, framed, unframed = (query(f"facts/callers/{name}") for name in ("chains", "framed", "unframed"))
    prepare(chains)
    for part in parts:
        with several.inside(connection, part):
            connection.execute(chains)
            has_chains = connection.execute("SELECT 1 FROM facts.callers LIMIT 1").fetchone()
        # To find what is around calls takes a sort of all of them.
        places = framed if has_chains else unframed
        prepare(places)
        with several.inside(connection, part):
            connection.execute(places)
