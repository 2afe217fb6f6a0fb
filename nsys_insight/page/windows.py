"""The windows of time to draw: the first step shown, and the full run or its most interesting windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.page.queries import ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# The maximum number of operations and calls that are drawn, unless the first window alone has more.
MAX_EVENTS = 24_000
# Limits: candidates, and the outliers and other steps that come before the typical steps.
_MAX_CANDIDATES, _MAX_OUTLIERS, _MAX_OTHER_STEPS = 160, 8, 6
# The margin shown on each side of a gap, as a share of it.
_GAP_MARGIN = 0.25


# The narrowest bar that is visible and can be pointed at, in % of the width.
MIN_WIDTH_PCT = 0.06


class Window(NamedTuple):
    """A window of the trace's time."""

    start_ns: int
    end_ns: int

    def relative_to(self, run: Window) -> list[int]:
        """Return the window's start and end relative to the start of a run."""
        return [self.start_ns - run.start_ns, self.end_ns - run.start_ns]

    def place_bar(self, start_ns: int, end_ns: int) -> tuple[float, float]:
        """Return the left edge and the width of a bar in a picture of the window, in %, cut to the window."""
        ns = self.end_ns - self.start_ns
        first, last = max(start_ns, self.start_ns), min(end_ns, self.end_ns)
        left = min(100 * (first - self.start_ns) / ns, 100 - MIN_WIDTH_PCT)
        return left, max(100 * (last - first) / ns, MIN_WIDTH_PCT)


class FirstWindow(NamedTuple):
    """The window that is shown first. `step` is its number if it is a step."""

    step: int | None
    window: Window


def choose_first_window(trace: Session, steps: StepOptions, step: int | None = None) -> FirstWindow | None:
    """Choose the step of this number, by default a typical one, or the full scope if there are no steps.

    Returns None if nothing ran on a GPU.

    Raises:
        UsageError: There is no step of this number.
    """
    step_rows = ask(trace, "step", steps) if step is None else ask(trace, "one_step", steps, step=step)
    if step is not None and not step_rows:
        raise UsageError(f"there is no step {step}", "nsys-insight steps lists them")
    rows = step_rows or ask(trace, "whole", steps)
    if not rows or rows[0].start_ns == rows[0].end_ns:
        return None
    return FirstWindow(rows[0].step if step_rows else None, Window(rows[0].start_ns, rows[0].end_ns))


def choose_event_windows(  # noqa: PLR0913, PLR0917 - the windows to choose from
    trace: Session, steps: StepOptions, run: Window, first: Window, step_rows: Sequence[Any], gaps: Sequence[Any]
) -> list[Window]:
    """Choose the windows that are drawn event by event. They do not overlap and are sorted by time.

    Args:
        trace: The trace, in its scope.
        steps: How steps are found.
        run: The full run.
        first: The window of the typical step. It is always chosen.
        step_rows: The steps, as rows of `run_steps`.
        gaps: The longest gaps (start_ns and end_ns), the longest first.
    """
    candidates = list(dict.fromkeys([run, first, *_rank_candidates(step_rows, first, gaps)]))
    candidates = candidates[:_MAX_CANDIDATES]
    starts, ends = [window.start_ns for window in candidates], [window.end_ns for window in candidates]
    sizes = dict.fromkeys(candidates, 0)
    for row in ask(trace, "window_sizes", steps, starts=starts, ends=ends):
        sizes[candidates[row.window_index]] = row.events
    if sizes[run] <= MAX_EVENTS:
        return [run]
    remaining, chosen_windows = MAX_EVENTS - sizes[first], [first]
    for window in candidates[2:]:
        if sizes[window] <= remaining:
            remaining -= sizes[window]
            chosen_windows.append(window)
    return _merge_windows(chosen_windows)


def _rank_candidates(step_rows: Sequence[Any], first: Window, gaps: Iterable[Any]) -> Iterator[Window]:
    """Yield the candidates by interest: outliers, steps of other phases, long gaps, then steps near the first one."""
    outliers = sorted((row for row in step_rows if row.is_outlier), key=lambda row: -row.duration_ns)
    other_steps = sorted((row for row in step_rows if row.phase != "steady"), key=lambda row: -row.duration_ns)
    for row in [*outliers[:_MAX_OUTLIERS], *other_steps[:_MAX_OTHER_STEPS]]:
        yield Window(row.start_ns, row.end_ns)
    for gap in gaps:
        margin_ns = int(_GAP_MARGIN * (gap.end_ns - gap.start_ns))
        yield Window(gap.start_ns - margin_ns, gap.end_ns + margin_ns)
    yield from (
        Window(row.start_ns, row.end_ns)
        for row in sorted(step_rows, key=lambda row: (abs(row.start_ns - first.start_ns), row.start_ns))
    )


def _merge_windows(windows: Iterable[Window]) -> list[Window]:
    merged: list[Window] = []
    for window in sorted(windows):
        if merged and window.start_ns <= merged[-1].end_ns:
            merged[-1] = Window(merged[-1].start_ns, max(merged[-1].end_ns, window.end_ns))
        else:
            merged.append(window)
    return merged
