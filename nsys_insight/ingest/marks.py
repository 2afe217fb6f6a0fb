"""Run a program without nsys and time its marks: cudaProfilerStart and cudaProfilerStop, or NVTX ranges of one name."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from nsys_insight import cache_folder
from nsys_insight.errors import ToolError
from nsys_insight.ingest.capture import run_without_nsys
from nsys_insight.programs import compile_c

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROFILER_API = "cudaProfilerApi"
_SOURCE = Path(__file__).with_name("marks.c")
_OWN_OUTPUT_HINT = "let the program print its time: --step-time-from 'step: ([0-9.]+ ms)'"
# Where CUPTI is, in addition to the loader's path.
_CUPTI_FOLDERS = ("/usr/local/cuda/extras/CUPTI/lib64", "/opt/nvidia/nsight-systems/*/target-linux-*")


@dataclass(frozen=True)
class Interval:
    """A time between two marks, in ns of one clock."""

    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """Return the time between the marks."""
        return self.end_ns - self.start_ns


def measure_marks(program: Sequence[str], range_name: str, nsys_folder: Path | None = None) -> list[Interval]:
    """Run a program without nsys and return its marked intervals in the order of time.

    What the program prints goes to stderr.

    Args:
        program: The program and its arguments.
        range_name: Name of NVTX ranges that are pushed and popped, or "cudaProfilerApi".
        nsys_folder: Folder of nsys, which contains a CUPTI.

    Raises:
        ToolError: There is no C compiler, the program failed, or it made no such marks.
    """
    with cache_folder.use_temporary_folder() as folder:
        library, output = folder.claim("marks.so"), folder.path / "times"
        compile_c(_SOURCE, library, "-shared", "-fPIC", purpose="--also-without", hint=_OWN_OUTPUT_HINT)
        folder.claim_pattern("times.*")
        variables = {"NSYS_INSIGHT_MARKS": str(output)}
        if range_name == PROFILER_API:
            cupti = ":".join(str(path) for path in _find_cupti(nsys_folder))
            variables |= {"CUDA_INJECTION64_PATH": str(library), "NSYS_INSIGHT_CUPTI": cupti}
        else:
            variables |= {"NVTX_INJECTION64_PATH": str(library), "NSYS_INSIGHT_RANGE": range_name}
        run_without_nsys(program, variables)
        intervals_by_process = [_read_intervals(path) for path in output.parent.glob(f"{output.name}.*")]
    intervals = max(intervals_by_process, key=len, default=[])
    if not intervals:
        marks_text = (
            "cudaProfilerStart and cudaProfilerStop" if range_name == PROFILER_API else f"a range {range_name!r}"
        )
        raise ToolError(f"without nsys, the program was not seen to call {marks_text}", _OWN_OUTPUT_HINT)
    return intervals


def period_ns(intervals: Sequence[Interval]) -> float:
    """Return the median time from the start of an interval to that of the next; the duration of a single one."""
    starts = [interval.start_ns for interval in intervals]
    periods = [after - before for before, after in pairwise(starts)]
    return float(median(periods or [intervals[0].duration_ns]))


def _find_cupti(nsys_folder: Path | None) -> Iterator[Path]:
    """Yield the CUPTI libraries of this machine, the newest of each folder first."""
    folders = [nsys_folder] if nsys_folder else []
    folders += [path for pattern in _CUPTI_FOLDERS for path in sorted(Path("/").glob(pattern[1:]))]
    for folder in folders:
        yield from sorted(folder.glob("libcupti.so.*"), key=_version_of, reverse=True)


def _version_of(path: Path) -> list[int]:
    return [int(part) for part in path.name.partition(".so.")[2].split(".") if part.isdecimal()]


def _read_intervals(path: Path) -> list[Interval]:
    """Read the marks of a process and pair each end with the last open beginning."""
    intervals, open_starts = [], list[int]()
    for line in path.read_text().splitlines():
        kind, time_text = line.split()
        if kind == "b":
            open_starts.append(int(time_text))
        elif open_starts:
            intervals.append(Interval(open_starts.pop(), int(time_text)))
    return sorted(intervals, key=lambda interval: interval.start_ns)
