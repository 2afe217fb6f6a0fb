"""Which kernels the steady steps launched: found for those who ask, as it takes 0.5 s of 6.5 million."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import operations
from nsys_insight.facts.steps import are_chosen

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill `facts.step_kernels`."""
    of_steps, run = context.runner("steps"), context.runner("step_kernels")
    if are_chosen(of_steps, context.options.steps):
        run("chosen")
        return
    (steady,) = of_steps("steady")
    if not steady.count:
        run("whole_scope")
        return
    operations.find(context, steady.process_id)
    run("find")
