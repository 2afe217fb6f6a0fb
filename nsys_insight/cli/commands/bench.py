"""The command ``bench``: measure without the profiler, and tell whether a change is one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli.commands import OF_PROGRAM, Command
from nsys_insight.cli.flags import Flags, checked_format
from nsys_insight.cli.run import show
from nsys_insight.errors import Exit, UsageError
from nsys_insight.render import FORMATS
from nsys_insight.text.units import parse_duration

if TYPE_CHECKING:
    from nsys_insight.bench.checks import Wanted
    from nsys_insight.bench.measure import Command as Program
    from nsys_insight.bench.measure import Plan
    from nsys_insight.bench.result import Bench

_METRIC = re.compile(r"(?P<name>[^=\[]+)(?:\[(?P<unit>[^\]]*)\])?(?:=(?P<pattern>.+))?", re.DOTALL)
_CHECKS: dict[str, Any] = {"rich_help_panel": "Correctness"}
_METRICS: dict[str, Any] = {"rich_help_panel": "What is measured"}
_HOW: dict[str, Any] = {"rich_help_panel": "How often"}

MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="NAME[[UNIT]=REGEX]", show_default=False,
        help="The metric that decides; with a regular expression, whose first group is the number, "
             "what to look for in the output: 'decode\\[tok/s]=([0-9.]+) tok/s'.", **_METRICS,
    ),
]  # fmt: skip
HigherOption = Annotated[
    list[str] | None,
    typer.Option(
        "--higher", metavar="NAME", help="Higher values of this metric are better.", show_default=False, **_METRICS
    ),
]
LowerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lower", metavar="NAME", help="Lower values of this metric are better.", show_default=False, **_METRICS
    ),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--results", metavar="FILE", help="The JSON that the command writes, instead of its output.",
        show_default=False, **_METRICS,
    ),
]  # fmt: skip
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="KEY=VALUE", help="A parameter of the workload.", show_default=False, **_METRICS),
]
WarmupOption = Annotated[int, typer.Option("--warmup", min=0, max=1000, help="Runs that do not count.", **_HOW)]
LeastOption = Annotated[
    int,
    typer.Option(
        "--least", min=1, max=10_000, help="Minimum number of repetitions; below 6 there is no verdict.", **_HOW
    ),
]
MostOption = Annotated[int, typer.Option("--most", min=1, max=10_000, help="Maximum number of repetitions.", **_HOW)]
BudgetOption = Annotated[str, typer.Option("--budget", help="No repetition starts after this time.", **_HOW)]
PrecisionOption = Annotated[
    float,
    typer.Option("--precision", min=0.001, max=100, help="Stop when the interval is ± this many percent.", **_HOW),
]
TimeoutOption = Annotated[
    str | None, typer.Option("--timeout", help="End a run that takes longer, such as 5m.", show_default=False, **_HOW)
]
TestOption = Annotated[
    str | None,
    typer.Option("--test", metavar="CMD", help="Fails if the results are wrong.", show_default=False, **_CHECKS),
]
SanitizeOption = Annotated[
    bool, typer.Option("--sanitize", help="Also run the command under compute-sanitizer's four tools.", **_CHECKS)
]
OutputsOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--compare-output", metavar="A B", help="A file of results and its reference: .npy, .npz, .json or text.",
        show_default=False, **_CHECKS,
    ),
]  # fmt: skip
RtolOption = Annotated[float, typer.Option("--rtol", min=0, help="Relative tolerance of a number.", **_CHECKS)]
AtolOption = Annotated[float, typer.Option("--atol", min=0, help="Absolute tolerance of a number.", **_CHECKS)]


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
    least: LeastOption = 10,
    most: MostOption = 50,
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
    """Measure a command without the profiler, or two that take turns, until the interval is narrow.

    The measurements are what the command prints: lines "RESULT decode 412.5 tok/s", the JSON of hyperfine,
    pytest-benchmark, Google Benchmark, nvbench, vLLM or SGLang, or what --metric matches; else its duration.

    With --before and --after the two take turns, and the change has a verdict: accept (better by more than 3 %, and
    tests passed), unchecked (the same, but correctness was not checked), small, revert, indistinguishable.
    Repetitions that scatter by more than 5 % get a description, but no verdict. Exit 1 is revert.
    """
    from nsys_insight.bench import measure
    from nsys_insight.bench.answer import answer
    from nsys_insight.bench.checks import run_checks
    from nsys_insight.bench.result import to_json

    checked_format(fmt)
    outputs.check(output, [*(read or []), *([baseline] if baseline else [])])
    plan = plan_of(metric, higher, lower, results, param, warmup, least, most, budget, precision, timeout)
    commands = _commands(command, before, after, read, baseline)
    saved = _saved(baseline) if baseline else None
    what: Program | None = commands[-1][1] if commands else None
    checks = run_checks(wanted(test, what if sanitize else None, compare_output, rtol, atol, plan))
    found = measure.read(read, plan) if read else measure.measure(commands, plan)
    if saved:
        found = _beside(saved, found)
    if output:
        outputs.save(output, to_json(found))
    made = answer(found, checks, vary or ())
    show(made, fmt, Flags(), default_limit=0)
    if made.summary.get("decision") == "revert" or not all(check.passed for check in checks):
        raise typer.Exit(Exit.FAILED)


def _commands(
    command: list[str] | None, before: str | None, after: str | None, read: list[Path] | None, baseline: Path | None
) -> list[tuple[str, Program]]:
    """Tell what is run, and under which labels."""
    ways = [bool(command), bool(before or after), bool(read)]
    if sum(ways) != 1 or bool(before) != bool(after) or (before and baseline):
        raise UsageError(
            "one command is measured, or two that take turns, or files are read",
            "nsys-insight bench -- ./app --tokens 128, or --before './old' --after './new', or --read log.txt",
        )
    if before and after:
        return [("before", before), ("after", after)]
    return [("after" if baseline else "the command", command)] if command else []


def _saved(path: Path) -> Bench:
    from nsys_insight.bench.result import from_json

    try:
        return from_json(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "save one: nsys-insight bench -o FILE -- COMMAND"
        ) from None


def _beside(saved: Bench, found: Bench) -> Bench:
    """Put a saved benchmark before one that was measured now; conditions that differ become parameters."""
    from dataclasses import replace

    before, after = replace(saved.side, label="before"), replace(found.side, label="after")
    machine = [name for name in ("gpu", "driver", "cuda", "application_clock_mhz") if name in found.conditions]
    before, after = (
        replace(
            side,
            parameters={**side.parameters, **{name: of.conditions[name] for name in machine if name in of.conditions}},
        )
        for side, of in ((before, saved), (after, found))
    )
    return replace(found, sides=(before, after), turns=False)


def plan_of(  # noqa: PLR0913, PLR0917 - flags
    metric: list[str] | None, higher: list[str] | None, lower: list[str] | None, results: Path | None,
    param: list[str] | None, warmup: int, least: int, most: int, budget: str, precision: float, timeout: str | None,
) -> Plan:  # fmt: skip
    """Make a plan of flags.

    Raises:
        UsageError: A flag makes no sense.
    """
    from nsys_insight.bench.measure import Plan

    patterns, first = {}, None
    for text in metric or ():
        found = _METRIC.fullmatch(text)
        if not found:
            raise UsageError(f"--metric cannot be {text!r}", "write NAME, or 'NAME[UNIT]=REGEX'")
        name = found["name"].strip()
        first = first or name
        if found["pattern"]:
            try:
                re.compile(found["pattern"])
            except re.error as error:
                raise UsageError(
                    f"{found['pattern']!r} is no regular expression: {error}", "quote it for the shell"
                ) from None
            patterns[name] = (found["pattern"], found["unit"] or "")
    return Plan(
        warmup=warmup,
        least=least,
        most=max(most, least),
        budget_s=seconds(budget, "--budget"),
        precision=precision / 100,
        timeout_s=seconds(timeout, "--timeout") if timeout else None,
        metric=first,
        patterns=patterns,
        output=results,
        better={**dict.fromkeys(higher or (), "higher"), **dict.fromkeys(lower or (), "lower")},
        parameters=parameters(param),
    )


def wanted(  # noqa: PLR0913, PLR0917 - flags
    test: str | None,
    sanitize: Program | None,
    compare_output: tuple[Path, Path] | None,
    rtol: float,
    atol: float,
    plan: Plan,
) -> Wanted:
    """What the flags want to be looked at."""
    from nsys_insight.bench.checks import Wanted

    return Wanted(test, sanitize, compare_output, rtol, atol, plan.timeout_s)


def parameters(given: list[str] | None) -> dict[str, str]:
    """Read `--param KEY=VALUE`."""
    pairs = [text.partition("=") for text in given or ()]
    if wrong := [key for key, equals, _ in pairs if not equals or not key]:
        raise UsageError(f"--param takes KEY=VALUE, not {wrong[0]!r}", "--param batch=8")
    return {key: value for key, _, value in pairs}


def seconds(text: str, flag: str) -> float:
    """Read a duration; a plain number is seconds, and m minutes."""
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)m(?:in)?", text):
        return 60 * float(found[1])
    return parse_duration(f"{text}s" if re.fullmatch(r"[\d.]+", text) else text, flag=flag) / 1e9


BENCH = Command(
    "bench",
    lambda: bench,
    group="compare",
    place=70,
    help="Measure without the profiler: a command, or two that take turns",
    examples=(
        "bench -- python3 decode.py --tokens 128",
        "bench --before 'python3 old.py' --after 'python3 new.py' --least 20",
    ),
    settings=OF_PROGRAM,
)
