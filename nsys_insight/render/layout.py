"""Where the columns of a table stand: side by side, or on several lines per row where one line is too narrow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsys_insight.text.cells import width_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.render.fields import Field

GAP = 2
INDENT = 4
# Cells in which a shortened name still shows its functor, and a sentence that is wrapped can be read.
_READABLE = {"name": 32, "text": 24}
_FEWEST = 3  # columns that a table is still a table with
_COMFORTABLE = 40  # cells of a name that has no numbers beside it


@dataclass(frozen=True)
class Slot:
    """A column's place: how wide it is, and the lines of its header."""

    field: Field
    width: int
    heading: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """Slots that stand side by side."""

    slots: tuple[Slot, ...]
    indent: int = 0

    @property
    def width(self) -> int:
        """How many cells the line takes."""
        return self.indent + sum(slot.width for slot in self.slots) + GAP * (len(self.slots) - 1)


def fitting(fields: Sequence[Field], width: int | None) -> tuple[Sequence[Field], list[Line]]:
    """Return the columns of which a row fits on one line, and their places.

    Details are hidden first, but for those that matter; then, if the table says which columns matter most, others from
    the last. Where not even three fit, a row of all but the details takes several lines.
    """
    layout = lay_out(fields, width)
    if len(layout) == 1:
        return fields, layout
    kept = [field for field in fields if not field.detail or field.place is not None]
    if any(field.place is not None for field in kept):
        for count in range(len(kept), _FEWEST - 1, -1):
            layout = lay_out(kept[:count], width)
            if len(layout) == 1:
                return kept[:count], layout
    return kept, lay_out(kept, width)


def lay_out(fields: Sequence[Field], width: int | None) -> list[Line]:
    """Place columns into lines of at most `width` cells, or all on one line if there is no limit.

    No number is ever cut. Where space is short, headers break into two lines, then names and texts give way down to a
    readable minimum, then a row takes several lines. Only what may not be shortened and is wider than `width` alone (a
    number, a whole name) makes a line longer.
    """
    flat = Line(tuple(_slot(field) for field in fields))
    if width is None or flat.width <= width:
        return [flat]
    stacked = Line(tuple(_slot(field, stacked=True, most=_READABLE.get(field.kind)) for field in fields))
    return [_widened(stacked, width)] if stacked.width <= width else _records(fields, width)


def _slot(field: Field, *, stacked: bool = False, most: int | None = None) -> Slot:
    """Give a column the space it needs; one that can be shortened or wrapped is content with `most` cells."""
    content = field.natural
    if most is not None and field.flexible:
        content = min(content, most)
    words = field.heading
    heading: tuple[str, ...] = (" ".join(words),)
    if stacked and width_of(heading[0]) > content:
        splits: list[tuple[str, ...]] = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
        if field.says_of_what:  # "% of" has little to do with the words behind it
            splits += [(*split[:1], *rest) for split in splits for rest in _halves(split[1])]
        heading = min([heading, *splits], key=lambda lines: (max(content, *map(width_of, lines)), len(lines)))
    return Slot(field, max(content, *map(width_of, heading)), heading)


def _halves(text: str) -> Iterator[tuple[str, str]]:
    words = text.split()
    yield from ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))


def _widened(line: Line, width: int) -> Line:
    """Share the space that is left among the columns that could use it, evenly."""
    slots, spare = list(line.slots), max(0, width - line.width)
    wider = [_slot(slot.field, stacked=True) for slot in slots]
    short = sorted(range(len(slots)), key=lambda at: wider[at].width - slots[at].width)
    for position, at in enumerate(short):
        more = min(wider[at].width - slots[at].width, spare // (len(short) - position))
        slots[at] = replace(slots[at], width=slots[at].width + more)
        spare -= more
    return replace(line, slots=tuple(slots))


def _records(fields: Sequence[Field], width: int) -> list[Line]:
    """Give each row several lines: the texts first, then the numbers in a grid."""
    texts, numbers = ([field for field in fields if field.right == right] for right in (False, True))
    lines = [Line(tuple(_slot(field, most=_COMFORTABLE) for field in texts))] if texts else []
    if lines and lines[0].width > width:
        # Not all fit beside the first, which says what the row is about: then it gets a line to itself.
        lines = [Line((_slot(texts[0], most=width),)), *_packed(texts[1:], width)]
    return [_widened(line, width) for line in lines] + _grid(numbers, width, INDENT if lines else 0)


def _packed(fields: Sequence[Field], width: int) -> list[Line]:
    """Put as many texts on each line as fit."""
    lines: list[Line] = []
    for field in fields:
        slot = _slot(field, most=min(_COMFORTABLE, width - INDENT))
        if lines and lines[-1].width + GAP + slot.width <= width:
            lines[-1] = replace(lines[-1], slots=(*lines[-1].slots, slot))
        else:
            lines.append(Line((slot,), INDENT))
    return lines


def _grid(fields: Sequence[Field], width: int, indent: int) -> list[Line]:
    """Place numbers in as few lines as will do, in columns that are aligned from line to line."""
    lines: list[Line] = []
    for count in range(1, len(fields) + 1):
        for stacked in (False, True):
            slots = [_slot(field, stacked=stacked) for field in fields]
            across = -(-len(slots) // count)
            widths = [max(slot.width for slot in slots[at::across]) for at in range(across)]
            lines = [
                Line(tuple(replace(slot, width=cells) for slot, cells in zip(row, widths, strict=False)), indent)
                for row in (slots[at : at + across] for at in range(0, len(slots), across))
            ]
            if lines[0].width <= width:
                return lines
    return lines
