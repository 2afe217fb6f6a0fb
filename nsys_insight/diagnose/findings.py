"""Findings, their rules in `queries/findings`, and what else a diagnosis consists of.

A rule says what it looks for, what to do, and when that is wrong.

A finding is a query over the model's views and over the answers of reports, which it names as `host_report` or
`graph_candidates_report`: so its numbers are those of the reports. Its rows have four columns: `recoverable_ns`, what
may be won back per token at most (NULL where that is unknown, or where it comes once in a trace), `wall_pct`, the share
of the wall that this is or that the finding is about, `place` and `evidence`; a fifth, sixth or
seventh, `title`, `action` and `family`, stand in place of the header's where they are not NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.rules import Rule, rules_of
from nsys_insight.sql.names import mentioned_by_ours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.session.answer import Answer

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


@dataclass(frozen=True)
class Share:
    """A part of the wall, as `classify` names it. Shares of one diagnosis add up to 100."""

    part: str
    is_busy: bool
    time_ns: float
    wall_pct: float


@dataclass(frozen=True)
class Finding:
    """Something to be done about the run, or to be known of it.

    `recoverable_ns` is what may be won back at most, per token or in the whole scope (`Diagnosis.per`); None where
    that is unknown. `wall_pct` is the share of the wall (`of` a step or the trace) that this is, or that the finding is
    about. Where `overlaps`, the time is in other findings too. `report` shows more, `command` is what to type for it.
    `also` are findings of the same family.
    """

    name: str
    title: str
    severity: str
    family: str
    recoverable_ns: float | None
    wall_pct: float | None
    of: str
    overlaps: bool
    place: str | None
    evidence: str
    meaning: str
    action: str
    caveat: str
    report: str
    command: str
    also: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Unjudged:
    """What the trace cannot tell, and how to capture it."""

    what: str
    how: str


@dataclass(frozen=True)
class RunOfRanks:
    """The ranks of a run, and the rank that is diagnosed for all of them: the one that the others wait for.

    `verdict` is late, moving or even (see the view `rank_run`); `rank` is the rank whose time is looked at, with the
    share of its exposed communication in which it waits for others; `notes` must be known beside the numbers.
    """

    sentence: str
    verdict: str
    ranks: int
    rank: int
    waiting_share: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DiagnosisResult:
    """What is found.

    `status` is "findings", "healthy" (the GPU works nearly all the time, all of it can be seen, and there is nothing of
    weight to win), "unseen" (the same, but it cannot be seen what the GPU does in that time), or "empty". `per` is what
    times are given for: step, token or trace. `told_by` says in brief how the steps were found. `answers` are those of
    the reports that were asked. `run` is what is said of the ranks of a run; all else is then of one of them.
    """

    status: str
    verdict: str
    per: str
    wall_ns: float | None
    tokens_per_s: float | None
    shares: tuple[Share, ...]
    steps: dict[str, Any]
    told_by: str | None
    findings: tuple[Finding, ...]
    unjudged: tuple[Unjudged, ...]
    top_kernel: tuple[str, float] | None
    notes: tuple[str, ...]
    trace: dict[str, Any]
    params: dict[str, Any]
    answers: dict[str, Answer] = field(repr=False, default_factory=dict)
    run: RunOfRanks | None = None

    @property
    def busy_pct(self) -> float:
        """Share of the wall in which the GPU worked, in %; a mean over the GPUs."""
        return sum(share.wall_pct for share in self.shares if share.is_busy)


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
