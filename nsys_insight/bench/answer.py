"""Render a benchmark as an answer: the measurements, their scatter, and the decision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.bench.checks import Check, check_fields, have_passed
from nsys_insight.bench.result import Bench, Series, Side, list_different_parameters
from nsys_insight.bench.statistics import MAX_CV_PCT, describe_spread, estimate_center
from nsys_insight.bench.verdict import CONFIDENCE, MetricVerdict, judge_metric
from nsys_insight.compare.verdict import Decision, decide
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.units import Scale, scale_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SINGLE_COLUMNS, PAIR_COLUMNS = read_columns("bench/single"), read_columns("bench/pair")


@dataclass(frozen=True)
class BenchDecision:
    """The decision on a change, with its reason.

    Attributes:
        decision: The decision.
        sentence: The decision in one sentence, with its numbers.
        verdicts: The verdict of each metric that both sides have, the deciding metric first.
        different_parameters: Parameters of the workload that differ: their values before and after.
    """

    decision: Decision
    sentence: str
    verdicts: tuple[MetricVerdict, ...]
    different_parameters: dict[str, tuple[str, str]]


def decide_bench(bench: Bench, checks: Sequence[Check], vary: Sequence[str] = ()) -> BenchDecision:
    """Decide by the first metric of two sides. The intervals of the other metrics hold for all of them together."""
    before, after = bench.sides
    pairs = [(old, new) for new in after.series if (old := before.metric(new.name))]
    other_metric_count = max(len(pairs) - 1, 1)
    verdicts = tuple(
        judge_metric(
            old, new, turns=bench.turns,
            confidence=CONFIDENCE if not index else 1 - (1 - CONFIDENCE) / other_metric_count,
        )
        for index, (old, new) in enumerate(pairs)
    )  # fmt: skip
    different_parameters = list_different_parameters(before, after, vary)
    tests_passed = have_passed(checks)
    if not verdicts:
        decision, sentence = Decision.UNKNOWN, "cannot be determined: no metric is in both"
    elif different_parameters and tests_passed is not False:
        parameter_list = ", ".join(f"{name} {old} and {new}" for name, (old, new) in different_parameters.items())
        decision, sentence = Decision.UNKNOWN, f"Cannot be determined: the workloads differ: {parameter_list}"
    else:
        decision = decide([(verdicts[0].verdict, verdicts[0].change_pct)], tests_passed=tests_passed)
        sentence = _describe_decision(decision, verdicts[0], checks)
    return BenchDecision(decision, sentence, verdicts, different_parameters)


def _describe_decision(decision: Decision, metric_verdict: MetricVerdict, checks: Sequence[Check]) -> str:
    """Return the decision in one line."""
    if failed_checks := [check for check in checks if not check.passed]:
        return f"Failed: {failed_checks[0].message}"
    reason = f"{metric_verdict.reason}; " if metric_verdict.reason else ""
    return f"{decision.text}: {reason}{_describe_change(metric_verdict)}"


def _describe_change(metric_verdict: MetricVerdict) -> str:
    new = metric_verdict.after
    scale = scale_for(metric_verdict.before.unit, metric_verdict.centers)
    before_text, after_text = map(Scale("", 1, scale.decimals).text, metric_verdict.centers)
    unit = f" {new.unit}" if new.unit else ""
    change = "" if metric_verdict.change_pct is None else f" ({metric_verdict.change_pct:+.1f}%)"
    direction_text = "unknown which direction is better" if new.better is None else f"{new.better} is better"
    return f"{new.name} {before_text} → {after_text}{unit}{change}, {direction_text}"


def answer(bench: Bench, checks: Sequence[Check] = (), vary: Sequence[str] = ()) -> Answer:
    """Return the benchmark as a table. Its title is a sentence."""
    summary: dict[str, Any] = {
        "conditions": bench.conditions,
        "gpus_before": list(bench.before),
        "gpus_after": list(bench.after),
        "sides": [
            {"label": side.label, "command": side.command, "parameters": side.parameters} for side in bench.sides
        ],
        "checks": [check_fields(check) for check in checks],
        "tests_passed": have_passed(checks),
    }
    if len(bench.sides) == 1:
        columns, title = SINGLE_COLUMNS, _make_title(bench.side)
        rows = [_make_row(series) for series in bench.side.series]
    else:
        result = decide_bench(bench, checks, vary)
        summary |= {"decision": result.decision, "different_parameters": result.different_parameters}
        columns, title = PAIR_COLUMNS, result.sentence
        rows = [_make_pair_row(metric_verdict) for metric_verdict in result.verdicts]
    return build_answer(columns, rows, report="bench", title=title, notes=tuple(notes(bench, checks)), summary=summary)


def _make_title(side: Side) -> str:
    first = side.series[0]
    scatter = describe_spread(first.values, first.clocks)
    if scatter.is_wide:
        causes = f": {'; '.join(scatter.causes)}" if scatter.causes else "; cause unknown"
        text = f"{first.name} varies by {scatter.cv_pct:.1f}% (limit for a baseline: {MAX_CV_PCT:g}%)"
        return text + causes
    return f"{side.label}: {len(first.values)} repetitions"


def notes(bench: Bench, checks: Sequence[Check], *, brief: bool = False) -> Iterator[str]:
    """Yield the notes below the numbers. `brief` leaves out the conditions and the messages of the checks."""
    if len(bench.sides) == 2:
        yield (
            "Runs were interleaved, so machine noise affects both sides."
            if bench.turns
            else (
                "the two were measured one after the other: what the machine did in between is unknown, "
                "and less than 2% does not count as a difference; bench --before CMD --after CMD takes turns"
            )
        )
    for side in bench.sides:
        for series in side.series:
            scatter = describe_spread(series.values, series.clocks)
            side_label = f" {side.label}" if len(bench.sides) == 2 else ""
            scatter_text = f"varies by {scatter.cv_pct:.1f}% (limit: {MAX_CV_PCT:g}%)" if scatter.is_wide else ""
            if scatter_text or scatter.causes:
                yield f"{series.name}{side_label}: {'; '.join(filter(None, [scatter_text, *scatter.causes]))}"
    unknown = [series.name for series in bench.side.series if series.better is None]
    if unknown:
        names = ", ".join(unknown[:3])
        yield f"neither unit nor name says whether higher or lower {names} is better: --higher or --lower"
    parameters = {**bench.conditions, **bench.side.parameters}
    if parameters and not brief:
        yield "measured with " + ", ".join(f"{name} {value}" for name, value in parameters.items())
    yield from bench.notes
    yield from (check.message for check in checks if not brief)
    if len(bench.sides) == 2 and have_passed(checks) is None:
        yield "no test was run, so correctness was not checked: --test COMMAND or --compare-output A B"


def _make_row(series: Series) -> tuple[Any, ...]:
    scatter, center = describe_spread(series.values), estimate_center(series.values)
    ends = (center.low, center.high) if math.isfinite(center.half_width) else (None, None)
    return (
        series.label, series.better, center.estimate, *ends, len(series.values), scatter.cv_pct,
        scatter.mean, min(series.values), max(series.values),
    )  # fmt: skip


def _make_pair_row(metric_verdict: MetricVerdict) -> tuple[Any, ...]:
    old, new = metric_verdict.before, metric_verdict.after
    return (
        new.label, new.better, *metric_verdict.centers, metric_verdict.change_pct, *metric_verdict.interval_pct,
        describe_spread(old.values).cv_pct, describe_spread(new.values).cv_pct, min(len(old.values), len(new.values)),
        metric_verdict.verdict,
    )  # fmt: skip
