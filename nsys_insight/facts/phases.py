"""Phases: the steps of prefill and decode, or of training, that NVTX ranges name, and the requests in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.statements import runner
from nsys_insight.facts.steps import launched

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb


def fill(connection: duckdb.DuckDBPyConnection, prepare: Callable[[str], None]) -> None:
    """Fill the tables of `queries/facts/phases/tables.sql`; what steps hold is counted as that of other steps is.

    Args:
        connection: Where the model is.
        prepare: Creates the views that a statement names.
    """
    of_steps, run = (runner(connection, folder, prepare) for folder in ("steps", "phases"))
    busiest = of_steps("busiest")
    threads = run("threads", process=busiest[0].process_id) if busiest else []
    if not threads:
        return
    process, thread = busiest[0].process_id, threads[0].thread_id
    launched.fill(connection, prepare, of_steps, process)
    run("units", process=process, thread=thread)
    of_steps("range_pieces", process=process, thread=thread)
    run("known")
    of_steps("totals", process=process)
    run("steps", process=process, thread=thread)
    run("requests", process=process)
    connection.execute("DROP VIEW internal.step_owned; DROP VIEW internal.step_hosts")
    names = ("ranges", "pieces", "counted", "calls", "waits", "work", "busy", "totals")
    for table in (*(f"step_{name}" for name in names), "phase_pieces", "phase_known"):
        connection.execute(f"DROP TABLE internal.{table}")
