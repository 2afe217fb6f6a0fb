"""The GPU operations of a process, each with its launch call.

Operations are joined with their launch calls batch by batch: the calls of a long trace do not all fit in memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from nsys_insight.facts.context import Context

    # A range of correlation ids: the first one, and the end, which is exclusive. None means unbounded.
    IdRange = tuple[int | None, int | None]

# Operations per join. DuckDB needs about 60 bytes per call, and an operation may have several calls. Above its memory
# limit it writes to disk: that is six times as slow at 26 million operations.
OPERATIONS_PER_JOIN = 5_000_000


def find(context: Context, process: int) -> None:
    """Fill `internal.step_launched`, unless it has the operations of the process: steps and phases share the table."""
    run = context.runner("steps")
    if any(row.process_id == process for row in run("process")):
        return
    run("no_operations")
    context.prepare("FROM _gpu_work")
    for first_id, end_id in call_windows(context.connection):
        run("insert_operations", process=process, from_id=first_id, to_id=end_id)
    run("set_process", process=process)


def call_windows(connection: duckdb.DuckDBPyConnection) -> list[IdRange]:
    """Divide the correlation ids of `_gpu_work` into ranges of about `OPERATIONS_PER_JOIN` operations each."""
    boundaries = find_boundaries(connection, "correlation_id", "FROM _gpu_work", OPERATIONS_PER_JOIN)
    return list(pairwise([None, *boundaries, None]))


def find_boundaries(
    connection: duckdb.DuckDBPyConnection, expression: str, from_clause: str, batch_rows: int
) -> list[int]:
    """Return the values of an expression that divide rows into batches of about `batch_rows` each.

    The values are estimates, in ascending order. There are fewer where many rows have the same value.
    """
    ((count,),) = connection.execute(f"SELECT count(*) {from_clause}").fetchall()
    batches = round(count / batch_rows)
    if batches < 2:
        return []
    fractions = [number / batches for number in range(1, batches)]
    quantiles = f"SELECT approx_quantile({expression}, {fractions}::FLOAT[]) {from_clause}"
    ((values,),) = connection.execute(quantiles).fetchall()
    return sorted(set(values or ()))


def forget(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop the tables that the facts about steps share: the operations of a process."""
    for table in ("step_launched", "launched_process"):
        connection.execute(f"DROP TABLE IF EXISTS internal.{table}")
