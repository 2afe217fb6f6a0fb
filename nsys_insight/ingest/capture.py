"""Profile a program with the user's own nsys, with the flags that the reports need."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import ToolError, UsageError
from nsys_insight.ingest import nsys
from nsys_insight.ingest.waiting import signal_received
from nsys_insight.programs import run_visibly
from nsys_insight.text.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GRANULARITIES = ("node", "graph")
# Ranges of PyTorch and most other programs have unregistered names, which nsys ignores by default.
_ANY_NVTX_NAME = {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}

# Measured on an H200 (nsys 2025.3, PyTorch): a decoding step of 196 kernels takes 1.8 ms untraced and 2.6 ms traced. As
# a CUDA graph, it takes 490 µs untraced, 520 µs traced as one graph, and 640 µs traced by nodes. Memory usage and GPU
# metrics make no difference there, OS calls cost 5%, and with backtraces the first step takes 6.5 ms. Cost of
# --why-host, on an H200 as well: a decoding step of a larger model takes 3.4 to 4.2 ms untraced, 3.8 to 6.6 traced, 4.1
# to 8.6 with --why-host, 15.4 with backtraces of all calls, and 17.7 with those of Python too. A launch call of a C++
# program takes 4.4 µs untraced, 4.6 traced, 6.2 with --why-host, and 10.0 with backtraces of all calls. 60 of these
# steps make a report of 0.76 MB, and of 0.86 to 0.97 MB with --why-host. Calls below this duration get no backtrace,
# because it costs more than it shows: calls that wait, allocate or copy take longer.
MIN_BACKTRACE_NS = 10_000
_COSTS = {
    "cuda": "nsys slows the host: a step that the host bounds takes 1.0 to 2.6 times as long as without it, and one"
    " that the GPU bounds takes as long; diagnose estimates it, and --also-without or"
    " --step-time-from measures it",
    "node": "tracing the kernels of CUDA graphs slows a graph of small kernels by about a quarter; "
    "--cuda-graph-trace graph costs less, and hides the kernels",
    "metrics": "sampling GPU metrics needs permission to read performance counters, and disk space",
    "backtraces": (
        "backtraces make a launch-bound program three times slower: they show where calls come "
        "from, not how long things take"
    ),
    "why": "--why-host takes backtraces only of CUDA calls of 10 µs and more, samples of the CPU every millisecond"
    " or two, context switches, and OS calls: on an H200 a launch call took 6.2 µs instead of 4.6 (10 with a"
    " backtrace of each), and the report grew by about a fifth",
    "osrt": "tracing OS calls adds about 5%, more where a program locks and reads a lot",
}


@dataclass(frozen=True)
class Capture:
    """What to capture.

    Attributes:
        graphs: How nsys traces CUDA graphs: by "node", or each one as one "graph".
        metrics_hz: The sampling rate of GPU metrics; None for no sampling.
        backtraces: Whether to record where in the program CUDA calls are made.
        why_host: Whether to record what keeps the GPU waiting: samples and switches of threads, OS calls, and where
            in the program the longer CUDA calls are made.
        is_python: Whether the program is Python; its backtraces then have lines.
        osrt: Whether to trace operating system calls.
        capture_range: The part of the run to capture: None for all, "cudaProfilerApi", or the name of an NVTX
            range.
        delay_s: Seconds to wait before the capture starts.
        duration_s: Seconds until the capture ends; None for the end of the program.
        extra_flags: More flags for nsys.
    """

    graphs: str = "node"
    metrics_hz: int | None = None
    backtraces: bool = False
    why_host: bool = False
    is_python: bool = False
    osrt: bool = False
    capture_range: str | None = None
    delay_s: float | None = None
    duration_s: float | None = None
    extra_flags: tuple[str, ...] = field(default=())

    def list_flags(self, version: str = "2025") -> list[str]:
        """List the flags of ``nsys profile`` of a version, without the output and the program."""
        trace_kinds = "cuda,nvtx,osrt" if self.osrt or self.why_host else "cuda,nvtx"
        flags = [f"--trace={trace_kinds}", "--cuda-memory-usage=true", f"--cuda-graph-trace={self.graphs}"]
        # CPU samples make big reports, but backtraces need them.
        flags += ["--sample=process-tree" if self.backtraces or self.why_host else "--sample=none"]
        flags += ["--cpuctxsw=process-tree" if self.why_host else "--cpuctxsw=none"]
        if self.backtraces or self.why_host:
            flags.append("--cudabacktrace=all" if self.backtraces else f"--cudabacktrace=all:{MIN_BACKTRACE_NS}")
            flags += ["--python-backtrace=cuda"] if self.is_python and int(version.partition(".")[0]) >= 2023 else []
        if self.metrics_hz:
            devices = "--gpu-metrics-devices" if int(version.partition(".")[0]) >= 2025 else "--gpu-metrics-device"
            flags += [f"{devices}=all", f"--gpu-metrics-frequency={self.metrics_hz}"]
        if self.capture_range == "cudaProfilerApi":
            flags += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
        elif self.capture_range:
            flags += ["--capture-range=nvtx", f"--nvtx-capture={self.capture_range}", "--capture-range-end=stop"]
        flags += [f"--delay={self.delay_s:g}"] if self.delay_s else []
        flags += [f"--duration={self.duration_s:g}", "--kill=none"] if self.duration_s else []
        return [*flags, *self.extra_flags]

    def list_costs(self) -> list[str]:
        """List what the capture costs, one sentence per item."""
        relevance = {
            "cuda": True,
            "node": self.graphs == "node",
            "metrics": bool(self.metrics_hz),
            "backtraces": self.backtraces,
            "why": self.why_host and not self.backtraces,
            "osrt": self.osrt and not self.why_host,
        }
        return [_COSTS[name] for name, is_relevant in relevance.items() if is_relevant]

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that nsys needs for it."""
        return _ANY_NVTX_NAME if self.capture_range not in (None, "cudaProfilerApi") else {}

    def build_command(self, tool: nsys.Nsys, output: Path, program: Sequence[str]) -> list[str]:
        """Return the full command, which can also be typed in a shell."""
        variables = ["env", *(f"{name}={value}" for name, value in self.variables.items())] if self.variables else []
        flags = [*self.list_flags(tool.version), "--force-overwrite=true", "-o", str(output)]
        return [*variables, str(tool.path), "profile", *flags, *program]


