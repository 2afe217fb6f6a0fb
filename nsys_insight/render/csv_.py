"""CSV: a header and raw values; NULL is an empty field. A spreadsheet takes some texts for formulas: see `write`."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.render.json_ import plain

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer


_AS_THEY_ARE = frozenset({"BIGINT", "INTEGER", "VARCHAR"})
# How texts begin that spreadsheets take for formulas; some do so for wide characters too, and behind spaces.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


class _UnixLines:
    """Give each line a plain line feed, after the csv module has written it with a carriage return.

    The csv module quotes a value for the line ends that it writes itself: told to end lines in a line feed
    alone it leaves a carriage return in a value bare, and readers take that for the end of the row.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        self._stream.write(line.removesuffix("\r\n") + "\n")


def write(answer: Answer, stream: TextIO, limit: int | None, *, safe: bool = False) -> None:
    """Write a line for each row, fetching the rows in pieces.

    With `safe`, an apostrophe stands before each text that a spreadsheet would take for a formula.
    """
    writer = csv.writer(_UnixLines(stream), lineterminator="\r\n")
    writer.writerow(_no_formula(column.name) if safe else column.name for column in answer.columns)
    # Most columns go as they are; to ask each cell what it is takes twice as long as to write it.
    as_they_are = _AS_THEY_ARE - {"VARCHAR"} if safe else _AS_THEY_ARE
    others = [place for place, column in enumerate(answer.columns) if column.type not in as_they_are]
    for batch in answer.batches(limit=limit):
        writer.writerows(_converted(row, others, safe=safe) for row in batch) if others else writer.writerows(batch)


def _converted(row: tuple[Any, ...], places: list[int], *, safe: bool) -> list[Any]:
    cells = list(row)
    for place in places:
        cells[place] = _no_formula(_text(cells[place])) if safe else _text(cells[place])
    return cells


def _no_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _text(value: Any) -> Any:
    """Write containers and truth values as JSON does, so that one parser reads them wherever they come from."""
    value = plain(value)
    return json.dumps(value) if isinstance(value, bool | list | dict) else value
