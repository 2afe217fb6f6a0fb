"""Read the CSV pages of ncu: the raw page (one row per launch) and the details page (one row per metric or rule)."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.errors import TraceError
from nsys_insight.paths import read_catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_IDENTITY = {
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC",
}  # fmt: skip
_RECORD = re.compile(r'"?\d[\d.,]*"?,"')
_RANGES = re.compile(r"Push/Pop_Range|Start/Stop_Range|\bDomain\b")
_HINT = "give what these print: ncu --import FILE.ncu-rep --csv --page raw (or details); or the .ncu-rep itself"
# Factors to the base units of `ncu --print-units base`: ns, byte, hz. ncu's prefixes are decimal, also for bytes. Older
# versions spell units out (usecond, byte/second).
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TIME_FACTORS = {
    "s": 1e9,
    "second": 1e9,
    "ms": 1e6,
    "msecond": 1e6,
    "us": 1e3,
    "usecond": 1e3,
    "ns": 1.0,
    "nsecond": 1.0,
}
_GROUPS_THEN_COMMA = re.compile(r"-?\d{1,3}(?:\.\d{3})+,\d+")
_GROUPS_THEN_POINT = re.compile(r"-?\d{1,3}(?:,\d{3})+\.\d+")
_ONLY_COMMA = re.compile(r"-?\d+,(?!\d{3}$)\d+|-?0,\d+")
_ONLY_POINT = re.compile(r"-?\d+\.(?!\d{3}$)\d+|-?0\.\d+")
_SEPARATORS = re.compile("[\u0020\u00a0\u202f\u2009'\u2019](?=\\d{3})")
_INSTANCES = re.compile(r"\s*\(.*\)$")
_COMPUTE_CAPABILITY = re.compile(r"\d{1,3}\.\d{1,3}", re.ASCII)
_NOT_MEASURED = {"", "n/a", "nan", "-nan", "inf", "-inf", "no data", "-"}
# No counter of a GPU has more bits.
_MAX_VALUE = 2.0**63
# CUDA's limits of a grid: 2^31 - 1 blocks in x, 65,535 in y and z. So the number of blocks has at most 63 bits.
_MAX_DIMENSIONS = (2**31 - 1, 2**16 - 1, 2**16 - 1)


class Metric(NamedTuple):
    """A metric's value in its base unit. A value that is not a number (a policy, a device's name) is in `text`."""

    value: float | None
    unit: str | None
    text: str | None = None


class Remark(NamedTuple):
    """The result of one of ncu's own rules, with its estimated saving: `global` is a share of the launch's duration."""

    section: str
    rule: str
    kind: str
    description: str
    speedup_type: str | None
    speedup_pct: float | None


@dataclass(frozen=True)
class Launch:
    """A launch that ncu profiled: its identity, and its metrics."""

    report: str
    ncu_id: int
    process_id: int | None
    process_name: str | None
    kernel: str
    context_id: int | None
    stream_id: int | None
    device_id: int | None
    compute_capability: str | None
    grid: tuple[int | None, int | None, int | None]
    block: tuple[int | None, int | None, int | None]
    metrics: dict[str, Metric] = field(default_factory=dict)
    rules: list[Remark] = field(default_factory=list)

    @property
    def key(self) -> tuple[object, ...]:
        """Return the values that identify a launch; both pages of a report have them."""
        return self.process_id, self.ncu_id, self.kernel, self.grid, self.block


def make_metric(value: float | str, unit: str | None, factor: float = 1.0) -> Metric:
    """Make a metric in its base unit, from the value that ncu gives.

    The value is unknown if it was not measured (NaN, infinity, n/a) or has more than 64 bits.
    """
    if isinstance(value, str):
        text = value.strip()
        is_known = text.lower().removeprefix("(!)").strip() not in _NOT_MEASURED
        return Metric(None, unit, text if is_known else None)
    is_known = abs(value) < _MAX_VALUE and abs(value * factor) < _MAX_VALUE
    return Metric(value * factor if is_known else None, unit)


def make_kernel_name(name: str | None) -> str:
    """Return the name of a kernel, or the words for a kernel without one."""
    return (name or "").strip() or "(no name)"


def make_dimensions(sizes: Iterable[int | None]) -> tuple[int | None, int | None, int | None]:
    """Return the three dimensions of a grid or block. One that CUDA does not allow, or that is missing, is unknown."""
    x, y, z = (
        size if size is not None and 0 < size <= limit else None
        for size, limit in zip([*sizes, None, None, None], _MAX_DIMENSIONS, strict=False)
    )
    return x, y, z


def make_compute_capability(text: str) -> str | None:
    """Return a compute capability such as 9.0, or None for another text."""
    return text if _COMPUTE_CAPABILITY.fullmatch(text) else None


def read_file(path: Path) -> list[Launch]:
    """Read a CSV file with one or both pages; other output of the program or ncu may surround them.

    Raises:
        TraceError: It cannot be read, or has neither page.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="backslashreplace")
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}", "name a file that ncu wrote") from None
    return parse(text, path.name)


