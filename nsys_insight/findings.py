"""Findings: one `.sql` file each in `queries/findings`, which says what it looks for, what to do, and when it is wrong.

A finding is a query over the model's views and over the answers of reports, which it names as `host_report` or
`graph_candidates_report`: so its numbers are those of the reports. Its rows have four columns: `recoverable_ns`, what
may be won back per token at most (NULL where nobody can say, or where it comes once in a trace), `wall_pct`, the share
of the wall that this is or that the finding is about, `place` and `evidence`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight import packs
from nsys_insight.errors import UsageError
from nsys_insight.paths import queries_folder
from nsys_insight.sql_file import flow, split

if TYPE_CHECKING:
    from pathlib import Path

_REPORT = re.compile(r"\b(\w+)_report\b")


@dataclass(frozen=True)
class Rule:
    """One file. Of the findings of a `family` one is shown, with the others under it.

    Those that do not `overlap` are about parts of the wall that nothing else is about, so their times add up to it at
    most. `of` is the wall that `wall_pct` is a share of: a step's or the trace's. `severity` is that of a finding from
    which nothing can be recovered. `report` is the one that shows more.
    """

    name: str
    title: str
    family: str
    meaning: str
    action: str
    wrong_when: str
    report: str
    sql: str
    overlaps: bool = False
    of: str = "step"
    severity: str = "info"
    params: dict[str, Any] = field(default_factory=dict)

    def statement(self, per: str = "a step") -> str:
        """Return the SQL with its thresholds written in, and for `$per` what its times are given for."""
        return packs.bind(self.sql, {"per": per, **self.params})


@cache
def all_rules() -> tuple[Rule, ...]:
    """All findings that are looked for, in alphabetical order."""
    return tuple(parse(path) for path in sorted((queries_folder() / "findings").glob("*.sql")))


def parse(path: Path) -> Rule:
    """Read a finding's file.

    Raises:
        UsageError: Its header is missing or not complete.
    """
    import tomllib

    header, sql = split(path.read_text(encoding="utf-8"))
    try:
        facts = tomllib.loads(header or "")
        params = {name: entry["default"] for name, entry in facts.pop("params", {}).items()}
        told: dict[str, Any] = {name: flow(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
        return Rule(name=path.stem, sql=sql, params=params, **told)
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"the header of {path.name} is not complete: {error}") from None


def reports_of(sql: str) -> list[str]:
    """The reports whose answers a query reads."""
    return sorted({name.replace("_", "-") for name in _REPORT.findall(sql)})
