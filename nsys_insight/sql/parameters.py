"""The `$name` parameters of a statement: which there are, and values written in their place."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Iterator


def bind(sql: str, values: dict[str, Any]) -> str:
    """Write values in place of `$name` parameters, wherever DuckDB's own tokenizer sees one."""
    text, pieces, done = sql.encode(), [], 0
    for name, start, end in _places(sql):
        if name in values:
            pieces += [text[done:start], literal(values[name]).encode()]
            done = end
    return b"".join([*pieces, text[done:]]).decode()


def parameters(sql: str) -> set[str]:
    """The names of the `$name` parameters in a statement."""
    return {name for name, _, _ in _places(sql)}


def _places(sql: str) -> Iterator[tuple[str, int, int]]:
    """Find the parameters of a statement: name, first byte (the tokenizer counts bytes), and the byte after it."""
    import duckdb

    if "$" not in sql:
        return
    text = sql.encode()
    for (start, _), (following, _) in pairwise(duckdb.tokenize(sql)):
        if text[start : start + 1] == b"$" and following == start + 1:
            match = re.compile(rb"\w+").match(text, following)
            if match:
                yield match[0].decode(), start, match.end()
