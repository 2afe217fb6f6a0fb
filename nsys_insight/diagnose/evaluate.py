"""Evaluate rules: a finding for each row of a rule's query. No headline is read, and the findings are not ranked.

`evaluate` is for a check of some rules. `diagnose` evaluates all rules and shares the answers of the reports with the
headline.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import progress
from nsys_insight.diagnose import ranks
from nsys_insight.diagnose.findings import (
    ANY,
    CAPTURE_FAMILY,
    FAILED_FAMILY,
    RESERVED_COLUMNS,
    Cure,
    Finding,
    Unprofiled,
    bind_reports,
    choose_cure,
    list_reports,
)
from nsys_insight.diagnose.unprofiled import limit_saving
from nsys_insight.errors import QueryError
from nsys_insight.packs import flag_texts, library
from nsys_insight.packs.notes import fill_note
from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind
from nsys_insight.text.templates import fill_template

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from nsys_insight.diagnose.findings import FindingRule, RunOfRanks
    from nsys_insight.packs.pack import Pack
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# Findings below this share of wall time are dropped: it is within run-to-run noise.
MIN_PCT = 1.0
# Severity by share of wall time. The verdict of classify names causes from 10%; a gain above 3% is worth the change.
CRITICAL_PCT, WARNING_PCT = 10.0, 3.0
# Rules about a trace whose kernels are lost, or did not start. All others would treat the GPU as idle.
_FAMILIES_WITHOUT_KERNELS = (FAILED_FAMILY, CAPTURE_FAMILY)
_FIRST_KERNEL = """
SELECT 1 FROM raw.CUPTI_ACTIVITY_KIND_KERNEL UNION ALL SELECT 1 FROM raw.CUPTI_ACTIVITY_KIND_GRAPH_TRACE LIMIT 1"""


class Program(NamedTuple):
    """What the texts and times of findings depend on.

    `framework` is that of the program, as in the view `frameworks`. `step_unit` is what a step is called, as in the
    view `step_method`.
    """

    framework: str
    has_steps: bool
    tokens_per_step: float
    step_unit: str

    @property
    def unit(self) -> str:
        """The unit that times refer to: step (or what a part of one is called), token or trace."""
        return "trace" if not self.has_steps else self.step_unit if self.tokens_per_step == 1 else "token"


class KernelLoss(NamedTuple):
    """Why a trace has launch calls but no kernels: these are lost, or all calls returned errors."""

    lacks_kernels: bool = False
    fails_to_launch: bool = False


class LaterQueries(NamedTuple):
    """Reports (each with its parameters) and queries that the caller runs after the diagnosis. They are prefetched."""

    reports: Sequence[tuple[Pack, Mapping[str, Any]]] = ()
    queries: Sequence[str] = ()


NO_LATER_QUERIES = LaterQueries()


class AnsweredReports:
    """The reports that rules and the headline read, each answered once on one connection, and queries over them."""

    def __init__(
        self,
        trace: Session,
        steps: StepOptions,
        notes: Mapping[str, Collection[str]] | None = None,
        noted: Collection[str] = (),
    ) -> None:
        """Take a trace, with steps found as the options say. No report has been answered yet.

        `notes` are the notes that are read, by report; the reports of `noted` are answered with all their notes.
        """
        self.trace, self.steps, self._notes, self._noted = trace, steps, notes or {}, noted
        self.answers: dict[str, Answer] = {}

    @cached_property
    def program(self) -> Program:
        """What the trace shows about its program. Rules that find nothing do not need it."""
        (row,) = self.read(read_query("internal/diagnose/program"))
        return Program(**row | {"framework": row["framework"] or ANY})

    @cached_property
    def kernel_loss(self) -> KernelLoss:
        """Why the trace has no kernels."""
        if self.read(_FIRST_KERNEL):
            return KernelLoss()
        (row,) = self.read(read_query("internal/diagnose/kernel_loss"))
        return KernelLoss(**row)

    @cached_property
    def unprofiled(self) -> Unprofiled | None:
        """The step without nsys; None without steady steps. Rules that find nothing do not need it."""
        steps = [] if self.kernel_loss.lacks_kernels else self.read(read_query("internal/diagnose/unprofiled"))
        return _describe_unprofiled(**steps[0]) if steps else None

    def add(self, queries: Iterable[str], later: LaterQueries = NO_LATER_QUERIES) -> None:
        """Answer the reports that the queries read and that have no answer yet; prefetch them with `later`."""
        reports = {report for query in queries for report in list_reports(query)} - self.answers.keys()
        self.answers |= self._answer(reports, later)

    def prefetch(self, queries: Iterable[str]) -> None:
        """Prefetch queries that are read next. Their reports have been answered."""
        self.trace.prefetch((), map(self._bind, dict.fromkeys(queries)), self.steps)

    def read(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query, whose reports have been answered."""
        try:
            return self._read(query)
        except QueryError:
            # An internal error of DuckDB invalidates the connection and the answers on it (session/recovery.py).
            new_answers = self._answer(self.answers.keys())
            if all(answer.connection is self.answers[report].connection for report, answer in new_answers.items()):
                raise
            self.answers = new_answers
            return self._read(query)

    def _read(self, query: str) -> list[dict[str, Any]]:
        return self.trace.dicts(self._bind(query), self.steps, is_built_in=True)

    def _bind(self, query: str) -> str:
        return bind_reports(query, {report: answer.table for report, answer in self.answers.items()})

    def _answer(self, reports: Iterable[str], later: LaterQueries = NO_LATER_QUERIES) -> dict[str, Answer]:
        """Answer reports on one connection. A damaged file may force a new connection after some answers."""
        all_packs = {report: library.get_pack(report) for report in sorted(reports)}
        packs = {
            name: pack if name in self._noted else pack.with_notes(self._notes.get(name, ()))
            for name, pack in all_packs.items()
        }
        needed_reports: list[tuple[Pack, Mapping[str, Any]]] = [(pack, {}) for pack in packs.values()]
        self.trace.prefetch(
            [*needed_reports, *((pack, params) for pack, params in later.reports if pack.name not in packs)],
            later.queries,
            self.steps,
        )
        answers: dict[str, Answer] = {}
        while missing := packs.keys() - answers.keys():
            for report in sorted(missing):
                answers[report] = self.trace.answer(packs[report], steps=self.steps)
                answers = {
                    name: answer for name, answer in answers.items() if answer.connection is answers[report].connection
                }
        return answers


