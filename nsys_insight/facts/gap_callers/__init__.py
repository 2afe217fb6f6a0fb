"""The call sites of the CUDA calls that launched the operations which end the longest gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.sync_callers import fill_tables

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill `facts.gap_callers`, `facts.gap_stacks` and `facts.gap_calls`."""
    fill_tables(context, "gap_callers", "gap_")
