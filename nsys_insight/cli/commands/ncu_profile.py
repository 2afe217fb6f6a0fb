"""The commands that run ncu: `ncu plan` writes the ncu command, `ncu analyze` runs it, and imports and reports."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nsys_insight import cache_folder, outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.flags import FormatOption, check_format
from nsys_insight.cli.run import open_trace, resolve_trace, show
from nsys_insight.errors import InsightError, ToolError, UsageError
from nsys_insight.ingest.identify import REPORT_SUFFIXES, is_parquet_folder
from nsys_insight.ingest.ncu import store
from nsys_insight.render import HUMAN_FORMATS
from nsys_insight.text.kernel_names import make_readable
from nsys_insight.text.secrets import MASK

if TYPE_CHECKING:
    from nsys_insight.ncu.sections import CodeSummary

_SUMMARY_WIDTH = 100
_FILE_SUFFIXES = {"report": ".ncu-rep", "raw": ".csv", "analysis": "_analysis.md", "summary": "_summary.txt"}
# Maximum number of classes in the instruction mix, and of sentences about what stands out.
_MAX_CLASSES, _MAX_SENTENCES = 6, 2


def plan(  # noqa: PLR0913 - flags
    trace_and_program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRACE] [-- PROGRAM...]",
            help="The trace, and the program's command line if the trace does not have it or another one should run.",
        ),
    ] = None,
    *,
    kernel: Annotated[
        list[str] | None,
        typer.Option("--kernel", "-k", help="Kernels whose name contains this, instead of the hottest."),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            "--bound", help="Only kernels that classify-kernels calls compute, memory, latency, balanced or unknown."
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
        bool, typer.Option("--trust-trace", help="Let --run run the program that the trace names; on a terminal only.")
    ] = False,
) -> None:
    """Write the ncu command that profiles the hottest kernels, each at a launch of the steady state."""
    from nsys_insight.cli.trace_argument import remember_trace
    from nsys_insight.ingest.ncu import tool
    from nsys_insight.ncu import plan as plans

    check_format(fmt)
    trace_path, program = _split_trace_and_program(trace_and_program or [])
    path = resolve_trace(trace_path)
    opened_trace = open_trace(path)
    remember_trace(path)
    with opened_trace:
        ncu_plan = plans.make(
            opened_trace, kernels=tuple(kernel or ()), bound=bound, top=top, sections=sections, nvtx=nvtx, report=name
        )
        command = ncu_plan.build_command("ncu", program)
        if command_only:
            print(plans.quote_command(command))
        else:
            if fmt in HUMAN_FORMATS:
                print(f"{plans.quote_command(command)}\n", flush=True)
            show(replace(ncu_plan.answer, params={"command": command, "set": ncu_plan.sections}), fmt)
            for text in ncu_plan.notes:
                terminal.note(text)
        if run:
            _refuse_recorded_program(program, ncu_plan.app, trust=trust)
            tool.run(ncu_plan.build_command(str(tool.find_newest_ncu()), program))


def _refuse_recorded_program(given_program: tuple[str, ...], recorded_program: tuple[str, ...], *, trust: bool) -> None:
    """Refuse to run a program that only the trace names, unless a user at a terminal trusts the trace."""
    from nsys_insight.ncu.plan import quote_command

    if given_program:
        return
    if not recorded_program:
        raise UsageError(
            "the trace does not say how the program was started", "nsys-insight ncu plan --run TRACE -- PROGRAM"
        )
    if any(MASK in word for word in recorded_program):
        raise UsageError(
            f"{MASK} stands for a secret in the program's command line, which cannot be run as it is shown",
            f"replace it with the secret: nsys-insight ncu plan --run TRACE -- {quote_command(recorded_program)}",
        )
    if not trust or not (sys.stdin.isatty() and sys.stderr.isatty()):
        restriction = "" if not trust else "; --trust-trace works only on a terminal"
        raise UsageError(
            f"the program to run is named by the trace, and a trace may name any program{restriction}",
            f"check it, and pass it: nsys-insight ncu plan --run TRACE -- {quote_command(recorded_program)}",
        )


def _split_trace_and_program(words: list[str]) -> tuple[Path | None, tuple[str, ...]]:
    """Split the arguments into trace and program. A trace has a known suffix, or is a folder that nsys wrote."""
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
        typer.Option("--trace", help="A trace of the program, to choose the hottest kernels without another run."),
    ] = None,
    collectives: Annotated[
        bool, typer.Option("--collectives", help="Profile collectives too: the whole program runs again for each pass.")
    ] = False,
    implementation: Annotated[
        str | None, typer.Option("--type", help=f"What the kernels are written in: {', '.join(store.IMPLEMENTATIONS)}.")
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
    from nsys_insight.ncu.plan import quote_command

    ncu = tool.find_newest_ncu()
    files = {kind: Path(f"{name}{end}") for kind, end in _FILE_SUFFIXES.items()}
    for file in files.values():
        outputs.check_target(file, [trace] if trace else [])
        outputs.refuse_foreign(file, force=force)
    request = _Request(tuple(program), name, tuple(kernel or ()), top, collectives)
    options = _plan_from_trace(request, trace) if trace else _survey_launches(request, ncu)
    command = [str(ncu), *options, *program]
    terminal.note(quote_command(command))
    tool.run(command)
    report = files["report"]
    if not report.is_file():
        raise ToolError(f"ncu wrote no {report}", "see its output above")
    outputs.remember(report.resolve())
    outputs.write_output(files["raw"], tool.print_page(ncu, report, "raw"), [report], force=force)
    with NcuData(store.make_cached_store([report], implementation)) as ncu_data:
        kernel_report = reports.build(ncu_data, name, reports.Context(code=_read_report_code(ncu, report)))
    with outputs.open_text(files["analysis"], [report], force=force) as stream:
        formats.write_markdown(kernel_report, stream, len(kernel_report.kernels))
    with outputs.open_text(files["summary"], [report], force=force) as stream:
        formats.write_summary(kernel_report, stream, _SUMMARY_WIDTH)
    formats.write_summary(kernel_report, sys.stdout, terminal.get_width())
    terminal.note(f"written: {', '.join(map(str, files.values()))}")


class _Request(NamedTuple):
    """What to profile, and the name of the report."""

    program: tuple[str, ...]
    name: str
    kernels: tuple[str, ...]
    top: int
    collectives: bool


def _survey_launches(request: _Request, ncu: Path) -> list[str]:
    """Time every launch once, and return the options that profile the hottest kernels."""
    from nsys_insight.ingest.ncu import tool
    from nsys_insight.ncu import survey
    from nsys_insight.ncu.data import NcuData

    terminal.note(
        "collectives are profiled with --replay-mode application: the whole program runs again for each pass, and"
        " must do the same each time"
        if request.collectives
        else "NCCL kernels and other collectives are left out: replayed alone, they wait for their peers forever"
    )
    terminal.note("first run: every launch is timed once")
    with cache_folder.use_temporary_folder() as folder:
        survey_report = folder.claim("survey.ncu-rep")
        options = survey.build_survey_options(str(survey_report.with_suffix("")), collectives=request.collectives)
        tool.run([str(ncu), *options, *request.program])
        data = store.write(store.read_all([survey_report]), folder.claim("survey.ncu.duckdb"))
        with NcuData(data) as ncu_data:
            choice = survey.choose_launches(ncu_data, request.kernels, request.top)
    terminal.note(f"second run: {choice.count} launches of {', '.join(choice.names)}")
    return survey.build_profile_options(choice, request.name, collectives=request.collectives)


def _plan_from_trace(request: _Request, trace: Path) -> list[str]:
    """Return the options that profile the hottest kernels of a trace."""
    from nsys_insight.ncu import plan as plans

    with open_trace(trace) as opened_trace:
        ncu_plan = plans.make(opened_trace, kernels=request.kernels, top=request.top, report=request.name)
    for text in ncu_plan.notes:
        terminal.note(text)
    replay_options = ["--replay-mode", "application"] if request.collectives else []
    return ["--import-source", "yes", *replay_options, *ncu_plan.options]


def _read_report_code(ncu: Path, report: Path) -> dict[str, CodeSummary]:
    """Read machine code from the report's source page; empty if the report has none."""
    from nsys_insight.ingest.ncu import tool

    for options in (("--print-source", "cuda,sass"), ()):
        try:
            with cache_folder.use_temporary_folder() as folder:
                page = folder.claim("source.csv")
                page.write_text(tool.print_page(ncu, report, "source", *options), encoding="utf-8")
                return read_code(page)
        except InsightError:
            continue
    return {}


