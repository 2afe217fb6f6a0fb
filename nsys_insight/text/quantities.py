"""Single values of `ncu_kernels` as people read them."""

from __future__ import annotations

from typing import Any

from nsys_insight.text import units


def shown(column: str, given: Any) -> str:
    """Write a value with its unit; unknown is "unknown"."""
    return "unknown" if given is None else value(column, given)


def value(column: str, given: Any) -> str:
    """Write a value of a column with its unit: 2.50 µs, 87.8 %, 4.23 TB/s, 1,024."""
    if given is None:
        return units.UNKNOWN
    if not isinstance(given, int | float):
        return str(given)
    if units.unit_of(column) in ("count", "") and given == int(given):
        return f"{int(given):,}"
    if units.unit_of(column) in ("ratio", ""):
        return f"{given:,.3g}" if abs(given) < 1e3 else f"{given:,.0f}"
    scale = units.scale_for(column, [given])
    text = scale.text(given)
    return f"{text} {scale.unit}" if scale.unit else text


def label(column: str) -> str:
    """Write a column's name as words: `stall_wait_pct` is "stall wait"."""
    text = units.label_of(column)
    for suffix in (" ratio", " count"):
        text = text.removesuffix(suffix)
    return text
