"""The command `check`: limits of a run, in CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli import completion
from nsys_insight.cli.commands import Command
from nsys_insight.cli.comparison import measure_files, write_tables
from nsys_insight.cli.flags import Flags, check_format, make_command, make_flag, make_param_flag, make_step_flags
from nsys_insight.cli.run import open_traces, write_text
from nsys_insight.errors import Exit, UsageError
from nsys_insight.packs import library

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_insight.compare.budgets import Budget
    from nsys_insight.compare.runs import Run
    from nsys_insight.session.answer import Answer

# Parameters of speed-of-light that say what a step computes.
_SPEED_PARAMS = ("flops_per_step", "parameters", "training", "precision", "peak", "gpu")
# A format of this command only.
GITHUB = "github"
_HELP = """Check a run against limits or a baseline; exit 1 on failure.

Budgets are --max and --min with METRIC=VALUE, of the metrics of per-token and shares such as gpu_busy_pct: --max
launches_per_token=15 --max wall=2.5ms --min gpu_busy_pct=90. Or they are in a TOML file: tables [max] and [min] of
the same names and values. mfu_pct, tensor_pct, dram_pct and sms_active_pct are those of speed-of-light: --min
mfu_pct=40 --flops-per-step 1.2e15. An unknown metric also breaks its budget. With --baseline, the step time, launches,
syncs, allocations, copies and peak memory, and the step time of each phase that NVTX ranges name, may not be worse than
in a saved run by more than noise and, for times and memory, --tolerance.

