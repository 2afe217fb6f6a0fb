"""Check a run against budgets: limits of its metrics, or a baseline."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.comparison import compare
from nsys_insight.compare.noise import Samples
from nsys_insight.compare.runs import HEADLINE, OLD_METRICS, PEAK_MEMORY, Run
from nsys_insight.compare.verdict import Verdict
from nsys_insight.errors import UsageError, read_text
from nsys_insight.records import parse_toml
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.suggestions import did_you_mean
from nsys_insight.text.units import count_noun, parse_bytes, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

OK, BROKEN, UNKNOWN = "ok", "broken", "unknown"
# Limits belong to another level of the program if a kernel runs this factor more or less often in a step than the
# budget says. It breaks for a change that halves the calls of this kernel: such a kernel does not mark the level.
MIN_LEVEL_RATIO = 1.5
STEP = "step"  # the table of a budget that says how often a kernel runs in a step
# Common names of metrics.
ALIASES = {
    "launches": "launch_calls", "syncs": "sync_points", "copies_h2d": "h2d_copies", "copies_d2h": "d2h_copies",
    **OLD_METRICS, **{old.removesuffix("_ns"): new for old, new in OLD_METRICS.items()},
}  # fmt: skip
# Metrics that must not get worse than a baseline. Times and memory have a tolerance, the others have none.
GATES = (
    HEADLINE, "launch_calls", "sync_points", "mallocs", "frees", "h2d_bytes", "d2h_bytes", PEAK_MEMORY,
)  # fmt: skip
# Metrics of the report speed-of-light, for the steady steps.
SPEED_METRICS = ("mfu_pct", "tflop_per_s", "tensor_pct", "dram_pct", "sms_active_pct", "issue_pct", "clock_pct")
# Regular expressions of metric names, and the report with details about these metrics. The first match counts.
REPORTS_BY_METRIC = (
    (f"^({'|'.join(SPEED_METRICS)})$", "speed-of-light"),
    ("^(prefill|decode|mixed|forward|backward|optimizer)", "phases"),
    ("launch|api_other", "launches"),
    ("sync", "syncs"),
    ("malloc|free|alloc|memory", "mallocs"),
    ("copies|copy|h2d|d2h", "copies"),
    ("kernel", "top"),
    ("idle|busy", "idle"),
    ("api", "api"),
    ("", "steps"),
)
COLUMNS = read_columns("compare/budgets")
# The unit to suggest for a limit, and what reads the limit, by the end of the metric's name.
_UNITS: dict[str, tuple[str, Callable[..., int]]] = {"_ns": ("ms", parse_duration), "_bytes": ("MB", parse_bytes)}
_NUMBER = re.compile(r"\s*\d+\.?\d*\s*")
FINDING = "finding"  # the bound of a rule of diagnose that must not find anything


@dataclass(frozen=True)
class Budget:
    """A limit of a metric.

    Attributes:
        bound: max or min; or step: the value is how often a kernel runs in a step, so that another level is noticed.
        name: The metric's name as the user wrote it, with or without a suffix `_per_token` or `_per_step`; of a step, a
            part of the kernel's name.
        value: The limit, in the metric's unit.
    """

    bound: str
    name: str
    value: str

    @classmethod
    def parse(cls, bound: str, text: str) -> Budget:
        """Parse METRIC=VALUE.

        Raises:
            UsageError: The text does not have this form.
        """
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"--{bound} takes METRIC=VALUE, not {text!r}", f"--{bound} launches_per_token=15")
        return cls(bound, name.strip(), value.strip())

    def check(self, run: Run) -> tuple[Any, ...]:
        """Check a run against the limit and return a row of `COLUMNS`.

        Raises:
            UsageError: There is no such metric, or the value does not fit its unit.
        """
        metric, factor = _find_metric(self.name, run)
        value = get_metric_value(run, metric)
        limit = _parse_value(self.value, metric, self.bound, self.name)
        if value is None:
            return _make_row(UNKNOWN, metric, self.bound, limit, None)
        value *= factor
        # Rounding errors of a mean must not break a limit.
        is_met = value <= limit * (1 + 1e-9) if self.bound == "max" else value >= limit * (1 - 1e-9)
        return _make_row(OK if is_met else BROKEN, metric, self.bound, limit, value)

    def check_level(self, run: Run) -> None:
        """Check that a kernel runs as often in a step as the budget says, if the run has the kernels.

        Raises:
            UsageError: The step is another level of the program, or the value is no number above 0.
        """
        expected = _parse_value(self.value, "", STEP, self.name)
        if expected <= 0:
            raise UsageError(
                f"[{STEP}] {self.name} takes a number above 0, not {self.value!r}", f"[{STEP}] softmax = 8"
            )
        if run.kernels is None:
            return
        calls = sum(kernel.calls for name, kernel in run.kernels.items() if self.name in name) * run.tokens_per_step
        if not calls or max(calls / expected, expected / calls) >= MIN_LEVEL_RATIO:
            raise UsageError(
                f"a step is another level than in the budget: {self.name} runs {calls:.3g} times in it, not"
                f" {expected:g}",
                "nsys-insight loops lists the levels: choose one with --loop, --step-range or --tokens",
            )


def from_toml(path: Path) -> list[Budget]:
    """Read budgets from a TOML file with tables `[max]` and `[min]` of metrics and values, and `[step]` of kernels.

    Raises:
        UsageError: The file cannot be read, or has other contents.
    """
    try:
        tables = parse_toml(read_text(path, "name a TOML file of limits"))
        unknown = sorted(set(tables) - {"max", "min", STEP})
        if unknown or not all(isinstance(table, dict) for table in tables.values()):
            raise UsageError(
                f"{path} has {', '.join(unknown) or 'values'} next to [max], [min] and [step]",
                "put each metric into [max] or [min]",
            )
        budgets = [
            Budget(bound, name, str(value))
            for bound in (STEP, "max", "min")
            for name, value in tables.get(bound, {}).items()
        ]
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as TOML: {error}", "[max]\nlaunches_per_token = 15") from None
    if not budgets:
        raise UsageError(f"{path} holds no budgets", "[max] launches_per_token = 15")
    return budgets


def check_budgets(  # noqa: PLR0913 - what is checked, and against what
    run: Run,
    budgets: list[Budget],
    baseline: Run | None,
    tolerance_pct: float,
    extra_notes: Sequence[str] = (),
    *,
    finding_rows: Sequence[tuple[Any, ...]] = (),
) -> Answer:
    """Check a run against budgets and a baseline.

    `extra_notes` are appended to the notes of the answer, `finding_rows` to its rows (`check_findings`).

    Raises:
        UsageError: A budget names an unknown metric, the step is another level than that of the budget, or the
            baseline is of another kind.
    """
    for budget in budgets:
        if budget.bound == STEP:
            budget.check_level(run)
    rows = [budget.check(run) for budget in budgets if budget.bound != STEP]
    notes = [] if run.unit == "trace" else [f"{run.count} steps, detected from {run.method}"]
    if run.unit == "trace":
        notes.append("no steps were found: these are figures of the whole trace; define a step with --step-range")
    notes += [note for note in (run.doubt, run.coverage) if note]
    if baseline:
        rows += _compare_with_baseline(baseline, run, tolerance_pct)
        notes.append(f"the baseline is {baseline.label}, {count_noun(baseline.count, baseline.unit)}")
    notes += extra_notes
    rows += finding_rows
    broken_count = sum(row[0] != OK for row in rows)
    title = f"{broken_count} of {len(rows)} limits exceeded" if broken_count else _success_title(len(rows))
    return build_answer(
        COLUMNS, rows, report="check", title=title, notes=tuple(notes), trace={"file": run.label, "unit": run.unit}
    )


def check_findings(findings: Iterable[Any], rules: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return a row of `COLUMNS` for each rule that must not find anything, with a finding of this rule if there is one.

    Args:
        findings: The findings of these rules: each has a code, a report and evidence.
        rules: The rules: each has a code and a name.
    """
    matches = {finding.code: finding for finding in findings}
    return [
        (
            BROKEN if rule.code in matches else OK, f"{rule.code} {rule.name}", FINDING, None, None,
            f"nsys-insight {matches[rule.code].report}" if rule.code in matches else None,
            matches[rule.code].evidence if rule.code in matches else None,
        )
        for rule in rules
    ]  # fmt: skip


