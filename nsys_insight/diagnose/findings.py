"""Findings: one rule each in `queries/findings`, which says what it looks for, what to do, and when that is wrong.

A finding is a query over the model's views and over the answers of reports, which it names as `host_report` or
`graph_candidates_report`: so its numbers are those of the reports. Its rows have four columns: `recoverable_ns`, what
may be won back per token at most (NULL where that is unknown, or where it comes once in a trace), `wall_pct`, the share
of the wall that this is or that the finding is about, `place` and `evidence`; a fifth, sixth or
seventh, `title`, `action` and `family`, stand in place of the header's where they are not NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.packs.rules import Rule, rules_of
from nsys_insight.sql.names import mentioned_by_ours

if TYPE_CHECKING:
    from collections.abc import Mapping

_REPORT = "_report"


@dataclass(frozen=True, kw_only=True)
class FindingRule(Rule):
    """One file. Of the findings of a `family` one is shown, with the others under it.

    Those that do not `overlap` are about parts of the wall that nothing else is about, so their times add up to it at
    most. `of` is the wall that `wall_pct` is a share of: a step's or the trace's. `severity` is that of a finding from
    which nothing can be recovered. `caveat` says when it would be wrong. `report` is the one that shows more. One that
    is `of_run` is about the ranks of a run together; its query has how many tokens a step makes as `$tokens`. One that
    reads what takes long has a query `when` over views and other reports: where that has no row, it is not asked. There
    `$shown_pct` is the share of the wall from which a finding is shown.
    """

    family: str
    meaning: str
    action: str
    caveat: str
    report: str
    overlaps: bool = False
    of: str = "step"
    of_run: bool = False
    when: str = ""


def finding_rules() -> tuple[FindingRule, ...]:
    """All findings that are looked for, in alphabetical order."""
    return rules_of("findings", FindingRule)


def over_answers(sql: str, tables: Mapping[str, str]) -> str:
    """Write a query over answers of reports as one over the tables where these are stored."""
    reports = ", ".join(f"{report.replace('-', '_')}_report AS (FROM {tables[report]})" for report in reports_of(sql))
    return f"WITH {reports} SELECT * FROM ({sql}\n)" if reports else sql


def reports_of(sql: str) -> list[str]:
    """The reports whose answers a query reads."""
    read = mentioned_by_ours(sql).relations_of_model
    return sorted(name.removesuffix(_REPORT).replace("_", "-") for name in read if name.endswith(_REPORT))