def parse(text: str, name: str) -> list[Launch]:
    """Read the CSV pages in a text. `name` is the file's name, for errors and for the report's name.

    Raises:
        TraceError: The text has no page.
    """
    launches: dict[tuple[object, ...], Launch] = {}
    pages = 0
    for header, rows in _split_pages(text):
        if "Metric Name" in header:
            page_launches = _read_details_page(header, rows, report_name(name))
        elif any("__" in column for column in header):
            page_launches = _read_raw_page(header, rows, report_name(name))
        else:
            continue
        pages += 1
        merge_launches(launches, page_launches)
    if not pages:
        raise TraceError(f"{name} is not a CSV page of ncu: no line has the columns ID, Kernel Name and metrics", _HINT)
    return list(launches.values())


def merge_launches(launches: dict[tuple[object, ...], Launch], new_launches: Iterable[Launch]) -> None:
    """Add launches; combine the rows of two pages about the same launch.

    The raw page has six decimals where the details page has two, so its values take precedence.
    """
    for launch in new_launches:
        existing = launches.get(launch.key)
        if existing is None:
            launches[launch.key] = launch
            continue
        precise, coarse = (existing, launch) if len(existing.metrics) >= len(launch.metrics) else (launch, existing)
        launches[launch.key] = replace(
            precise, metrics={**coarse.metrics, **precise.metrics}, rules=existing.rules or launch.rules
        )


def report_name(file: str) -> str:
    """Return the report's name: `decode` for decode.ncu.raw.csv, decode.ncu.details.csv and decode.ncu-rep."""
    return re.sub(r"(?:\.ncu)?(?:[._-](?:raw|details))?\.(?:csv|txt|log|ncu-rep)$", "", file, flags=re.IGNORECASE)


