"""The commands `nsys-insight experiment …`: the loop, for people and for agents."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.commands.bench import (
    AtolOption,
    BudgetOption,
    HigherOption,
    LeastOption,
    LowerOption,
    MetricOption,
    MostOption,
    OutputsOption,
    ParamOption,
    PrecisionOption,
    ResultsOption,
    RtolOption,
    SanitizeOption,
    TestOption,
    TimeoutOption,
    WarmupOption,
    plan_of,
)  # fmt: skip
from nsys_insight.cli.flags import Flags, checked_format
from nsys_insight.cli.run import meant_trace, open_trace, show
from nsys_insight.errors import Exit
from nsys_insight.render import FORMATS

if TYPE_CHECKING:
    from nsys_insight.bench.measure import Plan
    from nsys_insight.experiment.log import Log, Try
    from nsys_insight.session.answer import Answer, Column

app = typer.Typer(
    help=(
        "The optimization loop: a baseline, one change at a time, tests, a measurement, a decision by rule, and a log."
    ),
    no_args_is_help=True,
)
FolderOption = Annotated[Path, typer.Option("--folder", help="Where the experiment is kept.")]
FormatOption = Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")]
TraceOption = Annotated[
    Path | None,
    typer.Option("--trace", help="A trace of this state, for evidence and for what changed.", show_default=False),
]
NcuOption = Annotated[
    list[Path] | None, typer.Option("--ncu", help="What ncu measured of this state.", show_default=False)
]
FOLDER = Path("experiment")
_MEANINGS = {
    "number": "Number of the try; 0 is the baseline",
    "change": "The one change",
    "status": "open (neither kept nor reverted yet), kept, reverted",
    "decision": (
        "By rule: accept (better by more than 3 %, and tests passed), unchecked (correctness was "
        "not checked), small, revert (worse, or broken), indistinguishable, refused (too much scatter), "
        "unknown; baseline"
    ),
    "metric": "The metric that decides",
    "before": "Its center before the change",
    "after": "Its center after the change",
    "change_pct": "The change as a percentage of before",
    "low_pct": "Lower end of the 95 % confidence interval of change_pct",
    "high_pct": "Where it ends",
    "tests": "passed, failed, or not checked",
    "side_effects": "What got worse other than the metric that decides",
}


@app.command()
def start(  # noqa: PLR0913 - flags
    command: Annotated[str, typer.Option("--bench", metavar="CMD", help="The benchmark.")],
    *,
    goal: Annotated[str, typer.Option("--goal", help="What to improve.")] = "Make it faster",
    folder: FolderOption = FOLDER,
    trace: TraceOption = None,
    ncu: NcuOption = None,
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
    fmt: FormatOption = "table",
) -> None:
    """Run the checks, measure the baseline, and start the log. The checks must pass."""
    from nsys_insight.experiment import steps
    from nsys_insight.experiment.log import Setup

    checked_format(fmt)
    how: dict[str, Any] = {
        "metric": metric, "higher": higher, "lower": lower, "results": str(results) if results else None,
        "param": param, "warmup": warmup, "least": least, "most": most, "budget": budget, "precision": precision,
        "timeout": timeout,
    }  # fmt: skip
    kept = {name: value for name, value in how.items() if value is not None}
    output, reference = map(str, compare_output or ("", ""))
    setup = Setup(goal, command, "", test or "", sanitize, output, reference, rtol, atol, kept)
    found = steps.start(folder, setup, _plan(kept), _seen(None, trace, ncu))
    _show(found, [found.tries[0]], fmt, found.tries[0].sentence, told=True)


@app.command("try")
def try_(  # noqa: PLR0913 - flags
    change: Annotated[str, typer.Argument(metavar="CHANGE", help="The one change, in words.")],
    *,
    because: Annotated[str, typer.Option("--because", help="Why it should help.", show_default=False)] = "",
    command: Annotated[
        str,
        typer.Option(
            "--bench", metavar="CMD", show_default=False,
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
    from nsys_insight.experiment import log, steps

    checked_format(fmt)
    found = log.read(folder)
    plan = _plan(found.setup.how)
    seen = {} if found.open else _seen(found.current, trace, ncu)
    found = steps.attempt(found, change, plan, seen, command=command, because=because)
    last = found.tries[-1]
    _show(found, [last], fmt, last.sentence, told=True)
    if last.decision == "revert":
        raise typer.Exit(Exit.FAILED)


@app.command()
def keep(folder: FolderOption = FOLDER, fmt: FormatOption = "table") -> None:
    """Keep the open change: the next one is compared with it."""
    _settle(folder, "kept", fmt)


@app.command()
def revert(folder: FolderOption = FOLDER, fmt: FormatOption = "table") -> None:
    """Record that the open change is reverted. Your files are not touched: revert the change in them yourself."""
    _settle(folder, "reverted", fmt)


@app.command()
def log(folder: FolderOption = FOLDER, fmt: FormatOption = "table") -> None:
    """Show all tries as a table and a plot; --format markdown writes the whole log."""
    from nsys_insight.experiment import log as logs

    checked_format(fmt)
    found = logs.read(folder)
    if fmt == "markdown":
        sys.stdout.write(logs.log_page(found))
        return
    _show(found, list(found.tries), fmt, found.setup.goal)
    if fmt == "table":
        sys.stdout.write("".join(f"{line}\n" for line in ["", *logs.plot_tries(found)]))


def _settle(folder: Path, status: str, fmt: str) -> None:
    from nsys_insight.experiment import log as logs
    from nsys_insight.experiment import steps

    checked_format(fmt)
    before = logs.read(folder)
    found = steps.settle(before, status)
    settled = next(one for one in found.tries if before.open and one.number == before.open.number)
    if status == "kept" and settled.decision not in ("accept", "small"):
        terminal.note(f"the rule said {settled.decision}, but the change is kept")
    if status == "reverted" and settled.command == found.current.command:
        terminal.note("revert the change in your files, too: they were not modified")
    _show(found, [settled], fmt, f"{settled.number}. {settled.change}: {status}")


def _plan(how: dict[str, Any]) -> Plan:
    results, lists = (
        how.get("results"),
        {name: list(how.get(name) or ()) for name in ("metric", "higher", "lower", "param")},
    )
    return plan_of(
        lists["metric"], lists["higher"], lists["lower"], Path(results) if results else None, lists["param"],
        how["warmup"], how["least"], how["most"], how["budget"], how["precision"], how.get("timeout"),
    )  # fmt: skip


def _seen(before: Try | None, trace: Path | None, ncu: list[Path] | None) -> dict[str, object]:
    """What the trace and ncu say of this state, and of the change to it; as fields of a try."""
    from nsys_insight.experiment import evidence

    seen: dict[str, Any] = {}
    effects: list[str] = []
    with ExitStack() as opened:
        if trace:
            session = opened.enter_context(open_trace(meant_trace(trace)))
            found, candidates = evidence.of_trace(session)
            seen |= {"trace": str(trace), "evidence": found, "candidates": candidates}
            if before and before.trace:
                old = opened.enter_context(open_trace(meant_trace(Path(before.trace))))
                seen["trace_diff"], worse = evidence.of_traces(old, session)
                effects += worse
        if ncu:
            from nsys_insight.cli.commands.ncu import store_of
            from nsys_insight.ncu.data import NcuData

            seen["ncu"] = "\n".join(map(str, ncu))
            if before and before.ncu:
                stores = [store_of(files, None) for files in ([Path(name) for name in before.ncu.split("\n")], ncu)]
                had, has = (opened.enter_context(NcuData(store)) for store in stores)
                seen["ncu_diff"], worse = evidence.of_ncu(had, has)
                effects += worse
    return {**seen, "side_effects": tuple(effects)} if effects else seen


def _show(found: Log, tries: list[Try], fmt: str, title: str, *, told: bool = False) -> None:
    show(_answer(found, tries, title, told=told), fmt, Flags(), default_limit=0)


def columns() -> list[Column]:
    """The columns of tries as an answer."""
    from nsys_insight.session.answer import Column

    kinds = {"number": "BIGINT", **dict.fromkeys(("before", "after", "change_pct", "low_pct", "high_pct"), "DOUBLE")}
    details = {"low_pct", "high_pct", "side_effects"}
    return [Column(name, kinds.get(name, "VARCHAR"), text, name in details) for name, text in _MEANINGS.items()]


def _answer(found: Log, tries: list[Try], title: str, *, told: bool) -> Answer:
    from dataclasses import asdict

    from nsys_insight.session.answer import of_rows

    rows = [
        [("; ".join(one.side_effects) or None) if name == "side_effects" else getattr(one, name) or None
         if name == "metric" else getattr(one, name) for name in _MEANINGS]
        for one in tries
    ]  # fmt: skip
    notes = [
        f"{kind}: {text}" if kind else text
        for one in tries
        if told
        for kind, texts in (
            ("check", one.checks), ("side effect", one.side_effects), ("trace", one.trace_diff), ("ncu", one.ncu_diff),
            ("next candidate", one.candidates), ("", one.notes),
        )
        for text in texts
    ]  # fmt: skip
    open_ = found.open
    summary = {
        "folder": str(found.folder),
        "goal": found.setup.goal,
        "open": open_.number if open_ else None,
        "current": found.current.number,
        "tries": [asdict(one) for one in tries],
    }
    return of_rows(columns(), rows, report="experiment", title=title, notes=tuple(notes), summary=summary)


EXPERIMENT = Command(
    "experiment",
    lambda: app,
    group="compare",
    place=80,
    help="Change one thing at a time: test, measure, decide by rule, and keep a log",
    examples=("experiment start --bench 'python3 decode.py'", "experiment try 'fused the norms' --because fusion"),
    inner={
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
