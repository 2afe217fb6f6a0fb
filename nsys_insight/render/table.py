"""The table for the terminal: numbers and columns are never cut, names use the available space."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from nsys_insight.render.fields import (
    build_fields,
    describe_shares,
    drop_unknown_details,
    fold_zero_rows,
    sort_by_position,
    write_footer,
)
from nsys_insight.render.layout import GAP, Line, Slot, fit_columns, lay_out
from nsys_insight.text.cells import SEVERITY_COLUMNS, SEVERITY_STYLES, printable, width_of, wrap
from nsys_insight.text.kernel_names import fit_all
from nsys_insight.text.units import UNKNOWN, add_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.render.fields import Field
    from nsys_insight.session.answer import Answer

_MAX_LISTED = 6  # hidden columns that are listed (the report's help lists all)
Segments = list[tuple[str, str]]  # texts and their styles, as rich names them


def build_lines(
    answer: Answer, limit: int | None, width: int | None, *, full_names: bool, wide: bool = False
) -> list[Segments]:
    """Return the table's lines: the title, the headers, the rows, and the number of rows.

    If a row does not fit on one line, columns are hidden and listed below. With `wide` a row takes several lines.
    Metrics that are 0 everywhere are hidden unless `wide`. A report's names come last:
    they get the width that is left.
    """
    title = (
        [[(line, "bold")] for line in _wrap_paragraph(printable(answer.heading), width)] + [[]]
        if answer.heading
        else []
    )
    footer = write_footer(answer, limit)
    check_lines = [line for text in answer.file_checks for line in _dim_lines(printable(text), width)]
    if not answer.row_count:
        return [*title, *_dim_lines(footer, width), *check_lines]
    all_fields = sort_by_position(drop_unknown_details(build_fields(answer, answer.rows(limit), full_names=full_names)))
    if not wide:
        all_fields, zero_count = fold_zero_rows(all_fields)
        footer += f"; {zero_count} of them, all zeros, are hidden (--wide)" if zero_count else ""
    footer_lines = [*_dim_lines(footer, width), *check_lines]
    if answer.row_count == 1 and len(lay_out(all_fields, width)) > 1:
        return [*title, *_write_single_row(all_fields, width), [], *footer_lines]
    all_fields = [_align_numbers(field) for field in all_fields]
    fields, layout = (all_fields, lay_out(all_fields, width)) if wide else fit_columns(all_fields, width)
    if len(layout) == 1:
        fields = sorted(fields, key=_is_long_name)
        slots = sorted(layout[0].slots, key=lambda slot: _is_long_name(slot.field))
        layout = [replace(layout[0], slots=tuple(slots))]
    shown_titles = {field.title for field in fields}
    # The time of something may be hidden, and its name shown: the unit tells them apart.
    if hidden_titles := [
        " ".join(field.heading) if field.title in shown_titles else field.title
        for field in all_fields
        if field not in fields
    ]:
        names = (
            ", ".join(hidden_titles)
            if len(hidden_titles) <= _MAX_LISTED
            else f"{', '.join(hidden_titles[:_MAX_LISTED])} and {len(hidden_titles) - _MAX_LISTED} more"
        )
        hint = f"More columns: {names} (--wide)"
        footer_lines += _dim_lines(hint, width)
    if share_text := describe_shares(fields):
        footer_lines += _dim_lines(share_text, width)
    subject = next((field for field in fields if not field.is_right_aligned), None)
    header = [segments for line in layout for segments in _write_header(line)]
    widest = max(line.width for line in layout)
    rule: Segments = [("─" * (widest if width is None else min(widest, width)), "dim")]
    blocks = [(line, [_wrap_cells(slot) for slot in line.slots]) for line in layout]
    rows: list[Segments] = []
    for index in range(len(fields[0].cells)):
        if rows and len(layout) > 1 and subject is None:
            rows.append([])  # an empty line separates rows of several lines
        for line, cell_lines in blocks:
            rows += _write_row(line, [cells[index] for cells in cell_lines], subject)
    return [*title, *header, rule, *rows, [], *footer_lines]


def _write_single_row(fields: Sequence[Field], width: int | None) -> Iterator[Segments]:
    """Yield a single row as one line per label: its name and its value. A share follows the value that it is of."""
    values: dict[str, list[str]] = {}
    for field in fields:
        unit = f"{field.unit} of {field.share_of}" if field.share_of else field.unit
        value = add_unit(field.cells[0], unit) if field.cells[0] != UNKNOWN else UNKNOWN
        values.setdefault(field.label, []).append(value)
    widest = max(map(width_of, values))
    max_width = None if width is None else max(width - widest - GAP, 1)
    for label, texts in values.items():
        main_text, *shares = sorted(texts, key=lambda text: "%" in text)
        text = f"{main_text} ({', '.join(shares)})" if shares else main_text
        for number, line in enumerate(_wrap_paragraph(text, max_width)):
            shown_label = label if number == 0 else ""
            yield [(shown_label + " " * (widest - width_of(shown_label) + GAP), "bold"), (line, "")]


def write(lines: Sequence[Segments], stream: TextIO, *, color: bool) -> None:
    """Write a table's lines, optionally in color."""
    if not color:
        stream.writelines("".join(text for text, _ in segments) + "\n" for segments in lines)
        return
    from rich.console import Console
    from rich.text import Text

    # rich only adds the sixteen colors of the theme: the layout is complete, and the caller has checked NO_COLOR.
    console = Console(file=stream, force_terminal=True, color_system="standard", no_color=False, highlight=False)
    for segments in lines:
        console.print(Text.assemble(*segments), soft_wrap=True)


