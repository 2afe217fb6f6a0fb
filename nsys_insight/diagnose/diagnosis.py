"""A diagnosis: what bounds the run, what that costs, what to do first, and what the trace cannot tell.

The reports are asked once each; the findings (`diagnose.findings`) and the headline are queries over their answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import progress
from nsys_insight.diagnose import ranks, text
from nsys_insight.diagnose.findings import (
    DiagnosisResult,
    Finding,
    Share,
    Unjudged,
    finding_rules,
    over_answers,
    reports_of,
)
from nsys_insight.errors import QueryError
from nsys_insight.packs import command_line, library
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.paths import query
from nsys_insight.session.report_question import SCOPE_NOTE
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.diagnose.findings import FindingRule, RunOfRanks
    from nsys_insight.packs.pack import Pack
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session


# Findings below this share of wall time are dropped: it is within run-to-run noise.
LEAST_PCT = 1.0
# From this share on the verdict of classify names a cause; an improvement of more than 3 % is worth keeping.
CRITICAL_PCT, WARNING_PCT = 10.0, 3.0
AT_MOST = 7
FAILED = "failed"
# A GPU that works less than this share of the wall is not healthy, whatever it waits for.
HEALTHY_PCT = 80.0
NOTHING, LOST = "no GPU work is in the trace", text.LOST
# The families of findings about a trace whose kernels are lost; all others would be about a GPU that seems idle.
_OF_LOST = (FAILED, "capture")


class Then(NamedTuple):
    """What a trace will be asked after its diagnosis: reports, each with its parameters, and queries for rows."""

    reports: Sequence[tuple[Pack, Mapping[str, Any]]] = ()
    rows: Sequence[str] = ()


NO_MORE = Then()


class Diagnosis(DiagnosisResult):
    """What is found, which can be written out."""

    def answer(self) -> Answer:
        """The findings as a table, with the headline as its summary: what the machine formats write."""
        return text.answer(self)

    def text(self, width: int | None = 80) -> str:
        """The diagnosis for people, in lines of at most `width` cells."""
        return text.text(self, width)


def diagnose(trace: Session, steps: StepOptions, then: Then = NO_MORE) -> Diagnosis:
    """Diagnose a trace, or the ranks of a run in one trace or several, with steps found as the options say.

    Of the ranks of a run, the one that delays the others is diagnosed. `then` is what the trace will be asked after
    this: it is prefetched together with what is needed here.

    Raises:
        UsageError: Several traces are open that share no collectives, or steps cannot be found as the options say.
    """
    with progress.at("diagnosing"):
        trace.load()
        chosen = ranks.delaying_rank(trace, steps)
        if chosen is None:
            trace.refuse_several(
                "a diagnosis is of one trace, or of the ranks of a run: these traces share no NCCL collectives",
                "name one of them; nsys-insight ranks has the details",
            )
            return _diagnosed(trace, steps, then=then)
        with chosen.session as session:
            return _of_run(_diagnosed(session, steps, chosen.run), chosen.run, trace, steps)


def _of_run(rank: Diagnosis, run: RunOfRanks, trace: Session, steps: StepOptions) -> Diagnosis:
    """Put the findings about the run before those about one of its ranks."""
    paths, scope = ranks.trace_arguments(trace), trace.about()["scope"]
    found = []
    for rule in (rule for rule in finding_rules() if rule.of_run):
        command = command_line.command(rule.report, paths, scope, steps.given)
        rows = trace.dicts(rule.statement(tokens=rank.steps["tokens_per_step"]), steps)
        found += [replace(_finding(rule, row, trace, steps), command=command) for row in rows]
    findings = (*ranked(found), *ranked([ranks.without_waiting(each, run) for each in rank.findings]))[:AT_MOST]
    verdict = ranks.verdict_of_run(rank.verdict, run)
    status = "findings" if found and rank.status == "healthy" else rank.status
    notes = (*run.notes, *rank.notes)
    # The answers are of one rank, on a connection that is closed.
    return replace(rank, findings=findings, verdict=verdict, status=status, notes=notes, answers={})


def _diagnosed(trace: Session, steps: StepOptions, run: RunOfRanks | None = None, then: Then = NO_MORE) -> Diagnosis:
    rules = [rule for rule in finding_rules() if not rule.of_run]
    headline = {name: query(f"internal/diagnose/{name}") for name in ("shares", "steps", "unjudged")}
    whens = {rule.name: bind(rule.when, {"shown_pct": LEAST_PCT, **rule.params}) for rule in rules if rule.when}
    first = [*(rule.sql for rule in rules if not rule.when), *headline.values(), *whens.values()]
    answers = _answers(trace, {report for sql in first for report in reports_of(sql)}, steps, then)

    def over(sql: str) -> str:
        return over_answers(sql, {report: answer.table for report, answer in answers.items()})

    def found_rows(sql: str) -> list[dict[str, Any]]:
        return trace.dicts(over(sql), steps)

    def rows(sql: str) -> list[dict[str, Any]]:
        try:
            return found_rows(sql)
        except QueryError:
            # DuckDB's own fault makes a connection useless, and with it the answers there (session/recovery.py).
            again = _answers(trace, set(answers), steps)
            if all(again[report].connection is answers[report].connection for report in again):
                raise
            answers.update(again)
            return found_rows(sql)

    trace.ahead((), map(over, [*headline.values(), *whens.values()]), steps)
    lost = bool(trace.dicts("FROM _unrecorded WHERE what = 'kernels'"))
    (found_steps,) = rows(headline["steps"])
    told_by = found_steps.pop("told_by")
    per = "trace" if not found_steps["steady_count"] else "step" if found_steps["tokens_per_step"] == 1 else "token"
    for_each = "in total" if per == "trace" else f"a {per}"
    rules = [rule for rule in rules if rule.name not in whens or rows(whens[rule.name])]
    answers |= _answers(trace, {report for rule in rules for report in reports_of(rule.sql)} - answers.keys(), steps)
    asked = [(rule, rule.statement(per=for_each)) for rule in rules]
    trace.ahead((), (over(statement) for _, statement in asked), steps)
    found = [_finding(rule, row, trace, steps) for rule, statement in asked for row in rows(statement)]
    shares = tuple(Share(**row) for row in rows(headline["shares"]))
    unjudged = tuple(Unjudged(**row) for row in rows(headline["unjudged"]))
    parts = {row["part"]: row for row in answers["classify"].dicts()}
    wall = parts.pop("wall", {"verdict": None, "time_ns": None})
    top = "SELECT name, sum(kernel_time_pct) AS pct FROM _steady_shapes GROUP BY name ORDER BY pct DESC, name LIMIT 1"
    kernel = next(iter(trace.dicts(top, steps)), None)
    if lost:
        wall, shares = {"verdict": None, "time_ns": None}, ()
        found = [finding for finding in found if finding.family in _OF_LOST]
    findings = ranked(found, first="kernels" if wall["verdict"] == "GPU-bound" else None)
    return Diagnosis(
        status=_status(wall["verdict"], sum(share.wall_pct for share in shares if share.is_busy), answers, findings),
        verdict=wall["verdict"] or (LOST if lost else NOTHING),
        per=per,
        wall_ns=wall["time_ns"],
        tokens_per_s=1e9 / wall["time_ns"] if wall["time_ns"] and per != "trace" else None,
        shares=shares,
        steps=found_steps,
        told_by=told_by,
        findings=findings,
        unjudged=unjudged,
        top_kernel=(kernel["name"], kernel["pct"]) if kernel and kernel["pct"] is not None else None,
        notes=_notes(trace, answers, nothing=wall["time_ns"] is None),
        trace=trace.about(),
        params=steps.given,
        answers=answers,
        run=run,
    )


def _notes(trace: Session, answers: dict[str, Answer], *, nothing: bool) -> tuple[str, ...]:
    """Say what else must be known: other processes, tokens that do not fit; for an empty scope, where the trace is."""
    lies = trace.where_events_lie().removeprefix("; ") if nothing else ""
    notes = tuple(note for name in ("processes", "tokens", SCOPE_NOTE) for note in answers["classify"].notes_of(name))
    return (*notes, lies) if lies else notes


def _answers(trace: Session, reports: set[str], steps: StepOptions, then: Then = NO_MORE) -> dict[str, Answer]:
    """Answer the reports, all on one connection: a file that is hard to read may take another one on the way."""
    packs = {report: library.pack_of(report) for report in sorted(reports)}
    needed: list[tuple[Pack, Mapping[str, Any]]] = [(pack, {}) for pack in packs.values()]
    trace.ahead([*needed, *(asked for asked in then.reports if asked[0].name not in packs)], then.rows, steps)
    answers: dict[str, Answer] = {}
    while missing := packs.keys() - answers.keys():
        for report in sorted(missing):
            answers[report] = trace.answer(packs[report], steps=steps)
            answers = {name: one for name, one in answers.items() if one.connection is answers[report].connection}
    return answers


def _finding(rule: FindingRule, row: dict[str, Any], trace: Session, steps: StepOptions) -> Finding:
    severity, share = rule.severity, row["wall_pct"]
    if row["recoverable_ns"] is not None and share is not None:
        severity = "critical" if share >= CRITICAL_PCT else "warning" if share >= WARNING_PCT else "info"
    return Finding(
        name=rule.name, title=row.get("title") or rule.title, severity=severity,
        family=row.get("family") or rule.family,
        recoverable_ns=row["recoverable_ns"], wall_pct=share, of=rule.of, overlaps=rule.overlaps,
        place=row["place"], evidence=row["evidence"],
        meaning=rule.meaning, action=row.get("action") or rule.action, caveat=rule.caveat,
        report=rule.report, command=_command(rule.report, trace, steps),
    )  # fmt: skip


def ranked(found: list[Finding], first: str | None = None) -> tuple[Finding, ...]:
    """Drop what is too little, put the findings of a family under the weightiest, and order them by what can be won.

    A remedy whose time is that of others comes after the problems of its severity. The family `first` is what the
    verdict is about: nothing but what is critical comes before it.
    """

    def weight(finding: Finding) -> tuple[Any, ...]:
        return (
            # Of a run that failed, nothing else holds.
            finding.family != FAILED,
            finding.family != first and finding.severity != "critical",
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


def _status(verdict: str | None, busy_pct: float, answers: dict[str, Answer], findings: Sequence[Finding]) -> str:
    """Tell the status of a diagnosis."""
    if verdict is None:
        return "empty"
    if busy_pct < HEALTHY_PCT or verdict != "GPU-bound" or any(finding.severity != "info" for finding in findings):
        return "findings"
    info = answers["info"].dicts()
    hidden = any(row["metric"] == "whole_graph_pct" and row["value"] >= LEAST_PCT for row in info)
    return "unseen" if hidden else "healthy"


def _command(report: str, trace: Session, steps: StepOptions) -> str:
    """Write the command that shows more, of this trace, in its scope and with the same steps."""
    name = report.split(maxsplit=1)[0]
    taken = steps.taken_by(library.pack_of(name)) if name != "sql" else {}
    return command_line.command(report, str(trace.path), trace.about()["scope"], taken)