def _success_title(count: int) -> str:
    return "The limit is met" if count == 1 else f"All {count} limits met"


def measure_speed(trace: Session, run: Run, steps: StepOptions, params: dict[str, Any]) -> Run:
    """Return a run with the metrics of speed-of-light; `params` are parameters of this report."""
    row = next(iter(trace.answer("speed-of-light", steps=steps, **params).dicts()), {})
    values = {name: row.get(name) for name in SPEED_METRICS}
    return replace(
        run,
        metrics={
            **run.metrics,
            **{name: None if value is None else Samples((value,)) for name, value in values.items()},
        },
    )


def get_metric_value(run: Run, metric: str) -> float | None:
    """Return the value of a metric, or of a share of the wall time; None if it is unknown."""
    wall = run.metrics.get(HEADLINE)
    if metric == PEAK_MEMORY:
        return run.peak_memory_bytes
    if metric == "tokens_per_s":
        return 1e9 / wall.mean if wall and wall.mean else None
    if metric.endswith("_pct") and metric not in run.metrics:
        share = run.metrics.get(metric.removesuffix("_pct") + "_ns")
        return 100 * share.mean / wall.mean if share and wall and wall.mean else None
    samples = run.metrics.get(metric)
    return samples.mean if samples else None


def _compare_with_baseline(baseline: Run, run: Run, tolerance_pct: float) -> list[tuple[Any, ...]]:
    """Compare a run with a baseline: the phases, and the metrics of `GATES`."""
    rows = []
    for row in compare([baseline], [run], has_same_input=True).rows:
        if row.part == "phase" and row.metric == HEADLINE and row.verdict is not None:
            allowed = (row.before or 0) * (1 + tolerance_pct / 100)
            verdict = BROKEN if row.verdict is Verdict.REGRESSED and (row.after or 0) > allowed else OK
            rows.append(
                _make_row(verdict, re.sub(r"\W+", "_", f"{row.name}_{row.metric}"), "baseline", allowed, row.after)
            )
            continue
        if row.part != "run" or row.metric not in GATES:
            continue
        tolerance = tolerance_pct / 100 if row.metric.endswith("_ns") or row.metric == PEAK_MEMORY else 0.0
        limit = row.before * (1 + tolerance) if row.before is not None else None
        if limit is None or row.after is None:
            verdict = UNKNOWN
        else:
            # The noise of single measurements is unknown, so the tolerance decides.
            is_worse = row.verdict is Verdict.REGRESSED or row.verdict is None
            verdict = BROKEN if is_worse and row.after > limit else OK
        rows.append(_make_row(verdict, row.metric, "baseline", limit, row.after))
    return rows


