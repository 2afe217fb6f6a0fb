"""Answers of the MCP server: a short text to read and the rows to compute with, in the terms of the tools."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from nsys_insight.ingest.scope import Scope
from nsys_insight.packs import library
from nsys_insight.packs.flag_texts import list_parameters, replace_flags
from nsys_insight.render.fields import build_fields, drop_unknown_details
from nsys_insight.render.json_ import make_plain
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit_all, make_all_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.session.answer import Answer

# The maximum number of characters of a short kernel name.
_NAME_LENGTH = 64
_NAME_COLUMN = re.compile(r"(^|_)(name|kernel|function)$")
_COMMAND = re.compile(r"\bnsys-insight ([a-z][a-z-]*)")
_TOOLS = ("brief", "diagnose", "sql", "views", "diff")


class Table(BaseModel):
    """An answer: `rows` has the cells of each row in the order of `columns`.

    `row_count` counts all rows of the answer. A call with several queries has the text of each in `query`.
    """

    query: str | None = None
    columns: list[str]
    rows: list[list[Any]]
    row_count: int
    notes: list[str] | None = None
    summary: dict[str, Any] | None = None


class Tables(BaseModel):
    """The answers of a call: one, or one for each query."""

    answers: list[Table]


def make_table(answer: Answer, notes: Sequence[str], limit: int, *, is_full: bool = False) -> dict[str, Any]:
    """Return an answer as the data of `Table`. Floating-point numbers have six digits.

    Unless `is_full` is set, kernel names are short, and details are left out.
    """
    if not is_full and (columns := [column.name for column in answer.columns if not column.is_detail]):
        answer = answer.select_columns(columns)
    rows = [[_round(make_plain(cell)) for cell in row] for row in answer.rows(limit)]
    for index, column in enumerate(answer.columns):
        if not is_full and _NAME_COLUMN.search(column.name) and column.type == "VARCHAR":
            short_names = _shorten({row[index] for row in rows if row[index]})
            for row in rows:
                row[index] = short_names.get(row[index], row[index])
    table: dict[str, Any] = {
        "columns": [column.name for column in answer.columns],
        "rows": rows,
        "row_count": answer.row_count,
    }
    if all_notes := [name_arguments(note) for note in dict.fromkeys([*notes, *answer.notes, *answer.left_out])]:
        table["notes"] = all_notes
    if answer.summary:
        table["summary"] = make_plain(answer.summary)
    return table


def write_text(answer: Answer, table: dict[str, Any], limit: int, *, is_full: bool = False) -> str:
    """Write an answer for reading: its main columns with three digits and units, without padding, and the notes."""
    narrowed = answer.select_main_columns()
    fields = drop_unknown_details(build_fields(narrowed, narrowed.rows(limit), full_names=is_full))
    lines = [name_arguments(printable(answer.heading))] if answer.heading else []
    if answer.row_count:
        cells = [
            [short_names[cell] for cell in field.cells]
            if field.kind == "name" and not is_full and (short_names := fit_all(set(field.cells), _NAME_LENGTH))
            else field.cells
            for field in fields
        ]
        lines.append("|".join(" ".join(field.heading) for field in fields))
        lines += ["|".join(map(printable, row)) for row in zip(*cells, strict=True)]
    elif answer.empty:
        lines.append(name_arguments(answer.empty))
    if answer.row_count > limit:
        lines.append(f"{limit} of {answer.row_count:,} rows")
    return "\n".join([*lines, *table.get("notes", ())])


def name_arguments(text: str) -> str:
    """Write the flags and commands in a text as the arguments and tools of the server; nsys's own flags stay."""
    reports = library.all_packs()

    def name_tool(match: re.Match[str]) -> str:
        name = match[1]
        return name if name in _TOOLS else f"report {name}" if name in reports else match[0]

    # A command for a shell keeps its flags: nsys records with them, and other commands are no tools.
    return replace_flags(_COMMAND.sub(name_tool, text), _list_arguments())


@cache
def _list_arguments() -> dict[str, str]:
    arguments = {name.removesuffix("_ns"): f"scope.{name}" for name in vars(Scope())}
    own_arguments = {"limit": "limit", "full-names": "full", "wide": "full", "format": "format"}
    return list_parameters() | arguments | own_arguments


def _round(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _shorten(names: set[str]) -> dict[str, str]:
    readable_names = make_all_readable(names)
    short_names = fit_all(set(readable_names.values()), _NAME_LENGTH)
    return {name: short_names[readable_name] for name, readable_name in readable_names.items()}
