"""The `$name` parameters of a statement: find them, and replace them by values."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.sql.parser import tokenize
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

# Texts, quoted names and comments, in which a dollar has no meaning; and a parameter.
_QUOTED_OR_COMMENT = r"""'[^']*'|"[^"]+"|--[^\r\n]*"""
_PARAMETER = re.compile(rf"{_QUOTED_OR_COMMENT}|\$([A-Za-z_][A-Za-z0-9_]*)")
_QUOTED = re.compile(_QUOTED_OR_COMMENT)
# Syntax that needs the tokenizer. Outside of quotes and comments: a name with a dollar in it, a text between dollars, a
# block comment, an unterminated quote, letters of other scripts. Anywhere: a text with escapes, and NUL, where DuckDB
# ends the statement. Each choice begins with its rarest character: what is before it is looked at afterwards.
_NEEDS_TOKENIZER = re.compile(r"""\$(?<=[\w$]\$)|/\*|["']|[^\0-\x7f]""")
_NEEDS_TOKENIZER_ANYWHERE = re.compile(r"[eE]'(?<!\w[eE]')|[uU]&'(?<!\w[uU]&')|\d(?<!\w\d)\w*(?:[eE]|[uU]&)'|\0")


def bind(sql: str, values: dict[str, Any]) -> str:
    """Replace `$name` parameters by values, at every position where DuckDB's own tokenizer sees a parameter."""
    pieces, position = [], 0
    for name, start, end in _locate_parameters(sql):
        if name in values:
            pieces += [sql[position:start], literal(values[name])]
            position = end
    return "".join([*pieces, sql[position:]])


def find_parameters(sql: str) -> set[str]:
    """Find the names of the `$name` parameters in a statement."""
    return {name for name, _, _ in _locate_parameters(sql)}


def _locate_parameters(sql: str) -> list[tuple[str, int, int]]:
    """Locate the parameters of a statement: name, start and end index."""
    if "$" not in sql:
        return []
    # The tokenizer is slow: it makes an object per word. Of the hundreds of statements of a diagnosis, hardly one needs
    # it.
    if _NEEDS_TOKENIZER.search(_QUOTED.sub(" ", sql)) or _NEEDS_TOKENIZER_ANYWHERE.search(sql):
        return list(_tokenize_parameters(sql))
    return [(match[1], match.start(), match.end()) for match in _PARAMETER.finditer(sql) if match[1]]


def _tokenize_parameters(sql: str) -> Iterator[tuple[str, int, int]]:
    text = sql.encode()  # the tokenizer counts bytes
    for (start, _), (following, _) in pairwise(tokenize(sql)):
        if text[start : start + 1] == b"$" and following == start + 1:
            match = re.compile(rb"\w+").match(text, following)
            if match:
                begin = len(text[:start].decode())
                yield match[0].decode(), begin, begin + 1 + len(match[0])
