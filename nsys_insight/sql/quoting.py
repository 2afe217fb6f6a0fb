"""Quote names and values for SQL text."""

from __future__ import annotations


def identifier(name: str) -> str:
    """Quote the name of a table or column: ``end`` becomes ``"end"``."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """Write a Python value as an SQL literal: None, bool, int, float, str, or a list of these.

    Values are part of the text, not bound. DuckDB folds a literal into the plan, so it never scans a branch that cannot
    apply. Binding would also make DuckDB import pandas and pyarrow where they are installed.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value!r}::DOUBLE"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    text = "'" + str(value).replace("'", "''") + "'"
    # DuckDB's parser ends the text at a NUL.
    return "(" + text.replace("\0", "' || chr(0) || '") + ")" if "\0" in text else text
