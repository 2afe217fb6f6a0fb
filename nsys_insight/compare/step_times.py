"""Times of a step that were measured without nsys, before and after a change."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from nsys_insight.compare.noise import Difference, Samples
from nsys_insight.compare.runs import HEADLINE, Run
from nsys_insight.errors import UsageError
from nsys_insight.text.units import parse_duration, time_text

if TYPE_CHECKING:
    from collections.abc import Sequence


WITHOUT_NSYS = "without_nsys_ns"
# The limits of the view `unprofiled_step`: a time beyond them is of another unit of work than the step of the trace.
MAX_RATIO, MIN_BUSY_RATIO = 1.15, 0.8
EXAMPLE = "nsys-insight diff BEFORE AFTER --step-time 610us,515us"
_HINT = "give the times of the steps that nsys-insight steps lists: --step-time 610us,515us"


def parse_step_times(times: Sequence[str | int]) -> tuple[int, int]:
    """Read the times of a step before and after, in ns.

    Raises:
        UsageError: These are not two durations above 0.
    """
    if len(times) != 2 or isinstance(times, str):
        text = times if isinstance(times, str) else ",".join(map(str, times))
        raise UsageError(f"--step-time takes two times, before and after, not {text!r}", EXAMPLE)
    before, after = (parse_duration(str(time).strip(), flag="--step-time") for time in times)
    if min(before, after) <= 0:
        raise UsageError("--step-time takes times above 0", EXAMPLE)
    return before, after


def measure_per_unit(before: Sequence[Run], after: Sequence[Run], step_times_ns: tuple[int, int]) -> Difference:
    """Return the measured times of both sides in ns per step or token.

    Raises:
        UsageError: The runs have no steps, processes do different work, or a time is not that of a step of the run.
    """
    if any(run.is_mixed for run in (*before, *after)):
        raise UsageError(
            "--step-time is of one program, and the processes of a run do different work", "select one: --process N"
        )
    sides = zip((before, after), step_times_ns, strict=True)
    times = [Samples((_check_time(runs, time_ns),)) for runs, time_ns in sides]
    return Difference(times[0], times[1])


def _check_time(runs: Sequence[Run], time_ns: int) -> float:
    """Return a measured time of a side per step or token."""
    run = runs[0]
    if run.unit not in ("step", "token"):
        raise UsageError(
            f"--step-time is the time of a step, and {run.label} has no steps", "define one: --step-range NAME"
        )
    tokens = run.tokens_per_step if run.unit == "token" else 1.0
    wall_ns, busy_ns = (
        tokens * fmean(samples.mean if (samples := run.metrics.get(metric)) else 0.0 for run in runs)
        for metric in (HEADLINE, "gpu_busy_ns")
    )
    given_text, busy_text = time_text(time_ns), time_text(busy_ns)
    if time_ns > MAX_RATIO * wall_ns:
        raise UsageError(f"--step-time {given_text} is longer than a step of {run.label}: {time_text(wall_ns)}", _HINT)
    if time_ns < MIN_BUSY_RATIO * busy_ns:
        raise UsageError(
            f"--step-time {given_text} is shorter than the GPU's work in a step of {run.label}: {busy_text}", _HINT
        )
    return time_ns / tokens
