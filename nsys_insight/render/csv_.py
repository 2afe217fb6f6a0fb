"""CSV: a header and raw values. NULL is an empty field. Spreadsheets read some texts as formulas: see `write`."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.render.json_ import make_plain

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer


_UNCHANGED_TYPES = frozenset({"BIGINT", "INTEGER", "VARCHAR"})
# The start of texts that spreadsheets read as formulas. Some accept wide characters and leading spaces too.
_FORMULA_START = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


class _UnixLines:
    """Replace the carriage return and line feed that the csv module writes at the end of a line by a line feed.

    The csv module quotes values that contain its own line end. With a line feed as line end, it would not quote a
    carriage return in a value, and readers would take that for the end of the row.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        self._stream.write(line.removesuffix("\r\n") + "\n")


def write(answer: Answer, stream: TextIO, limit: int | None, *, is_safe: bool = False) -> None:
    """Write a line for each row. Rows are fetched in batches.

    With `is_safe`, put an apostrophe before each text that a spreadsheet would read as a formula.
    """
    writer = csv.writer(_UnixLines(stream), lineterminator="\r\n")
    writer.writerow(_escape_formula(column.name) if is_safe else column.name for column in answer.columns)
    # Most columns are written unchanged. Checking the type of each cell would take twice as long as writing it.
    unchanged_types = _UNCHANGED_TYPES - {"VARCHAR"} if is_safe else _UNCHANGED_TYPES
    converted_indexes = [index for index, column in enumerate(answer.columns) if column.type not in unchanged_types]
    for batch in answer.batches(limit=limit):
        if converted_indexes:
            writer.writerows(_convert_row(row, converted_indexes, is_safe=is_safe) for row in batch)
        else:
            writer.writerows(batch)


def _convert_row(row: tuple[Any, ...], indexes: list[int], *, is_safe: bool) -> list[Any]:
    cells = list(row)
    for index in indexes:
        cells[index] = _escape_formula(_convert_cell(cells[index])) if is_safe else _convert_cell(cells[index])
    return cells


def _escape_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _FORMULA_START.match(cell) else cell


def _convert_cell(value: Any) -> Any:
    """Write containers and booleans as in JSON, so that one parser reads both formats."""
    value = make_plain(value)
    return json.dumps(value) if isinstance(value, bool | list | dict) else value
