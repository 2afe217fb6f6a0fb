"""The contract: the tables and columns of an export that the model reads, with their types."""

from __future__ import annotations

import re
from functools import cache

from nsys_insight.paths import query
from nsys_insight.sql.quoting import identifier


@cache
def contract() -> dict[str, dict[str, str]]:
    """The tables that the model reads, each with its columns and their DuckDB types, from `queries/model/raw.sql`."""
    text = re.sub(r"--[^\n]*", "", query("model/raw"))
    return {
        table: {name.strip('"'): kind for name, kind in (column.split() for column in body.split(","))}
        for table, body in re.findall(r"CREATE TABLE (\w+) \(([^)]*)\)", text)
    }


def cell(name: str, kind: str, expression: str = "") -> str:
    """SQL for a column of a trace as the type that the contract gives it.

    Text in a trace need not be UTF-8 (SQLite does not look), and DuckDB takes it for granted that it is: bytes that are
    not come out in hexadecimal. Bytes that are no text come as they are.
    """
    column = identifier(name)
    value = f"{expression or column}::{kind}"
    if kind == "VARCHAR":
        value = f"coalesce(try(decode(encode({value}))), encode({value})::VARCHAR)"
    elif kind == "BLOB":  # which nsys declares as TEXT
        of = expression or column
        value = f"CASE WHEN typeof({of}) = 'BLOB' THEN {of}::BLOB ELSE encode({of}::VARCHAR) END"
    return f"{value} AS {column}"
