"""Where CUDA calls were made: by the frames of their call stacks or, in a trace without any, by what is around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill `facts.callers`, `facts.called_from` and `facts.call_places`."""
    run = context.runner("callers")
    run("chains")
    has_stacks = context.connection.execute("SELECT 1 FROM facts.callers LIMIT 1").fetchone()
    # To find what is around calls takes a sort of all of them.
    run("framed" if has_stacks else "unframed")
