"""Operations are joined with their launch calls part by part: all calls of a long trace do not fit in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.facts.cuts import cuts

if TYPE_CHECKING:
    import duckdb

    # The correlation ids from one up to another, which is not among them; None is all there are on that side.
    Window = tuple[int | None, int | None]

# So many operations are joined at a time. DuckDB holds some 60 bytes for each call, of which there may be several for
# each operation, and writes to disk what is above its limit: six times as slow at 26 million operations.
MOST = 5_000_000


def call_windows(connection: duckdb.DuckDBPyConnection) -> list[Window]:
    """Divide the correlation ids of the operations of `_gpu_work` into parts of about `MOST` operations each."""
    return list(pairwise([None, *cuts(connection, "correlation_id", "FROM _gpu_work", MOST), None]))
