"""Units: which one a column has, how numbers are written for people, and how durations and sizes are read from flags.

All numbers with a unit that Python writes are written here: columns of a table in one unit (`scale_for`), single values
(`value`), and times in sentences (`time_text`, the rule of the SQL macro of that name).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

Number = int | float

UNKNOWN = "-"

_SUFFIXES = (("_bytes_per_s", "bytes/s"), ("_ns", "ns"), ("_bytes", "bytes"), ("_pct", "%"))
_WORDS = (("_ratio", "ratio"), ("_count", "count"))

# Memory sizes are binary, as in allocators; bandwidths are decimal, as in every data sheet they are compared with.
_STEPS: dict[str, tuple[tuple[str, float], ...]] = {
    "ns": (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)),
    "bytes": (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40)),
    "bytes/s": (("B/s", 1), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)),
    "%": (("%", 1),),
}
# Points in time lie close together far from zero: three significant digits would make them all alike.
_POINT_IN_TIME = re.compile(r"(^|_)(start|end)_ns$")

# Shares by the whole that their names end in.
_WHOLES = {
    "kernel_time": "kernel time", "copy_time": "copy time", "api_time": "API time", "wall": "wall", "idle": "idle time",
}  # fmt: skip
_STATISTIC = re.compile(r"avg|mean|med|median|min|max|stddev|p\d+|low|high")

_ID = re.compile(r"(^|_)(id|pid|tid)$")

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|\u00b5s|\u03bcs|ms|s)?", re.ASCII)
_NS = {"ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9}
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?(?:/s)?", re.ASCII | re.IGNORECASE)
_LARGEST = 2**63 - 1


def unit_of(name: str) -> str:
    """Return the unit that a column's name ends in: ns, bytes, %, bytes/s, ratio, count, X/s, or none ("")."""
    for suffix, unit in _SUFFIXES + _WORDS:
        if f"_{name}".endswith(suffix):
            return unit
    if name.endswith("_per_s"):
        return name.removesuffix("_per_s").rpartition("_")[2] + "/s"
    return ""


def is_id(name: str) -> bool:
    """Tell whether the column's numbers name something, so that they are no quantities."""
    return bool(_ID.search(name))


def label_of(name: str) -> str:
    """Return a column's name as people read it, without the unit that its header shows: `total_ns` is "total"."""
    if not re.fullmatch(r"\w+", name):
        return name  # an expression somebody typed in SQL
    if name == "bytes_per_s":
        return "rate"
    for suffix, _ in _SUFFIXES:
        if name.endswith(suffix):
            name = name.removesuffix(suffix)
            break
    if name.endswith("_per_s"):
        name = name.removesuffix("_per_s") + "/s"
    return name.replace("_", " ").strip() or name


def label(column: str) -> str:
    """Write a column's name as words, without what kind of number it is: `stall_wait_pct` is "stall wait"."""
    return label_of(column).removesuffix(" ratio").removesuffix(" count")


def whole_of(name: str) -> str:
    """Say of what a share is whose name says it (`kernel_time_pct`: of kernel time); "" for others."""
    found = [words for whole, words in _WHOLES.items() if f"_{name}".endswith(f"_{whole}_pct")]
    return found[0] if found else ""


def group_of(name: str) -> str:
    """What the columns have in common that are read beside each other, and so are shown in one unit.

    They are statistics of one quantity: `avg_ns`, `med_ns` and `max_ns`; `queue_avg_ns` and `queue_max_ns`.
    """
    unit = unit_of(name)
    if not _STEPS.get(unit) or _POINT_IN_TIME.search(name):
        return name
    words = [word for word in name.split("_") if not _STATISTIC.fullmatch(word)]
    return " ".join(words) if len(words) < len(name.split("_")) else name


@dataclass(frozen=True)
class Scale:
    """How the numbers of one column are shown: divided by `divisor`, in `unit`, with at least `decimals` places."""

    unit: str
    divisor: float = 1
    decimals: int = 0
    thousands: bool = True

    def text(self, value: Number | None) -> str:
        """Write a raw value in this scale, without the unit; unknown (None, NaN) is "-"."""
        if value is None or math.isnan(value):
            return UNKNOWN
        if not self.thousands:
            return str(value)
        # A count beside a mean (1 beside 0.031) is a whole number all the same.
        decimals = 0 if isinstance(value, int) and not self.unit else self.decimals
        return _number(value if self.divisor == 1 else value / self.divisor, decimals)


