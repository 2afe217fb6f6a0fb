"""The commands `nsys-insight experiment …`: the optimization loop, for people and agents."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.commands.bench import make_measure_flags, make_plan
from nsys_insight.cli.flags import Flags, FormatOption, add_flags, check_format
from nsys_insight.cli.run import open_trace, resolve_trace, show
from nsys_insight.errors import Exit

if TYPE_CHECKING:
    from nsys_insight.experiment.log import Log, Try
    from nsys_insight.session.answer import Answer

app = typer.Typer(
    help=(
        "The optimization loop: a baseline, one change at a time, tests, a measurement, a decision by rule, and a log."
    ),
    no_args_is_help=True,
)
FolderOption = Annotated[Path, typer.Option("--folder", help="Where the experiment is kept.")]
TraceOption = Annotated[
    Path | None, typer.Option("--trace", help="A trace of this state, for evidence and for what changed.")
]
NcuOption = Annotated[list[Path] | None, typer.Option("--ncu", help="What ncu measured of this state.")]
FOLDER = Path("experiment")


def start(  # noqa: PLR0913 - flags
    command: Annotated[str, typer.Option("--bench", metavar="CMD", help="The benchmark.")],
    *,
    goal: Annotated[str, typer.Option("--goal", help="What to improve.")] = "Make it faster",
    folder: FolderOption = FOLDER,
    trace: TraceOption = None,
    ncu: NcuOption = None,
    fmt: FormatOption = "table",
    **settings: Any,
) -> None:
    """Run the checks, measure the baseline, and start the log. The checks must pass."""
    from nsys_insight.experiment import steps
    from nsys_insight.experiment.log import Setup

    check_format(fmt)
    test, sanitize, files, rtol, atol = map(settings.pop, ("test", "sanitize", "compare_output", "rtol", "atol"))
    bench_settings = {
        name: str(value) if name == "results" else value for name, value in settings.items() if value is not None
    }
    output, reference = map(str, files or ("", ""))
    setup = Setup(goal, command, test or "", sanitize, output, reference, rtol, atol, bench_settings)
    experiment_log = steps.start(folder, setup, make_plan(bench_settings), _collect_evidence(None, trace, ncu))
    _show_tries(experiment_log, [experiment_log.tries[0]], fmt, experiment_log.tries[0].sentence, has_notes=True)


app.command("start")(add_flags(start, *make_measure_flags()))


@app.command("try")
def try_(  # noqa: PLR0913 - flags
    change: Annotated[str, typer.Argument(metavar="CHANGE", help="The one change, in words.")],
    *,
    because: Annotated[str, typer.Option("--because", help="Why it should help.")] = "",
    command: Annotated[
        str,
        typer.Option(
            "--bench", metavar="CMD",
            help="The benchmark with the change, if it is a different command: the two then take turns.",
        ),
    ] = "",
    folder: FolderOption = FOLDER,
    trace: TraceOption = None,
    ncu: NcuOption = None,
    fmt: FormatOption = "table",
) -> None:  # fmt: skip
    """Test and measure one change that you made, and decide by rule what to do with it. Exit 1 is revert.

    If results are wrong, it is not measured. Next: nsys-insight experiment keep, or revert.
    """
    from nsys_insight.compare.verdict import Decision
    from nsys_insight.experiment import log, steps

    check_format(fmt)
    experiment_log = log.read(folder)
    plan = make_plan(experiment_log.setup.bench_settings)
    evidence_fields = {} if experiment_log.open_try else _collect_evidence(experiment_log.current_try, trace, ncu)
    experiment_log = steps.try_change(experiment_log, change, plan, evidence_fields, command=command, because=because)
    new_try = experiment_log.tries[-1]
    _show_tries(experiment_log, [new_try], fmt, new_try.sentence, has_notes=True)
    if new_try.decision == Decision.REVERT:
        raise typer.Exit(Exit.FAILED)


@app.command()
def keep(folder: FolderOption = FOLDER, fmt: FormatOption = "table") -> None:
    """Keep the open change: the next one is compared with it."""
    _settle_open_try(folder, "kept", fmt)


@app.command()
def revert(folder: FolderOption = FOLDER, fmt: FormatOption = "table") -> None:
    """Record that the open change is reverted. Your files are not touched: revert the change in them yourself."""
    _settle_open_try(folder, "reverted", fmt)


@app.command()
def log(folder: FolderOption = FOLDER, fmt: FormatOption = "table") -> None:
    """Show all tries as a table and a plot; --format markdown writes the complete log."""
    from nsys_insight.experiment import log as logs

    check_format(fmt)
    experiment_log = logs.read(folder)
    if fmt == "markdown":
        sys.stdout.write(logs.format_log(experiment_log))
        return
    _show_tries(experiment_log, list(experiment_log.tries), fmt, experiment_log.setup.goal)
    if fmt == "table":
        sys.stdout.write("".join(f"{line}\n" for line in ["", *logs.plot_tries(experiment_log)]))


def _settle_open_try(folder: Path, status: str, fmt: str) -> None:
    from nsys_insight.compare.verdict import Decision
    from nsys_insight.experiment import log as logs
    from nsys_insight.experiment import steps

    check_format(fmt)
    previous_log = logs.read(folder)
    experiment_log = steps.close_try(previous_log, status)
    settled_try = next(
        entry
        for entry in experiment_log.tries
        if previous_log.open_try and entry.number == previous_log.open_try.number
    )
    if status == "kept" and settled_try.decision not in (Decision.ACCEPT, Decision.SMALL):
        terminal.note(f"kept, although the decision was {settled_try.decision}")
    if status == "reverted" and settled_try.command == experiment_log.current_try.command:
        terminal.note("revert the change in your files, too: they were not modified")
    _show_tries(experiment_log, [settled_try], fmt, f"{settled_try.number}. {settled_try.change}: {status}")


def _collect_evidence(before: Try | None, trace: Path | None, ncu: list[Path] | None) -> dict[str, object]:
    """Collect evidence from the trace and ncu data of this state, and their differences to `before`.

    The keys are fields of a `Try`.
    """
    from nsys_insight.experiment import evidence

    try_fields: dict[str, Any] = {}
    side_effects: list[str] = []
    with ExitStack() as stack:
        if trace:
            new_trace = stack.enter_context(open_trace(resolve_trace(trace)))
            findings, candidates = evidence.collect_trace_evidence(new_trace)
            try_fields |= {"trace": str(trace), "evidence": findings, "candidates": candidates}
            if before and before.trace:
                old_trace = stack.enter_context(open_trace(resolve_trace(Path(before.trace))))
                try_fields["trace_diff"], regressions = evidence.compare_traces(old_trace, new_trace)
                side_effects += regressions
        if ncu:
            from nsys_insight.cli.commands.ncu import find_store
            from nsys_insight.ncu.data import NcuData

            try_fields["ncu"] = "\n".join(map(str, ncu))
            if before and before.ncu:
                stores = [find_store(files, None) for files in ([Path(name) for name in before.ncu.split("\n")], ncu)]
                old_data, new_data = (stack.enter_context(NcuData(store)) for store in stores)
                try_fields["ncu_diff"], regressions = evidence.compare_ncu(old_data, new_data)
                side_effects += regressions
    return {**try_fields, "side_effects": tuple(side_effects)} if side_effects else try_fields


def _show_tries(experiment_log: Log, tries: list[Try], fmt: str, title: str, *, has_notes: bool = False) -> None:
    show(_make_answer(experiment_log, tries, title, has_notes=has_notes), fmt, Flags(), default_limit=0)


def _make_answer(experiment_log: Log, tries: list[Try], title: str, *, has_notes: bool) -> Answer:
    from nsys_insight.session.answer import build_answer, read_columns

    columns = read_columns("cli/tries")
    rows = [
        [("; ".join(entry.side_effects) or None) if name == "side_effects" else getattr(entry, name) or None
         if name == "metric" else getattr(entry, name) for name in (column.name for column in columns)]
        for entry in tries
    ]  # fmt: skip
    notes = [
        f"{kind}: {text}" if kind else text
        for entry in tries
        if has_notes
        for kind, texts in (
            ("check", entry.checks), ("side effect", entry.side_effects), ("trace", entry.trace_diff),
            ("ncu", entry.ncu_diff), ("next candidate", entry.candidates), ("", entry.notes),
        )
        for text in texts
    ]  # fmt: skip
    open_try = experiment_log.open_try
    summary = {
        "folder": str(experiment_log.folder),
        "goal": experiment_log.setup.goal,
        "open": open_try.number if open_try else None,
        "current": experiment_log.current_try.number,
        "tries": [asdict(entry) for entry in tries],
    }
    return build_answer(columns, rows, report="experiment", title=title, notes=tuple(notes), summary=summary)


EXPERIMENT = Command(
    "experiment",
    lambda: app,
    group="compare",
    place=80,
    help="Change one thing at a time: test, measure, decide by rule, and keep a log",
    examples=("experiment start --bench 'python3 decode.py'", "experiment try 'fused the norms' --because fusion"),
    subcommands={
        "start": (
            "experiment start --bench 'python3 decode.py'",
            "experiment start --bench ./decode --test 'pytest -q' --goal 'decode under 2 ms'",
        ),
        "try": (
            "experiment try 'fused the norms'",
            "experiment try 'fused the norms' --because fusion --trace after.nsys-rep",
        ),
        "keep": ("experiment keep", "experiment keep --folder tuning"),
        "revert": ("experiment revert", "experiment revert --folder tuning"),
        "log": ("experiment log", "experiment log --format markdown"),
    },
)
