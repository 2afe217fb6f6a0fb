"""An answer as the cells of an HTML table: texts, sort keys, and long names folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.render.fields import build_fields
from nsys_insight.render.json_ import make_plain
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit_all

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

# Characters of a name while it is folded, and when it is unfolded.
_SHORT_LENGTH, _FULL_LENGTH = 48, 1_000
# Characters of a text that stay on one line.
_LINE_LENGTH = 48


@dataclass(frozen=True)
class Heading:
    """A column: its label and unit, what it means, and how its cells are aligned."""

    label: str
    unit: str
    meaning: str
    is_right_aligned: bool
    is_detail: bool
    name: str


class Cell(NamedTuple):
    """A cell: its text, its style (right-aligned, or long if it may take several lines), and whether it is a detail.

    `raw` is the sort key of a number, `full_name` the name to unfold, `share` the length of the bar behind it in %.
    """

    text: str
    style: str
    is_detail: bool
    raw: str | None = None
    full_name: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Table:
    """The first rows of an answer."""

    headings: list[Heading]
    rows: list[list[Cell]]
    row_count: int


def build_table(answer: Answer, limit: int | None) -> Table:
    """Return the table of the first `limit` rows. None means all rows."""
    rows = answer.rows(limit)
    fields = build_fields(answer, rows, full_names=False)
    headings = [
        Heading(field.label, field.unit, column.description, field.is_right_aligned, field.is_detail, column.name)
        for field, column in zip(fields, answer.columns, strict=True)
    ]
    bar_column = next(
        (heading.name for heading in headings if heading.name.endswith("_pct") and not heading.is_detail), None
    )
    columns = []
    for field, heading, values in zip(fields, headings, zip(*rows, strict=True), strict=True) if rows else ():
        if field.kind == "name":
            short_names = fit_all(set(field.cells), _SHORT_LENGTH)
            columns.append(
                [
                    _make_name_cell(heading, short_names[text], raw)
                    for text, raw in zip(field.cells, values, strict=True)
                ]
            )
        elif field.is_right_aligned:
            shares = [_read_share(raw) if heading.name == bar_column else None for raw in values]
            columns.append(
                [
                    Cell(text, _pick_style(heading, text), heading.is_detail, _format_number(raw), share=share)
                    for text, raw, share in zip(field.cells, values, shares, strict=True)
                ]
            )
        else:
            columns.append([Cell(text, _pick_style(heading, text), heading.is_detail) for text in field.cells])
    return Table(headings, [list(row) for row in zip(*columns, strict=True)], answer.row_count)


def _pick_style(heading: Heading, text: str) -> str:
    return "right" if heading.is_right_aligned else "long" if len(text) > _LINE_LENGTH else ""


def _make_name_cell(heading: Heading, short: str, raw: Any) -> Cell:
    name = "" if raw is None else printable(str(raw))
    full_name = name[:_FULL_LENGTH] + ("…" if len(name) > _FULL_LENGTH else "") if name not in (short, "") else ""
    return Cell(short, _pick_style(heading, short), heading.is_detail, full_name=full_name)


def _format_number(raw: Any) -> str:
    number = make_plain(raw)
    return "" if number is None else f"{number:.9g}" if isinstance(number, float) else str(number)


def _read_share(raw: Any) -> float | None:
    number = make_plain(raw)
    return None if number is None else min(max(float(number), 0.0), 100.0)
