"""The commands about baselines: `baseline save`, `list`, `show` and `rm`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli import completion, terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, FormatOption, checked_format, flag, step_flags, with_flags
from nsys_insight.cli.run import open_traces, show
from nsys_insight.errors import UsageError
from nsys_insight.session.answer import Column, of_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.compare.baselines import Baseline

SAVE_HELP = """Save the measurements of a run, under a name or as a file, to compare later runs with it.

With --name it is kept in .nsys-insight/baselines of the repository around this folder, to be committed; where there
is none, or with --user, in the user's own folder ($NSYS_INSIGHT_BASELINE_DIR, else baselines in the configuration).
The tags, the parameters of the workload, the GPU, the nsys version and the commit are saved with it. check --baseline
NAME and diff NAME TRACE take it. Without --name it is a file (-o), or JSON on stdout.
"""
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A baseline's name, or a tag.", autocompletion=completion.baselines)
]
_LISTED = (
    Column("name", "VARCHAR", "The baseline"),
    Column("tags", "VARCHAR", "Its tags"),
    Column("saved_at", "VARCHAR", "When it was saved, UTC"),
    Column("commit", "VARCHAR", "The commit of the repository; +changes if files differed from it"),
    Column("gpu", "VARCHAR", "The GPUs that were used"),
    Column("params", "VARCHAR", "The parameters of the workload"),
    Column("unit", "VARCHAR", "What the figures are per: step or token"),
    Column("steps", "BIGINT", "How many steps were measured"),
    Column("wall_ns", "DOUBLE", "Mean step time, or wall time per token where a step makes several"),
    Column("tokens_per_s", "DOUBLE", "Of that mean; NULL where no steps were found"),
    Column("file", "VARCHAR", "Where it is", detail=True),
)
_SHOWN = (
    Column("name", "VARCHAR", "Of which phase; NULL for the whole step"),
    Column("metric", "VARCHAR", "What was measured, per token or step"),
    Column("mean", "DOUBLE", "Mean over the steps"),
    Column("stddev", "DOUBLE", "Sample standard deviation of a step"),
)


def baseline_app() -> typer.Typer:
    """Make the commands about saved runs."""
    app = typer.Typer(help="Save the measurements of a run, to compare later runs with it.", no_args_is_help=True)
    app.command(name="save")(_save_command())
    app.command(name="list")(_list)
    app.command(name="show")(_show)
    app.command(name="rm")(_remove)
    return app


def _save_command() -> Callable[..., None]:
    def run(  # noqa: PLR0913 - flags
        trace: Path | None,
        flags: Flags,
        *,
        name: str | None,
        tag: list[str] | None,
        param: list[str] | None,
        user: bool,
    ) -> None:
        from nsys_insight.bench.conditions import git_commit
        from nsys_insight.cli.commands.compare import measured
        from nsys_insight.compare import baselines
        from nsys_insight.compare.runs import to_json

        if name is None and (tag or param or user):
            raise UsageError("--tag, --param and --user are for a baseline with a name", "add --name main")
        if name is not None and flags.output:
            raise UsageError("--name and -o exclude each other", "give one of them")
        params = baselines.params_of(param or [])
        if name is not None:
            baselines.checked_name(name)
        ((saved,),) = measured([[trace]], flags)
        if name is None and not flags.output:
            sys.stdout.write(to_json(saved))
            return
        size = f"{saved.count} steps" if saved.unit != "trace" else "the whole trace"
        if flags.output:
            outputs.save(flags.output, to_json(saved))
            terminal.note(f"{size} of {saved.label} are saved in {flags.output}")
            return
        with open_traces([trace] if trace else [], flags) as opened:
            machine = baselines.machine(opened)
        about = baselines.About(
            datetime.now(UTC).isoformat(timespec="seconds"),
            tuple(tag or ()),
            params,
            machine,
            git_commit().get("commit", ""),
        )
        path = baselines.save(saved, str(name), about, in_users_folder=user)
        terminal.note(f"{size} of {saved.label} are the baseline {name}, in {path}")

    without = ("explain", "fmt", "limit", "full_names", "no_color", "csv_safe")
    return with_flags(
        run,
        SAVE_HELP,
        flag("name", str | None, help="Keep it under this name, replacing one with the same name: main."),
        flag("tag", list[str] | None, help="Add a tag; --baseline TAG finds the one saved last."),
        flag("param", list[str] | None, metavar="NAME=VALUE", help="A parameter of the workload: batch=8."),
        flag("user", bool, "--user", help="Keep it in the user's folder, not in the repository."),
        *step_flags(),
        without=without,
    )


def _list(
    fmt: FormatOption = "table",
    tag: Annotated[str | None, typer.Option("--tag", help="Only those with this tag.")] = None,
) -> None:
    """List the baselines of the repository and of the user."""
    from nsys_insight.compare import baselines

    found = [one for one in baselines.saved() if tag is None or tag in one.about.tags]
    empty = "No baseline is saved: nsys-insight baseline save TRACE --name main"
    answer = of_rows(_LISTED, [_row(one) for one in found], report="baseline", title="Baselines", empty=empty)
    show(answer, checked_format(fmt), Flags(limit=0))


def _row(one: Baseline) -> tuple[Any, ...]:
    from nsys_insight.compare.budgets import measured

    about, run = one.about, one.run
    params = ", ".join(f"{name}={value}" for name, value in about.params.items())
    rate = measured(run, "tokens_per_s") if run.unit in ("token", "step") else None
    texts = (", ".join(about.tags), about.saved_at, about.commit, about.machine.get("gpu"), params)
    return (
        one.name,
        *(text or None for text in texts),
        run.unit,
        run.count,
        measured(run, "wall_ns"),
        rate,
        str(one.path),
    )


def _show(name: NameArgument, fmt: FormatOption = "table") -> None:
    """Show the measurements of a baseline, and what they are of."""
    from nsys_insight.compare import baselines

    one = baselines.meant(name)
    rows: list[tuple[Any, ...]] = [
        (None, metric, samples and samples.mean, samples and samples.stddev)
        for metric, samples in one.run.metrics.items()
    ]
    for phase, metrics in one.run.phases.items():
        rows += [(phase, metric, samples.mean, samples.stddev) for metric, samples in metrics.items()]
    told = dict(zip((column.name for column in _LISTED), _row(one), strict=True))
    said = [f"{key}: {told[key]}" for key in ("tags", "saved_at", "commit", "gpu", "params", "file") if told[key]]
    answer = of_rows(
        _SHOWN, rows, report="baseline", title=f"Baseline {one.name}, per {one.run.unit}", notes=tuple(said)
    )
    show(answer, checked_format(fmt), Flags(limit=0))


def _remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A baseline's name.", autocompletion=completion.baselines)
    ],
) -> None:
    """Remove a baseline, by its name; a tag is not accepted."""
    from nsys_insight.compare import baselines

    found = next((one for one in baselines.saved() if one.name == name), None)
    path = (found or baselines.meant(name)).path
    if found is None:
        raise UsageError(f"{name} is a tag, of {path.stem}", f"nsys-insight baseline rm {path.stem}")
    path.unlink()
    terminal.note(f"{path} is removed")


BASELINE = Command(
    "baseline",
    baseline_app,
    group="compare",
    place=60,
    help="Save the measurements of a run, to compare later runs with it",
    examples=("baseline save trace.nsys-rep --name main", "baseline list"),
    inner={
        "save": ("baseline save trace.nsys-rep --name main", "baseline save trace.nsys-rep --steady -o before.json"),
        "list": ("baseline list", "baseline list --tag release --format json"),
        "show": ("baseline show main", "baseline show main --format json"),
        "rm": ("baseline rm main",),
    },
)
