"""JSON: the full answer as one object with descriptions of its columns, or a line per row."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.text.units import unit_of

if TYPE_CHECKING:
    from nsys_insight.errors import InsightError
    from nsys_insight.session.answer import Answer

SCHEMA = "nsys-insight/1"
_PLAIN_TYPES = frozenset({bool, int, str, type(None)})


def make_plain(value: Any) -> Any:  # noqa: PLR0911 - one return for each kind of value
    """Turn a value of any SQL type into None, bool, int, float, str, list or dict, neither scaled nor rounded.

    NaN and infinity become None.
    """
    if type(value) in _PLAIN_TYPES:
        return value
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes() | bytearray():
            return value.hex()
        case dict():
            return {str(key): make_plain(item) for key, item in value.items()}
        case list() | tuple():
            return [make_plain(item) for item in value]
        case _:
            return str(value)


def describe_error(error: InsightError) -> dict[str, Any]:
    """Return an error as an object: its kind and exit code, the sentence, and what to type next."""
    fields = {
        "kind": error.kind,
        "exit_code": int(error.exit_code),
        "message": error.message,
        "hint": error.hint or None,
    }
    return {"schema": SCHEMA, "error": fields}


def write(answer: Answer, stream: TextIO, limit: int | None) -> None:
    """Write one object, with one line per column and per row. Rows are fetched in batches."""
    head = {
        "schema": SCHEMA,
        "report": answer.report,
        "trace": make_plain(answer.trace),
        "params": make_plain(answer.params),
        "notes": [*answer.notes, *answer.left_out],
        "row_count": answer.row_count,
        **({"summary": make_plain(answer.summary)} if answer.summary else {}),
    }
    columns = (
        {"name": column.name, "unit": unit_of(column.name), "description": column.description}
        for column in answer.columns
    )
    names = [column.name for column in answer.columns]
    rows = (
        dict(zip(names, map(make_plain, row), strict=True)) for batch in answer.batches(limit=limit) for row in batch
    )
    stream.write(json.dumps(head, indent=2, allow_nan=False).removesuffix("\n}"))
    for key, items in (("columns", columns), ("rows", rows)):
        stream.write(f',\n  "{key}": [')
        objects = (json.dumps(item, allow_nan=False) for item in items)
        stream.writelines(("," if index else "") + "\n    " + text for index, text in enumerate(objects))
        stream.write("\n  ]")
    stream.write("\n}\n")


def write_lines(answer: Answer, stream: TextIO, limit: int | None) -> None:
    """Write JSON lines, one object per row. Rows are fetched in batches."""
    names = [column.name for column in answer.columns]
    for batch in answer.batches(limit=limit):
        stream.writelines(
            json.dumps(dict(zip(names, map(make_plain, row), strict=True)), allow_nan=False) + "\n" for row in batch
        )
