"""A diagnosis: what bounds the run, what that costs, what to do first, and what cannot be determined from the trace.

Each report runs once. The findings (`diagnose.findings`) and the headline are queries over the reports' answers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import progress
from nsys_insight.diagnose import ranks, text
from nsys_insight.diagnose.findings import (
    ANY,
    RESERVED_COLUMNS,
    Cure,
    DiagnosisResult,
    Finding,
    Share,
    UnassessedQuestion,
    bind_reports,
    list_reports,
    read_finding_rules,
)
from nsys_insight.diagnose.rule_choice import RuleChoice
from nsys_insight.diagnose.templates import fill_template
from nsys_insight.errors import QueryError, UsageError
from nsys_insight.packs import command_line, library
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.paths import read_query
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
MIN_PCT = 1.0
# Severity by share of wall time. The verdict of classify names causes from 10%; a gain above 3% is worth the change.
CRITICAL_PCT, WARNING_PCT = 10.0, 3.0
MAX_FINDINGS = 7
FAILED_FAMILY = "failed"
LAUNCH_FAMILY = "launch"
# A run whose GPU is busy less than this share of the wall time is not healthy, for any cause of idle time.
HEALTHY_PCT = 80.0
# If the steady steps take less than this share of the wall time, the headline says what the rest is.
MOST_OF_TRACE = 0.5
NO_GPU_WORK, LOST_KERNELS = "no GPU work is in the trace", text.LOST_KERNELS
# The families of findings about a trace whose kernels are lost. All others would treat the GPU as idle.
_FAMILIES_WITHOUT_KERNELS = (FAILED_FAMILY, "capture")


# The family of what bounds the run, for verdicts that name it. A mixed one names a GPU that is busy half of the time.
_FIRST_FAMILIES = {"GPU-bound": "kernels", "start-up and end": "outside"}


class _Program(NamedTuple):
    """What the texts of a finding depend on: the framework of the program, and the unit of its times."""

    framework: str
    unit: str


class LaterQueries(NamedTuple):
    """Reports (each with its parameters) and queries that the caller runs after the diagnosis. They are prefetched."""

    reports: Sequence[tuple[Pack, Mapping[str, Any]]] = ()
    queries: Sequence[str] = ()


NO_LATER_QUERIES, ALL_RULES = LaterQueries(), RuleChoice()


class Diagnosis(DiagnosisResult):
    """A diagnosis that can be written out."""

    def answer(self) -> Answer:
        """Return the findings as a table, with the headline as its summary. The machine formats write this."""
        return text.make_answer(self)

    def text(self, width: int | None = 80) -> str:
        """Return the diagnosis as text, in lines of at most `width` cells."""
        return text.write_text(self, width)


def diagnose(
    trace: Session,
    steps: StepOptions,
    later: LaterQueries = NO_LATER_QUERIES,
    choice: RuleChoice = ALL_RULES,
) -> Diagnosis:
    """Diagnose a trace, or the ranks of a run in one trace or several, with steps found as the options say.

    For the ranks of a run, diagnose the rank that delays the others. `later` is prefetched together with the reports
    of the diagnosis. `choice` says which rules to use.

    Raises:
        UsageError: Several traces are open that share no collectives, or steps cannot be found as the options say.
    """
    with progress.show_task("diagnosing"):
        trace.load()
        delaying_rank = ranks.find_delaying_rank(trace, steps)
        if delaying_rank is None:
            if len(trace.paths) > 1:
                reason = ranks.explain_no_run(trace, steps)
                raise UsageError(
                    f"diagnose takes one trace, or the ranks of one run: {reason}",
                    "name one of them; to compare two: nsys-insight diff BEFORE AFTER",
                )
            return _diagnose_trace(trace, steps, choice, later=later)
        with delaying_rank.session as session:
            return _add_run_findings(
                _diagnose_trace(session, steps, choice, delaying_rank.run), delaying_rank.run, trace, steps, choice
            )


def _add_run_findings(
    rank: Diagnosis, run: RunOfRanks, trace: Session, steps: StepOptions, choice: RuleChoice
) -> Diagnosis:
    """Put the findings about the run before those of the same severity about one of its ranks.

    An exception is launch overhead that costs more than the lateness. All ranks run the same program, so its cure makes
    the hosts of all ranks faster.
    """
    paths, scope = ranks.write_trace_arguments(trace), trace.describe_trace()["scope"]
    run_findings = []
    program = _Program(rank.framework, rank.unit)
    for rule in (rule for rule in choice.filter(read_finding_rules()) if rule.is_cross_rank):
        command = command_line.write_command(rule.report, paths, scope, steps.explicit)
        rows = trace.dicts(rule.statement(tokens=rank.steps["tokens_per_step"]), steps)
        run_findings += [_make_finding(rule, row, command, program) for row in rows]
    run_saving_ns = max((finding.recoverable_ns or 0 for finding in run_findings), default=math.inf)
    common = tuple(
        finding
        for finding in rank.findings
        if finding.family == LAUNCH_FAMILY and (finding.saving_low_ns or 0) > run_saving_ns
    )
    other_findings = tuple(finding for finding in rank.findings if finding not in common)
    all_findings = (*common, *rank_findings(run_findings), *other_findings)
    findings = tuple(sorted(all_findings, key=_find_severity)[:MAX_FINDINGS])
    verdict = ranks.rename_verdict(rank.verdict, run)
    status = "findings" if run_findings and rank.status == "healthy" else rank.status
    notes = (*run.notes, *rank.notes)
    # The answers are about one rank, and their connection is closed.
    return replace(rank, findings=findings, verdict=verdict, status=status, notes=notes, answers={})


def _diagnose_trace(
    trace: Session,
    steps: StepOptions,
    choice: RuleChoice,
    run: RunOfRanks | None = None,
    later: LaterQueries = NO_LATER_QUERIES,
) -> Diagnosis:
    rules = [rule for rule in choice.filter(read_finding_rules()) if not rule.is_cross_rank]
    headline = {name: read_query(f"internal/diagnose/{name}") for name in ("shares", "steps", "unjudged")}
    conditions = {rule.name: bind(rule.when, {"shown_pct": MIN_PCT, **rule.params}) for rule in rules if rule.when}
    first_queries = [*(rule.sql for rule in rules if not rule.when), *headline.values(), *conditions.values()]
    answers = _answer_reports(trace, {report for sql in first_queries for report in list_reports(sql)}, steps, later)

    def bind_stored(sql: str) -> str:
        return bind_reports(sql, {report: answer.table for report, answer in answers.items()})

    def query_rows(sql: str) -> list[dict[str, Any]]:
        return trace.dicts(bind_stored(sql), steps, is_built_in=True)

    def read_rows(sql: str) -> list[dict[str, Any]]:
        try:
            return query_rows(sql)
        except QueryError:
            # An internal error of DuckDB invalidates the connection and the answers on it (session/recovery.py).
            new_answers = _answer_reports(trace, set(answers), steps)
            if all(new_answers[report].connection is answers[report].connection for report in new_answers):
                raise
            answers.update(new_answers)
            return query_rows(sql)

    trace.prefetch((), map(bind_stored, dict.fromkeys([*headline.values(), *conditions.values()])), steps)
    is_kernel_data_lost = bool(trace.dicts("FROM _unrecorded WHERE what = 'kernels'"))
    (step_summary,) = read_rows(headline["steps"])
    step_source, queue_ns = step_summary.pop("source"), step_summary.pop("queue_ns")
    if step_summary["steps_ns"] and step_summary["steps_ns"] < MOST_OF_TRACE * step_summary["wall_ns"]:
        step_summary["outside"] = next(iter(read_rows(read_query("internal/diagnose/outside"))), None)
    # Steps that NVTX ranges give need no search for loops.
    if step_summary["steps_ns"] and step_summary["method"] == "sequence":
        step_summary["other_loops"] = read_rows(read_query("internal/diagnose/other_loops"))
    step_unit = step_summary.pop("unit") or "step"
    unit = (
        "trace" if not step_summary["steady_count"]
        else step_unit if step_summary["tokens_per_step"] == 1
        else "token"
    )  # fmt: skip
    is_met = {sql: bool(read_rows(sql)) for sql in dict.fromkeys(conditions.values())}
    rules = [rule for rule in rules if rule.name not in conditions or is_met[conditions[rule.name]]]
    answers |= _answer_reports(
        trace, {report for rule in rules for report in list_reports(rule.sql)} - answers.keys(), steps
    )
    waiting_pct = 100 * run.waiting_share if run else None
    statements = [(rule, rule.statement(waiting_pct=waiting_pct)) for rule in rules]
    program = _Program(_find_framework(trace, steps), unit)
    trace.prefetch((), (bind_stored(statement) for _, statement in statements), steps)
    all_findings = [
        _make_finding(rule, row, _write_command(rule.report, trace, steps), program)
        for rule, statement in statements
        for row in read_rows(statement)
    ]
    shares = tuple(Share(**row) for row in read_rows(headline["shares"]))
    unassessed = tuple(UnassessedQuestion(**row) for row in read_rows(headline["unjudged"]))
    budget_rows = {row["part"]: row for row in answers["classify"].dicts()}
    wall = budget_rows.pop("wall", {"verdict": None, "time_ns": None})
    kernel_query = (
        "SELECT name, sum(kernel_time_pct) AS pct FROM _steady_shapes GROUP BY name ORDER BY pct DESC, name LIMIT 1"
    )
    top_kernel = next(iter(trace.dicts(kernel_query, steps)), None)
    if is_kernel_data_lost:
        wall, shares = {"verdict": None, "time_ns": None}, ()
        all_findings = [finding for finding in all_findings if finding.family in _FAMILIES_WITHOUT_KERNELS]
    verdict_words = (wall["verdict"] or "").split(", ")
    findings = rank_findings(all_findings, first=_FIRST_FAMILIES.get(verdict_words[-1]))
    return Diagnosis(
        status=_choose_status(
            wall["verdict"], sum(share.wall_pct for share in shares if share.is_busy), answers, findings, queue_ns
        ),
        queue_ns=queue_ns,
        framework=program.framework,
        verdict=wall["verdict"] or (LOST_KERNELS if is_kernel_data_lost else NO_GPU_WORK),
        unit=unit,
        wall_ns=wall["time_ns"],
        tokens_per_s=1e9 / wall["time_ns"] if wall["time_ns"] and unit != "trace" else None,
        shares=shares,
        steps=step_summary,
        step_source=step_source,
        findings=findings,
        unassessed=unassessed,
        top_kernel=(top_kernel["name"], top_kernel["pct"]) if top_kernel and top_kernel["pct"] is not None else None,
        notes=_collect_notes(trace, answers, is_empty=wall["time_ns"] is None),
        trace=trace.describe_trace(),
        params=steps.explicit,
        answers=answers,
        run=run,
    )


def _find_framework(trace: Session, steps: StepOptions) -> str:
    """Return the framework of the program, as in the view `frameworks`; `ANY` if nothing shows it."""
    rows = trace.dicts("SELECT framework FROM frameworks WHERE is_program", steps)
    return rows[0]["framework"] if rows else ANY


def write_unit(unit: str) -> str:
    """Write the unit that times refer to: "per step", "per token", "per call of attention", "in total"."""
    return "in total" if unit == "trace" else f"per {unit}"


def _collect_notes(trace: Session, answers: dict[str, Answer], *, is_empty: bool) -> tuple[str, ...]:
    """Return notes on other processes and on tokens that do not fit. For an empty scope, say where the GPU work is."""
    location_note = trace.describe_gpu_time().removeprefix("; ") if is_empty else ""
    notes = tuple(
        note for name in ("processes", "tokens", SCOPE_NOTE) for note in answers["classify"].notes_named(name)
    )
    return (*notes, location_note) if location_note else notes


def _answer_reports(
    trace: Session, reports: set[str], steps: StepOptions, later: LaterQueries = NO_LATER_QUERIES
) -> dict[str, Answer]:
    """Answer the reports, all on one connection. A damaged file may force a new connection after some answers."""
    packs = {report: library.get_pack(report) for report in sorted(reports)}
    needed_reports: list[tuple[Pack, Mapping[str, Any]]] = [(pack, {}) for pack in packs.values()]
    trace.prefetch(
        [*needed_reports, *((pack, params) for pack, params in later.reports if pack.name not in packs)],
        later.queries,
        steps,
    )
    answers: dict[str, Answer] = {}
    while missing := packs.keys() - answers.keys():
        for report in sorted(missing):
            answers[report] = trace.answer(packs[report], steps=steps)
            answers = {
                name: answer for name, answer in answers.items() if answer.connection is answers[report].connection
            }
    return answers


def _make_finding(rule: FindingRule, row: dict[str, Any], command: str, program: _Program) -> Finding:
    severity, share = row.get("severity") or rule.severity, row["wall_pct"]
    if row["recoverable_ns"] is not None and share is not None:
        severity = "critical" if share >= CRITICAL_PCT else "warning" if share >= WARNING_PCT else "info"
    columns = {**row, "per": write_unit(program.unit)}
    cure_framework, cure_text = rule.choose_cure(program.framework, row.get("cure_case"))
    return Finding(
        code=rule.code, name=rule.name, title=rule.title, severity=severity, family=row.get("family") or rule.family,
        recoverable_ns=row["recoverable_ns"], saving_low_ns=row.get("saving_low_ns"), bounded_by=row.get("bounded_by"),
        wall_pct=share, share_of=rule.share_of, overlaps=rule.overlaps,
        place=row["place"], evidence=fill_template(rule.evidence, columns, rule.items),
        values={
            name: float(number) for name, number in row.items()
            if isinstance(number, int | float) and not isinstance(number, bool) and name not in RESERVED_COLUMNS
        },
        meaning=rule.meaning,
        cure=Cure(cure_framework, fill_template([cure_text], columns), rule.effort, rule.numerics), caveat=rule.caveat,
        report=rule.report, command=command, explains=tuple(row.get("explains", rule.explains)),
    )  # fmt: skip


def _find_severity(finding: Finding) -> tuple[bool, int]:
    """Return what findings are sorted by first. If the run failed, no other finding is reliable."""
    return finding.family != FAILED_FAMILY, SEVERITIES.index(finding.severity)


def rank_findings(findings: list[Finding], first: str | None = None) -> tuple[Finding, ...]:
    """Drop small findings, put each family and its symptoms under one finding, and sort by severity and saving.

    A remedy whose time overlaps with other findings comes after the problems of its severity. `first` is the family
    of the verdict: unless critical, it comes first among the findings of its severity.
    """

    def find_time(finding: Finding) -> float | None:
        """Return the possible saving; of a cause without one, that of its largest symptom."""
        times = [member.recoverable_ns for member in finding.also if member.name in finding.explains]
        return finding.recoverable_ns or max((time for time in times if time), default=None)

    def sort_key(finding: Finding) -> tuple[Any, ...]:
        return (
            *_find_severity(finding),
            # Of the critical ones, only start-up has no saving that it can be sorted by.
            finding.family != first and (finding.severity != "critical" or first == "outside"),
            find_time(finding) is None,
            finding.overlaps,
            -(find_time(finding) or 0),
            -(finding.saving_low_ns or 0),
            -(finding.wall_pct or 0),
            finding.name,
        )

    relevant_findings = [
        finding
        for finding in sorted(findings, key=sort_key)
        # A finding without a share of wall time is about the capture.
        if (finding.wall_pct >= MIN_PCT if finding.wall_pct is not None else finding.recoverable_ns is None)
    ]

    def list_causes(finding: Finding) -> list[Finding]:
        return [
            cause for cause in relevant_findings if finding.name in cause.explains and cause.family != finding.family
        ]

    families: dict[str, list[Finding]] = {}
    for finding in relevant_findings:
        causes = list_causes(finding)
        # A cause that is itself a symptom is listed below its own cause, and so are its symptoms.
        roots = [cause for cause in causes if not list_causes(cause)] or causes
        families.setdefault(roots[0].family if roots else finding.family, []).append(finding)
    leading_findings = []
    for family, members in families.items():
        # A cause comes before its symptoms, and a problem before its remedy.
        causes_of_family = [member for member in members if member.family == family] or members
        leader = next((member for member in causes_of_family if not member.overlaps), causes_of_family[0])
        other_members = [member for member in members if member is not leader]
        symptoms = [member for member in other_members if member.name in leader.explains]
        # A cause without a saving of its own is as severe as its symptoms.
        severity = min(
            (finding.severity for finding in (leader, *symptoms) if finding is leader or leader.recoverable_ns is None),
            key=SEVERITIES.index,
        )
        leading_findings.append(replace(leader, severity=severity, also=(*leader.also, *other_members)))
    leading_findings.sort(key=sort_key)
    # Missing data can make the other findings wrong, so they are reported even after seven larger findings.
    incomplete = [finding for finding in leading_findings[MAX_FINDINGS:] if finding.family == "capture"]
    return (*leading_findings[: MAX_FINDINGS - len(incomplete)], *incomplete)


def _choose_status(
    verdict: str | None,
    busy_pct: float,
    answers: dict[str, Answer],
    findings: Sequence[Finding],
    queue_ns: float | None,
) -> str:
    """Return the status of a diagnosis (`DiagnosisResult`)."""
    if verdict is None:
        return "empty"
    if busy_pct < HEALTHY_PCT or verdict != "GPU-bound" or any(finding.severity != "info" for finding in findings):
        return "findings"
    if queue_ns is not None and queue_ns < text.MIN_QUEUE_NS:
        return "findings"
    info = answers["info"].dicts()
    has_hidden_kernels = any(row["metric"] == "whole_graph_pct" and row["value"] >= MIN_PCT for row in info)
    return "unseen" if has_hidden_kernels else "healthy"


def _write_command(report: str, trace: Session, steps: StepOptions) -> str:
    """Write the command that shows details, for this trace, in its scope and with the same steps."""
    name = report.split(maxsplit=1)[0]
    step_flags = steps.explicit_for(library.get_pack(name)) if name != "sql" else {}
    return command_line.write_command(report, str(trace.path), trace.describe_trace()["scope"], step_flags)
