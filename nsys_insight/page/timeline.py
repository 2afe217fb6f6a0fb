"""The timeline: a run as numbers for the page's script, and one window as a still picture for notebooks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.page import styles
from nsys_insight.page.pictures import Bar
from nsys_insight.page.queries import ask
from nsys_insight.page.styles import style_budget_row
from nsys_insight.page.tracks import Event, Limits, Track, View, read_view
from nsys_insight.page.windows import MAX_EVENTS, Window, choose_event_windows, choose_first_window
from nsys_insight.text.cells import printable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# Limits of the run's timeline, and of a still picture: more could not be distinguished there.
LIMITS = Limits(MAX_EVENTS, MAX_EVENTS, MAX_EVENTS, 6_000, 6, MAX_EVENTS)
STILL_LIMITS = Limits(2_000, 2_000, 2_000, 300, 3)
# Steps in the overview. If there are more, it shows only every n-th of the typical steps.
MAX_STEPS = 4_000
# Time buckets of the run. Each has the busy share of the GPUs.
BUCKETS = 300
# Time buckets of a run whose events are not all in the page. Each also has the family with the most GPU time.
FINE_BUCKETS = 3_000
MAX_GAPS = 10
# Loops listed above the timeline: their number, and how deep.
LOOP_LIMITS = {"max_loops": 16, "max_depth": 3}


@dataclass(frozen=True)
class Timeline:
    """A timeline: the window shown first (`step` is its number, if it is a step), the tracks, and the script's data.

    `kernels` are the name ids of its kernels. `contents` are the loops of the program.
    """

    step: int | None
    first: Window
    view: View
    data: dict[str, Any]
    kernels: list[int]
    contents: list[LoopEntry]


class LoopEntry(NamedTuple):
    """A loop in the list above the timeline: its text, and the window of an iteration, relative to the run."""

    loop: str
    depth: int
    text: str
    window: list[int]


@dataclass(frozen=True)
class Still:
    """A window as a still picture. `step` is its number, if it is a step. `ticks` are positions in % with times."""

    step: int | None
    window: Window
    view: View
    ticks: list[tuple[float, str]]

    def draw_bars(self, track: Track) -> list[Bar]:
        """Return the events of a track as bars in the window."""
        return [_draw_bar(self.window, event) for event in track.events]


def build_timeline(
    trace: Session, steps: StepOptions, gaps: Sequence[dict[str, Any]] = (), loops: Sequence[dict[str, Any]] = ()
) -> Timeline | None:
    """Build a timeline that begins with a typical step, or with the full scope if there are no steps.

    Returns None if nothing ran on a GPU.

    Args:
        trace: The trace, in its scope.
        steps: How steps are found.
        gaps: The longest gaps: rows of the report `gaps`.
        loops: Rows of the report `loops`, with the names of the loops.
    """
    first_step, run_rows = choose_first_window(trace, steps), ask(trace, "run", steps)
    if not run_rows or not first_step:
        return None
    step, first = first_step
    run = Window(min(run_rows[0].start_ns, first.start_ns), max(run_rows[0].end_ns, first.end_ns))
    longest = [_Gap(gap["start_ns"], gap["end_ns"], gap["cause"] or "unknown") for gap in gaps[:MAX_GAPS]]
    rows = ask(trace, "run_steps", steps)
    view = read_view(trace, steps, choose_event_windows(trace, steps, run, first, rows, longest), LIMITS)
    if first not in view.windows and len(view.windows) == 1 and view.omissions:
        first = Window(first.start_ns, min(first.end_ns, view.windows[0].end_ns))
    data, kernels = _encode_events(view, run)
    listed_steps = _encode_steps(rows, run)
    data |= {
        "file": trace.path.stem,
        "rough": None if view.windows == [run] else _encode_rough(trace, steps, run),
        "origin": run.start_ns,
        "ns": run.end_ns - run.start_ns,
        "first": first.relative_to(run),
        "windows": [window.relative_to(run) for window in view.windows],
        "steps": listed_steps,
        "gaps": [
            [*Window(gap.start_ns, gap.end_ns).relative_to(run), gap.cause, style_budget_row(gap.cause)]
            for gap in longest
        ],
        "busy": _encode_busy(ask(trace, "run_busy", steps, bucket_count=BUCKETS), run),
    }
    if len(listed_steps) < len(rows):
        view = replace(view, omissions=[*view.omissions, f"{len(listed_steps):,} of {len(rows):,} steps above"])
    loop_rows = ask(trace, "loops", steps, **LOOP_LIMITS)
    names = {loop["loop"]: printable(loop["nvtx"]) for loop in loops if loop["nvtx"]}
    contents = [_describe_loop(row, run, names.get(row.loop)) for row in loop_rows]
    return Timeline(step, first, view, data, kernels, contents)


def draw_still(trace: Session, steps: StepOptions, step: int | None = None) -> Still | None:
    """Draw the step of this number, by default a typical one, or the full scope if there are no steps.

    Returns None if nothing ran on a GPU.

    Raises:
        UsageError: There is no step of this number.
    """
    first_step = choose_first_window(trace, steps, step)
    if not first_step:
        return None
    view = read_view(trace, steps, [first_step.window], STILL_LIMITS)
    (window,) = view.windows
    return Still(first_step.step, window, view, _place_ticks(window))


@dataclass(frozen=True)
class _Gap:
    start_ns: int
    end_ns: int
    cause: str


def _encode_events(view: View, run: Window) -> tuple[dict[str, Any], list[int]]:
    """Encode events as numbers: the time since the event before, the duration, and the index of the description.

    Descriptions are `things` in the data: a style, a label, a further line, and the index of the kernel in `kernels`,
    or -1. Idle time adds its causes, each with what the host did. If there are several, `parts` has their times.
    """
    descriptions: dict[tuple[Any, ...], int] = {}
    kernels: dict[int, int] = {}
    lanes = []
    for track, top in zip(view.tracks, view.tops, strict=False):
        start_offsets, durations, description_indexes, cause_times, links = [], [], [], {}, []
        previous_start_ns, previous_link = run.start_ns, 0
        for index, (start_ns, end_ns, style, label, detail, name_id, causes, link) in enumerate(track.events):
            kernel = -1 if name_id is None else kernels.setdefault(name_id, len(kernels))
            description = (style, label, detail, kernel, *[f"{cause}, {host}" for cause, host, _ in causes])
            start_offsets.append(start_ns - previous_start_ns)
            durations.append(end_ns - start_ns)
            description_indexes.append(descriptions.setdefault(description, len(descriptions)))
            if len(causes) > 1:
                cause_times[index] = [idle_ns for *_, idle_ns in causes]
            previous_start_ns = start_ns
            if link is not None:
                links.append(link - previous_link)
                previous_link = link
        lanes.append(
            {
                "name": track.name, "kind": track.kind, "top": top, "height": track.height,
                "at": start_offsets, "lasts": durations, "what": description_indexes, "parts": cause_times,
                # All events of a track have one, or none.
                "links": links if len(links) == len(track.events) else [], "process": track.process,
            }
        )  # fmt: skip
    return {"things": [list(description) for description in descriptions], "lanes": lanes}, list(kernels)


def _encode_steps(rows: Sequence[Any], run: Window) -> list[list[Any]]:
    """Return each step as number, phase, start, wall time, busy time, and what differs if it is an outlier."""
    stride = -(-len(rows) // MAX_STEPS)
    listed_rows = (
        row for index, row in enumerate(rows) if not index % stride or row.is_outlier or row.phase != "steady"
    )
    return [
        [
            row.step, row.phase, row.start_ns - run.start_ns, row.duration_ns, row.gpu_busy_ns,
            printable(row.reason or "outlier") if row.is_outlier else "",
        ]
        for row in listed_rows
    ]  # fmt: skip


def _describe_loop(row: Any, run: Window, name: str | None) -> LoopEntry:
    """Return the entry of a row of `queries/internal/page/loops.sql`. `name` is that of its NVTX ranges."""
    count = f"{row.iterations:,} iterations"
    if row.per_parent is not None:
        count = f"{row.per_parent:,.0f} iterations each time"
    times = f"{value('a_ns', row.period_ns)} each, GPU busy {value('a_ns', row.gpu_busy_ns)}"
    text = f"{f'{name}: ' if name else ''}{count}, {times}, {row.gpu_pct:.1f}% of the GPU time"
    return LoopEntry(row.loop, row.depth, text, Window(row.start_ns, row.end_ns).relative_to(run))


def _encode_rough(trace: Session, steps: StepOptions, run: Window) -> dict[str, Any] | None:
    """Return the run at low detail: the busy share of each time bucket, its main style, and its operations."""
    busy_rows = ask(trace, "run_busy", steps, bucket_count=FINE_BUCKETS)
    busy = _encode_busy(busy_rows, run)
    if busy is None:
        return None
    rows = ask(trace, "run_families", steps, from_ns=busy_rows[0].start_ns, bucket_ns=busy["each"])
    families = {row.bucket: row for row in rows}
    buckets = [families.get(row.bucket) for row in busy_rows]
    return busy | {
        "style": [styles.style_work(bucket.family) if bucket else "" for bucket in buckets],
        "operations": [bucket.operations if bucket else 0 for bucket in buckets],
    }


def _encode_busy(rows: Sequence[Any], run: Window) -> dict[str, Any] | None:
    """Return how busy the GPUs were, in % of each time bucket."""
    if not rows:
        return None
    from_ns, to_ns = rows[0].start_ns, rows[0].end_ns
    return {"from": from_ns - run.start_ns, "each": to_ns - from_ns, "pct": [round(row.busy_pct) for row in rows]}


def _draw_bar(window: Window, event: Event) -> Bar:
    """Place an event in a window. The tooltip has its length, its start, and the causes of idle time."""
    is_inside = event.start_ns >= window.start_ns
    start_text = f"at {value('a_ns', event.start_ns - window.start_ns)}" if is_inside else "begun before"
    details = [event.detail] * bool(event.detail)
    details += [f"{cause}, {host}: {value('a_ns', idle_ns)}" for cause, host, idle_ns in event.causes]
    tip = "\n".join([event.label, f"{value('a_ns', event.end_ns - event.start_ns)}, {start_text}", *details])
    return Bar(*window.place_bar(event.start_ns, event.end_ns), event.style, event.label, tip)


def _place_ticks(window: Window) -> list[tuple[float, str]]:
    """Return four to nine round times since the start of the window. None is at the end: it would be cut off."""
    ns = window.end_ns - window.start_ns
    min_interval = ns / 9
    power = 10 ** math.floor(math.log10(max(min_interval, 1)))
    interval_ns = max(
        1, next(int(power * factor) for factor in (1, 2, 5, 10) if power * factor >= min_interval or factor == 10)
    )
    return [
        (100 * offset_ns / ns, value("a_ns", offset_ns) if offset_ns else "0")
        for offset_ns in range(0, int(0.96 * ns), interval_ns)
    ]
