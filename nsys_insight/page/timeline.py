"""The timeline: of a run as numbers that the page's script draws, of one window as a still picture for notebooks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nsys_insight.page.pictures import Bar
from nsys_insight.page.queries import ask
from nsys_insight.page.tracks import Event, Most, Track, View, read
from nsys_insight.page.windows import EVENTS, Window, event_windows, first_window
from nsys_insight.text.cells import printable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# The most that is drawn: of the run, and in a still picture, where no one could see more.
MOST = Most(EVENTS, EVENTS, EVENTS, 6_000, 6)
MOST_STILL = Most(2_000, 2_000, 2_000, 300, 3)
# The most steps in the overview; of more, only every n-th of those that are like the others.
STEPS = 1_500
# Time buckets of the run, each with how busy the GPUs were.
BUCKETS = 300
GAPS = 10


@dataclass(frozen=True)
class Timeline:
    """What is drawn first (`step` is its number, if it is a step), the tracks, and the numbers to draw.

    `kernels` are the names' ids of the kernels that are in it.
    """

    step: int | None
    first: Window
    view: View
    data: dict[str, Any]
    kernels: list[int]


@dataclass(frozen=True)
class Still:
    """A window as a still picture: `step` is its number, if it is a step; `ticks` are places in % with their times."""

    step: int | None
    window: Window
    view: View
    ticks: list[tuple[float, str]]

    def bars(self, track: Track) -> list[Bar]:
        """The events of a track, placed in the window."""
        return [_bar(self.window, event) for event in track.events]


def timeline(trace: Session, steps: StepOptions, gaps: Sequence[dict[str, Any]] = ()) -> Timeline | None:
    """Gather a timeline that begins with a typical step, or where there are no steps with the whole.

    Returns None where nothing ran on a GPU.

    Args:
        trace: The trace, in its scope.
        steps: How steps are found.
        gaps: The longest gaps, as the report `gaps` says them.
    """
    found, whole = first_window(trace, steps), ask(trace, "run", steps)
    if not whole or not found:
        return None
    step, first = found
    run = Window(min(whole[0].start_ns, first.start_ns), max(whole[0].end_ns, first.end_ns))
    longest = [_Gap(gap["start_ns"], gap["end_ns"], gap["cause"] or "unknown") for gap in gaps[:GAPS]]
    rows = ask(trace, "run_steps", steps)
    view = read(trace, steps, event_windows(trace, steps, run, first, rows, longest), MOST)
    if first not in view.windows and len(view.windows) == 1 and view.cut:
        first = Window(first.start_ns, min(first.end_ns, view.windows[0].end_ns))
    data, kernels = _events(view, run)
    listed = _steps(rows, run)
    data |= {
        "origin": run.start_ns,
        "ns": run.end_ns - run.start_ns,
        "first": first.relative_to(run),
        "windows": [window.relative_to(run) for window in view.windows],
        "steps": listed,
        "gaps": [[*Window(gap.start_ns, gap.end_ns).relative_to(run), gap.cause] for gap in longest],
        "busy": _busy(ask(trace, "run_busy", steps, pieces=BUCKETS), run),
    }
    if len(listed) < len(rows):
        view = replace(view, cut=[*view.cut, f"{len(listed):,} of {len(rows):,} steps above"])
    return Timeline(step, first, view, data, kernels)


def still(trace: Session, steps: StepOptions, step: int | None = None) -> Still | None:
    """Draw the step of this number, or a typical one, or where there are no steps the whole.

    Returns None where nothing ran on a GPU.

    Raises:
        UsageError: There is no step of this number.
    """
    found = first_window(trace, steps, step)
    if not found:
        return None
    view = read(trace, steps, [found.window], MOST_STILL)
    (window,) = view.windows
    return Still(found.step, window, view, _ticks(window))


@dataclass(frozen=True)
class _Gap:
    start_ns: int
    end_ns: int
    cause: str


def _events(view: View, run: Window) -> tuple[dict[str, Any], list[int]]:
    """Write events as numbers: when after the one before, how long, and which of the things they are.

    A thing is a style, a label, a further line, and the place of a kernel among `kernels`, or -1. Of idle time it is
    the causes, each with what the host did; how long each was is in `parts`, where there are several.
    """
    things: dict[tuple[Any, ...], int] = {}
    kernels: dict[int, int] = {}
    lanes = []
    for track, top in zip(view.tracks, view.tops, strict=False):
        at, lasts, what, parts = [], [], [], {}
        before = run.start_ns
        for place, (start_ns, end_ns, style, label, more, name_id, made_of) in enumerate(track.events):
            kernel = -1 if name_id is None else kernels.setdefault(name_id, len(kernels))
            thing = (style, label, more, kernel, *[f"{cause}, {host}" for cause, host, _ in made_of])
            at.append(start_ns - before)
            lasts.append(end_ns - start_ns)
            what.append(things.setdefault(thing, len(things)))
            if len(made_of) > 1:
                parts[place] = [idle_ns for *_, idle_ns in made_of]
            before = start_ns
        lanes.append(
            {
                "name": track.name, "kind": track.kind, "top": top, "height": track.height,
                "at": at, "lasts": lasts, "what": what, "parts": parts,
            }
        )  # fmt: skip
    return {"things": [list(thing) for thing in things], "lanes": lanes}, list(kernels)


def _steps(rows: Sequence[Any], run: Window) -> list[list[Any]]:
    """Give the steps as number, phase, begin, wall, busy time, and what differs where they are outliers."""
    every = -(-len(rows) // STEPS)
    kept = (row for at, row in enumerate(rows) if not at % every or row.is_outlier or row.phase != "steady")
    return [
        [
            row.step, row.phase, row.start_ns - run.start_ns, row.duration_ns, row.gpu_busy_ns,
            printable(row.reason or "outlier") if row.is_outlier else "",
        ]
        for row in kept
    ]  # fmt: skip


def _busy(rows: Sequence[Any], run: Window) -> dict[str, Any] | None:
    """Say how busy the GPUs were, in % of each time bucket of the wall."""
    if not rows:
        return None
    from_ns, to_ns = rows[0].start_ns, rows[0].end_ns
    return {"from": from_ns - run.start_ns, "each": to_ns - from_ns, "pct": [round(row.busy_pct) for row in rows]}


def _bar(window: Window, event: Event) -> Bar:
    """Place an event in a window; the tooltip has its length, when it began, and the causes of idle time."""
    is_inside = event.start_ns >= window.start_ns
    when = f"at {value('a_ns', event.start_ns - window.start_ns)}" if is_inside else "begun before"
    more = [event.more] * bool(event.more)
    more += [f"{cause}, {host}: {value('a_ns', idle_ns)}" for cause, host, idle_ns in event.parts]
    tip = "\n".join([event.label, f"{value('a_ns', event.end_ns - event.start_ns)}, {when}", *more])
    return Bar(*window.placed(event.start_ns, event.end_ns), event.style, event.label, tip)


def _ticks(window: Window) -> list[tuple[float, str]]:
    """Round times since the start of the window, four to nine of them; none at the end, where it would be cut off."""
    ns = window.end_ns - window.start_ns
    rough = ns / 9
    power = 10 ** math.floor(math.log10(max(rough, 1)))
    apart = max(1, next(int(power * one) for one in (1, 2, 5, 10) if power * one >= rough or one == 10))
    return [(100 * at / ns, value("a_ns", at) if at else "0") for at in range(0, int(0.96 * ns), apart)]
