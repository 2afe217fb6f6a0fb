"""JSON: the whole answer as one object, which says what its columns mean."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.render.plain import plain
from nsys_insight.text.units import unit_of

if TYPE_CHECKING:
    from nsys_insight.errors import InsightError
    from nsys_insight.session.answer import Answer

SCHEMA = "nsys-insight/1"


def error(what: InsightError) -> dict[str, Any]:
    """An error as an object: what kind it is (by which exit code), the sentence, and what to type next."""
    said = {"kind": what.kind, "exit_code": int(what.exit_code), "message": what.message, "hint": what.hint or None}
    return {"schema": SCHEMA, "error": said}


def write(answer: Answer, stream: TextIO, limit: int | None) -> None:
    """Write one object, a column and a row per line, fetching the rows in pieces."""
    head = {
        "schema": SCHEMA,
        "report": answer.report,
        "trace": plain(answer.trace),
        "params": plain(answer.params),
        "notes": [*answer.notes, *answer.left_out],
        "row_count": answer.row_count,
        **({"summary": plain(answer.summary)} if answer.summary else {}),
    }
    columns = (
        {"name": column.name, "unit": unit_of(column.name), "description": column.description}
        for column in answer.columns
    )
    names = [column.name for column in answer.columns]
    rows = (dict(zip(names, map(plain, row), strict=True)) for batch in answer.batches(limit=limit) for row in batch)
    stream.write(json.dumps(head, indent=2, allow_nan=False).removesuffix("\n}"))
    for key, items in (("columns", columns), ("rows", rows)):
        stream.write(f',\n  "{key}": [')
        objects = (json.dumps(item, allow_nan=False) for item in items)
        stream.writelines(("," if at else "") + "\n    " + text for at, text in enumerate(objects))
        stream.write("\n  ]")
    stream.write("\n}\n")
