"""What a process put on its GPUs, with the launch call of each operation.

Operations are joined with their launch calls part by part: all calls of a long trace do not fit in memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.facts.reading import cuts

if TYPE_CHECKING:
    import duckdb

    from nsys_insight.facts.context import Context

    # The correlation ids from one up to another, which is not among them; None is all there are on that side.
    Window = tuple[int | None, int | None]

# So many operations are joined at a time. DuckDB holds some 60 bytes for each call, of which there may be several for
# each operation, and writes to disk what is above its limit: six times as slow at 26 million operations.
MOST = 5_000_000


def find(context: Context, process: int) -> None:
    """Fill `internal.step_launched`, unless it still has the operations of the process: steps and phases share them."""
    run = context.runner("steps")
    if any(row.process_id == process for row in run("launched_before")):
        return
    run("no_launched")
    context.prepare("FROM _gpu_work")
    for first, last in call_windows(context.connection):
        run("launched", process=process, from_id=first, to_id=last)
    run("launched_is_of", process=process)


def call_windows(connection: duckdb.DuckDBPyConnection) -> list[Window]:
    """Divide the correlation ids of the operations of `_gpu_work` into parts of about `MOST` operations each."""
    return list(pairwise([None, *cuts(connection, "correlation_id", "FROM _gpu_work", MOST), None]))


def forget(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what facts about steps leave for each other: the operations, and what steps hold, which phases look up."""
    for table in ("step_launched", "launched_process", "step_known"):
        connection.execute(f"DROP TABLE IF EXISTS internal.{table}")
