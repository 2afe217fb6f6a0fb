"""Units: the unit of a column, formatting of numbers, and parsing of durations and sizes in flags.

This module formats all numbers with a unit that Python prints: columns of a table in one unit (`scale_for`), single
values (`value`), and times in sentences (`time_text`, which follows the SQL macro of the same name).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Number = int | float

UNKNOWN = "-"

_SUFFIXES = (("_bytes_per_s", "bytes/s"), ("_ns", "ns"), ("_bytes", "bytes"), ("_pct", "%"), ("_hz", "Hz"))
_WORDS = (("_ratio", "ratio"), ("_count", "count"))

# Memory sizes are binary, as in allocators. Bandwidths are decimal, as in the data sheets they are compared with.
_STEPS: dict[str, tuple[tuple[str, float], ...]] = {
    "ns": (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)),
    "bytes": (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40)),
    "bytes/s": (("B/s", 1), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)),
    "%": (("%", 1),),
    "Hz": (("Hz", 1), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)),
}
# Points in time are close together and far from zero: with three significant digits they would all look the same.
_POINT_IN_TIME = re.compile(r"(^|_)(start|end)_ns$")

# The denominators of shares, by the end of the column name.
_DENOMINATORS = {
    "kernel_time": "kernel time", "copy_time": "copy time", "api_time": "API time", "wall": "wall", "idle": "idle time",
}  # fmt: skip
_STATISTIC = re.compile(r"avg|mean|med|median|min|max|stddev|p\d+|low|high")

_ID = re.compile(r"(^|_)(id|pid|tid)$")

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|\u00b5s|\u03bcs|ms|s)?", re.ASCII)
_NS = {"ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9}
_SECONDS = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(m(?:in)?)?", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?(?:/s)?", re.ASCII | re.IGNORECASE)
_LARGEST = 2**63 - 1


def unit_of(name: str) -> str:
    """Return the unit at the end of a column name: ns, bytes, %, Hz, bytes/s, ratio, count, X/s, or "" for none."""
    for suffix, unit in _SUFFIXES + _WORDS:
        if f"_{name}".endswith(suffix):
            return unit
    if name.endswith("_per_s"):
        return name.removesuffix("_per_s").rpartition("_")[2] + "/s"
    return ""


def is_id(name: str) -> bool:
    """Check whether the numbers of a column are identifiers, not quantities."""
    return bool(_ID.search(name))


# Columns whose names say too little without the unit.
_LABELS = {"bytes_per_s": "rate", "avg_bytes": "avg size"}


def label_of(name: str) -> str:
    """Return a readable column name, without the unit that the header shows: `total_ns` is "total"."""
    if not re.fullmatch(r"\w+", name):
        return name  # an expression of a user's SQL
    if name in _LABELS:
        return _LABELS[name]
    for suffix, _ in _SUFFIXES:
        if name.endswith(suffix):
            name = name.removesuffix(suffix)
            break
    if name.endswith("_per_s"):
        name = name.removesuffix("_per_s") + "/s"
    return name.replace("_", " ").strip() or name


def label(column: str) -> str:
    """Write a column name as words, without the kind of number: `stall_wait_pct` is "stall wait"."""
    return label_of(column).removesuffix(" ratio").removesuffix(" count")


def denominator_of(name: str) -> str:
    """Return the denominator in the name of a share (`kernel_time_pct`: kernel time); "" for other columns."""
    denominators = [words for suffix, words in _DENOMINATORS.items() if f"_{name}".endswith(f"_{suffix}_pct")]
    return denominators[0] if denominators else ""


def is_duration(name: str) -> bool:
    """Check whether the numbers of a column are lengths of time. Points in time have a unit of their own."""
    return unit_of(name) == "ns" and not _POINT_IN_TIME.search(name)


def largest_time_unit(scales: Iterable[Scale]) -> str:
    """Return the largest unit of some scales of times; "" without scales."""
    names = [name for name, _ in _STEPS["ns"]]
    return max((scale.unit for scale in scales), key=names.index, default="")


def group_of(name: str) -> str:
    """Return a key for columns that are read together, so that all of them have one unit.

    Such columns are statistics of one quantity: `avg_ns`, `med_ns` and `max_ns`; `queue_avg_ns` and `queue_max_ns`.
    """
    unit = unit_of(name)
    if not _STEPS.get(unit) or _POINT_IN_TIME.search(name):
        return name
    words = [word for word in name.split("_") if not _STATISTIC.fullmatch(word)]
    return " ".join(words) if len(words) < len(name.split("_")) else name


@dataclass(frozen=True)
class Scale:
    """The format of a column's numbers: divided by `divisor`, in `unit`, with at least `decimals` decimal places."""

    unit: str
    divisor: float = 1
    decimals: int = 0
    thousands: bool = True

    def text(self, value: Number | None) -> str:
        """Format a raw value in this scale, without the unit; unknown values (None, NaN) are "-"."""
        if value is None or math.isnan(value):
            return UNKNOWN
        if not self.thousands:
            return str(value)
        # A count next to a mean (1 next to 0.031) has no decimal places.
        decimals = 0 if isinstance(value, int) and not self.unit else self.decimals
        return _format_number(value if self.divisor == 1 else value / self.divisor, decimals)


