"""The steps of an experiment: start, try, keep or revert. They read the user's repository and never change it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import outputs
from nsys_insight.bench.answer import decide_bench
from nsys_insight.bench.answer import notes as bench_notes
from nsys_insight.bench.checks import Check, CheckOptions, have_passed, run_checks
from nsys_insight.bench.measure import Plan, measure
from nsys_insight.bench.repository import read_git_commit, read_git_diff
from nsys_insight.bench.result import Bench, compare_with_old
from nsys_insight.bench.statistics import estimate_center
from nsys_insight.compare.verdict import Decision, Verdict
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.experiment import log

if TYPE_CHECKING:
    from nsys_insight.bench.answer import BenchDecision
    from nsys_insight.bench.verdict import MetricVerdict
    from nsys_insight.experiment.log import Log, Setup, Try


def start(folder: Path, setup: Setup, plan: Plan, trace_fields: dict[str, object]) -> Log:
    """Measure the baseline and start the log.

    Args:
        folder: Folder of the experiment.
        setup: Setup of the experiment.
        plan: How to measure.
        trace_fields: Fields of `Try` with the evidence of a trace.

    Raises:
        UsageError: The folder already has an experiment.
        InsightError: The benchmark or a check fails. A change cannot be assessed if the baseline is broken.
    """
    if log.has_experiment(folder):
        raise UsageError(
            f"{folder} already contains an experiment",
            "nsys-insight experiment log, or start another with --folder NAME",
        )
    checks = run_checks(_make_check_options(setup, setup.command, plan))
    if failed_checks := [check for check in checks if not check.passed]:
        raise InsightError(f"before any change: {failed_checks[0].message}", "fix it, then start")
    bench = measure([("before", setup.command)], plan)
    side = bench.side
    series = side.series[0]
    center = estimate_center(series.values).estimate
    baseline = _make_try(
        0, "baseline", setup.command, log.KEEP_STATUS, "baseline", checks, bench,
        sentence=f"{series.label} {center:,.4g}", metric=series.label, after=center, **trace_fields,
    )  # fmt: skip
    log.write_setup(folder, setup)
    log.write_try(folder, baseline, bench, read_git_diff())
    return _write_page(folder)


def try_change(  # noqa: PLR0913 - the facts of a change
    experiment_log: Log,
    change: str,
    plan: Plan,
    trace_fields: dict[str, object],
    *,
    command: str = "",
    because: str = "",
) -> Log:
    """Test and measure one change, and decide by rule. The try stays open until the user keeps or reverts it.

    A change that breaks a check is not measured: the speed of wrong results means nothing. If the change has its own
    command, this command and the current one take turns. Otherwise it is compared with the saved benchmark of the
    current state.

    Raises:
        UsageError: The user has not decided yet to keep or revert the last change.
    """
    if open_try := experiment_log.open_try:
        raise UsageError(
            f"{open_try.number}. {open_try.change} is neither kept nor reverted",
            "nsys-insight experiment keep, or nsys-insight experiment revert",
        )
    if not change.strip():
        raise UsageError("the change has no name", 'nsys-insight experiment try "one change"')
    current_try, number = experiment_log.current_try, len(experiment_log.tries)
    after_command = command or current_try.command
    checks = run_checks(_make_check_options(experiment_log.setup, after_command, plan))
    trace_fields, bench = {**trace_fields, "because": because}, None
    if have_passed(checks) is not False:
        try:
            bench = _measure_change(experiment_log, current_try, after_command, plan)
        except UsageError:
            raise
        except InsightError as error:
            checks = (*checks, Check("benchmark", passed=False, message=error.message))
    if bench:
        result = decide_bench(bench, checks)
        trial = _make_measured_try(number, change, after_command, checks, bench, result, trace_fields)
    else:
        failed_check = next(check for check in checks if not check.passed)
        trial = _make_try(
            number, change, after_command, log.OPEN_STATUS, Decision.REVERT, checks, None,
            sentence=f"Failed: {failed_check.message}", **trace_fields,
        )  # fmt: skip
    log.write_try(experiment_log.folder, trial, bench, read_git_diff())
    return _write_page(experiment_log.folder)


def close_try(experiment_log: Log, status: str) -> Log:
    """Keep or revert the open try.

    Raises:
        UsageError: No try is open.
    """
    open_try = experiment_log.open_try
    if open_try is None:
        raise UsageError("no change is open", 'nsys-insight experiment try "one change"')
    log.write_try(experiment_log.folder, replace(open_try, status=status))
    return _write_page(experiment_log.folder)


def _measure_change(experiment_log: Log, current_try: Try, after_command: str, plan: Plan) -> Bench:
    if after_command != current_try.command:
        return measure([("before", current_try.command), ("after", after_command)], plan)
    saved_bench = experiment_log.read_bench(current_try)
    if saved_bench is None:
        raise UsageError(
            f"{current_try.number}. {current_try.change} was kept without being measured",
            "give the change a command: --bench CMD",
        )
    return compare_with_old(saved_bench, measure([("after", after_command)], plan))


def _make_measured_try(  # noqa: PLR0913, PLR0917 - the facts of a change
    number: int, change: str, command: str, checks: tuple[Check, ...], bench: Bench, result: BenchDecision,
    trace_fields: dict[str, object],
) -> Try:  # fmt: skip
    if not result.verdicts:
        return _make_try(
            number, change, command, log.OPEN_STATUS, result.decision, checks, bench,
            sentence=result.sentence, **trace_fields,
        )  # fmt: skip
    deciding_verdict, *other_verdicts = result.verdicts
    changes = {verdict: _describe_change(verdict) for verdict in other_verdicts}
    effects = [text for verdict, text in changes.items() if verdict.verdict is Verdict.REGRESSED]
    trace_effects = trace_fields.pop("side_effects", ())
    (before, after), (low_pct, high_pct) = deciding_verdict.centers, deciding_verdict.interval_pct
    return _make_try(
        number, change, command, log.OPEN_STATUS, result.decision, checks, bench,
        sentence=result.sentence, metric=deciding_verdict.after.label, before=before, after=after,
        change_pct=deciding_verdict.change_pct, low_pct=low_pct, high_pct=high_pct,
        metrics=tuple(
            f"{text}: {verdict.verdict}"
            for verdict, text in changes.items() if verdict.verdict is not Verdict.NOISE
        ),
        side_effects=(*effects, *(trace_effects if isinstance(trace_effects, tuple) else ())),
        **trace_fields,
    )  # fmt: skip


def _describe_change(verdict: MetricVerdict) -> str:
    before, after = verdict.centers
    return f"{verdict.after.label} {before:,.4g} → {after:,.4g}"


def _make_try(  # noqa: PLR0913, PLR0917 - fields
    number: int, change: str, command: str, status: str, decision: str, checks: tuple[Check, ...], bench: Bench | None,
    **facts: object,
) -> Try:  # fmt: skip
    tests = {True: "passed", False: "failed", None: "not run"}[have_passed(checks)]
    conditions = {**bench.conditions, **bench.side.parameters} if bench else read_git_commit()
    return log.Try(
        number=number, change=" ".join(change.split()), command=command, status=status, decision=decision,
        when=f"{datetime.now().astimezone():%Y-%m-%d %H:%M}", tests=tests,
        checks=tuple(check.message for check in checks), conditions=conditions,
        notes=tuple(bench_notes(bench, checks, brief=True)) if bench else (),
        **facts,  # type: ignore[arg-type]
    )  # fmt: skip


def _make_check_options(setup: Setup, command: str, plan: Plan) -> CheckOptions:
    files = (Path(setup.output), Path(setup.reference)) if setup.output else None
    return CheckOptions(
        setup.test or None, command if setup.sanitize else None, files, setup.rtol, setup.atol, plan.timeout_s
    )


def _write_page(folder: Path) -> Log:
    experiment_log = log.read(folder)
    outputs.write_listed(folder / log.PAGE, log.format_log(experiment_log))
    return experiment_log
