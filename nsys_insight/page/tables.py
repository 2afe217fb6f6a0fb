"""An answer as the cells of an HTML table: what is shown, what it is sorted by, and long names folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.render.fields import fields_of
from nsys_insight.render.json_ import plain
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit_all

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

# Characters of a name that are shown before it is unfolded, and that are kept at all.
_FOLDED, _KEPT = 48, 1_000
# Characters of a text that stay on one line.
_LINE = 48


@dataclass(frozen=True)
class Heading:
    """A column: its label and unit, what it means, and how its cells stand."""

    label: str
    unit: str
    meaning: str
    right: bool
    detail: bool
    name: str


class Cell(NamedTuple):
    """What is shown: right, or long where it may take several lines, and whether it is a detail.

    `raw` is what a number is sorted by, `whole` the name that is folded, `share` the length of a bar behind it in %.
    """

    text: str
    style: str
    detail: bool
    raw: str | None = None
    whole: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Table:
    """The first rows of an answer."""

    headings: list[Heading]
    rows: list[list[Cell]]
    row_count: int


def table(answer: Answer, limit: int | None) -> Table:
    """Make the table of the first `limit` rows, or of all."""
    rows = answer.rows(limit)
    fields = fields_of(answer, rows, full_names=False)
    headings = [
        Heading(field.label, field.unit, column.description, field.right, field.detail, column.name)
        for field, column in zip(fields, answer.columns, strict=True)
    ]
    barred = next((heading.name for heading in headings if heading.name.endswith("_pct") and not heading.detail), None)
    columns = []
    for field, heading, values in zip(fields, headings, zip(*rows, strict=True), strict=True) if rows else ():
        if field.kind == "name":
            short = fit_all(set(field.cells), _FOLDED)
            columns.append([_name(heading, short[text], raw) for text, raw in zip(field.cells, values, strict=True)])
        elif field.right:
            shares = [_share(raw) if heading.name == barred else None for raw in values]
            columns.append(
                [
                    Cell(text, _style(heading, text), heading.detail, _number(raw), share=share)
                    for text, raw, share in zip(field.cells, values, shares, strict=True)
                ]
            )
        else:
            columns.append([Cell(text, _style(heading, text), heading.detail) for text in field.cells])
    return Table(headings, [list(row) for row in zip(*columns, strict=True)], answer.row_count)


def _style(heading: Heading, text: str) -> str:
    return "right" if heading.right else "long" if len(text) > _LINE else ""


def _name(heading: Heading, short: str, raw: Any) -> Cell:
    whole = "" if raw is None else printable(str(raw))
    kept = whole[:_KEPT] + ("…" if len(whole) > _KEPT else "") if whole not in (short, "") else ""
    return Cell(short, _style(heading, short), heading.detail, whole=kept)


def _number(raw: Any) -> str:
    given = plain(raw)
    return "" if given is None else f"{given:.9g}" if isinstance(given, float) else str(given)


def _share(raw: Any) -> float | None:
    given = plain(raw)
    return None if given is None else min(max(float(given), 0.0), 100.0)
