"""The commands that compare runs: `diff` and `check`."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from nsys_insight import outputs, progress
from nsys_insight.cli import completion, terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, argument, flag, step_flags, with_flags
from nsys_insight.cli.run import open_traces, show
from nsys_insight.errors import Exit, UsageError
from nsys_insight.render import HUMAN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_insight.compare.direction import Better
    from nsys_insight.compare.runs import Run
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# What a benchmark printed, as it is saved.
_PRINTED = {".txt", ".log", ".out", ".jsonl"}
DIFF_HELP = """Compare two runs, or several runs of each side, per step: what changed, and whether it is noise.

A side is a trace, a baseline's name or file, or what a benchmark wrote: JSON of bench -o, hyperfine,
pytest-benchmark, Google Benchmark, nvbench, vLLM or SGLang, a list of numbers, or text with lines "RESULT name value
unit". Whether higher or lower values are better follows from a metric's unit and name, and is shown. Give BEFORE and
AFTER, or several runs: --before a1 a2 a3 --after b1 b2 b3.

The decision is about the step time: revert if it got worse, accept if it got better by more than 3 %. A difference is
noise if it is less than a standard deviation of either side, or if its interval, from a bootstrap over the steps that
takes the similarity of neighboring steps into account, contains 0. Intervals hold for all rows together, with 95 %
confidence. The steps of a single run do not show how runs differ; times that differ by less than 2 % are then noise.
With several runs of both sides, each run's mean is one measurement.

Kernels are compared under their names where both sides launch them as often; else by what stays the same with another
tile, type or number; else, as a guess, by their place in the step.
"""
CHECK_HELP = """Hold a run to a budget; exit 1 if it is broken.

