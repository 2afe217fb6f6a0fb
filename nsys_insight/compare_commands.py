"""The commands that compare runs: `diff`, `check` and `baseline save`."""

from __future__ import annotations

import inspect
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import steps, terminal
from nsys_insight.command import checked_format, open_traces, show
from nsys_insight.errors import Exit, UsageError
from nsys_insight.flags import flag_of, with_flags, without
from nsys_insight.render import HUMAN_FORMATS, format_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_insight.answer import Answer
    from nsys_insight.runs import Run
    from nsys_insight.trace import Trace

DIFF_HELP = """Compare two runs, or several runs of each side, per step: what moved, and whether it is more than noise.

A side is a trace, a run that `baseline save` wrote, or a JSON file of a benchmark (hyperfine, pytest-benchmark, or a
list of numbers). Give BEFORE and AFTER, or several runs: --before a1 a2 a3 --after b1 b2 b3.

The decision is about the wall of a step: revert if it got worse, accept if it got better by more than 3 %. A difference
is noise if it is less than a standard deviation of either side, or if its interval, from a bootstrap over the steps
that takes the likeness of neighbours into account, holds 0. Intervals hold for all rows together, with 95 % confidence.
The steps of a single run do not show how runs differ; times that differ by less than 2 % are then noise. With several
runs of both sides, each run's mean is one measurement.

Kernels are compared under their names where both sides launch them as often; else under what survives another tile,
type or number; else, as a guess, by their place in the step.
"""
CHECK_HELP = """Hold a run to a budget; exit 1 if it is broken.

Budgets are --max and --min with METRIC=VALUE, of the metrics of per-token and shares such as gpu_busy_pct: --max
launches_per_token=15 --max wall=2.5ms --min gpu_busy_pct=90. Or they are in a TOML file: tables [max] and [min] of the
same names and values. What is not known breaks a budget too. With --baseline, the wall, launches, syncs, allocations,
copies and peak memory may be no worse than in a saved run, by more than noise and, of the wall and the memory,
--tolerance.
"""
SAVE_HELP = "Save what a run measured, to be compared with later: nsys-insight baseline save TRACE -o baseline.json"


def diff_command() -> Callable[..., None]:
    """Make the command `diff`."""

    def run(trace: Path | None, **given: Any) -> None:
        from nsys_insight.comparison import compare
        from nsys_insight.comparison_answer import answer, tables

        files = [path for path in (trace, given.pop("other")) if path]
        before, after = given.pop("before") or [], given.pop("after") or []
        if not before and not after and len(files) == 2:
            before, after = files[:1], files[1:]
        elif files or not before or not after:
            raise UsageError(
                "two sides are compared, before and after",
                "nsys-insight diff before.nsys-rep after.nsys-rep, or --before a1 a2 a3 --after b1 b2 b3",
            )
        asked = _asked(given)
        fmt = _format(given)
        sides = _measured([before, after], given, asked)
        found = compare(*sides)
        _write(answer(found), tables(found, brief=fmt == "markdown"), fmt, given)

    text = typer.Option(metavar="FILE…", help="Several runs.", show_default=False)
    second = typer.Argument(metavar="[AFTER]", help="The run after the change.", show_default=False)
    own = [
        _parameter("other", Path | None, second, inspect.Parameter.POSITIONAL_OR_KEYWORD),
        _parameter("before", list[Path] | None, text),
        _parameter("after", list[Path] | None, text),
        *map(flag_of, steps.PARAMS.values()),
    ]
    first = typer.Argument(
        metavar="[BEFORE]", help="The run before: a trace, a saved run, a benchmark.", show_default=False
    )
    return without(with_flags(run, DIFF_HELP, *own), "explain", trace=first)


def check_command() -> Callable[..., None]:
    """Make the command `check`."""

    def run(trace: Path | None, **given: Any) -> None:
        from nsys_insight.budgets import Budget, checked, from_toml

        budgets = [Budget.parsed(bound, text) for bound in ("max", "min") for text in given.pop(bound) or []]
        file, baseline, tolerance = given.pop("budget"), given.pop("baseline"), given.pop("tolerance")
        if file:
            budgets += from_toml(file)
        if not budgets and not baseline:
            raise UsageError(
                "nothing is asked of the trace",
                "nsys-insight check TRACE --max launches_per_token=15, or --budget FILE, or --baseline FILE",
            )
        asked, fmt = _asked(given), _format(given)
        ((measured,),) = _measured([[trace]], given, asked)
        if baseline:
            ((saved,),) = _measured([[baseline]], given, asked)
        found = checked(measured, budgets, saved if baseline else None, tolerance)
        _write(found.answer, [found.answer], fmt, given)
        if found.broken:
            raise typer.Exit(Exit.FAILED)

    def limit(text: str) -> Any:
        return typer.Option(metavar="METRIC=VALUE", help=text, show_default=False)

    def file(text: str) -> Any:
        return typer.Option(metavar="FILE", help=text, show_default=False)

    own = [
        _parameter("max", list[str] | None, limit("At most this.")),
        _parameter("min", list[str] | None, limit("At least this.")),
        _parameter("budget", Path | None, file("A TOML file with tables [max] and [min].")),
        _parameter("baseline", Path | None, file("A saved run, which this one may not be worse than.")),
        _parameter(
            "tolerance",
            float,
            typer.Option(help="By how many percent a time may get worse than in the baseline; counts may not.", min=0),
            default=3.0,
        ),
        *map(flag_of, steps.PARAMS.values()),
    ]
    return without(with_flags(run, CHECK_HELP, *own), "explain")