def _describe_unprofiled(facts: dict[str, Any], **times: Any) -> Unprofiled:
    """Write the sentences about the step without nsys."""
    return Unprofiled(
        **times,
        sentence=fill_note("unprofiled_without", facts) or None,
        unknown=fill_note("unprofiled_unknown", facts) or None,
        misfit=fill_note("unprofiled_misfit", facts) or None,
    )


def evaluate(trace: Session, rules: Sequence[FindingRule], steps: StepOptions) -> list[Finding]:
    """Evaluate rules on a trace, or on the ranks of a run in one trace or several.

    Of the ranks of a run, the rules about a single rank are evaluated on the rank that delays the others.

    Raises:
        UsageError: Several traces are open that share no collectives, or steps cannot be found as the options say.
    """
    with progress.show_task("evaluating rules"):
        trace.load()
        delaying_rank = ranks.find_delaying_rank(trace, steps)
        if delaying_rank is None:
            return evaluate_trace(AnsweredReports(trace, steps), rules)
        with delaying_rank.session as session:
            reports = AnsweredReports(session, steps)
            findings = evaluate_trace(reports, rules, delaying_rank.run)
            return [*evaluate_run(trace, rules, reports), *findings]


def evaluate_trace(
    reports: AnsweredReports, rules: Iterable[FindingRule], run: RunOfRanks | None = None
) -> list[Finding]:
    """Evaluate the rules about a single rank; `run` is the run that this rank is part of."""
    waiting_pct = 100 * run.waiting_share if run else None
    rules = [
        rule
        for rule in rules
        if not rule.is_cross_rank and (not any(reports.kernel_loss) or rule.family in _FAMILIES_WITHOUT_KERNELS)
    ]
    statements = [(rule, rule.statement(waiting_pct=waiting_pct)) for rule in _select_rules(reports, rules)]
    reports.add(rule.sql for rule, _ in statements)
    reports.prefetch(statement for _, statement in statements)
    findings = [
        _make_finding(rule, row, _write_command(rule.report, reports), reports)
        for rule, statement in statements
        for row in reports.read(statement)
    ]
    return list(filter(is_relevant, findings))


def evaluate_run(trace: Session, rules: Iterable[FindingRule], reports: AnsweredReports) -> list[Finding]:
    """Evaluate the rules about all ranks of a run; `reports` are those of the rank that delays the others."""
    steps = reports.steps
    paths, scope = ranks.write_trace_arguments(trace), trace.describe_trace()["scope"]
    findings = []
    for rule in (rule for rule in rules if rule.is_cross_rank):
        command = flag_texts.write_command(rule.report, paths, scope, steps.explicit)
        statement = rule.statement(tokens=reports.program.tokens_per_step)
        findings += [_make_finding(rule, row, command, reports) for row in trace.dicts(statement, steps)]
    return list(filter(is_relevant, findings))


