"""Where the CUDA calls were made that launched what ended one of the longest gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.sync_callers import fill_for

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill `facts.gap_callers`, `facts.gap_stacks` and `facts.gap_calls`."""
    fill_for(context, "gap_callers", "gap_")
