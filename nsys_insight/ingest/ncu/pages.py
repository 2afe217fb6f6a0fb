"""CSV that ncu prints: its raw page (a row a launch) and its details page (a row a metric or a rule)."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.errors import TraceError
from nsys_insight.paths import catalog

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


class Metric(NamedTuple):
    """A metric's value in its base unit; what is no number (a policy, a device's name) is `text`."""

    value: float | None
    unit: str | None
    text: str | None = None


class Remark(NamedTuple):
    """What one of ncu's own rules said, with the saving it estimates: `global` is a share of the launch's duration."""

    section: str
    rule: str
    kind: str
    description: str
    speedup_type: str | None
    speedup_pct: float | None


@dataclass(frozen=True)
class Launch:
    """A launch that ncu profiled: what ncu calls it, and what it measured."""

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
        """What tells launches apart: the two pages of one report agree on it."""
        return self.process_id, self.ncu_id, self.kernel, self.grid, self.block


def read(path: Path) -> list[Launch]:
    """Read one CSV file: either page, with whatever else the program or ncu printed around it.

    Raises:
        TraceError: It cannot be read, or holds neither page.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="backslashreplace")
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}", "name a file that ncu wrote") from None
    return parse(text, path.name)


def parse(text: str, name: str) -> list[Launch]:
    """Read the CSV pages in a text; `name` is the file's, for errors and as the report's name.

    Raises:
        TraceError: There is none.
    """
    launches: dict[tuple[object, ...], Launch] = {}
    pages = 0
    for header, rows in _pages(text):
        if "Metric Name" in header:
            found = _details(header, rows, report_name(name))
        elif any("__" in column for column in header):
            found = _raw(header, rows, report_name(name))
        else:
            continue
        pages += 1
        merge(launches, found)
    if not pages:
        raise TraceError(f"{name} is not a CSV page of ncu: no line has the columns ID, Kernel Name and metrics", _HINT)
    return list(launches.values())


def merge(launches: dict[tuple[object, ...], Launch], more: Iterable[Launch]) -> None:
    """Add launches; what two pages say of one launch becomes one.

    The raw page has six decimals where the details page has two, so its values stay.
    """
    for launch in more:
        known = launches.get(launch.key)
        if known is None:
            launches[launch.key] = launch
            continue
        precise, coarse = (known, launch) if len(known.metrics) >= len(launch.metrics) else (launch, known)
        launches[launch.key] = replace(
            precise, metrics={**coarse.metrics, **precise.metrics}, rules=known.rules or launch.rules
        )


def report_name(file: str) -> str:
    """Name a report by its file: decode.ncu.raw.csv, decode.ncu.details.csv and decode.ncu-rep are all `decode`."""
    return re.sub(r"(?:\.ncu)?(?:[._-](?:raw|details))?\.(?:csv|txt|log|ncu-rep)$", "", file, flags=re.IGNORECASE)


