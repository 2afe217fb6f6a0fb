"""Phases: the steps of prefill and decode, or of training, that NVTX ranges name, and the requests in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import operations

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill the tables of `tables.toml`, with the statements that also count other steps' work."""
    run_steps, run = context.runner("steps"), context.runner("phases")
    busiest = run_steps("busiest")
    threads = run("threads", process=busiest[0].process_id) if busiest else []
    if not threads:
        return
    process, thread = busiest[0].process_id, threads[0].thread_id
    operations.find(context, process)
    run("units", process=process, thread=thread)
    run_steps("range_pieces", process=process, thread=thread, by_period=False)
    run("pieces")
    run_steps("totals", process=process)
    run("steps", process=process, thread=thread)
    run("requests", process=process)
    context.connection.execute("DROP VIEW internal.step_owned; DROP VIEW internal.step_hosts")
    names = ("ranges", "pieces", "counted", "calls", "waits", "work", "busy", "totals")
    for table in (*(f"step_{name}" for name in names), "phase_pieces"):
        context.connection.execute(f"DROP TABLE internal.{table}")