def _split_pages(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the header and the records of each page in a text, without other lines between them."""
    header: list[str] = []
    rows: list[list[str]] = []
    for record in _split_records(text):
        try:
            cells = next(csv.reader([record]), [])
        except csv.Error:  # not CSV, although it began like it
            continue
        if "ID" in cells and "Kernel Name" in cells:
            if cells == header:
                continue
            if header:
                yield header, rows
            header, rows = cells, []
        elif header and (len(cells) == len(header) or (len(cells) > 11 and cells[0].strip().isdigit())):
            rows.append((cells + [""] * len(header))[: len(header)])
    if header:
        yield header, rows


def _split_records(text: str) -> Iterator[str]:
    """Yield the lines that may be CSV. A quoted cell may have line breaks, and the program's output may have quotes."""
    pending = ""
    for line in text.splitlines():
        starts = bool(_RECORD.match(line)) or line.startswith(('"', "ID,", ","))
        if pending and not _RECORD.match(line):
            pending += "\n" + line
        elif starts:
            pending = line
        else:
            continue
        if pending.count('"') % 2 == 0:
            yield pending
            pending = ""


def _read_raw_page(header: list[str], rows: list[list[str]], report: str) -> list[Launch]:
    """Read the raw page: one column per metric, and usually a first row with their units."""
    column_index = {name: column for column, name in enumerate(header)}
    first = max(column for name, column in column_index.items() if name in _IDENTITY) + 1
    columns = [
        (column, name) for name, column in column_index.items() if column >= first and not _RANGES.search(name) and name
    ]
    data = [row for row in rows if row[column_index["ID"]].strip()]
    units_row = next((row for row in rows if not row[column_index["ID"]].strip()), None)
    units = {column: convert_unit(units_row[column]) if units_row else (None, 1.0) for column, _ in columns}
    mark = find_decimal_mark(row[column] for row in data for column, _ in columns)
    launches = []
    for row in data:
        launch = _read_launch(row, column_index, report)
        for column, name in columns:
            unit, factor = units[column]
            launch.metrics[name] = _read_metric(row[column], mark, unit or None, factor)
        launches.append(launch)
    return launches


def _read_details_page(header: list[str], rows: list[list[str]], report: str) -> list[Launch]:
    """Read the details page: one row per metric, under its display name, or per rule."""
    column_index = {name: column for column, name in enumerate(header)}
    mark = find_decimal_mark(row[column_index["Metric Value"]] for row in rows)
    launches: dict[tuple[object, ...], Launch] = {}
    for row in rows:
        cells = {name: row[column] for name, column in column_index.items()}
        if not cells["ID"].strip():
            continue
        new = _read_launch(row, column_index, report)
        launch = launches.setdefault(new.key, new)
        section, label = cells.get("Section Name", ""), cells["Metric Name"]
        if label:
            unit, factor = convert_unit(cells["Metric Unit"])
            name = label if "__" in label else read_details_names().get((section, label), f"{section}: {label}")
            launch.metrics.setdefault(name, _read_metric(cells["Metric Value"], mark, unit or None, factor))
        if cells.get("Rule Name"):
            launch.rules.append(
                Remark(
                    section, cells["Rule Name"], cells.get("Rule Type", ""), cells.get("Rule Description", ""),
                    *_read_speedup(cells, mark),
                )
            )  # fmt: skip
    return list(launches.values())


@cache
def read_details_names() -> dict[tuple[str, str], str]:
    """Return the metric for each section and label of the details page, from `queries/catalog/ncu_details.toml`."""
    sections = read_catalog("ncu_details")
    return {(section, label): metric for section, labels in sections.items() for label, metric in labels.items()}


def _read_metric(cell: str, mark: str, unit: str | None, factor: float) -> Metric:
    value = parse_number(cell, mark)
    return make_metric(cell if value is None else value, unit, factor)


def _read_speedup(cells: dict[str, str], mark: str) -> tuple[str | None, float | None]:
    """Read the type and percentage of an estimate. Without a percentage of 0 to 100, there is no estimate."""
    speedup_pct = parse_number(cells.get("Estimated Speedup", ""), mark)
    if speedup_pct is None or not 0 <= speedup_pct <= 100:
        return None, None
    return cells.get("Estimated Speedup Type") or None, speedup_pct


def _read_launch(row: list[str], column_index: dict[str, int], report: str) -> Launch:
    def cell(name: str) -> str:
        return row[column_index[name]].strip() if name in column_index else ""

    return Launch(
        report=report,
        ncu_id=_parse_integer(cell("ID")) or 0,
        process_id=_parse_integer(cell("Process ID")),
        process_name=cell("Process Name") or None,
        kernel=make_kernel_name(cell("Kernel Name")),
        context_id=_parse_integer(cell("Context")),
        stream_id=_parse_integer(cell("Stream")),
        device_id=_parse_integer(cell("Device")),
        compute_capability=make_compute_capability(cell("CC")),
        grid=_parse_dimensions(cell("Grid Size")),
        block=_parse_dimensions(cell("Block Size")),
    )


# A number of more digits can have more than 64 bits.
_MAX_DIGITS = 18


def _parse_integer(cell: str) -> int | None:
    digits = re.sub(r"[.,\s']", "", cell)
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_DIGITS else None


def _parse_dimensions(cell: str) -> tuple[int | None, int | None, int | None]:
    return make_dimensions(map(_parse_integer, re.findall(r"\d+", cell)))


def find_decimal_mark(cells: Iterable[str]) -> str:
    """Return whether the numbers of a file have a decimal point or a decimal comma; a point if no number shows it.

    ncu writes numbers in the format of the locale: 12,319,469.2 or 12.319.469,2. A number such as 1,234 alone is
    ambiguous.
    """
    for cell in cells:
        if _GROUPS_THEN_COMMA.fullmatch(cell) or _ONLY_COMMA.fullmatch(cell):
            return ","
        if _GROUPS_THEN_POINT.fullmatch(cell) or _ONLY_POINT.fullmatch(cell):
            return "."
    return "."


def parse_number(cell: str, mark: str = ".") -> float | None:
    """Read a number. Return None for anything else: n/a, nan, "no data", a word, an empty cell.

    A metric with instances prints as "16 (1; 5; 10)": the first number is the value of the metric.
    """
    text = _SEPARATORS.sub("", _INSTANCES.sub("", cell.strip()))
    text = text.replace(".", "").replace(",", ".") if mark == "," else text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def convert_unit(unit: str) -> tuple[str, float]:
    """Return the base unit of a unit, and the factor that converts a value to it.

    >>> convert_unit("Kbyte/block"), convert_unit("us"), convert_unit("sector/ns"), convert_unit("%")
    (('byte/block', 1000.0), ('ns', 1000.0), ('sector/s', 1000000000.0), ('%', 1.0))
    """
    numerator, slash, denominator = unit.strip().partition("/")
    numerator, factor = _convert_unit_word(numerator)
    if not slash:
        return numerator, factor
    if denominator in _TIME_FACTORS:  # a rate is per second
        return f"{numerator}/s", factor * 1e9 / _TIME_FACTORS[denominator]
    denominator, divisor = _convert_unit_word(denominator)
    return f"{numerator}/{denominator}", factor / divisor


def _convert_unit_word(word: str) -> tuple[str, float]:
    if word in _TIME_FACTORS:
        return "ns", _TIME_FACTORS[word]
    if word.lower() == "hz":
        return "hz", 1.0
    if word[:1] in _PREFIXES and word[1:] in ("byte", "bytes", "hz", "Hz"):
        return ("hz" if word[1:].lower() == "hz" else "byte"), _PREFIXES[word[0]]
    return ("byte" if word == "bytes" else word), 1.0
