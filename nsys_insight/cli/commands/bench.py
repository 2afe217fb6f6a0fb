"""The command ``bench``: measure without the profiler, and decide whether a change had an effect."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli.commands import PROGRAM_SETTINGS, Command
from nsys_insight.cli.flags import Flags, FormatOption, add_flags, check_format, make_flag
from nsys_insight.cli.run import show
from nsys_insight.errors import Exit, UsageError, read_text
from nsys_insight.text.units import parse_seconds

if TYPE_CHECKING:
    import inspect
    from collections.abc import Mapping

    from nsys_insight.bench.measure import Command as Program
    from nsys_insight.bench.measure import Plan

_SAVE_HINT = "save one: nsys-insight bench -o FILE -- COMMAND"
_METRIC_PATTERN = re.compile(r"(?P<name>[^=\[]+)(?:\[(?P<unit>[^\]]*)\])?(?:=(?P<pattern>.+))?", re.DOTALL)


def make_measure_flags() -> list[inspect.Parameter]:
    """Make the flags that say what is measured, how often, and which checks must pass."""
    metrics, repetitions, checks = (
        {"rich_help_panel": title} for title in ("What is measured", "How often", "Correctness")
    )
    metric = (
        "The metric that decides; with a regular expression, whose first group is the number, "
        "what to look for in the output: 'decode\\[tok/s]=([0-9.]+) tok/s'."
    )
    results = "The JSON that the command writes, instead of its output."
    output = "A file of results and its reference: .npy, .npz, .json or text."
    sanitize = "Also run the command under compute-sanitizer's four tools."
    min_runs = {"min": 1, "max": 10_000, "help": "Minimum number of repetitions; below 6 there is no verdict."}
    max_runs = {"min": 1, "max": 10_000, "help": "Maximum number of repetitions."}
    precision = {"min": 0.001, "max": 100, "help": "Stop when the interval is ± this many percent."}
    texts = list[str] | None
    return [
        make_flag("metric", texts, metavar="NAME[[UNIT]=REGEX]", help=metric, **metrics),
        make_flag("higher", texts, metavar="NAME", help="Higher values of this metric are better.", **metrics),
        make_flag("lower", texts, metavar="NAME", help="Lower values of this metric are better.", **metrics),
        make_flag("results", Path | None, metavar="FILE", help=results, **metrics),
        make_flag("param", texts, metavar="NAME=VALUE", help="A parameter of the workload.", **metrics),
        make_flag("warmup", int, default=1, min=0, max=1000, help="Runs that do not count.", **repetitions),
        make_flag("least", int, "--min-runs", "--least", default=10, **min_runs, **repetitions),
        make_flag("most", int, "--max-runs", "--most", default=50, **max_runs, **repetitions),
        make_flag("budget", str, default="120s", help="No repetition starts after this time.", **repetitions),
        make_flag("precision", float, default=1.0, **precision, **repetitions),
        make_flag("timeout", str | None, help="End a run that takes longer, such as 5m.", **repetitions),
        make_flag("test", str | None, metavar="CMD", help="Fails if the results are wrong.", **checks),
        make_flag("sanitize", bool, "--sanitize", help=sanitize, **checks),
        make_flag("compare_output", tuple[Path, Path] | None, metavar="A B", help=output, **checks),
        make_flag("rtol", float, default=1e-5, min=0, help="Relative tolerance of a number.", **checks),
        make_flag("atol", float, default=1e-8, min=0, help="Absolute tolerance of a number.", **checks),
    ]


def bench(  # noqa: PLR0913 - flags
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="The command and its arguments.")
    ] = None,
    *,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="CMD", help=("The command before the change; takes turns with --after.")),
    ] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="CMD", help="The command after the change.")] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option("--read", metavar="FILE", help="Read the output of a benchmark, instead of running one."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="A benchmark saved with -o, to compare with.")
    ] = None,
    vary: Annotated[
        list[str] | None, typer.Option("--vary", metavar="KEY", help="A parameter that the sides may differ in.")
    ] = None,
    fmt: FormatOption = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save all measurements as JSON, for --baseline and diff.")
    ] = None,
    **settings: Any,
) -> None:
    """Benchmark a command, or two interleaved, until the confidence interval is narrow.

    The measurements are what the command prints: lines "RESULT decode 412.5 tok/s", the JSON of hyperfine,
    pytest-benchmark, Google Benchmark, nvbench, vLLM or SGLang, or what --metric matches; else its duration.

    With --before and --after, runs are interleaved, and the change has a verdict: accept (better by more than 3%, and
    tests passed), unchecked (the same, but correctness was not checked), small, revert, indistinguishable.
    Repetitions that vary by more than 5% get a description, but no verdict. Exit 1 is revert.
    """
    from nsys_insight.bench import measure
    from nsys_insight.bench.answer import answer
    from nsys_insight.bench.checks import CheckOptions, run_checks
    from nsys_insight.bench.result import compare_with_old, from_json, to_json
    from nsys_insight.compare.verdict import Decision

    check_format(fmt)
    outputs.check_target(output, [*(read or []), *([baseline] if baseline else [])])
    plan = make_plan(settings)
    commands = _list_programs(command, before, after, read, baseline)
    baseline_benchmark = from_json(read_text(baseline, _SAVE_HINT), baseline) if baseline else None
    checked_program: Program | None = commands[-1][1] if commands and settings["sanitize"] else None
    tolerances = settings["rtol"], settings["atol"]
    checks = run_checks(
        CheckOptions(settings["test"], checked_program, settings["compare_output"], *tolerances, plan.timeout_s)
    )
    benchmark = measure.read(read, plan) if read else measure.measure(commands, plan)
    if baseline_benchmark:
        benchmark = compare_with_old(baseline_benchmark, benchmark)
    if output:
        outputs.write_output(output, to_json(benchmark))
    bench_answer = answer(benchmark, checks, vary or ())
    show(bench_answer, fmt, Flags(), default_limit=0)
    if bench_answer.summary.get("decision") == Decision.REVERT or not all(check.passed for check in checks):
        raise typer.Exit(Exit.FAILED)


def _list_programs(
    command: list[str] | None, before: str | None, after: str | None, read: list[Path] | None, baseline: Path | None
) -> list[tuple[str, Program]]:
    """List the programs to run, with their labels; empty if files are read."""
    if command and len(command) == 1 and " " in command[0] and not Path(command[0]).exists():
        command = shlex.split(command[0])  # one quoted string, as hyperfine takes it
    input_kinds = [bool(command), bool(before or after), bool(read)]
    if sum(input_kinds) != 1 or bool(before) != bool(after) or (before and baseline):
        raise UsageError(
            "bench takes one command, two commands to interleave, or files to read",
            "nsys-insight bench -- ./app --tokens 128, or --before './old' --after './new', or --read log.txt",
        )
    if before and after:
        return [("before", before), ("after", after)]
    return [("after" if baseline else "the command", command)] if command else []


def make_plan(settings: Mapping[str, Any]) -> Plan:
    """Make the measurement plan from flags of `make_measure_flags`. Those without a value may be missing.

    Raises:
        UsageError: A flag has an invalid value.
    """
    from nsys_insight.bench.measure import Plan
    from nsys_insight.compare.baselines import parse_params

    patterns, first_metric = {}, None
    for text in settings.get("metric") or ():
        match = _METRIC_PATTERN.fullmatch(text)
        if not match:
            raise UsageError(f"--metric cannot be {text!r}", "write NAME, or 'NAME[UNIT]=REGEX'")
        name = match["name"].strip()
        first_metric = first_metric or name
        if match["pattern"]:
            try:
                re.compile(match["pattern"])
            except re.error as error:
                raise UsageError(
                    f"{match['pattern']!r} is no regular expression: {error}", "quote it for the shell"
                ) from None
            patterns[name] = (match["pattern"], match["unit"] or "")
    results, timeout = settings.get("results"), settings.get("timeout")
    return Plan(
        warmup=settings["warmup"],
        min_repetitions=settings["least"],
        max_repetitions=max(settings["most"], settings["least"]),
        budget_s=parse_seconds(settings["budget"], flag="--budget"),
        precision=settings["precision"] / 100,
        timeout_s=parse_seconds(timeout, flag="--timeout") if timeout else None,
        metric=first_metric,
        patterns=patterns,
        output=Path(results) if results else None,
        better={
            **dict.fromkeys(settings.get("higher") or (), "higher"),
            **dict.fromkeys(settings.get("lower") or (), "lower"),
        },
        parameters=parse_params(settings.get("param") or ()),
    )


BENCH = Command(
    "bench",
    lambda: add_flags(bench, *make_measure_flags()),
    group="compare",
    place=70,
    in_help=True,
    help="Benchmark one command or two without the profiler",
    examples=(
        "bench -- python3 decode.py --tokens 128",
        "bench --before 'python3 old.py' --after 'python3 new.py' --min-runs 20",
    ),
    settings=PROGRAM_SETTINGS,
)
