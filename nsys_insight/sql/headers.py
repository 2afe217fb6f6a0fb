"""SQL files with a TOML header: packs, findings and ncu rules."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = re.compile(r"\s*/\*(.*?)\*/", re.DOTALL)


def split_header(text: str) -> tuple[str | None, str]:
    """Split a file into the TOML of its opening comment and the statement after it; None for a missing comment."""
    header = _HEADER.match(text)
    return header and header[1], text[header.end() if header else 0 :].strip().removesuffix(";")


def join_lines(text: str) -> str:
    """Join the lines of a header's text into one."""
    return " ".join(text.split())


_BRANCH = re.compile(
    r"\s*UNION ALL\s+SELECT\b(?:(?!UNION ALL).)*?\b(?:WHERE|AND) \$(\w+) "
    r"(?:= ('\w+')|IN \(([^()]*)\))(?=\s*(?:UNION ALL|\)))",
    re.DOTALL,
)


def find_branch_parameters(sql: str) -> set[str]:
    """Find the parameters whose values decide which branches `drop_branches` drops."""
    return {match[1] for match in _BRANCH.finditer(sql)}


def drop_branches(sql: str, values: Mapping[str, Any]) -> str:
    """Drop the branches of a `UNION ALL` that are for other values of a parameter.

    Such a branch ends with ``WHERE $group_by = 'nvtx'``, or ``AND $group_by IN ('caller', 'stack')``.

    DuckDB would not run these branches, but it would plan them with all views that they read. That takes a fifth of
    the time of a question about a small trace.
    """

    def drop_or_keep(match: re.Match[str]) -> str:
        depths = [*accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in match[0])]
        # A match that spans the end of one query and the start of the next is not balanced.
        is_balanced = min(depths) == 0 == depths[-1]
        branch_values = re.findall(r"'(\w+)'", match[2] or match[3])
        return "" if is_balanced and values.get(match[1], branch_values[0]) not in branch_values else match[0]

    return _BRANCH.sub(drop_or_keep, sql) if "WHERE $" in sql else sql
