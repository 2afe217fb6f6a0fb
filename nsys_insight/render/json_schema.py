"""JSON Schemas (draft 2020-12) of the JSON output: an answer with its columns, and an error."""

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
_PARAM_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}
_TRACE_DESCRIPTION = "The trace of the row, if there are several"
_ERROR_KINDS = ("failed", "query", "usage", "trace", "tool")


def describe_answer(  # noqa: PLR0913 - options by keyword
    report: str,
    title: str,
    columns: Iterable[Column],
    params: Mapping[str, Param] | None = None,
    summary: dict[str, Any] | None = None,
    *,
    other_columns: Iterable[Column] = (),
    required: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Describe the JSON of an answer.

    Args:
        report: The command's name.
        title: The title of the answer.
        columns: The columns, in order.
        params: The parameters. None if `params` of the answer may contain any keys.
        summary: The schema of the summary, if there is one.
        other_columns: Columns that only some answers have, such as those of several ranks.
        required: The names of the columns that every answer has; by default all `columns`.
    """
    row = {column.name: describe_cell(column) for column in columns}
    other_cells = {"trace": _describe_text(_TRACE_DESCRIPTION)}
    other_cells |= {column.name: describe_cell(column) for column in other_columns}
    cells = describe_object(other_cells | row, required=row if required is None else required)
    param_schema = (
        {"type": "object"}
        if params is None
        else describe_object({n: _describe_param(p) for n, p in params.items()}, required=())
    )
    extra_properties = {"summary": summary} if summary else {}
    return _describe_parts(
        title,
        {"const": report},
        [*row, *(name for name in other_cells if name not in row)],
        params=param_schema,
        row=cells,
        extra_properties=extra_properties,
    )


def describe_any_answer(title: str, report: str | None = None) -> dict[str, Any]:
    """Describe an answer whose columns are unknown, such as that of `sql`, or without `report` any answer."""
    any_object = {"type": "object"}
    report_schema = {"const": report} if report else {"type": "string"}
    schema = _describe_parts(title, report_schema, None, params=any_object, row=any_object, extra_properties={})
    if not report:
        schema["properties"]["summary"] = {"type": "object"}  # not every answer has one
    return schema


def describe_alternatives(title: str, *schemas: dict[str, Any]) -> dict[str, Any]:
    """Describe the answer of a command that has one of these schemas."""
    return {"$schema": DIALECT, "title": title, "anyOf": list(schemas)}


def describe_error() -> dict[str, Any]:
    """Describe the error object that the format JSON writes to stderr."""
    fields = {
        "kind": {
            "enum": list(_ERROR_KINDS),
            "description": "What went wrong: the query, the command line, the trace, a tool",
        },
        "exit_code": {"enum": sorted({int(code) for code in Exit if Exit.OK < code < Exit.INTERRUPTED})},
        "message": _describe_text("What happened to which file"),
        "hint": {"type": ["string", "null"], "description": "What to type next"},
    }
    return {
        "$schema": DIALECT, "title": "An error, as the last line of stderr",
        **describe_object({"schema": {"const": SCHEMA}, "error": describe_object(fields)}),
    }  # fmt: skip


def _describe_parts(  # noqa: PLR0913 - the parts of an answer that differ
    title: str,
    report: dict[str, Any],
    columns: list[str] | None,
    *,
    params: dict[str, Any],
    row: dict[str, Any],
    extra_properties: dict[str, Any],
) -> dict[str, Any]:
    name = {"enum": columns} if columns else {"type": "string"}
    column = describe_object({"name": name, "unit": {"type": "string"}, "description": {"type": "string"}})
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
    return {"$schema": DIALECT, "title": title, **describe_object(properties | extra_properties)}


def describe_object(properties: dict[str, Any], required: Iterable[str] | None = None) -> dict[str, Any]:
    """Describe an object that has only these properties. By default all of them are required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def describe_cell(column: Column) -> dict[str, Any]:
    """Describe the values of a column. Null means unknown."""
    unit = unit_of(column.name)
    json_type = _TYPES.get(column.type)
    return {
        **({"type": [json_type, "null"]} if json_type else {}),
        "description": f"{column.description} ({unit})" if unit else column.description,
    }


def _describe_param(param: Param) -> dict[str, Any]:
    """Describe the values of a parameter. Null means that it was not given."""
    json_type = _PARAM_TYPES[param.kind]
    minimum = {} if param.minimum is None else {"minimum": param.minimum}
    choices = {"enum": [*param.choices, None]} if param.choices else {"type": [json_type, "null"]}
    return {**choices, **minimum, "description": param.help}


def _describe_text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}
