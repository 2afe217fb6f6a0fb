"""Which windows of a run are drawn event by event: all of it where that is little, else what is worth looking at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.page.asking import ask
from nsys_insight.page.lanes import Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# So many operations and calls are drawn at most, unless the first window alone has more.
EVENTS = 24_000
# Windows that are thought of; and how many of each kind come before steps that are like the others.
_CANDIDATES, _OUTLIERS, _OTHERS = 160, 8, 6
# What is shown around a gap, as a share of it.
_AROUND = 0.25


def chosen(  # noqa: PLR0913, PLR0917 - what windows are chosen from
    trace: Session, steps: StepOptions, run: Window, first: Window, rows: Sequence[Any], others: Sequence[Any]
) -> list[Window]:
    """Choose windows that do not overlap, in order of time.

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
