"""Which kernels the steady steps launched: found for those who ask, as it takes 0.5 s of 6.5 million."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.statements import runner
from nsys_insight.facts.steps import launched
from nsys_insight.facts.steps.steps import are_chosen

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from nsys_insight.packs.step_options import StepOptions


def fill(connection: duckdb.DuckDBPyConnection, options: StepOptions, prepare: Callable[[str], None]) -> None:
    """Fill the table of `queries/facts/step_kernels/tables.sql`.

    Args:
        connection: Where the model is.
        options: What the user says about steps.
        prepare: Creates the views that a statement names.
    """
    of_steps, run = (runner(connection, folder, prepare) for folder in ("steps", "step_kernels"))
    if are_chosen(of_steps, options):
        run("chosen")
        return
    (steady,) = of_steps("steady")
    if not steady.count:
        run("whole_scope")
        return
    launched.fill(connection, prepare, of_steps, steady.process_id)
    run("find")
