"""What our own SQL mentions, found out beforehand: for DuckDB's parser, and to read the tree it gives, takes long.

A diagnosis asks of two hundred texts what they mention, and all but a few are files of ours. `queries/names.tsv` has a
line for each of these: its digest, what it is, the relations and functions that it mentions, of how many queries it is
made, and the columns of a view that many traces have nothing for. `docs/generate.py` writes it. A text that changed
since has another digest, and is parsed.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from nsys_insight.paths import queries_folder

# A name in quotes, and a text, may hold what elsewhere begins a comment.
_COMMENT = r"--[^\r\n]*|/\*.*?\*/"
_NAME_OR_TEXT_OR_COMMENT = re.compile(rf"""("[^"]*"|'(?:[^']|'')*')|{_COMMENT}""", re.DOTALL)
# What `sql.parameters` may write in the place of a parameter, and the number of a stored answer.
_VALUE = (
    r"'(?:[^']|'')*'|\$\w+|\d(?<!\w\d)[\w.]*(?:::DOUBLE)?|[Ntf](?<!\w\w)(?:ULL|rue|alse)\b"
    r"|\d(?<=\binternal\.answer_\d)\d*"
)
# What begins with none of these characters is passed over at once, in a quarter of the time.
_PIECE = re.compile(rf"""(?=["'$/\dNtf-])(?:(?P<name>"[^"]*")|(?P<comment>{_COMMENT})|{_VALUE})""", re.DOTALL)


class Line(NamedTuple):
    """A line of the file; relations are as `schema.name`, or a name alone, columns as a SELECT of NULLs has them."""

    digest: str
    what: str
    relations: str
    functions: str
    queries: str
    columns: str = ""


def digest(sql: str) -> str:
    """Name a text by what it is but for comments, space and values: whatever its parameters are, it is the same."""

    def put(piece: re.Match[str]) -> str:
        return piece[0] if piece.lastgroup == "name" else " " if piece.lastgroup == "comment" else "?"

    text = " ".join(_PIECE.sub(put, sql).split())
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def without_comments(sql: str) -> str:
    """Put a space in place of each comment."""
    return _NAME_OR_TEXT_OR_COMMENT.sub(lambda piece: piece[1] or " ", sql)


@cache
def known(sql: str) -> Line | None:
    """The line of a text; None if it is none of ours."""
    found = _lines().get(digest(sql))
    return Line(*found.split("\t")) if found else None


@cache
def _lines() -> dict[str, str]:
    try:
        text = (queries_folder() / "names.tsv").read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    return {line[:16]: line for line in text.splitlines()}
