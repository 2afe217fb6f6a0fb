"""A diagnosis: what bounds the run, what that costs, what to do first, and what the trace cannot tell.

The reports are asked once each; the findings (`nsys_insight.findings`) and the headline are queries over their answers.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nsys_insight import steps
from nsys_insight.findings import all_rules, reports_of
from nsys_insight.packs import find
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.answer import Answer
    from nsys_insight.findings import Rule
    from nsys_insight.trace import Trace

# What is less than this share of the wall is no finding: less than what runs differ by.
LEAST_PCT = 1.0
# From this share on the verdict of classify names a cause; an improvement of more than 3 % is worth keeping.
CRITICAL_PCT, WARNING_PCT = 10.0, 3.0
AT_MOST = 7
SEVERITIES = ("critical", "warning", "info")


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
    nobody can say. `wall_pct` is the share of the wall (`of` a step or the trace) that this is, or that the finding is
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
    wrong_when: str
    report: str
    command: str
    also: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Unjudged:
    """What the trace cannot tell, and how to capture it."""

    what: str
    how: str


@dataclass(frozen=True)
class Diagnosis:
    """What is found.

    `status` is "findings", "healthy" (the GPU works nearly all the time, all of it can be seen, and there is nothing of
    weight to win), "unseen" (the same, but it cannot be seen what the GPU does in that time), or "empty". `per` is what
    times are given for: step, token or trace. `answers` are those of the reports that were asked.
    """

    status: str
    verdict: str
    per: str
    wall_ns: float | None
    tokens_per_s: float | None
    shares: tuple[Share, ...]
    steps: dict[str, Any]
    findings: tuple[Finding, ...]
    unjudged: tuple[Unjudged, ...]
    top_kernel: tuple[str, float] | None
    notes: tuple[str, ...]
    trace: dict[str, Any]
    params: dict[str, Any]
    answers: dict[str, Answer] = field(repr=False, default_factory=dict)

    @property
    def busy_pct(self) -> float:
        """Share of the wall in which the GPU worked, in %; a mean over the GPUs."""
        return sum(share.wall_pct for share in self.shares if share.is_busy)

    def answer(self) -> Answer:
        """The findings as a table, with the headline as its summary: what the machine formats write."""
        from nsys_insight.diagnosis_text import answer

        return answer(self)

    def text(self, width: int | None = 80) -> str:
        """The diagnosis for people, in lines of at most `width` cells."""
        from nsys_insight.diagnosis_text import text

        return text(self, width)


def diagnose(trace: Trace, asked: dict[str, Any]) -> Diagnosis:
    """Diagnose a trace; `asked` are options about steps (`nsys_insight.steps.StepOptions`)."""
    rules = all_rules()
    headline = {name: query(f"diagnosis/{name}") for name in _HEADLINE}
    queries = [*(rule.sql for rule in rules), *headline.values()]
    with trace.kept("step_budget", asked):
        answers = _asked(trace, {report for sql in queries for report in reports_of(sql)}, asked)

        def rows(sql: str) -> list[tuple[Any, ...]]:
            given = [
                f"{report.replace('-', '_')}_report AS (FROM {answers[report].table})" for report in reports_of(sql)
            ]
            return trace.rows(f"WITH {', '.join(given)} SELECT * FROM ({sql}\n)" if given else sql, **asked)

        told = dict(zip(_STEPS, rows(headline["steps"])[0], strict=True))
        per = "trace" if not told["steady_count"] else "step" if told["tokens_per_step"] == 1 else "token"
        for_each = "in all" if per == "trace" else f"a {per}"
        found = [
            _finding(rule, row, trace, asked)
            for rule in rules
            for row in rows(f"SELECT recoverable_ns, wall_pct, place, evidence FROM ({rule.statement(for_each)}\n)")
        ]
        shares = tuple(Share(part, busy, ns, pct) for busy, part, ns, pct in rows(headline["shares"]))
        unjudged = tuple(Unjudged(*row) for row in rows(headline["unjudged"]))
    wall = next(
        (row for row in _dicts(answers["classify"]) if row["part"] == "wall"), {"verdict": None, "time_ns": None}
    )
    kernel = next(iter(_dicts(answers["top"])), None)
    findings = ranked(found)
    return Diagnosis(
        status=_standing(wall["verdict"], answers, findings),
        verdict=wall["verdict"] or "nothing ran on a GPU",
        per=per,
        wall_ns=wall["time_ns"],
        tokens_per_s=1e9 / wall["time_ns"] if wall["time_ns"] and per != "trace" else None,
        shares=shares,
        steps=told,
        findings=findings,
        unjudged=unjudged,
        top_kernel=(kernel["name"], kernel["kernel_time_pct"]) if kernel else None,
        notes=tuple(note for note in answers["classify"].notes if note.startswith("other processes")),
        trace=trace.facts(),
        params=asked,
        answers=answers,
    )


_HEADLINE = ("shares", "steps", "unjudged")
_STEPS = ("steady_count", "method", "pattern", "confidence", "tokens_per_step", "steps_ns", "wall_ns")


def _asked(trace: Trace, reports: set[str], asked: dict[str, Any]) -> dict[str, Answer]:
    """Answer the reports, all on one connection: a file that is hard to read may take another one on the way."""
    while True:
        answers = {}
        for report in sorted(reports):
            takes = steps.params_of(find(report).sql)
            answers[report] = trace.answer(report, **{name: value for name, value in asked.items() if name in takes})
        if len({id(answer.connection) for answer in answers.values()}) == 1:
            return answers


def _finding(rule: Rule, row: tuple[Any, ...], trace: Trace, asked: dict[str, Any]) -> Finding:
    recoverable, share, place, evidence = row
    severity = rule.severity
    if recoverable is not None and share is not None:
        severity = "critical" if share >= CRITICAL_PCT else "warning" if share >= WARNING_PCT else "info"
    return Finding(
        name=rule.name, title=rule.title, severity=severity, family=rule.family,
        recoverable_ns=recoverable, wall_pct=share, of=rule.of, overlaps=rule.overlaps, place=place, evidence=evidence,
        meaning=rule.meaning, action=rule.action, wrong_when=rule.wrong_when,
        report=rule.report, command=_command(rule.report, trace, asked),
    )  # fmt: skip


def ranked(found: list[Finding]) -> tuple[Finding, ...]:
    """Drop what is too little, put the findings of a family under the weightiest, and order them by what can be won.

    A remedy whose time is that of others comes after the problems of its severity.
    """

    def weight(finding: Finding) -> tuple[Any, ...]:
        return (
            finding.recoverable_ns is None,
            SEVERITIES.index(finding.severity),
            finding.overlaps,
            -(finding.recoverable_ns or 0),
            -(finding.wall_pct or 0),
            finding.name,
        )

    families: dict[str, list[Finding]] = {}
    for finding in sorted(found, key=weight):
        # What has no share of a wall is about the capture as a whole.
        if finding.wall_pct >= LEAST_PCT if finding.wall_pct is not None else finding.recoverable_ns is None:
            families.setdefault(finding.family, []).append(finding)
    leaders = []
    for members in families.values():
        # A problem comes before what would mend it.
        leader = next((member for member in members if not member.overlaps), members[0])
        leaders.append(replace(leader, also=tuple(member for member in members if member is not leader)))
    return tuple(sorted(leaders, key=weight))[:AT_MOST]


def _standing(verdict: str | None, answers: dict[str, Answer], findings: Sequence[Finding]) -> str:
    """Tell the status of a diagnosis."""
    if verdict is None:
        return "empty"
    if verdict != "GPU-bound" or any(finding.severity != "info" for finding in findings):
        return "findings"
    info = _dicts(answers["info"])
    hidden = any(row["metric"] == "whole_graph_pct" and row["value"] >= LEAST_PCT for row in info)
    return "unseen" if hidden else "healthy"


def _dicts(answer: Answer) -> list[dict[str, Any]]:
    names = [column.name for column in answer.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.rows()]


def _command(report: str, trace: Trace, asked: dict[str, Any]) -> str:
    """Write the command that shows more, of this trace, in its scope and with the same steps."""
    name, *flags = shlex.split(report)
    takes = steps.params_of(find(name).sql) if name != "sql" else {}
    scope = {f"--{part.removesuffix('_ns')}": value for part, value in trace.facts()["scope"].items()}
    told = {takes[option].flag: value for option, value in asked.items() if option in takes and value is not None}
    given = [str(word) for pair in (scope | told).items() for word in pair]
    return shlex.join(["nsys-insight", name, str(trace.path), *flags, *given])
