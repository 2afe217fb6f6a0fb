"""The commands ``capture``, to profile and diagnose a program, and ``calibrate``: what nsys costs on this machine."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import PROGRAM_SETTINGS, Command
from nsys_insight.cli.run import open_trace
from nsys_insight.cli.trace_argument import remember_trace
from nsys_insight.errors import UsageError
from nsys_insight.ingest import calibration
from nsys_insight.ingest.capture import (
    GRANULARITIES,
    Capture,
    check_step_time_pattern,
    find_free_name,
    find_step_time_ns,
    is_python,
    run,
    run_without_nsys,
)
from nsys_insight.ingest.marks import measure_marks, period_ns
from nsys_insight.ingest.nsys import Nsys, find_newest_nsys
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import read_query
from nsys_insight.text.units import parse_seconds, time_text

# A range that contains other work than steps does not give their time.
MIN_STEPS_SHARE = 0.9


def capture(  # noqa: PLR0913 - flags
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM...", help="The program and its arguments.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The report; by default named after the program.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the report if it exists.")] = False,
    range_name: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="NAME",
            help=(
                "Capture the first NVTX range of this name, or with cudaProfilerApi the part between "
                "cudaProfilerStart() and cudaProfilerStop(). By default, the whole run."
            ),
        ),
    ] = None,
    delay: Annotated[str | None, typer.Option(help="Begin this long after the start, such as 20s.")] = None,
    duration: Annotated[str | None, typer.Option(help="End after this long; the program continues.")] = None,
    graphs: Annotated[
        str, typer.Option("--cuda-graph-trace", help="How to trace CUDA graphs: node (each kernel) or graph.")
    ] = "node",
    metrics: Annotated[
        int | None,
        typer.Option(
            "--gpu-metrics", metavar="HZ", help="Sample GPU metrics, such as 10000 a second.", min=10, max=200_000
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
    step_time_pattern: Annotated[
        str | None,
        typer.Option(
            "--step-time-from",
            metavar="REGEX",
            help=(
                "Run the program without nsys, too, and take the time of a step from what it prints: the last match "
                "of this regular expression, whose group is the time with its unit, such as 'step: ([0-9.]+ ms)'."
            ),
        ),
    ] = None,
    is_measured_without: Annotated[
        bool,
        typer.Option(
            "--also-without",
            help=(
                "Run the program once more, without nsys, and take the time of a step from the same marks: "
                "cudaProfilerStart() and cudaProfilerStop(), or NVTX ranges. Needs a C compiler."
            ),
        ),
    ] = False,
    more_nsys_flags: Annotated[
        str, typer.Option("--nsys-flags", metavar="FLAGS", help="More flags for nsys profile.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the nsys command without running it.")] = False,
    is_diagnosis_skipped: Annotated[
        bool, typer.Option("--no-diagnose", help="Stop when the report is written.")
    ] = False,
) -> None:
    """Profile a program with the nsys flags that the reports need, and say what bounds it.

    What the program prints, the nsys command and what it costs go to stderr, the diagnosis to stdout. With
    --step-time-from or --also-without, the savings are those of the run without nsys.
    """
    if is_measured_without and step_time_pattern:
        raise UsageError("--also-without and --step-time-from measure the same", "give one of them")
    _check_program(program, graphs)
    settings = Capture(
        graphs=graphs,
        metrics_hz=metrics,
        backtraces=backtraces,
        why_host=why_host,
        is_python=is_python(program),
        osrt=osrt,
        capture_range=range_name,
        delay_s=None if delay is None else parse_seconds(delay, flag="--delay"),
        duration_s=None if duration is None else parse_seconds(duration, flag="--duration"),
        extra_flags=tuple(shlex.split(more_nsys_flags)),
    )
    if step_time_pattern:
        check_step_time_pattern(step_time_pattern)
    report = _check_report_path(output, force=force) if output else find_free_name(program, Path())
    nsys = Nsys(Path("nsys"), "2025") if dry_run else find_newest_nsys(to_capture=True)
    command = shlex.join(settings.build_command(nsys, report, program))
    if dry_run:
        print(command)
        return
    # First without nsys: a program that does not print its time is not profiled in vain.
    steps = AUTO
    if step_time_pattern:
        print(f"$ {shlex.join(program)}", file=sys.stderr)
        steps = StepOptions(step_time_ns=find_step_time_ns(run_without_nsys(program), step_time_pattern))
    print(f"$ {command}", file=sys.stderr)
    for cost in (*settings.list_costs(), *(costs.sentence for costs in calibration.read_stored(nsys))):
        terminal.note(cost)
    code = run(settings, program, report)
    if code:
        terminal.note(f"the program ended with exit code {code}; {report} has what ran")
    remember_trace(report)
    if is_measured_without:
        steps = _measure_without_nsys(report, range_name, program, nsys)
    if is_diagnosis_skipped:
        print(report)
        if steps.step_time_ns:
            terminal.note(
                f"without nsys, a step takes {time_text(steps.step_time_ns)}: give it to reports as --step-time"
            )
        return
    from nsys_insight.diagnose.diagnosis import diagnose
    from nsys_insight.diagnose.text import write_text
    from nsys_insight.text.cells import color_severities

    with open_trace(report) as trace:
        diagnosis_text = write_text(diagnose(trace, steps), terminal.get_width())
        sys.stdout.write(color_severities(diagnosis_text) if terminal.can_color(is_allowed=True) else diagnosis_text)


def _check_program(program: list[str], graphs: str) -> None:
    """Check what to capture."""
    if graphs not in GRANULARITIES:
        raise UsageError(f"--cuda-graph-trace is {graphs!r}", f"choose one of: {', '.join(GRANULARITIES)}")
    if not shutil.which(program[0]):
        raise UsageError(f"there is no program {program[0]!r}", "nsys-insight capture -- python train.py")


def _check_report_path(output: Path, *, force: bool) -> Path:
    """Return the report to write, with its suffix."""
    path = output if output.suffix == ".nsys-rep" else output.with_name(f"{output.name}.nsys-rep")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a folder", f"make it first: mkdir -p {shlex.quote(str(path.parent))}")
    outputs.refuse_existing(path, force=force)
    return path


def _measure_without_nsys(report: Path, range_name: str | None, program: list[str], nsys: Nsys) -> StepOptions:
    """Run a captured program without nsys, and return the time of its steps as an option.

    Steps that are NVTX ranges are timed one by one. Else the range of the capture is divided by their number. If
    neither gives the time of a step, a note says why.

    Raises:
        ToolError: There is no C compiler, the program failed, or it made no such marks.
    """
    with open_trace(report) as trace:
        (captured,) = trace.rows(read_query("internal/cli/captured_steps"))
    if reason := _explain_unmeasurable(captured, range_name):
        terminal.note(f"the time of a step without nsys was not measured: {reason}")
        return AUTO
    print(f"$ {shlex.join(program)}", file=sys.stderr)
    intervals = measure_marks(program, str(captured.range_name or range_name), nsys.path.resolve().parent)
    # nsys captures the first range.
    time_ns = period_ns(intervals) if captured.range_name else intervals[0].duration_ns / captured.steps
    terminal.note(f"without nsys, a step takes {time_text(time_ns)}")
    return StepOptions(step_time_ns=max(round(time_ns), 1))


def _explain_unmeasurable(captured: Any, range_name: str | None) -> str | None:
    """Return why the marks do not give the time of a step; None if they do."""
    if not captured.steps:
        return "no steps were found"
    if captured.range_name and set(captured.range_name) & set("*?#"):
        return "the names of its NVTX ranges differ"
    if captured.has_several_ranges:
        return f"each of its steps has several NVTX ranges ({captured.range_name}); put one around them"
    if not captured.range_name and range_name is None:
        return "its steps are no NVTX ranges, and there is no --range around them"
    if not captured.range_name and captured.share < MIN_STEPS_SHARE:
        return f"steps are {captured.share:.0%} of the range, and the rest is other work"
    return None


def calibrate() -> None:
    """Measure what a launch, a memset and a copy take on this machine, without nsys and under it.

    Runs a small program twice, without nsys and under it: some seconds. It needs a GPU, Linux and a C compiler. The
    times are stored for this machine, and capture shows them. Estimates of diagnose do not use them: programs of one
    machine differ by more than machines do. So measure the program: capture --also-without.
    """
    result = calibration.measure(find_newest_nsys(to_capture=True))
    print(f"{'call':<8}{'without nsys':>14}{'under nsys':>14}")
    for name, without_ns in result.without_ns.items():
        print(f"{name:<8}{time_text(without_ns):>14}{time_text(result.under_nsys_ns[name]):>14}")
    terminal.note(f"stored in {calibration.store(result)}")


CAPTURE = Command(
    "capture",
    lambda: capture,
    group="first",
    place=30,
    in_help=True,
    help="Profile a program with nsys, and diagnose it",
    examples=("capture -- python3 train.py", "capture --delay 20s --duration 5s -- ./decode --tokens 128"),
    settings=PROGRAM_SETTINGS,
)

CALIBRATE = Command(
    "calibrate",
    lambda: calibrate,
    group="first",
    place=35,
    help="Measure what nsys costs on this machine",
    examples=("calibrate",),
)
