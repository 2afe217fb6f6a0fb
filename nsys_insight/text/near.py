"""The name that may have been meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(wanted: str, names: Iterable[str], most: int = 1, *, quoted: bool = False) -> str:
    """Ask whether one of the names nearest to what is wanted was meant; empty where none is near."""
    found = near(wanted, names, most)
    return meant(map(repr, found) if quoted else found)


def near(wanted: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the names that are nearest to what is wanted, the nearest first."""
    import difflib

    return difflib.get_close_matches(wanted, list(names), n=most)


def meant(names: Iterable[str]) -> str:
    """Ask whether one of these was meant; empty where there is none."""
    listed = " or ".join(names)
    return f"did you mean {listed}?" if listed else ""
