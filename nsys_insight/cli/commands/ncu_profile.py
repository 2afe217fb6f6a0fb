"""What runs ncu: `ncu plan` writes its command, `ncu analyze` also imports and reports what it measured."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.flags import FormatOption, checked_format
from nsys_insight.cli.run import meant_trace, open_trace, show
from nsys_insight.errors import InsightError, ToolError, UsageError
from nsys_insight.ingest.identify import REPORT_SUFFIXES, is_parquet_folder
from nsys_insight.ingest.ncu import store
from nsys_insight.render import HUMAN_FORMATS
from nsys_insight.text.kernel_names import readable
from nsys_insight.text.secrets import MASK

if TYPE_CHECKING:
    from nsys_insight.ncu.sections import Code

_SUMMARY_WIDTH = 100
_FILES = {"report": ".ncu-rep", "raw": ".csv", "analysis": "_analysis.md", "summary": "_summary.txt"}
# Classes that are named in the mix, and sentences of what stands out.
_CLASSES, _SENTENCES = 6, 2


def plan(  # noqa: PLR0913 - flags
    trace_and_program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRACE] [-- PROGRAM...]",
            help="The trace, and the program's command line if the trace does not have it or another one should run.",
            show_default=False,
        ),
    ] = None,
    *,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel", "-k", help="Kernels whose name contains this, instead of the hottest.", show_default=False
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            "--bound",
            help="Only kernels that classify-kernels calls compute, memory, latency, balanced or unknown.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, max=100, help="Number of the hottest kernels.")] = 3,
    sections: Annotated[
        str | None,
        typer.Option(
            "--set", help="ncu's section set: basic, detailed, full; by default chosen by the number of launches."
        ),
    ] = None,
    nvtx: Annotated[
        str | None,
        typer.Option(
            "--nvtx",
            help="Only launches in push/pop ranges of this name; by default in the steps that repeat. '' is no range.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--export", help="The report to write, without suffix.")] = None,
    fmt: FormatOption = "table",
    command_only: Annotated[bool, typer.Option("--command-only", help="Print only the command.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Run the command, with the program after --.")] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust-trace", help="Let --run run the program that the trace names; on a terminal only."),
    ] = False,
) -> None:
    """Write the ncu command that profiles the hottest kernels, each at a launch of the steady state."""
    from nsys_insight.cli.trace_argument import remember
    from nsys_insight.ingest.ncu import tool
    from nsys_insight.ncu import plan as plans

    checked_format(fmt)
    given, program = _trace_and_program(trace_and_program or [])
    path = meant_trace(given)
    opened = open_trace(path)
    remember(path)
    with opened:
        made = plans.make(
            opened, kernels=tuple(kernel or ()), bound=bound, top=top, sections=sections, nvtx=nvtx, report=name
        )
        command = made.command("ncu", program)
        if command_only:
            print(plans.shell(command))
        else:
            if fmt in HUMAN_FORMATS:
                print(f"{plans.shell(command)}\n", flush=True)
            show(replace(made.answer, params={"command": command, "set": made.sections}), fmt)
            for text in made.notes:
                terminal.note(text)
        if run:
            _refuse_strangers(program, made.app, trust=trust)
            tool.run(made.command(str(tool.newest_ncu()), program))


def _refuse_strangers(given: tuple[str, ...], recorded: tuple[str, ...], *, trust: bool) -> None:
    """Refuse to run what only the trace says, unless somebody at a terminal has said that they trust it.

    Raises:
        UsageError: No program is given, and the trace's own is not to be run, or unknown.
    """
    from nsys_insight.ncu.plan import shell

    if given:
        return
    if not recorded:
        raise UsageError(
            "the trace does not say how the program was started", "nsys-insight ncu plan --run TRACE -- PROGRAM"
        )
    if any(MASK in word for word in recorded):
        raise UsageError(
            f"{MASK} stands for a secret in the program's command line, which cannot be run as it is shown",
            f"replace it with the secret: nsys-insight ncu plan --run TRACE -- {shell(recorded)}",
        )
    if not trust or not (sys.stdin.isatty() and sys.stderr.isatty()):
        at = "" if not trust else "; --trust-trace works only on a terminal"
        raise UsageError(
            f"the program to run is named by the trace, and a trace may name any program{at}",
            f"check it, and pass it: nsys-insight ncu plan --run TRACE -- {shell(recorded)}",
        )


def _trace_and_program(words: list[str]) -> tuple[Path | None, tuple[str, ...]]:
    """Tell the trace from the program's command line: a trace has its suffix, or is a folder that nsys wrote."""
    if words and (Path(words[0]).suffix in (*REPORT_SUFFIXES, ".sqlite") or is_parquet_folder(Path(words[0]))):
        return Path(words[0]), tuple(words[1:])
    return None, tuple(words)


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


def code_of(file: Path) -> dict[str, Code]:
    """Read machine code: by the readable name of each kernel, its instructions by class and its hottest loop.

    That is the loop with most instructions executed where the file has counts, else the first innermost one.

    Raises:
        TraceError: There is none in the file.
        ToolError: It is a binary file, and no disassembler is here.
    """
    from nsys_insight.kernel_code import sass
    from nsys_insight.kernel_code.reading import Limits
    from nsys_insight.ncu.sections import Code

    loops: dict[str, list[dict[str, object]]] = {}
    for row in sass.answer(file, by="loop", limits=Limits()).dicts():
        loops.setdefault(readable(row["name"]), []).append(row)
    mixes: dict[str, Counter[str]] = {}
    for row in sass.answer(file, by="class", limits=Limits()).dicts():
        if row["part"] == "kernel":
            mixes.setdefault(readable(row["name"]), Counter())[row["class"]] += row["executed"] or row["instructions"]
    found = {}
    for name, rows in loops.items():
        inner = [row for row in rows if "loop" in str(row["part"]) and not str(row["part"]).startswith("waiting")]
        hot = max(inner, key=lambda row: float(str(row["executed"] or 0)), default=rows[0])
        total = sum(mixes[name].values()) or 1
        mix = ", ".join(f"{kind} {100 * count / total:.0f} %" for kind, count in mixes[name].most_common(_CLASSES))
        ratio = hot["compute_per_load_ratio"]
        found[name] = Code(
            mix,
            str(hot["part"]) if hot["part"] != "kernel" else "the code",
            None if ratio is None else float(str(ratio)),
            tuple(str(row["reading"]) for row in rows if row["reading"])[:_SENTENCES],
        )
    return found
