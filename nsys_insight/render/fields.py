"""What the formats for people share: columns as text, in one unit each, with readable names."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from nsys_insight.render.json_ import plain
from nsys_insight.text import units
from nsys_insight.text.cells import printable, width_of
from nsys_insight.text.kernel_names import readable_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsys_insight.session.answer import Answer, Column

METRIC = "metric"
_NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)")
_NAME = re.compile(r"(^|_)(name|kernel|function)$")


@dataclass(frozen=True)
class Field:
    """One column as people read it.

    A "number" is in the field's unit, a "value" carries its own; both stand on the right. A "name" may be
    shortened to fit unless it is to be `whole`; other "text" may only be wrapped. A `detail` is left out where a row
    does not fit on one line, or nothing is known of it. A field with a `place` comes before those without. A share is
    `of` something.
    """

    label: str
    unit: str
    kind: Literal["number", "value", "name", "text"]
    cells: list[str]
    whole: bool = False
    detail: bool = False
    place: int | None = None
    of: str = ""

    @cached_property
    def natural(self) -> int:
        """How many cells the widest value takes."""
        return max(map(width_of, self.cells), default=0)

    @property
    def flexible(self) -> bool:
        """Whether cells may be shortened (names) or wrapped (texts)."""
        return not self.right and not self.whole

    @property
    def right(self) -> bool:
        """Whether the column stands on the right."""
        return self.kind in ("number", "value")

    @property
    def says_of_what(self) -> bool:
        """Whether the heading says of what a share is: "% of wall"."""
        label, whole = self.label.lower(), self.of.lower()
        return bool(whole) and (label.endswith(whole) or f"{label} time" == whole)

    @property
    def named(self) -> str:
        """What the column is called where its values are not shown."""
        return " ".join(self.heading) if self.says_of_what else self.label

    @property
    def heading(self) -> list[str]:
        """The words of the header, the unit last: ["total", "(ms)"]."""
        if self.says_of_what:
            ends = self.label.lower().endswith(self.of.lower())
            subject = self.label[: len(self.label) - len(self.of)] if ends else ""
            return [*subject.split(), "%", "of", *self.of.split()]
        unit = self.unit if self.unit in ("", "%") else f"({self.unit})"
        return [*self.label.split(), *([unit] if unit else [])] or [""]


def fields_of(answer: Answer, rows: Sequence[Sequence[Any]], *, full_names: bool) -> list[Field]:
    """Return the columns of these rows of an answer as text that is safe to print."""
    values = dict(zip((column.name for column in answer.columns), zip(*rows, strict=True), strict=False))
    metrics = [_text(metric) for metric in values.get(METRIC, ())]
    own = bool(metrics) and not any("__" in metric for metric in metrics)  # ncu's metrics carry their unit beside them
    of_metrics = [column.name for column in answer.columns if own and _takes_the_metrics_unit(column)]
    with_units = _with_units(metrics, [values[name] for name in of_metrics])
    scales = _scales(answer, values)
    fields = []
    for column in answer.columns:
        label, cells = printable(units.label_of(column.name)), values.get(column.name, ())
        if column.name in of_metrics:
            fields.append(Field(label, "", "value", with_units.pop(0)))
        elif _NUMERIC.fullmatch(column.type):
            numbers = [plain(cell) for cell in cells]
            scale = scales[units.group_of(column.name)]
            if units.spread_too_wide(column.name, numbers, scale):
                fields.append(Field(label, "", "value", [units.value(column.name, number) for number in numbers]))
            else:
                fields.append(Field(label, scale.unit, "number", [scale.text(number) for number in numbers]))
        elif column.name == METRIC:
            fields.append(Field(label, "", "text", [units.label_of(metric) if own else metric for metric in metrics]))
        elif _NAME.search(column.name):
            fields.append(Field(label, "", "name", _names(cells, full_names=full_names), whole=full_names))
        else:
            fields.append(Field(label, "", "text", [_text(cell) for cell in cells]))
    return [
        replace(field, detail=column.detail, place=column.place, of=column.of or units.whole_of(column.name))
        for field, column in zip(fields, answer.columns, strict=True)
    ]


def _scales(answer: Answer, values: Mapping[str, Sequence[Any]]) -> dict[str, units.Scale]:
    """Choose a scale for each number, and one for those that are read beside each other; a deviation follows these."""
    groups: dict[str, dict[str, list[Any]]] = {}
    for column in answer.columns:
        if _NUMERIC.fullmatch(column.type):
            numbers = [plain(cell) for cell in values.get(column.name, ())]
            groups.setdefault(units.group_of(column.name), {})[column.name] = numbers
    scales = {}
    for group, columns in groups.items():
        kept = {name: numbers for name, numbers in columns.items() if "stddev" not in name} or columns
        scales[group] = units.scale_for(next(iter(kept)), [number for numbers in kept.values() for number in numbers])
    return scales


def shares(fields: Iterable[Field]) -> str:
    """Say of what the shares are whose headings do not."""
    by_whole: dict[str, list[str]] = {}
    for field in fields:
        if field.of and not field.says_of_what:
            by_whole.setdefault(field.of, []).append(field.label)
    return "; ".join(f"{', '.join(labels)}: % of {whole}" for whole, labels in by_whole.items())


def known(fields: list[Field]) -> list[Field]:
    """Leave out the details of which nothing is known."""
    return [field for field in fields if not field.detail or set(field.cells) - {units.UNKNOWN}]


def by_place(fields: Sequence[Field]) -> list[Field]:
    """Put the columns that matter most first, in their order; the others stay in theirs."""
    return sorted(fields, key=lambda field: (field.place is None, field.place or 0))


def footer(answer: Answer, limit: int | None) -> str:
    """Say how many rows there are and how many are shown, or why there is none."""
    if not answer.row_count:
        return printable(" ".join(answer.empty.split())) or "no rows"
    rows = f"{answer.row_count:,} row" + ("s" if answer.row_count != 1 else "")
    return rows if limit is None or limit >= answer.row_count else f"{limit:,} of {rows}"


def _takes_the_metrics_unit(column: Column) -> bool:
    return bool(_NUMERIC.fullmatch(column.type)) and not (units.unit_of(column.name) or units.is_id(column.name))


def _with_units(metrics: list[str], columns: list[Sequence[Any]]) -> list[list[str]]:
    """Write the values of each row in the unit of its metric, so that they can be compared along the row."""
    texts: list[list[str]] = [[] for _ in columns]
    for metric, *row in zip(metrics, *columns, strict=True):
        for cells, text in zip(texts, units.values(metric, [plain(cell) for cell in row]), strict=True):
            cells.append(text)
    return texts


def _names(values: Sequence[Any], *, full_names: bool) -> list[str]:
    names = [str(cell) for cell in values if cell is not None]
    shown = {name: name for name in names} if full_names else readable_all(names)
    return [units.UNKNOWN if cell is None else printable(shown[str(cell)]) for cell in values]


def _text(value: Any) -> str:
    if value is None:
        return units.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(str(value))
