"""A diagnosis: what bounds the run, what that costs, what to do first, and what cannot be determined from the trace.

It is a headline (`diagnose.headline`) and ranked findings (`diagnose.evaluate`, `diagnose.ranking`). Both are queries
over the answers of reports. Each report runs once.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.diagnose import headline, ranks, text
from nsys_insight.diagnose.evaluate import (
    MIN_PCT,
    NO_LATER_QUERIES,
    AnsweredReports,
    evaluate_run,
    evaluate_trace,
    list_first_queries,
)
from nsys_insight.diagnose.findings import DiagnosisResult, LeftOut, read_finding_rules
from nsys_insight.diagnose.ranking import add_run_findings, rank, rank_severity
from nsys_insight.diagnose.rule_choice import RuleChoice
from nsys_insight.paths import read_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_insight.diagnose.evaluate import LaterQueries
    from nsys_insight.diagnose.findings import Finding, FindingRule, Headline, RunOfRanks
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# A run whose GPU is busy less than this share of the wall time is not healthy, for any cause of idle time.
HEALTHY_PCT = 80.0
# With less of its GPU time in operations that are known to be efficient, a run is not called healthy.
EFFICIENT_PCT = 80.0
# The family of what bounds the run, for verdicts that name it. A mixed one names a GPU that is busy half of the time.
_FIRST_FAMILIES = {"GPU-bound": "kernels", "dependency-bound": "kernels", "start-up and end": "outside"}
ALL_RULES = RuleChoice()


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
    with open_diagnosis(trace, steps, later, choice) as (diagnosis, _):
        return diagnosis


@contextmanager
def open_diagnosis(
    trace: Session,
    steps: StepOptions,
    later: LaterQueries = NO_LATER_QUERIES,
    choice: RuleChoice = ALL_RULES,
) -> Iterator[tuple[Diagnosis, AnsweredReports]]:
    """Diagnose as `diagnose` does. In the block, the reports of the trace that the diagnosis is about can be read.

    Raises:
        UsageError: Several traces are open that share no collectives, or steps cannot be found as the options say.
    """
    # With a settings file, all rules are evaluated: the answer says what the file hides.
    rules = list(read_finding_rules()) if choice.file else choice.filter(read_finding_rules())
    noted = {pack.name for pack, _ in later.reports}
    with progress.show_task("diagnosing"):
        trace.load()
        delaying_rank = ranks.find_delaying_rank(trace, steps)
        if delaying_rank is None:
            reports = AnsweredReports(trace, steps, headline.NOTES, noted)
            yield _diagnose_trace(reports, rules, choice, later=later), reports
            return
        with delaying_rank.session as session:
            reports = AnsweredReports(session, steps, headline.NOTES, noted)
            diagnosis = _diagnose_trace(reports, rules, choice, delaying_rank.run, later)
            run_findings = evaluate_run(trace, rules, reports)
            yield _add_run(diagnosis, delaying_rank.run, run_findings, choice), reports


def _diagnose_trace(
    reports: AnsweredReports,
    rules: Sequence[FindingRule],
    choice: RuleChoice,
    run: RunOfRanks | None = None,
    later: LaterQueries = NO_LATER_QUERIES,
) -> Diagnosis:
    # One prefetch of the reports of both parts.
    reports.add([*headline.list_queries(), *list_first_queries(rules)], later)
    read_headline = headline.read_headline(reports)
    last_cause = read_headline.verdict.rpartition(", ")[2]
    visible_findings, hidden_findings = _split_chosen(evaluate_trace(reports, rules, run), choice)
    findings = rank(visible_findings, first=_FIRST_FAMILIES.get(last_cause))
    facts = vars(read_headline) | {"notes": (*choice.notes, *read_headline.notes)}
    status, unknown_pct, replaceable_pct = _choose_status(read_headline, (*findings, *hidden_findings), reports)
    return Diagnosis(
        **facts,
        status=status,
        unknown_pct=unknown_pct,
        replaceable_pct=replaceable_pct,
        findings=findings,
        trace=reports.trace.describe_trace(),
        params=reports.steps.explicit,
        answers=reports.answers,
        run=run,
        left_out=_describe_left_out(choice, hidden_findings),
    )


def _add_run(diagnosis: Diagnosis, run: RunOfRanks, run_findings: Iterable[Finding], choice: RuleChoice) -> Diagnosis:
    """Add the findings about a run to the diagnosis of one of its ranks."""
    run_findings, hidden_findings = _split_chosen(run_findings, choice)
    left_out = diagnosis.left_out
    if left_out and left_out.findings is not None:
        left_out = replace(left_out, findings=(*hidden_findings, *left_out.findings))
    is_without = diagnosis.status in {"healthy", "unjudged"}
    status = "findings" if is_without and (run_findings or hidden_findings) else diagnosis.status
    return replace(
        diagnosis,
        left_out=left_out,
        findings=add_run_findings(run_findings, diagnosis.findings),
        verdict=ranks.rename_verdict(diagnosis.verdict, run),
        status=status,
        notes=(*run.notes, *diagnosis.notes),
        # The answers are about one rank, and their connection is closed.
        answers={},
    )


def _split_chosen(findings: Iterable[Finding], choice: RuleChoice) -> tuple[list[Finding], list[Finding]]:
    """Split findings into those of the chosen rules and those of other rules, the most severe first."""
    chosen_codes = {rule.code for rule in choice.filter(read_finding_rules())}
    findings = list(findings)
    visible = [finding for finding in findings if finding.code in chosen_codes]
    hidden = [finding for finding in findings if finding.code not in chosen_codes]
    return visible, sorted(hidden, key=lambda finding: (rank_severity(finding), -(finding.wall_pct or 0)))


def _describe_left_out(choice: RuleChoice, hidden_findings: Sequence[Finding]) -> LeftOut | None:
    """Return what a choice of rules leaves out; None without a choice."""
    if not (choice.file or choice.select or choice.ignore):
        return None
    chosen_codes = {rule.code for rule in choice.filter(read_finding_rules())}
    return LeftOut(
        file=str(choice.file or ""),
        select=choice.select,
        ignore=choice.ignore,
        rules=tuple(sorted({rule.code for rule in read_finding_rules()} - chosen_codes)),
        findings=tuple(hidden_findings) if choice.file else None,
    )


def _choose_status(
    read_headline: Headline, findings: Iterable[Finding], reports: AnsweredReports
) -> tuple[str, float | None, float | None]:
    """Return the status of a diagnosis, its `unknown_pct` and its `replaceable_pct` (`DiagnosisResult`)."""
    if read_headline.verdict in headline.EMPTY_VERDICTS:
        return "empty", None, None
    ahead_pct = read_headline.ahead_pct
    is_healthy = (
        read_headline.verdict == "GPU-bound"
        and read_headline.busy_pct >= HEALTHY_PCT
        and not any(map(_is_problem, findings))
        and (ahead_pct is None or ahead_pct >= text.MIN_AHEAD_PCT)
    )
    if not is_healthy:
        return "findings", None, None
    if reports.read(f"SELECT 1 FROM _graph_tracing WHERE wholes > 0 AND whole_pct >= {MIN_PCT}"):
        return "unseen", None, None
    efficient_pct, replaceable_pct = _read_judged_time(reports)
    if efficient_pct >= EFFICIENT_PCT:
        return "healthy", None, None
    return "unjudged", max(0.0, 100 - efficient_pct - replaceable_pct), replaceable_pct


def _is_problem(finding: Finding) -> bool:
    """Return whether something is to be mended: not if kernels only take the time, and no saving is known."""
    return finding.severity != "info" and not (finding.symptom == "kernel-time" and finding.recoverable_ns is None)


def _read_judged_time(reports: AnsweredReports) -> tuple[float, float]:
    """Return the shares of the GPU time that are known to be efficient, and that something replaces, in %."""
    query = read_query("internal/diagnose/efficient")
    reports.add([query])
    (row,) = reports.read(query)
    return row["efficient_pct"] or 0.0, row["replaceable_pct"] or 0.0