def is_python(program: Sequence[str]) -> bool:
    """Return whether a command runs Python, judged by its name."""
    name = Path(program[0]).name
    return name.startswith("python") or name in {"torchrun", "accelerate", "deepspeed", "vllm"} or name.endswith(".py")


_STEP_TIME_EXAMPLE = "as in --step-time-from 'step: ([0-9.]+ ms)'"


def check_step_time_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the regular expression that finds the time of a step in what a program prints.

    Raises:
        UsageError: The expression is wrong, or has fewer or more groups than one.
    """
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise UsageError(
            f"--step-time-from {pattern!r} is no regular expression: {error}", "quote it for the shell"
        ) from None
    if compiled.groups != 1:
        raise UsageError(f"--step-time-from {pattern!r} has {compiled.groups} groups, not 1", _STEP_TIME_EXAMPLE)
    return compiled


def find_step_time_ns(output: str, pattern: str) -> int:
    """Return the time of a step that a program printed, in ns: the group of the last match of a regular expression.

    Raises:
        UsageError: The expression is wrong or does not match, or the group is no time with a unit.
    """
    times = check_step_time_pattern(pattern).findall(output)
    if not times:
        raise UsageError(
            f"--step-time-from {pattern!r} matches nothing that the program printed without nsys", _STEP_TIME_EXAMPLE
        )
    if not times[-1].strip().endswith("s"):
        raise UsageError(
            f"--step-time-from finds {times[-1]!r}, which has no unit",
            f"put ns, us, ms or s into the group, {_STEP_TIME_EXAMPLE}",
        )
    return parse_duration(times[-1].strip(), flag="--step-time-from")


def run_without_nsys(program: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Run a program without nsys, with more environment variables. Return what it printed, which also goes to stderr.

    Raises:
        ToolError: The program failed.
    """
    code, output = run_visibly(program, variables)
    if code:
        raise ToolError(
            f"without nsys, the program ended with exit code {code}", f"try it by hand: {shlex.join(program)}"
        )
    return output


def find_free_name(program: Sequence[str], folder: Path) -> Path:
    """Return an unused name for the report: the program's, with a number if needed."""
    words = [word for word in program if not word.startswith("-")]
    stem = Path(words[0]).stem
    if stem.startswith("python") or stem in {"bash", "sh", "mpirun", "torchrun"}:
        scripts = [word for word in words[1:] if Path(word).is_file()]
        stem = Path(scripts[0]).stem if scripts else stem
    for number in range(1, 10_000):
        path = folder / (f"{stem}.nsys-rep" if number == 1 else f"{stem}-{number}.nsys-rep")
        if not path.exists() and not path.with_suffix(".sqlite").exists():
            return path
    raise UsageError(f"{folder} is full of reports of {stem}", "name the report with -o")


def run(capture: Capture, program: Sequence[str], output: Path) -> int:
    """Profile a program and write a report; return the program's exit code.

    The program keeps its standard input. What it and nsys print goes to stderr. Ctrl-C ends the program, and nsys then
    writes the report of what ran.

    Raises:
        ToolError: nsys is missing, or wrote no report.
    """
    import subprocess

    command = capture.build_command(nsys.find_newest_nsys(to_capture=True), output, program)
    modified_before_ns = output.stat().st_mtime_ns if output.exists() else None
    # Ctrl-C is for the program, which receives the signal from the terminal as well. A handler is needed: a signal that
    # is ignored here would be ignored in the child, too.
    previous_handler = signal.signal(signal.SIGINT, lambda *_: signal_received.set())
    try:
        code = subprocess.run(command, stdout=sys.stderr, check=False).returncode  # noqa: S603 - the user's own program
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    if not output.exists() or output.stat().st_mtime_ns == modified_before_ns:
        reason = f"nsys made no report of {shlex.join(program)} (exit code {code})"
        if capture.capture_range:
            raise ToolError(
                reason,
                f"the range {capture.capture_range} may never have begun: capture the whole run, without --range",
            )
        raise ToolError(reason, f"see the output of nsys above; try it by hand: {shlex.join(command)}")
    return code
