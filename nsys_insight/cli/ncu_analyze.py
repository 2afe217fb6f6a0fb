"""The command `nsys-insight ncu analyze`: plan, run, import and report in one step."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.ncu_code import code_of
from nsys_insight.cli.run import open_trace
from nsys_insight.errors import InsightError, ToolError
from nsys_insight.ingest.ncu import store

if TYPE_CHECKING:
    from nsys_insight.ncu.sections import Code

_SUMMARY_WIDTH = 100
_FILES = {"report": ".ncu-rep", "raw": ".csv", "analysis": "_analysis.md", "summary": "_summary.txt"}


def analyze(  # noqa: PLR0913 - flags
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM...", help="The program to profile, with its arguments.")
    ],
    *,
    name: Annotated[str, typer.Option("--export", help="Prefix of the names of the output files.")] = "analysis",
    kernel: Annotated[
        list[str] | None,
        typer.Option("--kernel", "-k", help="Kernels whose name contains this, instead of the hottest."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, max=100, help="Number of the hottest kernels.")] = 3,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="A trace of the program: it says which kernels are hot, and saves a run."),
    ] = None,
    collectives: Annotated[
        bool, typer.Option("--collectives", help="Profile collectives too: the whole program runs again for each pass.")
    ] = False,
    implementation: Annotated[
        str | None,
        typer.Option("--type", help=f"What the kernels are written in: {', '.join(store.IMPLEMENTATIONS)}."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that nsys-insight did not write.")] = False,
) -> None:
    """Profile the hottest kernels of a program with ncu; report what bounds them and what to change first.

    nsys-insight ncu analyze --export mine -- ./program 4096

    No trace is needed: ncu times every launch once, and the hottest are profiled in a second run. Writes NAME.ncu-rep,
    NAME.csv (its raw page), NAME_analysis.md (the report) and NAME_summary.txt, which is also printed.
    """
    from nsys_insight.ingest.ncu import tool
    from nsys_insight.ncu import report as reports
    from nsys_insight.ncu import report_formats as formats
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.ncu.plan import shell

    ncu = tool.newest_ncu()
    files = {kind: Path(f"{name}{end}") for kind, end in _FILES.items()}
    for file in files.values():
        outputs.check(file, [trace] if trace else [])
    asked = _Asked(tuple(program), name, tuple(kernel or ()), top, collectives)
    options = _planned(asked, trace) if trace else _surveyed(asked, ncu)
    command = [str(ncu), *options, *program]
    terminal.note(shell(command))
    tool.run(command)
    report = files["report"]
    if not report.is_file():
        raise ToolError(f"ncu wrote no {report}", "see its output above")
    with outputs.whole(files["raw"], [report], force=force) as made:
        made.write_text(tool.printed(ncu, report, "raw"), encoding="utf-8")
    with NcuData(store.cached([report], implementation)) as measured:
        built = reports.build(measured, name, reports.Context(code=_code(ncu, report)))
    with outputs.whole(files["analysis"], [report], force=force) as made, made.open("w", encoding="utf-8") as stream:
        formats.write_markdown(built, stream, len(built.kernels))
    with outputs.whole(files["summary"], [report], force=force) as made, made.open("w", encoding="utf-8") as stream:
        formats.write_summary(built, stream, _SUMMARY_WIDTH)
    formats.write_summary(built, sys.stdout, terminal.width())
    terminal.note(f"written: {', '.join(map(str, files.values()))}")


class _Asked(NamedTuple):
    """What is to be profiled, and into which report."""

    program: tuple[str, ...]
    name: str
    kernels: tuple[str, ...]
    top: int
    collectives: bool


def _surveyed(asked: _Asked, ncu: Path) -> list[str]:
    """Time every launch once, and return the options that profile the hottest kernels."""
    from nsys_insight.ingest.ncu import tool
    from nsys_insight.ncu import survey
    from nsys_insight.ncu.data import NcuData

    terminal.note(
        "collectives are profiled with --replay-mode application: the whole program runs again for each pass, and"
        " must do the same each time"
        if asked.collectives
        else "NCCL kernels and other collectives are left out: replayed alone, they wait for their peers forever"
    )
    terminal.note("first run: every launch is timed once")
    with tempfile.TemporaryDirectory() as folder:
        timed = Path(folder) / "survey.ncu-rep"
        options = survey.survey_options(str(timed.with_suffix("")), collectives=asked.collectives)
        tool.run([str(ncu), *options, *asked.program])
        data = store.write(store.read_all([timed]), Path(folder) / "survey.ncu.duckdb")
        with NcuData(data) as measured:
            choice = survey.choose(measured, asked.kernels, asked.top)
    terminal.note(f"second run: {choice.count} launches of {', '.join(choice.names)}")
    return survey.profile_options(choice, asked.name, collectives=asked.collectives)


def _planned(asked: _Asked, trace: Path) -> list[str]:
    """Return the options that profile what is hot in a trace."""
    from nsys_insight.ncu import plan as plans

    with open_trace(trace) as opened:
        planned = plans.make(opened, kernels=asked.kernels, top=asked.top, report=asked.name)
    for text in planned.notes:
        terminal.note(text)
    replay = ["--replay-mode", "application"] if asked.collectives else []
    return ["--import-source", "yes", *replay, *planned.options]


def _code(ncu: Path, report: Path) -> dict[str, Code]:
    """Machine code from the report's own source page; nothing where it has none."""
    from nsys_insight.ingest.ncu import tool

    for options in (("--print-source", "cuda,sass"), ()):
        try:
            with tempfile.TemporaryDirectory() as folder:
                page = Path(folder) / "source.csv"
                page.write_text(tool.printed(ncu, report, "source", *options), encoding="utf-8")
                return code_of(page)
        except InsightError:
            continue
    return {}