def _find_metric(name: str, run: Run) -> tuple[str, float]:
    """Find the metric that a name stands for, and the factor by which to multiply its value."""
    bare_name = re.sub(r"_per_(token|step)$", "", name)
    bare_name = ALIASES.get(bare_name, bare_name)
    known_names = _list_metric_names(run)
    for metric in (
        bare_name,
        f"{bare_name}_ns",
        f"{bare_name}_bytes",
        re.sub(r"_per_(?:token|step)(_ns|_bytes)$", r"\1", name),
    ):
        if metric in known_names:
            is_of_a_step = name.endswith("_per_step") and not metric.endswith(("_pct", "_per_s"))
            return metric, run.tokens_per_step if is_of_a_step else 1
    hint = did_you_mean(bare_name, [*known_names, *ALIASES]) or (
        "such as wall, launches_per_token, gpu_busy_pct; nsys-insight per-token lists all metrics"
    )
    raise UsageError(f"there is no metric {name!r}", hint)


def _list_metric_names(run: Run) -> list[str]:
    times = [name for name in run.metrics if name.endswith("_ns") and name != HEADLINE]
    return [*run.metrics, *(name.removesuffix("_ns") + "_pct" for name in times), "tokens_per_s", PEAK_MEMORY]


def _parse_value(text: str, metric: str, bound: str, name: str) -> float:
    limit = f"[{STEP}] {name}" if bound == STEP else f"{bound} {name}"
    unit, parse = next((kind for suffix, kind in _UNITS.items() if metric.endswith(suffix)), ("", None))
    if parse:
        # A number alone would be in ns or bytes, and "3" probably means ms.
        if _NUMBER.fullmatch(text) and float(text) and not name.endswith(tuple(_UNITS)):
            raise UsageError(f"{limit} is {text} without a unit", f"write the unit: {name}={text}{unit}")
        return parse(text, flag=limit)
    with suppress(ValueError):
        value = float(text.removesuffix("%"))
        if math.isfinite(value):
            return value
    raise UsageError(f"{limit} takes a number, not {text!r}", f"such as {name}=15")


def _make_row(verdict: str, metric: str, bound: str, limit: float | None, value: float | None) -> tuple[Any, ...]:
    report = next(name for pattern, name in REPORTS_BY_METRIC if re.search(pattern, metric))
    return verdict, metric, bound, limit, value, f"nsys-insight {report}" if verdict != OK else None, None
