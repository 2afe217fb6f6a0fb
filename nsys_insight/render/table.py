"""The table for the terminal: whole numbers, whole columns, names as wide as there is room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from nsys_insight.render.fields import by_place, fields_of, footer, known, shares
from nsys_insight.render.layout import GAP, Line, Slot, fitting, lay_out
from nsys_insight.text import severity
from nsys_insight.text.cells import printable, width_of, wrap
from nsys_insight.text.kernel_names import fit_all
from nsys_insight.text.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.render.fields import Field
    from nsys_insight.session.answer import Answer

_NAMED = 6  # hidden columns that are listed; all are in the report's help
Segments = list[tuple[str, str]]  # texts and their styles, as rich names them


def lines(
    answer: Answer, limit: int | None, width: int | None, *, full_names: bool, wide: bool = False
) -> list[Segments]:
    """Return the table's lines: the title, the headers, the rows, and how many there are.

    Where a row does not fit on one line, columns are hidden, and named below; with `wide` a row takes several lines.
    """
    title = [[(line, "bold")] for line in _paragraph(printable(answer.heading), width)] + [[]] if answer.heading else []
    end = [[(line, "dim")] for line in _paragraph(footer(answer, limit), width)]
    if not answer.row_count:
        return [*title, *end]
    every = by_place(known(fields_of(answer, answer.rows(limit), full_names=full_names)))
    if answer.row_count == 1 and len(lay_out(every, width)) > 1:
        return [*title, *_one_row(every, width), [], *end]
    every = [_aligned(field) for field in every]
    fields, layout = (every, lay_out(every, width)) if wide else fitting(every, width)
    if hidden := [field.named for field in every if field not in fields]:
        named = (
            ", ".join(hidden)
            if len(hidden) <= _NAMED
            else f"{', '.join(hidden[:_NAMED])} and {len(hidden) - _NAMED} more"
        )
        also = f"columns hidden (terminal too narrow): {named}; --wide shows them"
        end += [[(line, "dim")] for line in _paragraph(also, width)]
    if wholes := shares(fields):
        end += [[(line, "dim")] for line in _paragraph(wholes, width)]
    subject = next((field for field in fields if not field.right), None)
    header = [segments for line in layout for segments in _header(line)]
    widest = max(line.width for line in layout)
    rule: Segments = [("─" * (widest if width is None else min(widest, width)), "dim")]
    blocks = [(line, [_lines_of_cells(slot) for slot in line.slots]) for line in layout]
    rows: list[Segments] = []
    for at in range(len(fields[0].cells)):
        if rows and len(layout) > 1 and subject is None:
            rows.append([])  # nothing else would show where a row of several lines begins
        for line, shown in blocks:
            rows += _row(line, [cells[at] for cells in shown], subject)
    return [*title, *header, rule, *rows, [], *end]


def _one_row(fields: Sequence[Field], width: int | None) -> Iterator[Segments]:
    """Yield the only row as a line for each column: its name and its value."""
    widest = max(width_of(field.label) for field in fields)
    for field in fields:
        unit = f"{field.unit} of {field.of}" if field.of else field.unit
        value = f"{field.cells[0]} {unit}".strip() if field.cells[0] != UNKNOWN else UNKNOWN
        room = None if width is None else max(width - widest - GAP, 1)
        for number, line in enumerate(_paragraph(value, room)):
            label = field.label if number == 0 else ""
            yield [(label + " " * (widest - width_of(label) + GAP), "bold"), (line, "")]


def write(lines: Sequence[Segments], stream: TextIO, *, color: bool) -> None:
    """Print a table's lines, in colour if that is wanted."""
    if not color:
        stream.writelines("".join(text for text, _ in segments) + "\n" for segments in lines)
        return
    from rich.console import Console
    from rich.text import Text

    # The layout is made: rich adds only the sixteen colours of the theme, and the caller has looked at NO_COLOR.
    console = Console(file=stream, force_terminal=True, color_system="standard", no_color=False, highlight=False)
    for segments in lines:
        console.print(Text.assemble(*segments), soft_wrap=True)


def _header(line: Line) -> Iterator[Segments]:
    """Yield the header's lines; headings stand at the bottom, their units are set back."""
    height = max(len(slot.heading) for slot in line.slots)
    for level in range(height):
        segments: Segments = [(" " * line.indent, "")]
        for slot in line.slots:
            at = level - height + len(slot.heading)
            text, unit = slot.heading[at] if at >= 0 else "", ""
            if slot.field.unit and at == len(slot.heading) - 1:
                unit = slot.field.heading[-1]
                text = text.removesuffix(unit)
            segments += _placed(slot, [(text, "bold"), (unit, "dim")])
        yield _stripped(segments)


def _row(line: Line, cells: Sequence[Sequence[str]], subject: Field | None) -> Iterator[Segments]:
    """Yield the lines of one row; a text that is wrapped makes more than one."""
    for level in range(max(map(len, cells))):
        segments: Segments = [(" " * line.indent, "")]
        for slot, texts in zip(line.slots, cells, strict=True):
            text = texts[level] if level < len(texts) else ""
            segments += _placed(slot, [(text, _style(slot.field, text, subject))])
        yield _stripped(segments)


def _style(field: Field, text: str, subject: Field | None) -> str:
    """The style of a cell: of a word of severity, or of what the row is about."""
    if field.label in severity.COLUMNS and text in severity.STYLES:
        return severity.STYLES[text]
    return "cyan" if field is subject else ""


def _placed(slot: Slot, segments: Segments) -> Segments:
    """Fill segments up to the slot's width, on the side that it asks for, and add the gap to the next slot."""
    space = " " * (slot.width - sum(width_of(text) for text, _ in segments))
    left, right = (space, "") if slot.field.right else ("", space)
    return [(left, ""), *segments, (right + " " * GAP, "")]


def _stripped(segments: Segments) -> Segments:
    """Take the spaces off the end of a line."""
    while segments and not segments[-1][0].rstrip():
        segments = segments[:-1]
    return [*segments[:-1], (segments[-1][0].rstrip(), segments[-1][1])] if segments else []


def _lines_of_cells(slot: Slot) -> list[list[str]]:
    """Return the lines that each cell of a column takes in its slot."""
    field = slot.field
    if not field.flexible:
        return [[cell] for cell in field.cells]
    if field.kind == "name":
        fitted = fit_all(field.cells, slot.width)
        return [[fitted[cell]] for cell in field.cells]
    return [wrap(cell, slot.width) for cell in field.cells]


def _aligned(field: Field) -> Field:
    """Fill up numbers with spaces so that right-aligned ones have their decimal points in one column."""
    if field.kind != "number":
        return field
    places = [len(cell) - cell.find(".") if "." in cell else 0 for cell in field.cells]
    most = max(places, default=0)
    return replace(field, cells=[cell + " " * (most - own) for cell, own in zip(field.cells, places, strict=True)])


def _paragraph(text: str, width: int | None) -> list[str]:
    return [text] if width is None else wrap(text, width)
