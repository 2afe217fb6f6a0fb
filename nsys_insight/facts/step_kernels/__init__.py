"""The kernels that the steady steps launched. They are found only on request: 6.5 million kernels take 0.5 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import operations
from nsys_insight.facts.steps import has_chosen_steps

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill `facts.step_kernels`."""
    run_steps, run = context.runner("steps"), context.runner("step_kernels")
    if has_chosen_steps(run_steps, context.options.steps):
        run("chosen")
        return
    (steady_steps,) = run_steps("steady")
    if not steady_steps.count:
        run("whole_scope")
        return
    operations.find(context, steady_steps.process_id)
    run("find")