def read_code(file: Path) -> dict[str, CodeSummary]:
    """Summarize machine code by readable kernel name: instructions by class, and the hottest loop.

    With counts in the file, the hottest loop is the loop with most executed instructions. Otherwise it is the first
    innermost loop.

    Raises:
        TraceError: The file has no machine code.
        ToolError: The file is binary, and there is no disassembler.
    """
    from nsys_insight.kernel_code import sass
    from nsys_insight.ncu.sections import CodeSummary

    loops: dict[str, list[dict[str, object]]] = {}
    for row in sass.answer(file, grouping="loop").dicts():
        loops.setdefault(make_readable(row["name"]), []).append(row)
    mixes: dict[str, Counter[str]] = {}
    for row in sass.answer(file, grouping="class").dicts():
        if row["part"] == "kernel":
            mixes.setdefault(make_readable(row["name"]), Counter())[row["class"]] += (
                row["executed"] or row["instructions"]
            )
    code_by_kernel = {}
    for name, rows in loops.items():
        loop_rows = [row for row in rows if "loop" in str(row["part"]) and not str(row["part"]).startswith("waiting")]
        hottest_loop = max(loop_rows, key=lambda row: float(str(row["executed"] or 0)), default=rows[0])
        total = sum(mixes[name].values()) or 1
        mix = ", ".join(f"{kind} {100 * count / total:.0f}%" for kind, count in mixes[name].most_common(_MAX_CLASSES))
        compute_per_load = hottest_loop["compute_per_load_ratio"]
        code_by_kernel[name] = CodeSummary(
            mix,
            str(hottest_loop["part"]) if hottest_loop["part"] != "kernel" else "the code",
            None if compute_per_load is None else float(str(compute_per_load)),
            tuple(str(row["reading"]) for row in rows if row["reading"])[:_MAX_SENTENCES],
        )
    return code_by_kernel
