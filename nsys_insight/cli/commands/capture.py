"""The command ``capture``: profile a program as the reports need it, and go on to the diagnosis."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import OF_PROGRAM, Command
from nsys_insight.cli.run import open_trace
from nsys_insight.cli.trace_argument import remember
from nsys_insight.errors import UsageError
from nsys_insight.ingest.capture import GRANULARITIES, Capture, free_name, is_python, run
from nsys_insight.ingest.nsys import Nsys, newest_nsys
from nsys_insight.packs.step_options import AUTO
from nsys_insight.text.units import parse_duration


def capture(  # noqa: PLR0913 - flags
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM...", help="The program and its arguments.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The report; by default named after the program.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the report if it exists.")] = False,
    within: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="NAME",
            help=(
                "Capture the first NVTX range of this name, or with cudaProfilerApi the part between "
                "cudaProfilerStart() and cudaProfilerStop(). By default, the whole run."
            ),
            show_default=False,
        ),
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="Begin this long after the start, such as 20s.", show_default=False)
    ] = None,
    duration: Annotated[
        str | None, typer.Option(help="End after this long; the program continues.", show_default=False)
    ] = None,
    graphs: Annotated[
        str, typer.Option("--cuda-graph-trace", help="How to trace CUDA graphs: node (each kernel) or graph.")
    ] = "node",
    metrics: Annotated[
        int | None,
        typer.Option(
            "--gpu-metrics",
            metavar="HZ",
            help="Sample GPU metrics, such as 10000 a second.",
            min=10,
            max=200_000,
            show_default=False,
        ),
    ] = None,
    backtraces: Annotated[bool, typer.Option("--backtraces", help="Record where CUDA calls come from.")] = False,
    why_host: Annotated[
        bool,
        typer.Option(
            "--why-host",
            help=(
                "Record what the CPU does while the GPU waits: samples, context switches, OS calls, and "
                "where CUDA calls of 10 µs and more come from."
            ),
        ),
    ] = False,
    osrt: Annotated[bool, typer.Option("--osrt", help="Trace operating system calls.")] = False,
    more: Annotated[
        str, typer.Option("--nsys-flags", metavar="FLAGS", help="More flags for nsys profile.", show_default=False)
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the nsys command without running it.")] = False,
    only: Annotated[bool, typer.Option("--no-diagnose", help="Stop when the report is written.")] = False,
) -> None:
    """Profile a program with the nsys flags that the reports need, and say what bounds it.

    What the program prints, the nsys command and what it costs go to stderr, the diagnosis to stdout.
    """
    if graphs not in GRANULARITIES:
        raise UsageError(f"--cuda-graph-trace is {graphs!r}", f"choose one of: {', '.join(GRANULARITIES)}")
    if not shutil.which(program[0]):
        raise UsageError(f"there is no program {program[0]!r}", "nsys-insight capture -- python train.py")
    wanted = Capture(
        graphs=graphs,
        metrics_hz=metrics,
        backtraces=backtraces,
        why_host=why_host,
        is_python=is_python(program),
        osrt=osrt,
        within=within,
        delay_s=_seconds(delay, "--delay"),
        duration_s=_seconds(duration, "--duration"),
        more=tuple(shlex.split(more)),
    )
    report = _report(output, force=force) if output else free_name(program, Path())
    nsys = Nsys(Path("nsys"), "2025") if dry_run else newest_nsys(to_capture=True)
    command = shlex.join(wanted.command(nsys, report, program))
    if dry_run:
        print(command)
        return
    print(f"$ {command}", file=sys.stderr)
    for cost in wanted.costs():
        terminal.note(cost)
    code = run(wanted, program, report)
    if code:
        terminal.note(f"the program ended with exit code {code}; {report} has what ran")
    remember(report)
    if only:
        print(report)
        return
    from nsys_insight.diagnose.diagnosis import diagnose
    from nsys_insight.diagnose.text import text
    from nsys_insight.text.severity import colored

    with open_trace(report) as trace:
        said = text(diagnose(trace, AUTO), terminal.width())
        sys.stdout.write(colored(said) if terminal.color(wanted=True) else said)


def _report(output: Path, *, force: bool) -> Path:
    """Return the file to write.

    Raises:
        UsageError: It is there already, or cannot be made.
    """
    path = output if output.suffix == ".nsys-rep" else output.with_name(f"{output.name}.nsys-rep")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a folder", f"make it first: mkdir -p {shlex.quote(str(path.parent))}")
    if path.exists() and not force:
        raise UsageError(f"{path} exists already", "overwrite it with --force, or choose another name with -o")
    return path


def _seconds(text: str | None, flag: str) -> float | None:
    """Read a duration; a plain number is seconds, as nsys takes it."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return parse_duration(text, flag=flag) / 1e9


CAPTURE = Command(
    "capture",
    lambda: capture,
    group="first",
    place=30,
    help="Profile a program with the nsys flags that the reports need, and diagnose it",
    examples=("capture -- python3 train.py", "capture --delay 20s --duration 5s -- ./decode --tokens 128"),
    settings=OF_PROGRAM,
)
