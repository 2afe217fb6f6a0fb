"""Findings, their rules in `queries/findings`, and the other parts of a diagnosis.

A rule states what it looks for, what to do, and when that would be wrong.

Its query reads the model's views and the answers of reports, named `host_report` or `graph_candidates_report`: so its
numbers equal those of the reports. Its rows have four columns:

- `recoverable_ns`: the most time that may be saved per token. NULL if it is unknown, or occurs once in a trace.
- `wall_pct`: the share of the wall time that this is, or that the finding is about.
- `place` and `evidence`.

The optional columns `title`, `action` and `family` replace the header's texts where they are not NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.rules import Rule, read_rules
from nsys_insight.sql.names import scan_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.session.answer import Answer

_REPORT_SUFFIX = "_report"


@dataclass(frozen=True, kw_only=True)
class FindingRule(Rule):
    """One rule file.

    `family`: the diagnosis shows one finding of each family, with the others below it.
    `overlaps`: whether other findings can be about the same time. The times of all other findings add up to at most
    the wall time.
    `share_of`: `wall_pct` is a share of the wall time of a step, or of the trace.
    `severity`: the severity of findings without recoverable time.
    `caveat`: when the action would be wrong.
    `report`: the report that shows details.
    `is_cross_rank`: the rule is about all ranks of a run. `$tokens` in its query is the number of tokens per step.
    `when`: a query over views and cheap reports. If it has no row, an expensive rule is skipped. `$shown_pct` in it is
    the minimum share of wall time of a finding.
    """

    family: str
    meaning: str
    action: str
    caveat: str
    report: str
    overlaps: bool = False
    share_of: str = "step"
    is_cross_rank: bool = False
    when: str = ""


@dataclass(frozen=True)
class Share:
    """A part of the wall time, as `classify` names it. The shares of one diagnosis add up to 100."""

    part: str
    is_busy: bool
    time_ns: float
    wall_pct: float


@dataclass(frozen=True)
class Finding:
    """A problem of the run, or a fact about it.

    `recoverable_ns` is the most time that may be saved, per token or in the full scope (`Diagnosis.unit`). None if it
    is unknown. `wall_pct` is the share of the wall time (`share_of` a step or the trace) that this is, or that the
    finding is about. If it `overlaps`, the time is also in other findings. `report` shows details, `command` prints
    it. `also` are the other findings of the family.
    """

    name: str
    title: str
    severity: str
    family: str
    recoverable_ns: float | None
    wall_pct: float | None
    share_of: str
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
class UnassessedQuestion:
    """A question that this trace cannot answer, and how to capture the data for it."""

    subject: str
    remedy: str


@dataclass(frozen=True)
class RunOfRanks:
    """The ranks of a run, and the rank that is diagnosed: it delays the others.

    `verdict` is late, moving or even (see the view `rank_run`). `rank` is the diagnosed rank. `waiting_share` is the
    share of its exposed communication in which it waits for others. `notes` qualify the numbers.
    """

    sentence: str
    verdict: str
    ranks: int
    rank: int
    waiting_share: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DiagnosisResult:
    """The results of a diagnosis.

    `status` is one of:

    - "findings"
    - "healthy": the GPU is busy nearly all the time with recorded work, and no finding has a relevant saving.
    - "unseen": the same, but the trace does not have the kernels that ran in that time.
    - "empty"

    `unit` is the unit that times refer to: step, token or trace. `step_source` says in brief how the steps were found.
    `answers` are the answers of the reports that ran. `run` is about the ranks of a run. Everything else is then about
    one of these ranks.
    """

    status: str
    verdict: str
    unit: str
    wall_ns: float | None
    tokens_per_s: float | None
    shares: tuple[Share, ...]
    steps: dict[str, Any]
    step_source: str | None
    findings: tuple[Finding, ...]
    unassessed: tuple[UnassessedQuestion, ...]
    top_kernel: tuple[str, float] | None
    notes: tuple[str, ...]
    trace: dict[str, Any]
    params: dict[str, Any]
    answers: dict[str, Answer] = field(repr=False, default_factory=dict)
    run: RunOfRanks | None = None

    @property
    def busy_pct(self) -> float:
        """Return the share of the wall time in which the GPU was busy, in %: a mean over the GPUs."""
        return sum(share.wall_pct for share in self.shares if share.is_busy)


def read_finding_rules() -> tuple[FindingRule, ...]:
    """Return the rules of all findings, in alphabetical order."""
    return read_rules("findings", FindingRule)


def bind_reports(sql: str, tables: Mapping[str, str]) -> str:
    """Bind the reports that a query reads to the tables that hold their answers."""
    ctes = ", ".join(f"{report.replace('-', '_')}_report AS (FROM {tables[report]})" for report in list_reports(sql))
    return f"WITH {ctes} SELECT * FROM ({sql}\n)" if ctes else sql


def list_reports(sql: str) -> list[str]:
    """Return the reports whose answers a query reads."""
    relations = scan_names(sql).model_relations
    return sorted(
        name.removesuffix(_REPORT_SUFFIX).replace("_", "-") for name in relations if name.endswith(_REPORT_SUFFIX)
    )