def _pages(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the header and the records of each page in a text, without the lines that others printed between them."""
    header: list[str] = []
    rows: list[list[str]] = []
    for record in _records(text):
        try:
            cells = next(csv.reader([record]), [])
        except csv.Error:  # no CSV, whatever it began like
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


def _records(text: str) -> Iterator[str]:
    """Yield the lines that may be CSV; a quoted cell may hold line breaks, program output may hold quotes."""
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


def _raw(header: list[str], rows: list[list[str]], report: str) -> list[Launch]:
    """Read the raw page: a column a metric, and mostly a first row of their units."""
    at = {name: column for column, name in enumerate(header)}
    first = max(column for name, column in at.items() if name in _IDENTITY) + 1
    columns = [(column, name) for name, column in at.items() if column >= first and not _RANGES.search(name) and name]
    data = [row for row in rows if row[at["ID"]].strip()]
    units_row = next((row for row in rows if not row[at["ID"]].strip()), None)
    units = {column: base_unit(units_row[column]) if units_row else (None, 1.0) for column, _ in columns}
    mark = decimal_mark(row[column] for row in data for column, _ in columns)
    launches = []
    for row in data:
        launch = _launch(row, at, report)
        for column, name in columns:
            unit, factor = units[column]
            launch.metrics[name] = _metric(row[column], mark, unit or None, factor)
        launches.append(launch)
    return launches


def _details(header: list[str], rows: list[list[str]], report: str) -> list[Launch]:
    """Read the details page: a row a metric, under the name that people read, or a rule."""
    at = {name: column for column, name in enumerate(header)}
    mark = decimal_mark(row[at["Metric Value"]] for row in rows)
    launches: dict[tuple[object, ...], Launch] = {}
    for row in rows:
        cells = {name: row[column] for name, column in at.items()}
        if not cells["ID"].strip():
            continue
        new = _launch(row, at, report)
        launch = launches.setdefault(new.key, new)
        section, label = cells.get("Section Name", ""), cells["Metric Name"]
        if label:
            unit, factor = base_unit(cells["Metric Unit"])
            name = label if "__" in label else details_names().get((section, label), f"{section}: {label}")
            launch.metrics.setdefault(name, _metric(cells["Metric Value"], mark, unit or None, factor))
        if cells.get("Rule Name"):
            launch.rules.append(
                Remark(
                    section, cells["Rule Name"], cells.get("Rule Type", ""), cells.get("Rule Description", ""),
                    cells.get("Estimated Speedup Type") or None,
                    number(cells.get("Estimated Speedup", ""), mark),
                )
            )  # fmt: skip
    return list(launches.values())


@cache
def details_names() -> dict[tuple[str, str], str]:
    """Which metric the details page means by a section and a label, from `queries/catalog/ncu_details.toml`."""
    sections = catalog("ncu_details")
    return {(section, label): metric for section, labels in sections.items() for label, metric in labels.items()}


def _metric(cell: str, mark: str, unit: str | None, factor: float) -> Metric:
    value = number(cell, mark)
    if value is not None:
        return Metric(value * factor, unit)
    text = cell.strip()
    unknown = text.lower().removeprefix("(!)").strip() in ("", "n/a", "nan", "-nan", "inf", "-inf", "no data", "-")
    return Metric(None, unit, None if unknown else text)


def _launch(row: list[str], at: dict[str, int], report: str) -> Launch:
    def cell(name: str) -> str:
        return row[at[name]].strip() if name in at else ""

    return Launch(
        report=report,
        ncu_id=_integer(cell("ID")) or 0,
        process_id=_integer(cell("Process ID")),
        process_name=cell("Process Name") or None,
        kernel=cell("Kernel Name"),
        context_id=_integer(cell("Context")),
        stream_id=_integer(cell("Stream")),
        device_id=_integer(cell("Device")),
        compute_capability=cell("CC") or None,
        grid=_dimensions(cell("Grid Size")),
        block=_dimensions(cell("Block Size")),
    )


def _integer(cell: str) -> int | None:
    digits = re.sub(r"[.,\s']", "", cell)
    return int(digits) if digits.isdigit() else None


def _dimensions(cell: str) -> tuple[int | None, int | None, int | None]:
    x, y, z, *_ = [*map(int, re.findall(r"\d+", cell)), None, None, None]
    return x, y, z


def decimal_mark(cells: Iterable[str]) -> str:
    """Tell whether the numbers of a file have a decimal point or a decimal comma; a point if no number shows it.

    ncu writes numbers as the locale says: 12,319,469.2 here is 12.319.469,2 there, and 1,234 alone is either.
    """
    for cell in cells:
        if _GROUPS_THEN_COMMA.fullmatch(cell) or _COMMA_ALONE.fullmatch(cell):
            return ","
        if _GROUPS_THEN_POINT.fullmatch(cell) or _POINT_ALONE.fullmatch(cell):
            return "."
    return "."


def number(cell: str, mark: str = ".") -> float | None:
    """Read a number; None for anything else: n/a, nan, "no data", a word, an empty cell.

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
