"""Which windows of time are drawn: the step that is drawn first, and of a run all of it or what is worth looking at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.page.queries import ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# The most operations and calls that are drawn, unless the first window alone has more.
EVENTS = 24_000
# Candidates, and how many outliers and other steps come before the steps that are like the others.
_CANDIDATES, _OUTLIERS, _OTHERS = 160, 8, 6
# What is shown around a gap, as a share of it.
_AROUND = 0.25


# The narrowest that can still be seen and pointed at, in % of the width.
LEAST_PCT = 0.06


class Window(NamedTuple):
    """A window of the trace's time."""

    start_ns: int
    end_ns: int

    def relative_to(self, run: Window) -> list[int]:
        """The window's start and end since the start of a run."""
        return [self.start_ns - run.start_ns, self.end_ns - run.start_ns]

    def placed(self, start_ns: int, end_ns: int) -> tuple[float, float]:
        """Where a time is drawn in a picture of the window: left edge and width in %, cut to the window."""
        ns = self.end_ns - self.start_ns
        first, last = max(start_ns, self.start_ns), min(end_ns, self.end_ns)
        left = min(100 * (first - self.start_ns) / ns, 100 - LEAST_PCT)
        return left, max(100 * (last - first) / ns, LEAST_PCT)


class First(NamedTuple):
    """The window that is drawn first; `step` is its number if it is a step."""

    step: int | None
    window: Window


def first_window(trace: Session, steps: StepOptions, step: int | None = None) -> First | None:
    """Choose the step of this number, or a typical one, or where there are no steps the whole.

    Returns None where nothing ran on a GPU.

    Raises:
        UsageError: There is no step of this number.
    """
    found = ask(trace, "step", steps) if step is None else ask(trace, "one_step", steps, step=step)
    if step is not None and not found:
        raise UsageError(f"there is no step {step}", "nsys-insight steps lists them")
    rows = found or ask(trace, "whole", steps)
    if not rows or rows[0].start_ns == rows[0].end_ns:
        return None
    return First(rows[0].step if found else None, Window(rows[0].start_ns, rows[0].end_ns))


def event_windows(  # noqa: PLR0913, PLR0917 - what windows are chosen from
    trace: Session, steps: StepOptions, run: Window, first: Window, rows: Sequence[Any], others: Sequence[Any]
) -> list[Window]:
    """Choose the windows that are drawn event by event; they do not overlap, and are in order of time.

    Args:
        trace: The trace, in its scope.
        steps: How steps are found.
        run: All there is.
        first: What has to be among them, the step that stands for the others.
        rows: The steps, as `run_steps` has them.
        others: The gaps that are worth a look (start_ns and end_ns), the longest first.
    """
    candidates = list(dict.fromkeys([run, first, *_worth_a_look(rows, first, others)]))
    candidates = candidates[:_CANDIDATES]
    starts, ends = ([window[at] for window in candidates] for at in (0, 1))
    sizes = dict.fromkeys(candidates, 0)
    for row in ask(trace, "window_sizes", steps, starts=starts, ends=ends):
        sizes[candidates[row.place]] = row.events
    if sizes[run] <= EVENTS:
        return [run]
    left, taken = EVENTS - sizes[first], [first]
    for window in candidates[2:]:
        if sizes[window] <= left:
            left -= sizes[window]
            taken.append(window)
    return _merged(taken)


def _worth_a_look(rows: Sequence[Any], first: Window, gaps: Iterable[Any]) -> Iterator[Window]:
    """What is unlike the others, the longest gaps, then the steps nearest to the first one."""
    odd = sorted((row for row in rows if row.is_outlier), key=lambda row: -row.duration_ns)
    other = sorted((row for row in rows if row.phase != "steady"), key=lambda row: -row.duration_ns)
    found = [*odd[:_OUTLIERS], *other[:_OTHERS]]
    yield from (Window(row.start_ns, row.end_ns) for row in found)
    for gap in gaps:
        around = int(_AROUND * (gap.end_ns - gap.start_ns))
        yield Window(gap.start_ns - around, gap.end_ns + around)
    yield from (Window(row.start_ns, row.end_ns) for row in sorted(rows, key=lambda row: _apart(row, first)))


def _apart(row: Any, first: Window) -> tuple[int, int]:
    return abs(row.start_ns - first.start_ns), row.start_ns


def _merged(windows: Iterable[Window]) -> list[Window]:
    found: list[Window] = []
    for window in sorted(windows):
        if found and window.start_ns <= found[-1].end_ns:
            found[-1] = Window(found[-1].start_ns, max(found[-1].end_ns, window.end_ns))
        else:
            found.append(window)
    return found
