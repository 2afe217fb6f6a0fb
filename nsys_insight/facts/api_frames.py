"""The functions that call chains of CUDA calls name: those of native code, and those that Python itself gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import python_frames
from nsys_insight.ingest import several
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb


def fill(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], prepare: Callable[[str], None]) -> None:
    """Fill `facts.api_frames`, `facts.python_frames` and `facts.python_chains`.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        prepare: Creates the views that a statement names.
    """
    names = query("facts/api_frames/names")
    prepare(names)
    for part in parts:
        with several.inside(connection, part):
            connection.execute(names)
    python_frames.add(connection, parts, prepare)
