"""Quote names and values for SQL text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Larger numbers, such as times in ns, are BIGINT in SQL.
MAX_SMALL = 1 << 16


def identifier(name: str) -> str:
    """Quote the name of a table or column: ``end`` becomes ``"end"``."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """Write a Python value as an SQL literal: None, bool, int, float, str, or a list, map or tuple (a row) of these.

    Values are part of the text, not bound. DuckDB folds a literal into the plan, so it never scans a branch that cannot
    apply. Binding would also make DuckDB import pandas and pyarrow where they are installed.
    """
    match value:
        case None:
            text = "NULL"
        case bool():
            text = "true" if value else "false"
        case int():
            # Products of times must not overflow: a literal below 2^31 would be an INTEGER.
            text = str(value) if abs(value) < MAX_SMALL else f"({value})::BIGINT"
        case float():
            # With an exponent, a number is a DOUBLE. A cast from DECIMAL takes time to bind, and may round twice.
            text = repr(value) if "e" in repr(value) else f"{value!r}e0"
        case list():
            text = f"[{', '.join(map(literal, value))}]"
        case tuple():
            text = f"row({', '.join(map(literal, value))})"
        case dict():
            text = f"MAP {{{', '.join(f'{literal(key)}: {literal(cell)}' for key, cell in value.items())}}}"
        case _:
            text = _write_text(str(value))
    return text


def matches(column: str, pattern: str) -> str:
    """Write whether a column matches a constant regular expression, which fits no empty text.

    DuckDB compiles the pattern of `regexp_matches` three times, and computes which texts can match: on a few hundred
    names, that takes nearly all of the time.
    """
    return f"regexp_extract({column}, {literal(pattern)}) <> ''"


def escape_glob(path: str) -> str:
    """Write a path as a pattern that fits this path alone."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def read_parquet(path: Path) -> str:
    """Write the relation of a Parquet file: its own columns, independent of the names of its folders.

    DuckDB would take a folder `end=7` for the value of the column `end`, and a folder `a*` for a pattern.
    """
    return f"read_parquet({literal(escape_glob(str(path)))}, hive_partitioning = false)"


def _write_text(value: str) -> str:
    text = "'" + value.replace("'", "''") + "'"
    # DuckDB's parser ends the text at a NUL.
    return "(" + text.replace("\0", "' || chr(0) || '") + ")" if "\0" in text else text
