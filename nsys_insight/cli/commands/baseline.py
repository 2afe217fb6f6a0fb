"""The commands about baselines: `baseline save`, `list`, `show` and `rm`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import outputs, own_files
from nsys_insight.cli import completion, terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.comparison import measure_files
from nsys_insight.cli.flags import Flags, FormatOption, check_format, make_command, make_flag, make_step_flags
from nsys_insight.cli.run import open_traces, show
from nsys_insight.errors import UsageError
from nsys_insight.session.answer import build_answer, read_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.compare.baselines import Baseline

SAVE_HELP = """Save the measurements of a run, under a name or as a file, to compare later runs with it.

With --name it is kept in .nsys-insight/baselines of the repository around this folder, to be committed; where there
is none, or with --user, in the user's own folder ($NSYS_INSIGHT_BASELINE_DIR, else baselines in the configuration).
Tags, parameters of the workload, GPU, nsys version and commit are saved with it. check --baseline NAME and diff NAME
TRACE take it. Without --name it is a file (-o).
"""
NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A baseline's name, or a tag.", autocompletion=completion.complete_baselines),
]
_LIST_COLUMNS = read_columns("cli/baselines")
_METRIC_COLUMNS = read_columns("cli/metrics")


def make_baseline_app() -> typer.Typer:
    """Make the commands for baselines."""
    app = typer.Typer(help="Save the measurements of a run, to compare later runs with it.", no_args_is_help=True)
    app.command(name="save")(_make_save_command())
    app.command(name="list")(_list_baselines)
    app.command(name="show")(_show_baseline)
    app.command(name="rm")(_remove_baseline)
    return app


def _make_save_command() -> Callable[..., None]:
    def run(  # noqa: PLR0913 - flags
        trace: Path | None,
        flags: Flags,
        *,
        name: str | None,
        tag: list[str] | None,
        param: list[str] | None,
        user: bool,
    ) -> None:
        from nsys_insight.bench.repository import read_git_commit
        from nsys_insight.compare import baselines
        from nsys_insight.compare.runs import to_json

        if name is None and (tag or param or user):
            raise UsageError("--tag, --param and --user are for a baseline with a name", "add --name main")
        if name is not None and flags.output:
            raise UsageError("--name and -o exclude each other", "give one of them")
        if name is None and not flags.output:
            raise UsageError("a baseline needs a name", "add --name main, or -o FILE")
        params = baselines.parse_params(param or [])
        if name is not None:
            baselines.check_name(name)
        ((measured_run,),) = measure_files([[trace]], flags)
        if measured_run.coverage:
            terminal.note(measured_run.coverage)
        size = f"{measured_run.count} steps" if measured_run.unit != "trace" else "the whole trace"
        if flags.output:
            outputs.write_output(flags.output, to_json(measured_run))
            terminal.note(f"{size} of {measured_run.label} are saved in {flags.output}")
            return
        with open_traces([trace] if trace else [], flags) as opened_trace:
            machine = baselines.read_machine(opened_trace)
        conditions = baselines.BaselineInfo(
            datetime.now(UTC).isoformat(timespec="seconds"),
            tuple(tag or ()),
            params,
            machine,
            read_git_commit().get("commit", ""),
        )
        path = baselines.save(measured_run, str(name), conditions, in_users_folder=user)
        terminal.note(f"{size} of {measured_run.label} are the baseline {name}, in {path}")

    omitted_fields = ("explain", "fmt", "limit", "full_names", "no_color", "csv_safe")
    return make_command(
        run,
        SAVE_HELP,
        make_flag("name", str | None, help="Keep it under this name, replacing one with the same name: main."),
        make_flag("tag", list[str] | None, help="Add a tag; --baseline TAG finds the one saved last."),
        make_flag("param", list[str] | None, metavar="NAME=VALUE", help="A parameter of the workload: batch=8."),
        make_flag("user", bool, "--user", help="Keep it in the user's folder, not in the repository."),
        *make_step_flags(),
        omitted_fields=omitted_fields,
    )


def _list_baselines(
    fmt: FormatOption = "table",
    tag: Annotated[str | None, typer.Option("--tag", help="Only those with this tag.")] = None,
) -> None:
    """List the baselines of the repository and of the user."""
    from nsys_insight.compare import baselines

    matching_baselines = [
        baseline for baseline in baselines.list_baselines() if tag is None or tag in baseline.info.tags
    ]
    empty = "No baseline is saved: nsys-insight baseline save TRACE --name main"
    answer = build_answer(
        _LIST_COLUMNS,
        [_make_row(baseline) for baseline in matching_baselines],
        report="baseline",
        title="Baselines",
        empty=empty,
    )
    show(answer, check_format(fmt), Flags(limit=0))


def _make_row(baseline: Baseline) -> tuple[Any, ...]:
    from nsys_insight.compare.budgets import get_metric_value

    conditions, run = baseline.info, baseline.run
    params = ", ".join(f"{name}={value}" for name, value in conditions.params.items())
    rate = get_metric_value(run, "tokens_per_s") if run.unit in ("token", "step") else None
    condition_texts = (
        ", ".join(conditions.tags),
        conditions.saved_at,
        conditions.commit,
        conditions.machine.get("gpu"),
        params,
    )
    return (
        baseline.name,
        *(text or None for text in condition_texts),
        run.unit,
        run.count,
        get_metric_value(run, "wall_ns"),
        rate,
        str(baseline.path),
    )


def _show_baseline(name: NameArgument, fmt: FormatOption = "table") -> None:
    """Show the measurements of a baseline, and what they are of."""
    from nsys_insight.compare import baselines

    baseline = baselines.get_baseline(name)
    rows: list[tuple[Any, ...]] = [
        (None, metric, samples and samples.mean, samples and samples.stddev)
        for metric, samples in baseline.run.metrics.items()
    ]
    for phase, metrics in baseline.run.phases.items():
        rows += [(phase, metric, samples.mean, samples.stddev) for metric, samples in metrics.items()]
    values = dict(zip((column.name for column in _LIST_COLUMNS), _make_row(baseline), strict=True))
    notes = [f"{key}: {values[key]}" for key in ("tags", "saved_at", "commit", "gpu", "params", "file") if values[key]]
    answer = build_answer(
        _METRIC_COLUMNS,
        rows,
        report="baseline",
        title=f"Baseline {baseline.name}, per {baseline.run.unit}",
        notes=tuple(notes),
    )
    show(answer, check_format(fmt), Flags(limit=0))


def _remove_baseline(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A baseline's name.", autocompletion=completion.complete_baselines)
    ],
) -> None:
    """Remove a baseline, by its name; a tag is not accepted."""
    from nsys_insight.compare import baselines

    named_baseline = next((baseline for baseline in baselines.list_baselines() if baseline.name == name), None)
    path = (named_baseline or baselines.get_baseline(name)).path
    if named_baseline is None:
        raise UsageError(f"{name} is a tag, of {path.stem}", f"nsys-insight baseline rm {path.stem}")
    own_files.remove(path, is_proven=True)  # it was read as a baseline
    terminal.note(f"{path} is removed")


BASELINE = Command(
    "baseline",
    make_baseline_app,
    group="compare",
    place=60,
    help="Save the measurements of a run, to compare later runs with it",
    examples=("baseline save trace.nsys-rep --name main", "baseline list"),
    subcommands={
        "save": ("baseline save trace.nsys-rep --name main", "baseline save trace.nsys-rep --steady -o before.json"),
        "list": ("baseline list", "baseline list --tag release --format json"),
        "show": ("baseline show main", "baseline show main --format json"),
        "rm": ("baseline rm main",),
    },
)
