"""JSON Schemas (draft 2020-12) of what the format JSON writes: an answer with its columns, and an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.errors import Exit
from nsys_insight.render.json_ import SCHEMA
from nsys_insight.text.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nsys_insight.packs.pack import Param
    from nsys_insight.session.answer import Column

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"BIGINT": "integer", "INTEGER": "integer", "DOUBLE": "number", "BOOLEAN": "boolean", "VARCHAR": "string"}
_OF_PARAM = {int: "integer", float: "number", str: "string", bool: "boolean"}
_TRACE = "The trace of the row, if there are several"
_KINDS = ("failed", "query", "usage", "trace", "tool")


def answer(
    report: str,
    title: str,
    columns: Iterable[Column],
    params: Mapping[str, Param] | None = None,
    summary: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe the JSON of an answer.

    Args:
        report: The command's name.
        title: What it answers.
        columns: Its columns, in their order.
        params: What it takes; None of an answer whose `params` may hold anything.
        summary: The schema of its summary, if it has one.
    """
    row = {column.name: cell(column) for column in columns}
    cells = object_of(row | {"trace": _text(_TRACE)} if "trace" not in row else row, required=row)
    taken = {"type": "object"} if params is None else object_of({n: _param(p) for n, p in params.items()}, required=())
    more = {"summary": summary} if summary else {}
    return _answer(title, {"const": report}, [*row, "trace"], params=taken, row=cells, more=more)


def any_answer(title: str, report: str | None = None) -> dict[str, Any]:
    """Describe an answer whose columns nobody knows before, such as that of `sql`; or what all answers share."""
    free = {"type": "object"}
    called = {"const": report} if report else {"type": "string"}
    shape = _answer(title, called, None, params=free, row=free, more={})
    if not report:
        shape["properties"]["summary"] = {"type": "object"}  # not every answer has one
    return shape


def one_of(title: str, *schemas: dict[str, Any]) -> dict[str, Any]:
    """Describe the answer of a command that has one of these shapes."""
    return {"$schema": DIALECT, "title": title, "anyOf": list(schemas)}


def error() -> dict[str, Any]:
    """Describe the object that says on stderr what went wrong, where JSON was asked for."""
    fields = {
        "kind": {
            "enum": list(_KINDS),
            "description": "What went wrong: the query, the command line, the trace, a tool",
        },
        "exit_code": {"enum": sorted({int(code) for code in Exit if Exit.OK < code < Exit.INTERRUPTED})},
        "message": _text("What happened to which file"),
        "hint": {"type": ["string", "null"], "description": "What to type next"},
    }
    return {
        "$schema": DIALECT, "title": "An error, as the last line of stderr",
        **object_of({"schema": {"const": SCHEMA}, "error": object_of(fields)}),
    }  # fmt: skip


def _answer(  # noqa: PLR0913 - the parts of an answer that differ
    title: str,
    report: dict[str, Any],
    columns: list[str] | None,
    *,
    params: dict[str, Any],
    row: dict[str, Any],
    more: dict[str, Any],
) -> dict[str, Any]:
    name = {"enum": columns} if columns else {"type": "string"}
    column = object_of({"name": name, "unit": {"type": "string"}, "description": {"type": "string"}})
    properties = {
        "schema": {"const": SCHEMA},
        "report": report,
        "trace": {"type": "object", "description": "Which trace, in which scope, and what is left out of it"},
        "params": params,
        "notes": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What to know in addition to the numbers",
        },
        "row_count": {"type": "integer", "minimum": 0, "description": "Total rows; --limit may leave some out"},
        "columns": {"type": "array", "items": column},
        "rows": {"type": "array", "items": row},
    }
    return {"$schema": DIALECT, "title": title, **object_of(properties | more)}


def object_of(properties: dict[str, Any], required: Iterable[str] | None = None) -> dict[str, Any]:
    """An object of these properties and no others; all of them are required unless others are named."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def cell(column: Column) -> dict[str, Any]:
    """Describe what a cell of a column may be; null is unknown."""
    unit = unit_of(column.name)
    kind = _TYPES.get(column.type)
    return {
        **({"type": [kind, "null"]} if kind else {}),
        "description": f"{column.description} ({unit})" if unit else column.description,
    }


def _param(param: Param) -> dict[str, Any]:
    """What a parameter may be; null is not given."""
    kind = _OF_PARAM[param.kind]
    least = {} if param.least is None else {"minimum": param.least}
    choices = {"enum": [*param.choices, None]} if param.choices else {"type": [kind, "null"]}
    return {**choices, **least, "description": param.help}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}
