"""The command ``bench``: measure without the profiler, and decide whether a change had an effect."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli.commands import PROGRAM_SETTINGS, Command
from nsys_insight.cli.flags import Flags, check_format
from nsys_insight.cli.run import show
from nsys_insight.errors import Exit, UsageError
from nsys_insight.render import FORMATS
from nsys_insight.text.units import parse_duration

if TYPE_CHECKING:
    from nsys_insight.bench.checks import CheckOptions
    from nsys_insight.bench.measure import Command as Program
    from nsys_insight.bench.measure import Plan
    from nsys_insight.bench.result import Bench

_METRIC_PATTERN = re.compile(r"(?P<name>[^=\[]+)(?:\[(?P<unit>[^\]]*)\])?(?:=(?P<pattern>.+))?", re.DOTALL)
_CHECKS_PANEL: dict[str, Any] = {"rich_help_panel": "Correctness"}
_METRICS_PANEL: dict[str, Any] = {"rich_help_panel": "What is measured"}
_REPETITIONS_PANEL: dict[str, Any] = {"rich_help_panel": "How often"}

MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="NAME[[UNIT]=REGEX]", show_default=False,
        help="The metric that decides; with a regular expression, whose first group is the number, "
             "what to look for in the output: 'decode\\[tok/s]=([0-9.]+) tok/s'.", **_METRICS_PANEL,
    ),
]  # fmt: skip
HigherOption = Annotated[
    list[str] | None,
    typer.Option(
        "--higher",
        metavar="NAME",
        help="Higher values of this metric are better.",
        show_default=False,
        **_METRICS_PANEL,
    ),
]
LowerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lower", metavar="NAME", help="Lower values of this metric are better.", show_default=False, **_METRICS_PANEL
    ),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--results", metavar="FILE", help="The JSON that the command writes, instead of its output.",
        show_default=False, **_METRICS_PANEL,
    ),
]  # fmt: skip
ParamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="KEY=VALUE", help="A parameter of the workload.", show_default=False, **_METRICS_PANEL
    ),
]
WarmupOption = Annotated[
    int, typer.Option("--warmup", min=0, max=1000, help="Runs that do not count.", **_REPETITIONS_PANEL)
]
MinRepetitionsOption = Annotated[
    int,
    typer.Option(
        "--min-runs",
        "--min-runs",
        "--min-runs",
        "--least",
        min=1,
        max=10_000,
        help="Minimum number of repetitions; below 6 there is no verdict.",
        **_REPETITIONS_PANEL,
    ),
]
MaxRepetitionsOption = Annotated[
    int,
    typer.Option(
        "--max-runs", "--most", min=1, max=10_000, help="Maximum number of repetitions.", **_REPETITIONS_PANEL
    ),
]
BudgetOption = Annotated[
    str, typer.Option("--budget", help="No repetition starts after this time.", **_REPETITIONS_PANEL)
]
PrecisionOption = Annotated[
    float,
    typer.Option(
        "--precision", min=0.001, max=100, help="Stop when the interval is ± this many percent.", **_REPETITIONS_PANEL
    ),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", help="End a run that takes longer, such as 5m.", show_default=False, **_REPETITIONS_PANEL
    ),
]
TestOption = Annotated[
    str | None,
    typer.Option("--test", metavar="CMD", help="Fails if the results are wrong.", show_default=False, **_CHECKS_PANEL),
]
SanitizeOption = Annotated[
    bool, typer.Option("--sanitize", help="Also run the command under compute-sanitizer's four tools.", **_CHECKS_PANEL)
]
OutputsOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--compare-output", metavar="A B", help="A file of results and its reference: .npy, .npz, .json or text.",
        show_default=False, **_CHECKS_PANEL,
    ),
]  # fmt: skip
RtolOption = Annotated[float, typer.Option("--rtol", min=0, help="Relative tolerance of a number.", **_CHECKS_PANEL)]
AtolOption = Annotated[float, typer.Option("--atol", min=0, help="Absolute tolerance of a number.", **_CHECKS_PANEL)]


def bench(  # noqa: PLR0913 - flags
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="The command and its arguments.", show_default=False),
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
    metric: MetricOption = None,
    higher: HigherOption = None,
    lower: LowerOption = None,
    results: ResultsOption = None,
    param: ParamOption = None,
    warmup: WarmupOption = 1,
    min_repetitions: MinRepetitionsOption = 10,
    max_repetitions: MaxRepetitionsOption = 50,
    budget: BudgetOption = "120s",
    precision: PrecisionOption = 1.0,
    timeout: TimeoutOption = None,
    test: TestOption = None,
    sanitize: SanitizeOption = False,
    compare_output: OutputsOption = None,
    rtol: RtolOption = 1e-5,
    atol: AtolOption = 1e-8,
    fmt: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = "table",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Save all measurements as JSON, for --baseline and diff.", show_default=False
        ),
    ] = None,
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
    from nsys_insight.bench.checks import run_checks
    from nsys_insight.bench.result import to_json
    from nsys_insight.compare.verdict import Decision

    check_format(fmt)
    outputs.check_target(output, [*(read or []), *([baseline] if baseline else [])])
    plan = make_plan(
        metric, higher, lower, results, param, warmup, min_repetitions, max_repetitions, budget, precision, timeout
    )
    commands = _list_programs(command, before, after, read, baseline)
    baseline_benchmark = _read_benchmark(baseline) if baseline else None
    checked_program: Program | None = commands[-1][1] if commands else None
    checks = run_checks(
        make_check_options(test, checked_program if sanitize else None, compare_output, rtol, atol, plan)
    )
    benchmark = measure.read(read, plan) if read else measure.measure(commands, plan)
    if baseline_benchmark:
        benchmark = _compare_with_baseline(baseline_benchmark, benchmark)
    if output:
        outputs.write_output(output, to_json(benchmark))
    bench_answer = answer(benchmark, checks, vary or ())
    show(bench_answer, fmt, Flags(), default_limit=0)
    if bench_answer.summary.get("decision") == Decision.REVERT or not all(check.passed for check in checks):
        raise typer.Exit(Exit.FAILED)


def _list_programs(
    command: list[str] | None, before: str | None, after: str | None, read: list[Path] | None, baseline: Path | None
) -> list[tuple[str, Program]]:
    """List the programs to run, with their labels; empty if files are read.

    Raises:
        UsageError: The flags do not select exactly one kind of input.
    """
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


def _read_benchmark(path: Path) -> Bench:
    from nsys_insight.bench.result import from_json

    try:
        return from_json(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "save one: nsys-insight bench -o FILE -- COMMAND"
        ) from None


def _compare_with_baseline(baseline_benchmark: Bench, new_benchmark: Bench) -> Bench:
    """Combine a saved benchmark (before) with a new one (after). Conditions of the machine become parameters."""
    from dataclasses import replace

    before, after = replace(baseline_benchmark.side, label="before"), replace(new_benchmark.side, label="after")
    machine_conditions = [
        name for name in ("gpu", "driver", "cuda", "application_clock_mhz") if name in new_benchmark.conditions
    ]
    before, after = (
        replace(
            side,
            parameters={
                **side.parameters,
                **{name: benchmark.conditions[name] for name in machine_conditions if name in benchmark.conditions},
            },
        )
        for side, benchmark in ((before, baseline_benchmark), (after, new_benchmark))
    )
    return replace(new_benchmark, sides=(before, after), turns=False)


def make_plan(  # noqa: PLR0913, PLR0917 - flags
    metric: list[str] | None, higher: list[str] | None, lower: list[str] | None, results: Path | None,
    param: list[str] | None, warmup: int, min_repetitions: int, max_repetitions: int, budget: str, precision: float,
    timeout: str | None,
) -> Plan:  # fmt: skip
    """Make the measurement plan from the flags.

    Raises:
        UsageError: A flag has an invalid value.
    """
    from nsys_insight.bench.measure import Plan

    patterns, first_metric = {}, None
    for text in metric or ():
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
    return Plan(
        warmup=warmup,
        min_repetitions=min_repetitions,
        max_repetitions=max(max_repetitions, min_repetitions),
        budget_s=parse_seconds(budget, "--budget"),
        precision=precision / 100,
        timeout_s=parse_seconds(timeout, "--timeout") if timeout else None,
        metric=first_metric,
        patterns=patterns,
        output=results,
        better={**dict.fromkeys(higher or (), "higher"), **dict.fromkeys(lower or (), "lower")},
        parameters=parse_parameters(param),
    )


def make_check_options(  # noqa: PLR0913, PLR0917 - flags
    test: str | None,
    sanitize: Program | None,
    compare_output: tuple[Path, Path] | None,
    rtol: float,
    atol: float,
    plan: Plan,
) -> CheckOptions:
    """Make the options of the correctness checks from the flags."""
    from nsys_insight.bench.checks import CheckOptions

    return CheckOptions(test, sanitize, compare_output, rtol, atol, plan.timeout_s)


def parse_parameters(texts: list[str] | None) -> dict[str, str]:
    """Parse `--param KEY=VALUE`.

    Raises:
        UsageError: A text has another form.
    """
    pairs = [text.partition("=") for text in texts or ()]
    if malformed_keys := [key for key, equals, _ in pairs if not equals or not key]:
        raise UsageError(f"--param takes KEY=VALUE, not {malformed_keys[0]!r}", "--param batch=8")
    return {key: value for key, _, value in pairs}


def parse_seconds(text: str, flag: str) -> float:
    """Parse a duration into seconds: a plain number is seconds, m is minutes."""
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)m(?:in)?", text):
        return 60 * float(match[1])
    return parse_duration(f"{text}s" if re.fullmatch(r"[\d.]+", text) else text, flag=flag) / 1e9


BENCH = Command(
    "bench",
    lambda: bench,
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
