"""The time of a captured program's steps without nsys, from a run with the same marks."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from nsys_insight.cli import terminal
from nsys_insight.cli.run import open_trace
from nsys_insight.ingest.marks import measure_marks, period_ns
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import read_query
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.ingest.nsys import Nsys

# A range that contains other work than steps does not give their time.
MIN_STEPS_SHARE = 0.9


def measure_without_nsys(report: Path, range_name: str | None, program: list[str], nsys: Nsys) -> StepOptions:
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
    if captured.range_name:
        return "the names of its NVTX ranges differ" if set(captured.range_name) & set("*?#") else None
    if range_name is None:
        return "its steps are no NVTX ranges, and there is no --range around them"
    if captured.share < MIN_STEPS_SHARE:
        return f"steps are {captured.share:.0%} of the range, and the rest is other work"
    return None
