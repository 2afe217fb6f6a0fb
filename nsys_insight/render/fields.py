"""Columns as text for tables and Markdown: one unit per column, and readable names."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from nsys_insight.render.json_ import make_plain
from nsys_insight.text import units
from nsys_insight.text.cells import printable, width_of
from nsys_insight.text.kernel_names import make_all_readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsys_insight.session.answer import Answer, Column

METRIC = "metric"
_NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)")
_NAME = re.compile(r"(^|_)(name|kernel|function)$")


@dataclass(frozen=True)
class Field:
    """One column as text.

    `kind`: a "number" is in the field's unit, a "value" has its own unit. Both are aligned on the right. A "name" may
    be shortened to fit, unless `is_full_name`. A "text" may only be wrapped.
    `is_detail`: hide the column if a row does not fit on one line, or if all its values are unknown.
    `position`: fields with a position come before the others.
    `share_of`: the base of a share, such as "wall".
    """

    label: str
    unit: str
    kind: Literal["number", "value", "name", "text"]
    cells: list[str]
    is_full_name: bool = False
    is_detail: bool = False
    position: int | None = None
    share_of: str = ""

    @cached_property
    def content_width(self) -> int:
        """Return the width of the widest value, in cells."""
        return max(map(width_of, self.cells), default=0)

    @property
    def is_flexible(self) -> bool:
        """Return whether cells may be shortened (names) or wrapped (texts)."""
        return not self.is_right_aligned and not self.is_full_name

    @property
    def is_right_aligned(self) -> bool:
        """Return whether the column is aligned on the right."""
        return self.kind in ("number", "value")

    @property
    def is_share_base_in_heading(self) -> bool:
        """Return whether the heading states the base of a share: "% of wall"."""
        label, base = self.label.lower(), self.share_of.lower()
        return bool(base) and (label.endswith(base) or f"{label} time" == base)

    @property
    def title(self) -> str:
        """Return the name of the column for the list of hidden columns."""
        return " ".join(self.heading) if self.is_share_base_in_heading else self.label

    @property
    def heading(self) -> list[str]:
        """Return the words of the header, the unit last: ["total", "(ms)"]."""
        if self.is_share_base_in_heading:
            ends_with_base = self.label.lower().endswith(self.share_of.lower())
            subject = self.label[: len(self.label) - len(self.share_of)] if ends_with_base else ""
            return [*subject.split(), "%", "of", *self.share_of.split()]
        unit = self.unit if self.unit in ("", "%") else f"({self.unit})"
        return [*self.label.split(), *([unit] if unit else [])] or [""]


def build_fields(answer: Answer, rows: Sequence[Sequence[Any]], *, full_names: bool) -> list[Field]:
    """Return the columns of these rows of an answer as text that is safe to print."""
    values = dict(zip((column.name for column in answer.columns), zip(*rows, strict=True), strict=False))
    metrics = [_format_text(metric) for metric in values.get(METRIC, ())]
    # ncu's metrics have their units in a separate column.
    has_own_units = bool(metrics) and not any("__" in metric for metric in metrics)
    metric_columns = [column.name for column in answer.columns if has_own_units and _has_metric_unit(column)]
    metric_texts = _format_metric_rows(metrics, [values[name] for name in metric_columns])
    scales = _choose_scales(answer, values)
    fields = []
    for column in answer.columns:
        label, cells = printable(units.label_of(column.name)), values.get(column.name, ())
        if column.name in metric_columns:
            fields.append(Field(label, "", "value", metric_texts.pop(0)))
        elif _NUMERIC.fullmatch(column.type):
            numbers = [make_plain(cell) for cell in cells]
            scale = scales[units.group_of(column.name)]
            if units.spread_too_wide(column.name, numbers, scale):
                fields.append(Field(label, "", "value", [units.value(column.name, number) for number in numbers]))
            else:
                fields.append(Field(label, scale.unit, "number", [scale.text(number) for number in numbers]))
        elif column.name == METRIC:
            fields.append(
                Field(label, "", "text", [units.label_of(metric) if has_own_units else metric for metric in metrics])
            )
        elif _NAME.search(column.name):
            fields.append(
                Field(label, "", "name", _format_names(cells, full_names=full_names), is_full_name=full_names)
            )
        else:
            fields.append(Field(label, "", "text", [_format_text(cell) for cell in cells]))
    return [
        replace(
            field,
            is_detail=column.is_detail,
            position=column.position,
            share_of=column.share_of or units.denominator_of(column.name),
        )
        for field, column in zip(fields, answer.columns, strict=True)
    ]


def _choose_scales(answer: Answer, values: Mapping[str, Sequence[Any]]) -> dict[str, units.Scale]:
    """Choose a scale for each group of columns that are compared. A standard deviation uses the scale of its group.

    Times have the largest unit of the table where that leaves them three digits: readers add and compare them.
    """
    groups: dict[str, dict[str, list[Any]]] = {}
    for column in answer.columns:
        if _NUMERIC.fullmatch(column.type):
            numbers = [make_plain(cell) for cell in values.get(column.name, ())]
            groups.setdefault(units.group_of(column.name), {})[column.name] = numbers
    compared_numbers: dict[str, tuple[str, list[Any]]] = {}
    for group, columns in groups.items():
        values_without_deviations = {
            name: numbers for name, numbers in columns.items() if "stddev" not in name
        } or columns
        compared_numbers[group] = (
            next(iter(values_without_deviations)),
            [number for numbers in values_without_deviations.values() for number in numbers],
        )
    scales = {group: units.scale_for(name, numbers) for group, (name, numbers) in compared_numbers.items()}
    durations = {group for group, (name, _) in compared_numbers.items() if units.is_duration(name)}
    preferred = units.largest_time_unit(scales[group] for group in durations)
    return scales | {group: units.scale_for(*compared_numbers[group], preferred) for group in durations}


def describe_shares(fields: Iterable[Field]) -> str:
    """Describe the bases of shares whose headings do not state them."""
    labels_by_base: dict[str, list[str]] = {}
    for field in fields:
        if field.share_of and not field.is_share_base_in_heading:
            labels_by_base.setdefault(field.share_of, []).append(field.label)
    return "; ".join(f"{', '.join(labels)}: % of {base}" for base, labels in labels_by_base.items())


def drop_unknown_details(fields: list[Field]) -> list[Field]:
    """Drop the details whose values are all unknown."""
    return [field for field in fields if not field.is_detail or set(field.cells) - {units.UNKNOWN}]


def fold_zero_rows(fields: Sequence[Field]) -> tuple[list[Field], int]:
    """Leave out the rows of metrics whose values are all 0 or unknown, if others remain. Return how many they are.

    In a table that has texts as well as values all rows remain: a row without a value may have a text.
    """
    values = [field.cells for field in fields if field.kind == "value"]
    texts = [field.label for field in fields if field.kind != "value"]
    if texts != [METRIC] or not values:
        return list(fields), 0
    shown_rows = [index for index, row in enumerate(zip(*values, strict=True)) if set(row) - {"0", units.UNKNOWN}]
    zero_count = len(values[0]) - len(shown_rows)
    if not shown_rows or not zero_count:
        return list(fields), 0
    return [replace(field, cells=[field.cells[index] for index in shown_rows]) for field in fields], zero_count


def sort_by_position(fields: Sequence[Field]) -> list[Field]:
    """Put the columns with a position first, sorted by it. The others keep their order."""
    return sorted(fields, key=lambda field: (field.position is None, field.position or 0))


def write_footer(answer: Answer, limit: int | None) -> str:
    """Write how many rows the answer has and how many are shown, or why it is empty."""
    if not answer.row_count:
        return printable(" ".join(answer.empty.split())) or "no rows"
    rows = units.count_noun(answer.row_count, "row")
    return rows if limit is None or limit >= answer.row_count else f"{limit:,} of {rows} (--limit 0 for all)"


def _has_metric_unit(column: Column) -> bool:
    return bool(_NUMERIC.fullmatch(column.type)) and not (units.unit_of(column.name) or units.is_id(column.name))


def _format_metric_rows(metrics: list[str], columns: list[Sequence[Any]]) -> list[list[str]]:
    """Format the values of each row in the unit of its metric, and all times in one unit."""
    rows = [(metric, [make_plain(cell) for cell in row]) for metric, *row in zip(metrics, *columns, strict=True)]
    return [list(cells) for cells in zip(*units.metric_values(rows), strict=True)]


def _format_names(values: Sequence[Any], *, full_names: bool) -> list[str]:
    names = [str(cell) for cell in values if cell is not None]
    printed_names = {name: name for name in names} if full_names else make_all_readable(names)
    return [units.UNKNOWN if cell is None else printable(printed_names[str(cell)]) for cell in values]


def _format_text(value: Any) -> str:
    if value is None:
        return units.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(str(value))
