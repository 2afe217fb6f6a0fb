"""Cells of ncu's CSV pages: numbers in any locale, and units brought to their base."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Factors to the base units, in which `ncu --print-units base` prints: ns, byte, hz. ncu's prefixes are decimal, also
# for bytes. Older versions write units out (usecond, byte/second).
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TIMES = {"s": 1e9, "second": 1e9, "ms": 1e6, "msecond": 1e6, "us": 1e3, "usecond": 1e3, "ns": 1.0, "nsecond": 1.0}

_GROUPS_THEN_COMMA = re.compile(r"-?\d{1,3}(?:\.\d{3})+,\d+")
_GROUPS_THEN_POINT = re.compile(r"-?\d{1,3}(?:,\d{3})+\.\d+")
_COMMA_ALONE = re.compile(r"-?\d+,(?!\d{3}$)\d+|-?0,\d+")
_POINT_ALONE = re.compile(r"-?\d+\.(?!\d{3}$)\d+|-?0\.\d+")
_SEPARATORS = re.compile("[\u0020\u00a0\u202f\u2009'\u2019](?=\\d{3})")
_INSTANCES = re.compile(r"\s*\(.*\)$")


def decimal_mark(cells: Iterable[str]) -> str:
    """Tell whether the numbers of a file have a decimal point or a decimal comma; what says neither has a point.

    ncu writes numbers as the locale says: 12,319,469.2 here is 12.319.469,2 there, and 1,234 alone is either.
    """
    for cell in cells:
        if _GROUPS_THEN_COMMA.fullmatch(cell) or _COMMA_ALONE.fullmatch(cell):
            return ","
        if _GROUPS_THEN_POINT.fullmatch(cell) or _POINT_ALONE.fullmatch(cell):
            return "."
    return "."


def number(cell: str, mark: str = ".") -> float | None:
    """Read a number; None for what is none: n/a, nan, "no data", a word, nothing.

    A metric with instances prints as "16 (1; 5; 10)": the first number is the metric's own.
    """
    text = _SEPARATORS.sub("", _INSTANCES.sub("", cell.strip()))
    text = text.replace(".", "").replace(",", ".") if mark == "," else text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def base_unit(unit: str) -> tuple[str, float]:
    """Return the base unit of a unit, and the factor that brings a value there.

    >>> base_unit("Kbyte/block"), base_unit("us"), base_unit("sector/ns"), base_unit("%")
    (('byte/block', 1000.0), ('ns', 1000.0), ('sector/s', 1000000000.0), ('%', 1.0))
    """
    above, slash, below = unit.strip().partition("/")
    above, factor = _base(above)
    if not slash:
        return above, factor
    if below in _TIMES:  # a rate is per second
        return f"{above}/s", factor * 1e9 / _TIMES[below]
    below, divisor = _base(below)
    return f"{above}/{below}", factor / divisor


def _base(word: str) -> tuple[str, float]:
    if word in _TIMES:
        return "ns", _TIMES[word]
    if word.lower() == "hz":
        return "hz", 1.0
    if word[:1] in _PREFIXES and word[1:] in ("byte", "bytes", "hz", "Hz"):
        return ("hz" if word[1:].lower() == "hz" else "byte"), _PREFIXES[word[0]]
    return ("byte" if word == "bytes" else word), 1.0
