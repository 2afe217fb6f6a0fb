"""A diagnosis: what bounds the run, what that costs, what to do first, and what cannot be determined from the trace.

It is a headline (`diagnose.headline`) and ranked findings (`diagnose.evaluate`, `diagnose.ranking`). Both are queries
over the answers of reports. Each report runs once.
"""

from __future__ import annotations

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
from nsys_insight.diagnose.findings import DiagnosisResult, read_finding_rules
from nsys_insight.diagnose.ranking import add_run_findings, rank
from nsys_insight.diagnose.rule_choice import RuleChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.diagnose.evaluate import LaterQueries
    from nsys_insight.diagnose.findings import Finding, FindingRule, Headline, RunOfRanks
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# A run whose GPU is busy less than this share of the wall time is not healthy, for any cause of idle time.
HEALTHY_PCT = 80.0
# The family of what bounds the run, for verdicts that name it. A mixed one names a GPU that is busy half of the time.
_FIRST_FAMILIES = {"GPU-bound": "kernels", "start-up and end": "outside"}
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
    rules = choice.filter(read_finding_rules())
    with progress.show_task("diagnosing"):
        trace.load()
        delaying_rank = ranks.find_delaying_rank(trace, steps)
        if delaying_rank is None:
            return _diagnose_trace(AnsweredReports(trace, steps), rules, later=later)
        with delaying_rank.session as session:
            reports = AnsweredReports(session, steps)
            diagnosis = _diagnose_trace(reports, rules, delaying_rank.run)
            run_findings = evaluate_run(trace, rules, steps, reports.program)
            return _add_run(diagnosis, delaying_rank.run, run_findings)


def _diagnose_trace(
    reports: AnsweredReports,
    rules: Sequence[FindingRule],
    run: RunOfRanks | None = None,
    later: LaterQueries = NO_LATER_QUERIES,
) -> Diagnosis:
    # One prefetch of the reports of both parts.
    reports.add([*headline.list_queries(), *list_first_queries(rules)], later)
    read_headline = headline.read_headline(reports)
    last_cause = read_headline.verdict.rpartition(", ")[2]
    findings = rank(evaluate_trace(reports, rules, run), first=_FIRST_FAMILIES.get(last_cause))
    return Diagnosis(
        **vars(read_headline),
        status=_choose_status(read_headline, findings, reports),
        findings=findings,
        trace=reports.trace.describe_trace(),
        params=reports.steps.explicit,
        answers=reports.answers,
        run=run,
    )


def _add_run(diagnosis: Diagnosis, run: RunOfRanks, run_findings: Sequence[Finding]) -> Diagnosis:
    """Add the findings about a run to the diagnosis of one of its ranks."""
    return replace(
        diagnosis,
        findings=add_run_findings(run_findings, diagnosis.findings),
        verdict=ranks.rename_verdict(diagnosis.verdict, run),
        status="findings" if run_findings and diagnosis.status == "healthy" else diagnosis.status,
        notes=(*run.notes, *diagnosis.notes),
        # The answers are about one rank, and their connection is closed.
        answers={},
    )


def _choose_status(read_headline: Headline, findings: Iterable[Finding], reports: AnsweredReports) -> str:
    """Return the status of a diagnosis (`DiagnosisResult`)."""
    if read_headline.verdict in (headline.NO_GPU_WORK, headline.LOST_KERNELS):
        return "empty"
    queue_ns = read_headline.queue_ns
    is_healthy = (
        read_headline.verdict == "GPU-bound"
        and read_headline.busy_pct >= HEALTHY_PCT
        and all(finding.severity == "info" for finding in findings)
        and (queue_ns is None or queue_ns >= text.MIN_QUEUE_NS)
    )
    if not is_healthy:
        return "findings"
    info = reports.answers["info"].dicts()
    has_hidden_kernels = any(row["metric"] == "whole_graph_pct" and row["value"] >= MIN_PCT for row in info)
    return "unseen" if has_hidden_kernels else "healthy"