def scale_for(name: str, values: Iterable[Number | None], preferred: str = "") -> Scale:
    """Choose one scale for all values of the column `name`.

    The unit is `preferred` if the median is 0.1 or more in it, which has three digits there. Otherwise, it is the
    largest one in which the largest value is 1 or more and the median is 0.01 or more.
    """
    sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
    unit = unit_of(name)
    if not sizes:
        return Scale(preferred or _STEPS.get(unit, (("", 1),))[0][0])
    largest, median = sizes[-1], sizes[(len(sizes) - 1) // 2]
    if _POINT_IN_TIME.search(name):
        return Scale("ms", 1e6, 3) if largest >= 1e6 else Scale("ns")
    steps = _STEPS.get(unit, ())
    fitting_steps = [
        *(step for step in steps if step[0] == preferred and median >= step[1] / 10),
        *(step for step in reversed(steps) if largest >= step[1] and median >= step[1] / 100),
        *(steps or (("", 1),)),
    ]
    display_unit, divisor = fitting_steps[0]
    if unit == "%":
        decimals = 1 if median >= 1 else 2
    elif unit == "ratio":
        decimals = 2
    elif divisor == 1 and all(size == int(size) for size in sizes):
        decimals = 0
    else:
        decimals = min(3, max(1, 2 - math.floor(math.log10(median / divisor))))
    return Scale(display_unit, divisor, decimals, thousands=not is_id(name))


def value(column: str, raw: Any) -> str:
    """Format a single value of a column with its unit: 2.50 µs, 87.8%, 4.23 TB/s, 1,024."""
    if raw is None:
        return UNKNOWN
    if not isinstance(raw, int | float):
        return str(raw)
    if unit_of(column) in ("count", "") and raw == int(raw):
        return f"{int(raw):,}"
    if unit_of(column) in ("ratio", ""):
        return f"{raw:,.3g}" if abs(raw) < 1e3 else f"{raw:,.0f}"
    scale = scale_for(column, [raw])
    text = scale.text(raw)
    return add_unit(text, scale.unit)


def metric_values(rows: Iterable[tuple[str, Sequence[Number | None]]]) -> list[list[str]]:
    """Format the values of metrics, a row each: all times in one unit, everything else in the unit of its row.

    The unit of the times is the largest one in which their median is 1 or more.
    """
    metric_rows = list(rows)
    times = sorted(
        abs(number)
        for metric, numbers in metric_rows
        for number in numbers
        if number and math.isfinite(number) and metric.endswith("_ns")
    )
    median = times[len(times) // 2] if times else 0
    unit, divisor = next((step for step in reversed(_STEPS["ns"]) if median >= step[1]), _STEPS["ns"][0])
    texts = []
    for metric, numbers in metric_rows:
        row = scale_for(metric, numbers)
        sizes = sorted(abs(number) for number in numbers if number and math.isfinite(number))
        if metric.endswith("_ns") and sizes:
            size = sizes[(len(sizes) - 1) // 2] / divisor
            decimals = 0 if divisor == 1 else min(3, max(0, 2 - math.floor(math.log10(size))))
            row = Scale(unit, divisor, decimals)
        cells = [row.text(number) for number in numbers]
        texts.append([add_unit(cell, row.unit) if cell not in (UNKNOWN, "0") else cell for cell in cells])
    return texts


def value_or_unknown(column: str, raw: Any) -> str:
    """Format a single value with its unit, or return the word "unknown"."""
    return "unknown" if raw is None else value(column, raw)


def values(column: str, raw: Iterable[Number | None]) -> list[str]:
    """Format values that are compared with each other, all in the same unit."""
    numbers = list(raw)
    scale = scale_for(column, numbers)
    texts = [scale.text(number) for number in numbers]
    return [add_unit(text, scale.unit) if text != UNKNOWN else text for text in texts]


def add_unit(number: str, unit: str) -> str:
    """Write a number with its unit, or with a share of something: 2.24 ms, 86.3%, 86.3% of wall."""
    return f"{number}{'' if unit.startswith('%') else ' '}{unit}" if unit else number


def time_text(ns: float) -> str:
    """Format a time for a sentence, with three significant digits: 2.24 ms, 2.5 µs, 1,500 s."""
    for unit, size in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if abs(ns) < 999.5 * size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns / 1e9:.3g} s" if abs(ns) < 999.5e9 else f"{ns / 1e9:,.0f} s"


def spread_too_wide(name: str, values: Iterable[Number | None], scale: Scale) -> bool:
    """Check whether sizes or rates in bytes differ so much that one unit would hide the small ones: 80 B and 5 MiB.

    Times have no such limit: readers compare the times of short and long kernels.
    """
    if unit_of(name) not in ("bytes", "bytes/s"):
        return False
    return any(0 < abs(value) < scale.divisor / 100 for value in values if value is not None)


def _format_number(value: Number, decimals: int) -> str:
    """Format a number with thousands separators and at least two significant digits, so that it never shows as 0."""
    if value == 0:
        return "0"
    if isinstance(value, int):
        return f"{value:,.{decimals}f}" if decimals else f"{value:,}"
    if math.isinf(value) or not 1e-6 <= abs(value) < 1e15:
        return f"{value:.1e}" if math.isfinite(value) else str(value)
    text = f"{value:,.{max(decimals, 1 - math.floor(math.log10(abs(value))))}f}"
    integer, _, fraction = text.partition(".")
    fraction = fraction[:decimals] + fraction[decimals:].rstrip("0")
    return f"{integer}.{fraction}" if fraction else integer


def parse_duration(text: str, *, flag: str = "") -> int:
    """Parse a duration into ns: "250" and "250ns", "5us", "1.5ms", "2s". Error messages name `flag`.

    Raises:
        UsageError: It is not a number with one of these units, or longer than 292 years.
    """
    match = _DURATION.fullmatch(text.strip())
    if match:
        number, unit = match.groups()
        duration = round(Fraction(number) * _NS[unit or "ns"])
        if duration <= _LARGEST:
            return duration
    message = f"{flag} takes a duration, not {text!r}" if flag else f"{text!r} is not a duration"
    raise UsageError(message, "write a number and a unit: 250ns, 5us, 1.5ms or 2s")


def count_noun(count: int, singular: str, plural: str = "") -> str:
    """Write a number and its noun, whose plural has an s by default: "1 step", "1,024 entries"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def parse_seconds(text: str, *, flag: str = "") -> float:
    """Parse a duration into seconds: a plain number is seconds, and m is minutes.

    Raises:
        UsageError: It is not a number with a unit of time.
    """
    if match := _SECONDS.fullmatch(text.strip()):
        return float(match[1]) * (60 if match[2] else 1)
    return parse_duration(text, flag=flag) / 1e9


def exact_duration(ns: int) -> str:
    """Write a duration as `parse_duration` reads it, in the largest unit that needs no fraction: 5ms, 1500us, 7."""
    units = (("s", 10**9), ("ms", 10**6), ("us", 10**3))
    return next((f"{ns // size}{unit}" for unit, size in units if ns and ns % size == 0), str(ns))


def parse_bytes(text: str, *, flag: str = "") -> int:
    """Parse a size or a bandwidth into bytes: "512", "5.1GB" (decimal), "16 GiB" (binary), "4.8TB/s".

    Raises:
        UsageError: It is not a number with one of these units, or larger than 8 EiB.
    """
    match = _SIZE.fullmatch(text.strip())
    if match:
        number, prefix, binary = match.groups()
        factor: int = (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
        size = round(Fraction(number) * factor)
        if size <= _LARGEST:
            return size
    message = f"{flag} takes a size in bytes, not {text!r}" if flag else f"{text!r} is not a size in bytes"
    raise UsageError(message, "write a number and a unit: 512, 5.1GB, 16GiB, 4.8TB/s")
