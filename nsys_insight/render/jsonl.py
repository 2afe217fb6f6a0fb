"""JSON lines: one object per row, to be read while it is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from nsys_insight.render.plain import plain

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer


def write(answer: Answer, stream: TextIO, limit: int | None) -> None:
    """Write a line for each row, fetching the rows in pieces."""
    names = [column.name for column in answer.columns]
    for batch in answer.batches(limit=limit):
        stream.writelines(
            json.dumps(dict(zip(names, map(plain, row), strict=True)), allow_nan=False) + "\n" for row in batch
        )