-f github writes what GitHub shows at the lines of a pull request: an annotation for each broken budget.
"""


def make_check_command() -> Callable[..., None]:
    """Make the command `check`."""

    def run(  # noqa: PLR0913 - flags
        trace: Path | None,
        flags: Flags,
        *,
        budget: Path | None,
        baseline: Path | None,
        tolerance: float,
        param: list[str] | None,
        junit: Path | None,
        sarif: Path | None,
        fail_on: list[str] | None,
        **values: Any,
    ) -> None:
        from nsys_insight.compare import baselines, ci_reports
        from nsys_insight.compare.budgets import OK, Budget, check_budgets, from_toml

        budgets = [Budget.parse(bound, text) for bound in ("max", "min") for text in values[bound] or []]
        if budget:
            outputs.check_target(flags.output, [budget])
            budgets += from_toml(budget)
        if not budgets and not baseline and not fail_on:
            raise UsageError(
                "there is no budget to check",
                "nsys-insight check TRACE --max launches_per_token=9, --budget FILE, --baseline NAME, --fail-on CODE",
            )
        fmt = GITHUB if flags.fmt and check_format(flags.fmt, GITHUB) == GITHUB else flags.format
        origin_notes = []
        if baseline and not baseline.exists() and not baseline.suffix:
            named_baseline = baselines.get_baseline(str(baseline))
            baseline, origin_notes = named_baseline.path, [baselines.describe_origin(named_baseline)]
        for path in (junit, sarif):
            outputs.check_target(path, [file for file in (trace, budget, baseline) if file])
        ((current_run,),) = measure_files([[trace]], flags)
        current_run = _measure_speed(trace, current_run, budgets, flags, values)
        baseline_run = measure_files([[baseline]], flags)[0][0] if baseline else None
        condition_differences = (
            _list_condition_differences(trace, flags, baseline, baselines.parse_params(param or [])) if baseline else []
        )
        check_answer = check_budgets(
            current_run, budgets, baseline_run, tolerance, [*origin_notes, *condition_differences],
            finding_rows=_check_rules(trace, fail_on, flags) if fail_on else (),
        )  # fmt: skip
        if junit:
            outputs.write_output(junit, ci_reports.format_junit(check_answer))
        if sarif:
            outputs.write_output(sarif, ci_reports.format_sarif(check_answer, budget, baseline))
        _write_answer(check_answer, fmt, flags, budget, baseline)
        if any(row[0] != OK for row in check_answer.rows()):
            raise typer.Exit(Exit.FAILED)

    baseline_help = "A baseline's name or tag, or a saved run's file; this run may not be worse."
    tolerance_help = "Percentage by which a time may be worse than in the baseline; counts may not be worse."
    return make_command(
        run,
        _HELP,
        make_flag(
            "max",
            list[str] | None,
            metavar="METRIC=VALUE",
            help="At most this.",
            autocompletion=completion.complete_budgets,
        ),
        make_flag(
            "min",
            list[str] | None,
            metavar="METRIC=VALUE",
            help="At least this.",
            autocompletion=completion.complete_budgets,
        ),
        make_flag("budget", Path | None, metavar="FILE", help="A TOML file with tables [max] and [min]."),
        make_flag(
            "baseline", Path | None, metavar="NAME", help=baseline_help, autocompletion=completion.complete_baselines
        ),
        make_flag("tolerance", float, default=3.0, help=tolerance_help, min=0),
        make_flag(
            "param",
            list[str] | None,
            metavar="NAME=VALUE",
            help="A parameter of this workload, as the baseline has it.",
        ),
        make_flag(
            "fail_on",
            list[str] | None,
            "--fail-on",
            metavar="CODES",
            help="Fail if diagnose has a finding of these rules: codes, starts of codes (NSI2), names.",
        ),
        make_flag("junit", Path | None, metavar="FILE", help="Also write the budgets as JUnit test cases."),
        make_flag(
            "sarif", Path | None, metavar="FILE", help="Also write the broken budgets as SARIF, for annotations."
        ),
        *(make_param_flag(library.get_pack("speed-of-light").params[name]) for name in _SPEED_PARAMS),
        *make_step_flags(),
        omitted_fields=("explain",),
    )


def _write_answer(answer: Answer, fmt: str, flags: Flags, budget: Path | None, baseline: Path | None) -> None:
    from nsys_insight.compare.ci_reports import format_github

    if fmt != GITHUB:
        write_tables(answer, [answer], fmt, flags)
    else:
        write_text(format_github(answer, budget, baseline), flags.output)


def _measure_speed(
    trace: Path | None, run: Run, budgets: Sequence[Budget], flags: Flags, values: dict[str, Any]
) -> Run:
    """Add the metrics of speed-of-light to a run, if a budget names one."""
    from nsys_insight.compare.budgets import SPEED_METRICS, measure_speed

    if {budget.name for budget in budgets}.isdisjoint(SPEED_METRICS):
        return run
    params = {name: values[name] for name in _SPEED_PARAMS if values[name] is not None}
    with open_traces([trace] if trace else [], flags) as session:
        return measure_speed(session, run, flags.steps, params)


def _check_rules(trace: Path | None, codes: list[str], flags: Flags) -> list[tuple[Any, ...]]:
    """Evaluate rules on a trace, and return a row for each of them."""
    from nsys_insight.compare.budgets import check_findings
    from nsys_insight.diagnose.evaluate import evaluate
    from nsys_insight.diagnose.findings import read_finding_rules
    from nsys_insight.diagnose.rule_choice import RuleChoice, split_names

    if trace and trace.suffix.lower() == ".json":
        raise UsageError("--fail-on needs a trace: a saved run has no findings", "nsys-insight check TRACE --fail-on")
    rules = RuleChoice(split_names(codes, "--fail-on")).filter(read_finding_rules())
    with open_traces([trace] if trace else [], flags) as session:
        return check_findings(evaluate(session, rules, flags.steps), rules)


def _list_condition_differences(trace: Path | None, flags: Flags, baseline: Path, params: dict[str, str]) -> list[str]:
    """List differences of machine and workload between a trace and a baseline, if the baseline records them."""
    from nsys_insight.compare import baselines

    baseline_path = baselines.find_file(baseline)
    if baseline_path.suffix != ".json":
        return []
    conditions = baselines.read(baseline_path).info
    if not conditions.machine and not conditions.params:
        return []
    with open_traces([trace] if trace else [], flags) as opened_trace:
        return baselines.list_differences(conditions, baselines.read_machine(opened_trace), params)


CHECK = Command(
    "check",
    make_check_command,
    group="compare",
    place=50,
    in_help=True,
    help="Check a run against limits or a baseline; exit 1 on failure",
    examples=(
        "check trace.nsys-rep --max wall=2.5ms --min gpu_busy_pct=90",
        "check trace.nsys-rep --baseline main --junit check.xml",
    ),
)
