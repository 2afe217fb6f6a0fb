"""Profiling a program with the user's own nsys, and the flags that the reports need."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import ToolError, UsageError
from nsys_insight.ingest import nsys
from nsys_insight.ingest.waiting import heard

if TYPE_CHECKING:
    from collections.abc import Sequence

GRANULARITIES = ("node", "graph")
# Ranges of PyTorch and most others have names that are not registered, which nsys leaves alone unless told.
_ANY_NVTX_NAME = {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}

# Measured on an H200 (nsys 2025.3, PyTorch): a decoding step of 196 kernels takes 1.8 ms alone and 2.6 ms traced; as a
# CUDA graph 490 µs alone, 520 µs traced as a whole, 640 µs by nodes. Memory usage and GPU metrics made no difference
# there, OS calls 5 %, and with backtraces the first step takes 6.5 ms. What --why-host costs, on an H200 as well: a
# decoding step of a larger model took 3.4 to 4.2 ms alone, 3.8 to 6.6 traced, 4.1 to 8.6 with --why-host, 15.4 with
# backtraces of all calls and 17.7 with those of Python as well; a launch call of a C++ program 4.4 µs alone, 4.6
# traced, 6.2 with --why-host, 10.0 with backtraces of all calls. 60 of these steps make a report of 0.76 MB, with
# --why-host of 0.86 to 0.97 MB.
# Backtraces of shorter calls than this cost more than they tell: what waits, allocates or copies takes longer.
BACKTRACES_FROM_NS = 10_000
_COSTS = {
    "cuda": "tracing adds about 4 µs to each CUDA call: a launch-bound step appears up to a third slower than it is",
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
    "osrt": "tracing OS calls adds about 5 %, more where a program locks and reads a lot",
}


@dataclass(frozen=True)
class Capture:
    """What to capture.

    Attributes:
        graphs: Whether CUDA graphs are traced by node or as a whole graph, in nsys's words.
        metrics_hz: How often to sample GPU metrics; None for not at all.
        backtraces: Whether to record where in the program CUDA calls are made.
        why_host: Whether to record what keeps the GPU waiting: samples and switches of threads, OS calls, and where in
            the program the longer CUDA calls are made.
        is_python: Whether the program is Python, whose backtraces have lines then.
        osrt: Whether to trace operating system calls.
        within: What part of the run: None for all, "cudaProfilerApi", or the name of an NVTX range.
        delay_s: Seconds to wait before it begins.
        duration_s: Seconds until it ends; None for the end of the program.
        more: Flags for nsys beside these.
    """

    graphs: str = "node"
    metrics_hz: int | None = None
    backtraces: bool = False
    why_host: bool = False
    is_python: bool = False
    osrt: bool = False
    within: str | None = None
    delay_s: float | None = None
    duration_s: float | None = None
    more: tuple[str, ...] = field(default=())

    def flags(self, version: str = "2025") -> list[str]:
        """The flags of ``nsys profile`` of a version, without the output and the program."""
        traced = "cuda,nvtx,osrt" if self.osrt or self.why_host else "cuda,nvtx"
        flags = [f"--trace={traced}", "--cuda-memory-usage=true", f"--cuda-graph-trace={self.graphs}"]
        # CPU samples make big reports; backtraces need them, too.
        flags += ["--sample=process-tree" if self.backtraces or self.why_host else "--sample=none"]
        flags += ["--cpuctxsw=process-tree" if self.why_host else "--cpuctxsw=none"]
        if self.backtraces or self.why_host:
            flags.append("--cudabacktrace=all" if self.backtraces else f"--cudabacktrace=all:{BACKTRACES_FROM_NS}")
            flags += ["--python-backtrace=cuda"] if self.is_python and int(version.partition(".")[0]) >= 2023 else []
        if self.metrics_hz:
            devices = "--gpu-metrics-devices" if int(version.partition(".")[0]) >= 2025 else "--gpu-metrics-device"
            flags += [f"{devices}=all", f"--gpu-metrics-frequency={self.metrics_hz}"]
        if self.within == "cudaProfilerApi":
            flags += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
        elif self.within:
            flags += ["--capture-range=nvtx", f"--nvtx-capture={self.within}", "--capture-range-end=stop"]
        flags += [f"--delay={self.delay_s:g}"] if self.delay_s else []
        flags += [f"--duration={self.duration_s:g}", "--kill=none"] if self.duration_s else []
        return [*flags, *self.more]

    def costs(self) -> list[str]:
        """What must be known of the price of it, a sentence each."""
        asked = {
            "cuda": True,
            "node": self.graphs == "node",
            "metrics": bool(self.metrics_hz),
            "backtraces": self.backtraces,
            "why": self.why_host and not self.backtraces,
            "osrt": self.osrt and not self.why_host,
        }
        return [_COSTS[name] for name, is_asked in asked.items() if is_asked]

    @property
    def variables(self) -> dict[str, str]:
        """What nsys needs in its environment for it."""
        return _ANY_NVTX_NAME if self.within not in (None, "cudaProfilerApi") else {}

    def command(self, tool: nsys.Nsys, output: Path, program: Sequence[str]) -> list[str]:
        """The whole command, as it can be typed too."""
        variables = ["env", *(f"{name}={value}" for name, value in self.variables.items())] if self.variables else []
        flags = [*self.flags(tool.version), "--force-overwrite=true", "-o", str(output)]
        return [*variables, str(tool.path), "profile", *flags, *program]


def is_python(program: Sequence[str]) -> bool:
    """Whether a command runs Python, by its name."""
    name = Path(program[0]).name
    return name.startswith("python") or name in {"torchrun", "accelerate", "deepspeed", "vllm"} or name.endswith(".py")


def free_name(program: Sequence[str], folder: Path) -> Path:
    """A name for the report that is not taken: the program's, and a number."""
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
    """Profile a program into a report; return the program's exit code.

    The program keeps its standard input; what it and nsys print goes to stderr. Ctrl-C ends the program, and nsys then
    writes the report of what ran.

    Raises:
        ToolError: nsys is missing, or made no report.
    """
    import signal
    import subprocess

    command = capture.command(nsys.newest_nsys(to_capture=True), output, program)
    before = output.stat().st_mtime_ns if output.exists() else None
    # Ctrl-C is meant for the program, which the terminal tells too. A handler, for what is ignored stays so in a child.
    ours = signal.signal(signal.SIGINT, lambda *_: heard.set())
    try:
        code = subprocess.run(command, stdout=sys.stderr, check=False).returncode  # noqa: S603 - the user's own program
    finally:
        signal.signal(signal.SIGINT, ours)
    if not output.exists() or output.stat().st_mtime_ns == before:
        reason = f"nsys made no report of {shlex.join(program)} (exit code {code})"
        if capture.within:
            raise ToolError(
                reason, f"the range {capture.within} may never have begun: capture the whole run, without --range"
            )
        raise ToolError(reason, f"see the output of nsys above; try it by hand: {shlex.join(command)}")
    return code
