"""The `$name` parameters of a statement: which there are, and values written in their place."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

# A text, a name in quotes or a comment, where a dollar is nothing but itself; and a parameter.
_ELSE = r"""'[^']*'|"[^"]+"|--[^\r\n]*"""
_PLACE = re.compile(rf"{_ELSE}|\$([A-Za-z_][A-Za-z0-9_]*)")
_QUOTED = re.compile(_ELSE)
# What only the tokenizer can tell, in what is left of a statement without these: a name with a dollar in it, a text
# between dollars, a longer comment, a quote that does not end, letters of other scripts. And anywhere: a text with
# escapes, and NUL, where DuckDB takes the statement to end.
_HARD = re.compile(r"""[\w$]\$|/\*|["']|[^\0-\x7f]""")
_HARD_INSIDE = re.compile(r"(?<!\w)(?:\d\w*)?(?:[eE]|[uU]&)'|\0")


def bind(sql: str, values: dict[str, Any]) -> str:
    """Write values in place of `$name` parameters, wherever DuckDB's own tokenizer sees one."""
    pieces, done = [], 0
    for name, start, end in _places(sql):
        if name in values:
            pieces += [sql[done:start], literal(values[name])]
            done = end
    return "".join([*pieces, sql[done:]])


def parameters(sql: str) -> set[str]:
    """The names of the `$name` parameters in a statement."""
    return {name for name, _, _ in _places(sql)}


def _places(sql: str) -> list[tuple[str, int, int]]:
    """Find the parameters of a statement: name, first character, and the one after it."""
    if "$" not in sql:
        return []
    # The tokenizer gives an object for each word: a diagnosis has hundreds of statements, hardly one of them is hard.
    if _HARD.search(_QUOTED.sub(" ", sql)) or _HARD_INSIDE.search(sql):
        return list(_by_tokenizer(sql))
    return [(place[1], place.start(), place.end()) for place in _PLACE.finditer(sql) if place[1]]


def _by_tokenizer(sql: str) -> Iterator[tuple[str, int, int]]:
    import duckdb

    text = sql.encode()  # the tokenizer counts bytes
    for (start, _), (following, _) in pairwise(duckdb.tokenize(sql)):
        if text[start : start + 1] == b"$" and following == start + 1:
            match = re.compile(rb"\w+").match(text, following)
            if match:
                begin = len(text[:start].decode())
                yield match[0].decode(), begin, begin + 1 + len(match[0])
