"""The operations of the steady steps in groups. They are found only on request.

Of a long trace, only the first steady steps are read: what runs before and after an operation takes a sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import operations

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context

# This number of operations shows what a step is made of. A step that has more is read in full.
MOST_OPERATIONS = 20_000


def fill(context: Context) -> None:
    """Fill `facts.operation_groups`."""
    run_steps, run = context.runner("steps"), context.runner("operation_groups")
    (steady_steps,) = run_steps("steady")
    if not steady_steps.count:
        run("whole_scope", most=MOST_OPERATIONS)
        run("group")
        return
    process = steady_steps.process_id
    operations.find(context, process)
    run("first_steps", most=MOST_OPERATIONS)
    run("operations", process=process)
    run("group")
    run("calls", process=process)
