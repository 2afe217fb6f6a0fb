"""The layout of a table's columns: on one line per row, or on several if one line is too narrow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsys_insight.text.cells import width_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsys_insight.render.fields import Field

GAP = 2
INDENT = 4
# Cells in which a shortened name still shows its functor, and a wrapped sentence is readable.
_READABLE_WIDTH = {"name": 32, "text": 24}
# Cells to which names and texts shrink if a name or text column would be hidden otherwise.
_MIN_WIDTH = {"name": 20, "text": 16}
_MIN_COLUMNS = 3  # the minimum number of columns of a table with hidden columns
_COMFORTABLE_WIDTH = 40  # cells of a name on a line without numbers


@dataclass(frozen=True)
class Slot:
    """A column in the layout: its width, and the lines of its header."""

    field: Field
    width: int
    heading: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """Slots on one line."""

    slots: tuple[Slot, ...]
    indent: int = 0

    @property
    def width(self) -> int:
        """Return the width of the line, in cells."""
        return self.indent + sum(slot.width for slot in self.slots) + GAP * (len(self.slots) - 1)


def fit_columns(fields: Sequence[Field], width: int | None) -> tuple[Sequence[Field], list[Line]]:
    """Return the columns that fit on one line, and their layout.

    Details without a position are hidden first. Then, if some columns have a position, others are hidden from the last
    on. Names and texts with a position say what a row is about and where: before one of them is hidden, all of them
    shrink. If fewer than three columns fit, a row of all columns except the details takes several lines.
    """
    layout = lay_out(fields, width)
    if len(layout) == 1:
        return fields, layout
    visible_fields = [field for field in fields if not field.is_detail or field.position is not None]
    if any(field.position is not None for field in visible_fields):
        place_indexes = [
            index
            for index, field in enumerate(visible_fields, 1)
            if field.position is not None and not field.is_right_aligned
        ]
        for widths, fewest in ((_READABLE_WIDTH, max(place_indexes, default=0)), (_MIN_WIDTH, 0)):
            for count in range(len(visible_fields), max(fewest, _MIN_COLUMNS) - 1, -1):
                layout = lay_out(visible_fields[:count], width, widths)
                if len(layout) == 1:
                    return visible_fields[:count], layout
    return visible_fields, lay_out(visible_fields, width)


def lay_out(fields: Sequence[Field], width: int | None, min_widths: Mapping[str, int] = _READABLE_WIDTH) -> list[Line]:
    """Place columns into lines of at most `width` cells, or all on one line if there is no limit.

    Numbers are never cut. If space is short, headers break into two lines, then names and texts shrink to the minimum
    width of their kind, then a row takes several lines. A line exceeds `width` only for a number or a full name that is
    wider.
    """
    flat = Line(tuple(_make_slot(field) for field in fields))
    if width is None or flat.width <= width:
        return [flat]
    stacked = Line(tuple(_make_slot(field, stacked=True, max_width=min_widths.get(field.kind)) for field in fields))
    return [_widen(stacked, width)] if stacked.width <= width else _lay_out_records(fields, width)


def _make_slot(field: Field, *, stacked: bool = False, max_width: int | None = None) -> Slot:
    """Give a column the space it needs. If it can be shortened or wrapped, it takes at most `max_width` cells."""
    content_width = field.content_width
    if max_width is not None and field.is_flexible:
        content_width = min(content_width, max_width)
    words = field.heading
    heading: tuple[str, ...] = (" ".join(words),)
    if stacked and width_of(heading[0]) > content_width:
        splits: list[tuple[str, ...]] = [
            (" ".join(words[:index]), " ".join(words[index:])) for index in range(1, len(words))
        ]
        if field.is_share_base_in_heading:  # "% of" may be on a line without the words after it
            splits += [(*split[:1], *halves) for split in splits for halves in _split_in_two(split[1])]
        heading = min([heading, *splits], key=lambda lines: (max(content_width, *map(width_of, lines)), len(lines)))
    return Slot(field, max(content_width, *map(width_of, heading)), heading)


def _split_in_two(text: str) -> Iterator[tuple[str, str]]:
    words = text.split()
    yield from ((" ".join(words[:index]), " ".join(words[index:])) for index in range(1, len(words)))


def _widen(line: Line, width: int) -> Line:
    """Distribute the remaining space evenly among the columns that can use it."""
    slots, spare = list(line.slots), max(0, width - line.width)
    preferred_slots = [_make_slot(slot.field, stacked=True) for slot in slots]
    order = sorted(range(len(slots)), key=lambda index: preferred_slots[index].width - slots[index].width)
    for position, index in enumerate(order):
        extra = min(preferred_slots[index].width - slots[index].width, spare // (len(order) - position))
        slots[index] = replace(slots[index], width=slots[index].width + extra)
        spare -= extra
    return replace(line, slots=tuple(slots))


def _lay_out_records(fields: Sequence[Field], width: int) -> list[Line]:
    """Give each row several lines: the texts first, then the numbers in a grid."""
    texts, numbers = (
        [field for field in fields if field.is_right_aligned == is_right_aligned] for is_right_aligned in (False, True)
    )
    lines = [Line(tuple(_make_slot(field, max_width=_COMFORTABLE_WIDTH) for field in texts))] if texts else []
    if lines and lines[0].width > width:
        # They do not all fit on one line. The first one says what the row is about, so it gets a line of its own.
        lines = [Line((_make_slot(texts[0], max_width=width),)), *_pack(texts[1:], width)]
    return [_widen(line, width) for line in lines] + _lay_out_grid(numbers, width, INDENT if lines else 0)


def _pack(fields: Sequence[Field], width: int) -> list[Line]:
    """Put the maximum number of texts on each line."""
    lines: list[Line] = []
    for field in fields:
        slot = _make_slot(field, max_width=min(_COMFORTABLE_WIDTH, width - INDENT))
        if lines and lines[-1].width + GAP + slot.width <= width:
            lines[-1] = replace(lines[-1], slots=(*lines[-1].slots, slot))
        else:
            lines.append(Line((slot,), INDENT))
    return lines


def _lay_out_grid(fields: Sequence[Field], width: int, indent: int) -> list[Line]:
    """Place numbers on the minimum number of lines, in columns that are aligned across the lines."""
    lines: list[Line] = []
    for count in range(1, len(fields) + 1):
        for stacked in (False, True):
            slots = [_make_slot(field, stacked=stacked) for field in fields]
            columns_per_line = -(-len(slots) // count)
            widths = [max(slot.width for slot in slots[index::columns_per_line]) for index in range(columns_per_line)]
            lines = [
                Line(tuple(replace(slot, width=cells) for slot, cells in zip(row, widths, strict=False)), indent)
                for row in (slots[start : start + columns_per_line] for start in range(0, len(slots), columns_per_line))
            ]
            if lines[0].width <= width:
                return lines
    return lines