Budgets are --max and --min with METRIC=VALUE, of the metrics of per-token and shares such as gpu_busy_pct: --max
launches_per_token=15 --max wall=2.5ms --min gpu_busy_pct=90. Or they are in a TOML file: tables [max] and [min] of
the same names and values. An unknown metric also breaks its budget. With --baseline, the step time, launches, syncs,
allocations, copies and peak memory, and the step time of each phase that NVTX ranges name, may not be worse than in a
saved run by more than noise and, for times and memory, --tolerance.
"""


def diff_command() -> Callable[..., None]:
    """Make the command `diff`."""

    def run(  # noqa: PLR0913 - flags
        trace: Path | None,
        flags: Flags,
        *,
        other: Path | None,
        before: list[Path] | None,
        after: list[Path] | None,
        higher: list[str] | None,
        lower: list[str] | None,
    ) -> None:
        from nsys_insight.compare.answer import answer, tables
        from nsys_insight.compare.comparison import compare

        sides = _sides([path for path in (trace, other) if path], before or [], after or [])
        fmt = flags.format
        runs = measured(sides, flags)
        told: dict[str, Better] = {**dict.fromkeys(higher or (), "higher"), **dict.fromkeys(lower or (), "lower")}
        with progress.at("comparing"):
            found = compare(*([run.preferring(told) for run in side] for side in runs))
        _write(answer(found), tables(found, brief=fmt == "markdown"), fmt, flags)

    several = {"metavar": "FILE…", "help": "Several runs."}
    first = argument("trace", Path | None, "[BEFORE]", "The run before: a trace, a saved run, a benchmark.")
    return with_flags(
        run,
        DIFF_HELP,
        argument("other", Path | None, "[AFTER]", "The run after the change."),
        flag("before", list[Path] | None, **several),
        flag("after", list[Path] | None, **several),
        flag("higher", list[str] | None, metavar="METRIC", help="Higher values of this benchmark metric are better."),
        flag("lower", list[str] | None, metavar="METRIC", help="Lower values of this benchmark metric are better."),
        *step_flags(),
        argument=first,
        without=("explain",),
    )


def _sides(files: list[Path], before: list[Path], after: list[Path]) -> tuple[list[Path], list[Path]]:
    """Tell the sides, which are two files, or named by flags."""
    if not before and not after and len(files) == 2:
        return files[:1], files[1:]
    if files or not before or not after:
        raise UsageError(
            "two sides are compared, before and after",
            "nsys-insight diff before.nsys-rep after.nsys-rep, or --before a1 a2 a3 --after b1 b2 b3",
        )
    return before, after


def check_command() -> Callable[..., None]:
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
        markdown: Path | None,
        **bounds: Any,
    ) -> None:
        from nsys_insight.compare import baselines, ci_reports
        from nsys_insight.compare.budgets import Budget, checked, from_toml

        budgets = [Budget.parsed(bound, text) for bound in ("max", "min") for text in bounds[bound] or []]
        if budget:
            outputs.check(flags.output, [budget])
            budgets += from_toml(budget)
        if not budgets and not baseline:
            raise UsageError(
                "there is no budget to check",
                "nsys-insight check TRACE --max launches_per_token=15, or --budget FILE, or --baseline NAME",
            )
        fmt = flags.format
        if baseline and not baseline.exists() and not baseline.suffix:
            baseline = baselines.meant(str(baseline)).path
        for path in (junit, sarif, markdown):
            outputs.check(path, [one for one in (trace, budget, baseline) if one])
        ((run_now,),) = measured([[trace]], flags)
        saved = measured([[baseline]], flags)[0][0] if baseline else None
        said = _of_other_work(trace, flags, baseline, baselines.params_of(param or [])) if baseline else []
        found = checked(run_now, budgets, saved, tolerance, said)
        if junit:
            outputs.save(junit, ci_reports.junit(found.answer))
        if sarif:
            outputs.save(sarif, ci_reports.sarif(found.answer, budget, baseline))
        if markdown:
            _write(found.answer, [found.answer], "markdown", replace(flags, output=markdown))
        _write(found.answer, [found.answer], fmt, flags)
        if found.broken:
            raise typer.Exit(Exit.FAILED)

    saved = "A baseline's name or tag, or a saved run's file; this run may not be worse."
    tolerance = "Percentage by which a time may be worse than in the baseline; counts may not be worse."
    return with_flags(
        run,
        CHECK_HELP,
        flag("max", list[str] | None, metavar="METRIC=VALUE", help="At most this.", autocompletion=completion.budgets),
        flag("min", list[str] | None, metavar="METRIC=VALUE", help="At least this.", autocompletion=completion.budgets),
        flag("budget", Path | None, metavar="FILE", help="A TOML file with tables [max] and [min]."),
        flag("baseline", Path | None, metavar="NAME", help=saved, autocompletion=completion.baselines),
        flag("tolerance", float, default=3.0, help=tolerance, min=0),
        flag(
            "param",
            list[str] | None,
            metavar="NAME=VALUE",
            help="A parameter of this workload, as the baseline has it.",
        ),
        flag("junit", Path | None, metavar="FILE", help="Also write the budgets as JUnit test cases."),
        flag("sarif", Path | None, metavar="FILE", help="Also write the broken budgets as SARIF, for annotations."),
        flag(
            "markdown", Path | None, metavar="FILE", help="Also write the table as Markdown, for a comment or summary."
        ),
        *step_flags(),
        without=("explain",),
    )


def measured(sides: Sequence[Sequence[Path | None]], flags: Flags) -> list[list[Run]]:
    """Measure all runs per step; or, where one has no steps or the steps are other work, all of them as wholes."""
    from nsys_insight.compare.benchmark_formats import run_of_file, run_of_json
    from nsys_insight.compare.comparison import different_work
    from nsys_insight.compare.runs import Run, from_json, is_run, measure, whole

    with ExitStack() as opened, progress.at("measuring the runs"):

        def source(path: Path | None) -> Run | Session:
            path = _saved(path)
            if path:
                outputs.check(flags.output, [path])
            if path and path.suffix.lower() in _PRINTED:
                return run_of_file(path)
            if not path or path.suffix.lower() != ".json":
                return opened.enter_context(open_traces([path] if path else [], flags))
            content = _json(path)
            return from_json(content, path) if is_run(content) else run_of_json(content, path)

        sources = [[source(path) for path in side] for side in sides]
        per_step = [[run if isinstance(run, Run) else measure(run, flags.steps) for run in side] for side in sources]
        found = [[run for run in side if run and run.unit != "trace"] for side in per_step]
        other = different_work(*found) if found == per_step and len(found) == 2 else None
        if found == per_step and (not other or any(isinstance(run, Run) for side in sources for run in side)):
            return found
        if other:
            terminal.note(f"the steps of the two do different work: {other}")
        return [[run if isinstance(run, Run) else whole(run) for run in side] for side in sources]


def _saved(path: Path | None) -> Path | None:
    """The file of a baseline, where a path is the name of one and of nothing else."""
    from nsys_insight.compare import baselines

    if path is None or path.exists() or path.parent != Path():
        return path
    found = baselines.named(path.name)
    return found.path if found else path


def _of_other_work(trace: Path | None, flags: Flags, baseline: Path, params: dict[str, str]) -> list[str]:
    """Say where a trace is of another machine or workload than a baseline that says of which it is."""
    from nsys_insight.compare import baselines

    saved = _saved(baseline)
    if saved is None or saved.suffix != ".json":
        return []
    about = baselines.read(saved).about
    if not about.machine and not about.params:
        return []
    with open_traces([trace] if trace else [], flags) as opened:
        return baselines.unlike(about, baselines.machine(opened), params)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as JSON: {error}", "give a trace, or the JSON file of a benchmark"
        ) from None


def _write(whole: Answer, tables: Sequence[Answer], fmt: str, flags: Flags) -> None:
    """Write one table for machines, or several for people; Markdown holds its notes, for it is read elsewhere."""
    from nsys_insight.render import write
    from nsys_insight.render.markdown import prose

    output = flags.output
    if scope := flags.scope.given:
        whole, *tables = (replace(table, trace={**table.trace, "scope": scope}) for table in (whole, *tables))
    if fmt not in HUMAN_FORMATS:
        show(whole, fmt, flags)
        return
    with ExitStack() as opened:
        stream = sys.stdout
        if output:
            made = opened.enter_context(outputs.whole(output))
            stream = opened.enter_context(made.open("w", encoding="utf-8"))
        for at, table in enumerate(tables):
            if at:
                stream.write("\n")
            limit = flags.limit if flags.limit is not None else len(table.rows()) if not at else 12
            write(
                table, stream, fmt,
                limit=limit or None,
                width=None if output else terminal.width(),
                color=terminal.color(wanted=not flags.no_color and not output),
                full_names=flags.full_names,
            )  # fmt: skip
        if fmt == "markdown":
            stream.write("".join(f"\n- {prose(text)}" for text in whole.notes) + "\n" if whole.notes else "")
    sys.stdout.flush()
    for text in whole.notes if fmt != "markdown" else ():
        terminal.note(text)


class _SidesCommand(TyperCommand):
    """A command whose --before and --after take all that follows, up to the next flag."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write `--before a b` as `--before a --before b`, which is what the parser knows."""
        spelled: list[str] = []
        side = ""
        for at, word in enumerate(args):
            if word in ("--before", "--after"):
                side = word
                if at + 1 == len(args) or args[at + 1].startswith("-"):
                    spelled.append(word)
            elif word.startswith("-"):
                side = ""
                spelled.append(word)
            else:
                spelled += [side, word] if side else [word]
        return super().parse_args(ctx, spelled)


DIFF = Command(
    "diff",
    diff_command,
    group="compare",
    place=40,
    help="What a change affected, and whether to keep it",
    examples=("diff before.nsys-rep after.nsys-rep", "diff --before a1.sqlite a2.sqlite --after b1.sqlite b2.sqlite"),
    settings={"cls": _SidesCommand},
)


CHECK = Command(
    "check",
    check_command,
    group="compare",
    place=50,
    help="Hold a run to a budget or a baseline; exit 1 if it is broken",
    examples=(
        "check trace.nsys-rep --max wall=2.5ms --min gpu_busy_pct=90",
        "check trace.nsys-rep --baseline main --junit check.xml",
    ),
)
