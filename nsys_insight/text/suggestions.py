"""Suggestions for misspelled names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str], limit: int = 1, *, quoted: bool = False) -> str:
    """Suggest the names most similar to `name`, as a question; "" where none is similar."""
    nearest = find_nearest(name, names, limit)
    return format_suggestion(map(repr, nearest) if quoted else nearest)


def find_nearest(name: str, names: Iterable[str], limit: int = 1) -> list[str]:
    """Return the names most similar to `name`, the best match first."""
    import difflib

    return difflib.get_close_matches(name, list(names), n=limit)


def format_suggestion(names: Iterable[str]) -> str:
    """Write suggestions as a question; "" without suggestions."""
    choices = " or ".join(names)
    return f"did you mean {choices}?" if choices else ""