def _write_header(line: Line) -> Iterator[Segments]:
    """Yield the header's lines. Headings are aligned at the bottom, and their units are dim."""
    height = max(len(slot.heading) for slot in line.slots)
    for level in range(height):
        segments: Segments = [(" " * line.indent, "")]
        for slot in line.slots:
            word_index = level - height + len(slot.heading)
            text, unit = slot.heading[word_index] if word_index >= 0 else "", ""
            if slot.field.unit and word_index == len(slot.heading) - 1:
                unit = slot.field.heading[-1]
                text = text.removesuffix(unit)
            segments += _pad_segments(slot, [(text, "bold"), (unit, "dim")])
        yield _strip_segments(segments)


def _write_row(line: Line, cells: Sequence[Sequence[str]], subject: Field | None) -> Iterator[Segments]:
    """Yield the lines of one row: several if a text is wrapped."""
    for level in range(max(map(len, cells))):
        segments: Segments = [(" " * line.indent, "")]
        for slot, texts in zip(line.slots, cells, strict=True):
            text = texts[level] if level < len(texts) else ""
            segments += _pad_segments(slot, [(text, _pick_style(slot.field, text, subject))])
        yield _strip_segments(segments)


def _pick_style(field: Field, text: str, subject: Field | None) -> str:
    """Return the style of a cell: a severity has its own, and the first text column is highlighted."""
    if field.label in SEVERITY_COLUMNS and text in SEVERITY_STYLES:
        return SEVERITY_STYLES[text]
    return "cyan" if field is subject else ""


def _pad_segments(slot: Slot, segments: Segments) -> Segments:
    """Pad segments to the slot's width according to its alignment, and add the gap to the next slot."""
    space = " " * (slot.width - sum(width_of(text) for text, _ in segments))
    left, right = (space, "") if slot.field.is_right_aligned else ("", space)
    return [(left, ""), *segments, (right + " " * GAP, "")]


def _strip_segments(segments: Segments) -> Segments:
    """Remove the spaces at the end of a line."""
    while segments and not segments[-1][0].rstrip():
        segments = segments[:-1]
    return [*segments[:-1], (segments[-1][0].rstrip(), segments[-1][1])] if segments else []


def _wrap_cells(slot: Slot) -> list[list[str]]:
    """Return the lines that each cell of a column takes in its slot."""
    field = slot.field
    if not field.is_flexible:
        return [[cell] for cell in field.cells]
    if field.kind == "name":
        short_names = fit_all(field.cells, slot.width)
        return [[short_names[cell]] for cell in field.cells]
    return [wrap(cell, slot.width) for cell in field.cells]


def _align_numbers(field: Field) -> Field:
    """Pad numbers with trailing spaces, so that the decimal points of a right-aligned column line up."""
    if field.kind != "number":
        return field
    decimals = [len(cell) - cell.find(".") if "." in cell else 0 for cell in field.cells]
    max_decimals = max(decimals, default=0)
    return replace(
        field, cells=[cell + " " * (max_decimals - count) for cell, count in zip(field.cells, decimals, strict=True)]
    )


def _is_long_name(field: Field) -> bool:
    """Return whether a report's column is displayed last. Columns that a user chose keep their order."""
    return field.kind == "name" and field.position is not None


def _dim_lines(text: str, width: int | None) -> list[Segments]:
    return [[(line, "dim")] for line in _wrap_paragraph(text, width)]


def _wrap_paragraph(text: str, width: int | None) -> list[str]:
    return [text] if width is None else wrap(text, width)