def baseline_app() -> typer.Typer:
    """Make the commands about saved runs."""
    app = typer.Typer(help="Save what a run measured, to compare later runs with it.", no_args_is_help=True)
    app.command(name="save")(_save_command())

    @app.callback()
    def _root() -> None:
        """Keep `save` a command of its own, though it is the only one."""

    return app


def _save_command() -> Callable[..., None]:
    def run(trace: Path | None, **given: Any) -> None:
        from nsys_insight.runs import to_json

        asked = _asked(given)
        ((saved,),) = _measured([[trace]], given, asked)
        if not given["output"]:
            sys.stdout.write(to_json(saved))
            return
        try:
            given["output"].write_text(to_json(saved), encoding="utf-8")
        except OSError as error:
            raise _unwritable(given["output"], error) from None
        size = f"{saved.count} steps" if saved.unit != "trace" else "the whole trace"
        terminal.note(f"{size} of {saved.label} are saved in {given['output']}")

    own = map(flag_of, steps.PARAMS.values())
    return without(with_flags(run, SAVE_HELP, *own), "explain", "fmt", "limit", "full_names", "no_color")


def _measured(sides: Sequence[Sequence[Path | None]], given: dict[str, Any], asked: dict[str, Any]) -> list[list[Run]]:
    """Measure all runs per step; or, where one has no steps, all of them as wholes."""
    from nsys_insight.benchmark_files import read
    from nsys_insight.runs import Run, from_json, is_run, measure, whole

    with ExitStack() as opened:

        def source(path: Path | None) -> Run | Trace:
            if not path or path.suffix.lower() != ".json":
                return opened.enter_context(open_traces([path] if path else [], given))
            content = _json(path)
            return from_json(content, path) if is_run(content) else read(content, path)

        sources = [[source(path) for path in side] for side in sides]
        per_step = [[run if isinstance(run, Run) else measure(run, asked) for run in side] for side in sources]
        found = [[run for run in side if run and run.unit != "trace"] for side in per_step]
        if found == per_step:
            return found
        return [[run if isinstance(run, Run) else whole(run) for run in side] for side in sources]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as JSON: {error}", "give a trace, or the JSON file of a benchmark"
        ) from None


def _write(whole: Answer, tables: Sequence[Answer], fmt: str, given: dict[str, Any]) -> None:
    """Write one table for machines, or several for people; Markdown holds its notes, for it is read elsewhere."""
    from nsys_insight.render import write
    from nsys_insight.render.markdown import prose

    output: Path | None = given["output"]
    how: dict[str, Any] = {"no_color": given["no_color"], "full_names": given["full_names"]}
    if fmt not in HUMAN_FORMATS:
        show(whole, fmt, output, given["limit"], **how)
        return
    with ExitStack() as opened:
        stream = sys.stdout
        if output:
            try:
                stream = opened.enter_context(output.open("w", encoding="utf-8"))
            except OSError as error:
                raise UsageError(
                    f"cannot write {output}: {error.strerror}", "name a file in a folder that exists"
                ) from None
        for at, table in enumerate(tables):
            if at:
                stream.write("\n")
            limit = given["limit"] if given["limit"] is not None else len(table.rows()) if not at else 12
            write(
                table, stream, fmt,
                limit=limit or None,
                width=None if output else terminal.width(),
                color=terminal.color(wanted=not how["no_color"] and not output),
                full_names=how["full_names"],
            )  # fmt: skip
        if fmt == "markdown":
            stream.write("".join(f"\n- {prose(text)}" for text in whole.notes) + "\n" if whole.notes else "")
    sys.stdout.flush()
    for text in whole.notes if fmt != "markdown" else ():
        terminal.note(text)


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror or error}", "name a file in a folder that exists")


def _format(given: dict[str, Any]) -> str:
    return checked_format(given["fmt"] or (format_for(given["output"]) if given["output"] else "table"))


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """Take out what the user says about steps."""
    asked = {name: given.pop(name) for name in steps.PARAMS}
    steps.options(asked)
    return {name: value for name, value in asked.items() if value is not None}


def _parameter(
    name: str, kind: Any, option: Any, place: Any = inspect.Parameter.KEYWORD_ONLY, default: object = None
) -> inspect.Parameter:
    return inspect.Parameter(name, place, default=default, annotation=Annotated[kind, option])
