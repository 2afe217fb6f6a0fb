"""What a file of SQL with a header is made of: a pack, a finding, a rule of ncu."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = re.compile(r"\s*/\*(.*?)\*/", re.DOTALL)


def split(text: str) -> tuple[str | None, str]:
    """Give the TOML of the comment that a file begins with, None if it begins otherwise, and the statement after it."""
    header = _HEADER.match(text)
    return header and header[1], text[header.end() if header else 0 :].strip().removesuffix(";")


def flow(text: str) -> str:
    """Put the lines of a header's text into one."""
    return " ".join(text.split())


_BRANCH = re.compile(
    r"\s*UNION ALL\s+SELECT\b(?:(?!UNION ALL).)*?\bWHERE \$(\w+) (?:= ('\w+')|IN \(([^()]*)\))(?=\s*(?:UNION ALL|\)))",
    re.DOTALL,
)


def branching(sql: str) -> set[str]:
    """The parameters on which it depends what `chosen` leaves of a statement."""
    return {match[1] for match in _BRANCH.finditer(sql)}


def chosen(sql: str, values: Mapping[str, Any]) -> str:
    """Leave out the branches of a `UNION ALL` that are for another value of a parameter.

    They end with ``WHERE $group_by = 'nvtx'``, or ``WHERE $group_by IN ('caller', 'stack')``.

    DuckDB would not run them either, but it would plan them and all views below, a fifth of the time in which a small
    trace is answered.
    """

    def branch(match: re.Match[str]) -> str:
        depths = [*accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in match[0])]
        is_whole = min(depths) == 0 == depths[-1]  # and not the end of one query and the beginning of the next
        is_for = re.findall(r"'(\w+)'", match[2] or match[3])
        return "" if is_whole and values.get(match[1], is_for[0]) not in is_for else match[0]

    return _BRANCH.sub(branch, sql)
