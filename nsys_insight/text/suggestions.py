"""Suggestions for misspelled names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


# `difflib` finds names similar only up to 2.3 times the length.
_LENGTH_RATIO = 2.4
_SHOWN_LENGTH = 100


def quote_name(name: str) -> str:
    """Quote a name for a sentence; a long one is cut."""
    return repr(name if len(name) <= _SHOWN_LENGTH else f"{name[:_SHOWN_LENGTH]}…")


def did_you_mean(name: str, names: Iterable[str], limit: int = 1, *, quoted: bool = False) -> str:
    """Suggest the names most similar to `name`, as a question; "" where none is similar."""
    nearest = find_nearest(name, names, limit)
    return format_suggestion(map(quote_name, nearest) if quoted else nearest)


def find_nearest(name: str, names: Iterable[str], limit: int = 1) -> list[str]:
    """Return the names most similar to `name`, the best match first."""
    import difflib

    # A name that is much longer is not similar, and comparing it takes long.
    return difflib.get_close_matches(name, [other for other in names if len(other) <= _LENGTH_RATIO * len(name)], limit)


def format_suggestion(names: Iterable[str]) -> str:
    """Write suggestions as a question; "" without suggestions."""
    choices = " or ".join(names)
    return f"did you mean {choices}?" if choices else ""