def _select_rules(reports: AnsweredReports, rules: Sequence[FindingRule]) -> list[FindingRule]:
    """Return the rules that have no condition, or whose condition has a row."""
    conditions = {rule.name: bind(rule.when, {"shown_pct": MIN_PCT, **rule.params}) for rule in rules if rule.when}
    reports.add(list_first_queries(rules))
    queries = list(dict.fromkeys(conditions.values()))
    # One statement: DuckDB plans it in two thirds of the time that one for each condition takes.
    query = " UNION ALL ".join(
        f"(SELECT {number} AS number FROM (\n{query}\n) LIMIT 1)" for number, query in enumerate(queries)
    )
    met = {queries[row["number"]] for row in reports.read(query)} if queries else set()
    return [rule for rule in rules if rule.name not in conditions or conditions[rule.name] in met]


def list_first_queries(rules: Iterable[FindingRule]) -> list[str]:
    """Return the queries that rules read first: their conditions, or the queries of rules without one."""
    return [rule.when or rule.sql for rule in rules]


def is_relevant(finding: Finding) -> bool:
    """Return whether a finding is large enough. One without a share of wall time and a saving is about the capture."""
    return finding.wall_pct >= MIN_PCT if finding.wall_pct is not None else finding.recoverable_ns is None


def _make_finding(rule: FindingRule, row: dict[str, Any], command: str, reports: AnsweredReports) -> Finding:
    program = reports.program
    severity, share = row.get("severity") or rule.severity, row["wall_pct"]
    profiled_ns = recoverable_ns = row["recoverable_ns"]
    saving_low_ns = row.get("saving_low_ns")
    is_of_rank = recoverable_ns is not None and not rule.is_cross_rank
    if is_of_rank and (unprofiled := reports.unprofiled):
        recoverable_ns, saving_low_ns = limit_saving(
            unprofiled, rule, recoverable_ns, saving_low_ns, row.get("explains") or ()
        )
        if share and profiled_ns > 0 and rule.share_of == "step":
            share = min(100.0, share * recoverable_ns / profiled_ns * unprofiled.stretch)
    if recoverable_ns is not None and share is not None:
        severity = "critical" if share >= CRITICAL_PCT else "warning" if share >= WARNING_PCT else "info"
    columns = {**row, "per": "in total" if program.unit == "trace" else f"per {program.unit}"}
    entry = row.get("entry") or {}
    cure_framework, cure_text = choose_cure(
        entry["fix"] if entry else rule.cure, program.framework, row.get("cure_case")
    )
    return Finding(
        code=rule.code, name=rule.name, title=entry.get("title", rule.title), severity=severity,
        family=row.get("family") or rule.family,
        recoverable_ns=recoverable_ns, saving_low_ns=saving_low_ns, profiled_ns=profiled_ns,
        bounded_by=row.get("bounded_by"),
        wall_pct=share, share_of=rule.share_of, overlaps=rule.overlaps,
        place=row["place"], evidence=fill_template(entry.get("evidence") or rule.evidence, columns, rule.items),
        values={
            name: float(number) for name, number in row.items()
            if isinstance(number, int | float) and not isinstance(number, bool) and name not in RESERVED_COLUMNS
        },
        meaning=entry.get("meaning", rule.meaning),
        cure=Cure(
            cure_framework, fill_template([cure_text], columns), entry.get("effort", rule.effort),
            entry.get("numerics", rule.numerics),
        ),
        caveat=entry.get("skip_if", rule.caveat), report=rule.report, command=command,
        symptom=row.get("symptom", rule.symptom),
        explains=(*row.get("explains", rule.explains), *entry.get("explains", ())),
        blocks=(*rule.blocks, *entry.get("blocks", ())), source=entry.get("source"),
    )  # fmt: skip


def _write_command(report: str, reports: AnsweredReports) -> str:
    """Write the command that shows details, for this trace, in its scope and with the same steps."""
    name = report.split(maxsplit=1)[0]
    step_flags = reports.steps.explicit_for(library.get_pack(name)) if name != "sql" else {}
    return flag_texts.write_command(
        report, str(reports.trace.path), reports.trace.describe_trace()["scope"], step_flags
    )
