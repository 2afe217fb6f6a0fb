"""The call sites of CUDA calls: frames of their call stacks or, in a trace without call stacks, what surrounds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill `facts.callers`, `facts.called_from` and `facts.call_places`."""
    run = context.runner("callers")
    run("chains")
    has_stacks = context.connection.execute("SELECT 1 FROM facts.callers LIMIT 1").fetchall()
    # `unframed` has to sort all calls to find the neighbors of each.
    run("framed" if has_stacks else "unframed")
