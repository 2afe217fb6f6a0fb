"""Whole numbers in rows of a SQLite table, read from the bytes of its pages with NumPy, thousands of rows at once.

Before its cells a row has a header, with the type and so the size of each. Thousands of rows have a dozen headers: what
each says is worked out once, and a cell that begins at one byte of all rows is read at a stride. The format is
documented and does not change (https://sqlite.org/fileformat.html).
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# What stands for NULL in a column that has one.
NULL = -(1 << 63)
# So many bytes must follow the last page: a row is copied along with what comes after it, as far as its last cell.
SLACK = 512
# Rows with more headers than about that take less time in SQLite.
_MOST = 300
# What the words of a header are multiplied by to make one number of them.
_ODD = 0x9E3779B97F4A7C15
# Types of cells: one that is not a whole number, and two that stand for the numbers 0 and 1.
_REAL, _NOUGHT, _ONE = 7, 8, 9
# How many bytes a cell of each type has.
_SIZES = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((kind - 12) // 2 for kind in range(12, 128))]


class NotPlainError(Exception):
    """A table has what is left to SQLite: other cells than whole numbers, or pages of another make."""


class Part(NamedTuple):
    """Cells by column, and how many of each are NULL."""

    columns: list[Ints]
    nulls: list[int]


class Cell(NamedTuple):
    """The type of a cell, and how many bytes after the first one of its row's header it begins."""

    kind: int
    start: int


class Layout(NamedTuple):
    """Which rows have one header, its cells up to the last one that is read, and where that one ends."""

    rows: Ints
    cells: list[Cell]
    end: int


def read(data: Bytes, page: Ints, row: Ints, places: Sequence[int], usable: int) -> Part:
    """Read cells of rows.

    Args:
        data: Pages, with `SLACK` bytes after the last one.
        page: At which byte the page of each row begins.
        row: At which byte each row begins: with its length and its number.
        places: Which of its cells are wanted.
        usable: How many bytes of a page can be used.

    Raises:
        NotPlainError: The rows are to be read by SQLite.
    """
    import numpy as np

    if not len(row):
        return Part([np.zeros(0, dtype=np.int64)] * len(places), [0] * len(places))
    try:
        length, at = _length(data, row)
        head = _after_number(data, at)
        if length.max() > usable - 35 or (head - page + length > usable).any():
            raise NotPlainError("a row goes on in other pages")
        layouts = [_layout(rows, header) for rows, header in _told_apart(data, head, max(places) + 1)]
        if any((length[layout.rows] < layout.end).any() for layout in layouts):
            raise NotPlainError("a row is shorter than its cells")
        size = max(layout.cells[place].start for layout in layouts for place in places) + 8
        if size > SLACK:
            raise NotPlainError("a cell is far from its row's first one")
        block = _blocks(data, head, size)
    except IndexError:
        raise NotPlainError("a row lies outside of its page") from None
    columns, nulls = zip(*(_column(block, layouts, place) for place in places), strict=True)
    return Part(list(columns), list(nulls))


def _length(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Read a row's length, a number of one byte or two, and tell where it ends."""
    first = data[at].astype("int64")
    if first.max() < 128:
        return first, at + 1
    second, is_long = data[at + 1], first > 127
    if (second[is_long] > 127).any():
        raise NotPlainError("a row is long")
    first[is_long] = (first[is_long] & 127) << 7 | second[is_long]
    return first, at + 1 + is_long


def _after_number(data: Bytes, at: Ints) -> Ints:
    """Tell where a row's number ends, of which each byte but the last one is above 127, and there are at most nine."""
    goes_on = data[at] > 127
    at = at + 1
    for _ in range(8):
        if not goes_on.any():
            break
        following = data[at] > 127
        at = at + goes_on
        goes_on = goes_on & following
    return at


def _blocks(data: Bytes, at: Ints, size: int) -> Bytes:
    """Copy so many bytes, rounded up to eight, from each place; to copy a hundred takes as long as to copy eight."""
    import numpy as np

    size += -size % 8
    copied = np.ndarray(len(data) - size + 1, f"V{size}", data, strides=(1,))[at]
    return copied.view(np.uint8).reshape(len(at), size)


def _told_apart(data: Bytes, head: Ints, cells: int) -> Iterator[tuple[Ints, list[int]]]:
    """Give the rows with each header, and this: its own length, then the types of so many cells."""
    import numpy as np

    block = _blocks(data, head, cells + 1)
    block[:, cells + 1 :] = 0
    words = block.view(np.uint64)
    key = words[:, 0].copy()
    for at in range(1, words.shape[1]):
        key *= np.uint64(_ODD)
        key ^= words[:, at]
    left = np.arange(len(key))
    for _ in range(_MOST):
        alike = key == key[0]
        rows = left[alike]
        first = int(rows[0])
        # Two headers may give one number.
        if words.shape[1] > 1 and any((word[rows] != word[first]).any() for word in words.T):
            break
        yield rows, block[first, : cells + 1].tolist()
        if len(rows) == len(left):
            return
        np.logical_not(alike, out=alike)
        left, key = left[alike], key[alike]
    raise NotPlainError("its headers are hard to tell apart")


def _layout(rows: Ints, header: Sequence[int]) -> Layout:
    """Work out what a header says."""
    length, *types = header
    if length > 127 or length < len(header):
        raise NotPlainError("a row lacks cells")
    if any(kind > 127 or kind in (10, 11) for kind in types):
        raise NotPlainError("a cell is long")
    *starts, end = accumulate((_SIZES[kind] for kind in types), initial=length)
    return Layout(rows, list(map(Cell, types, starts)), end)


def _column(block: Bytes, layouts: Sequence[Layout], place: int) -> tuple[Ints, int]:
    """Read a cell of each row: first as most headers say, then again where they say otherwise.

    Returns how many are NULL as well.
    """
    import numpy as np

    rows: dict[Cell, list[Ints]] = {}
    for layout in layouts:
        rows.setdefault(layout.cells[place], []).append(layout.rows)
    if any(cell.kind == _REAL or cell.kind > _ONE for cell in rows):
        raise NotPlainError("a cell is not a whole number")
    count = {cell: sum(map(len, parts)) for cell, parts in rows.items()}
    most = max(count, key=lambda cell: count[cell])
    column: Ints = np.empty(len(block), dtype=np.int64)
    _fill(column, block, most)
    for cell, parts in rows.items():
        if cell != most:
            _fill(column, block, cell, parts[0] if len(parts) == 1 else np.concatenate(parts))
    return column, sum(count[cell] for cell in count if cell.kind == 0)


def _fill(column: Ints, block: Bytes, cell: Cell, rows: Ints | None = None) -> None:
    """Read cells of one type that begin at one byte, of all rows or of some."""
    import numpy as np

    kind, start = cell
    if not _SIZES[kind]:
        column[slice(None) if rows is None else rows] = kind - _NOUGHT if kind else NULL
        return
    shift = 64 - 8 * _SIZES[kind]
    eight = np.ndarray(len(block), ">i8", block, start, (block.shape[1],))
    if rows is None:
        np.right_shift(eight, shift, out=column)
    else:
        column[rows] = eight[rows] >> shift