def scale_for(name: str, values: Iterable[Number | None]) -> Scale:
    """Choose the one scale for all values of the column `name`.

    The unit is the largest that the largest value reaches, unless most values would then be a hundredth or less.
    """
    sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
    unit = unit_of(name)
    if not sizes:
        return Scale(_STEPS.get(unit, (("", 1),))[0][0])
    largest, typical = sizes[-1], sizes[(len(sizes) - 1) // 2]
    if _POINT_IN_TIME.search(name):
        return Scale("ms", 1e6, 3) if largest >= 1e6 else Scale("ns")
    shown, divisor = next(
        ((word, step) for word, step in reversed(_STEPS.get(unit, ())) if largest >= step and typical >= step / 100),
        _STEPS.get(unit, (("", 1),))[0],
    )
    if unit == "%":
        decimals = 1 if typical >= 1 else 2
    elif unit == "ratio":
        decimals = 2
    elif divisor == 1 and all(size == int(size) for size in sizes):
        decimals = 0
    else:
        decimals = min(3, max(1, 2 - math.floor(math.log10(typical / divisor))))
    return Scale(shown, divisor, decimals, thousands=not is_id(name))


def value(column: str, given: Any) -> str:
    """Write a single value of a column with its unit: 2.50 µs, 87.8 %, 4.23 TB/s, 1,024."""
    if given is None:
        return UNKNOWN
    if not isinstance(given, int | float):
        return str(given)
    if unit_of(column) in ("count", "") and given == int(given):
        return f"{int(given):,}"
    if unit_of(column) in ("ratio", ""):
        return f"{given:,.3g}" if abs(given) < 1e3 else f"{given:,.0f}"
    scale = scale_for(column, [given])
    text = scale.text(given)
    return f"{text} {scale.unit}" if scale.unit else text


def value_or_unknown(column: str, given: Any) -> str:
    """Write a single value with its unit, or the word "unknown"."""
    return "unknown" if given is None else value(column, given)


def values(column: str, given: Iterable[Number | None]) -> list[str]:
    """Write values that are compared with each other: in one unit, each with it."""
    numbers = list(given)
    scale = scale_for(column, numbers)
    texts = [scale.text(number) for number in numbers]
    return [f"{text} {scale.unit}" if scale.unit and text != UNKNOWN else text for text in texts]


def time_text(ns: float) -> str:
    """Write a time in a sentence with three significant digits: 2.24 ms, 2.5 µs, 1,500 s."""
    for unit, size in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if abs(ns) < 999.5 * size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns / 1e9:.3g} s" if abs(ns) < 999.5e9 else f"{ns / 1e9:,.0f} s"


def spread_too_wide(name: str, values: Iterable[Number | None], scale: Scale) -> bool:
    """Whether sizes or rates in bytes differ so much that one unit would hide the small ones: 80 bytes beside 5 MiB.

    Times have no such limit: that of a short kernel beside a long one is to be compared with it.
    """
    if unit_of(name) not in ("bytes", "bytes/s"):
        return False
    return any(0 < abs(value) < scale.divisor / 100 for value in values if value is not None)


def _number(value: Number, decimals: int) -> str:
    """Write a number with thousands separators and enough places for two significant digits, so never as a false 0."""
    if value == 0:
        return "0"
    if isinstance(value, int):
        return f"{value:,.{decimals}f}" if decimals else f"{value:,}"
    if math.isinf(value) or not 1e-6 <= abs(value) < 1e15:
        return f"{value:.1e}" if math.isfinite(value) else str(value)
    text = f"{value:,.{max(decimals, 1 - math.floor(math.log10(abs(value))))}f}"
    whole, _, places = text.partition(".")
    places = places[:decimals] + places[decimals:].rstrip("0")
    return f"{whole}.{places}" if places else whole


def parse_duration(text: str, *, flag: str = "") -> int:
    """Read a duration as ns: "250" and "250ns", "5us", "1.5ms", "2s". `flag` is named where the text makes no sense.

    Raises:
        UsageError: if it is not a number with one of these units, or longer than 292 years.
    """
    match = _DURATION.fullmatch(text.strip())
    if match:
        number, unit = match.groups()
        duration = round(Fraction(number) * _NS[unit or "ns"])
        if duration <= _LARGEST:
            return duration
    what = f"{flag} takes a duration, not {text!r}" if flag else f"{text!r} is not a duration"
    raise UsageError(what, "write a number and a unit: 250ns, 5us, 1.5ms or 2s")


def parse_bytes(text: str, *, flag: str = "") -> int:
    """Read a size or a bandwidth as bytes: "512", "5.1GB" (decimal), "16 GiB" (binary), "4.8TB/s".

    Raises:
        UsageError: if it is not a number with one of these units, or larger than 8 EiB.
    """
    match = _SIZE.fullmatch(text.strip())
    if match:
        number, prefix, binary = match.groups()
        factor: int = (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
        size = round(Fraction(number) * factor)
        if size <= _LARGEST:
            return size
    what = f"{flag} takes a size in bytes, not {text!r}" if flag else f"{text!r} is not a size in bytes"
    raise UsageError(what, "write a number and a unit: 512, 5.1GB, 16GiB, 4.8TB/s")
