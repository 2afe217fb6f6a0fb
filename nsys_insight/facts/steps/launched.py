"""What a process put on its GPUs, with the launch call of each operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.call_windows import call_windows

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from nsys_insight.facts.statements import Run


def fill(connection: duckdb.DuckDBPyConnection, prepare: Callable[[str], None], run: Run, process: int) -> None:
    """Fill `internal.step_launched`, unless it still has the operations of the process: those of steps are phases' too.

    `run` runs the statements of `queries/facts/steps`.
    """
    if any(row.process_id == process for row in run("launched_before")):
        return
    run("no_launched")
    prepare("FROM _gpu_work")
    for first, last in call_windows(connection):
        run("launched", process=process, from_id=first, to_id=last)
    run("launched_is_of", process=process)


def forget(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what facts about steps leave for each other: the operations, and what steps hold, which phases look up."""
    for table in ("step_launched", "launched_process", "step_known"):
        connection.execute(f"DROP TABLE IF EXISTS internal.{table}")
