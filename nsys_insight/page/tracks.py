"""The tracks of a timeline and their events: NVTX ranges and calls of threads, work of streams, idle time of GPUs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.page import styles
from nsys_insight.page.queries import ask_each
from nsys_insight.page.windows import Window
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

MAX_THREADS, MAX_STREAMS = 4, 12
# Sampled metrics that are drawn, where the trace has them: those that say what a kernel uses.
METRICS = ("SMs Active", "Tensor Active", "DRAM Read Bandwidth", "DRAM Write Bandwidth")
_NAME_LENGTH = 72  # characters of a kernel's name
# Pixels: the height of each kind of track, the gap between tracks, and the height of the time scale above them.
# page.css has the same heights for the tracks' names.
HEIGHTS = {"nvtx": 18, "host": 20, "gpu": 28, "idle": 16, "metric": 22}
GAP, SCALE_HEIGHT = 4, 22


class Limits(NamedTuple):
    """The maximum number of events of each kind, and the maximum depth of ranges. Without samples, no metrics."""

    operations: int
    calls: int
    gaps: int
    ranges: int
    depth: int
    samples: int = 0


class Event(NamedTuple):
    """An event: its time, style and label, a further line, and the name id if it is a kernel.

    `causes` are the causes of idle time, each with what the host did and for how long. `link` is the correlation id of
    a call and of what it launched.
    """

    start_ns: int
    end_ns: int
    style: str
    label: str
    detail: str = ""
    kernel: int | None = None
    causes: tuple[tuple[str, str, int], ...] = ()
    link: int | None = None


@dataclass(frozen=True)
class Track:
    """One track: a thread's ranges of one depth or its calls, a stream's work, a GPU's idle time, or a metric."""

    name: str
    kind: str
    events: list[Event]
    process: int | None = None

    @property
    def height(self) -> int:
        """Return the height of the track, in pixels."""
        return HEIGHTS[self.kind]


@dataclass(frozen=True)
class View:
    """The tracks from the top, and the windows that they show. A single window with too many events is cut.

    `idle_ns` is the idle time by cause. `omissions` lists what is not drawn.
    """

    tracks: list[Track]
    windows: list[Window]
    idle_ns: dict[str, int] = field(default_factory=dict)
    omissions: list[str] = field(default_factory=list)

    @property
    def tops(self) -> list[int]:
        """Return where each track begins, in pixels, and where the gap below the last one ends."""
        return list(accumulate((track.height + GAP for track in self.tracks), initial=SCALE_HEIGHT))

    @property
    def height(self) -> int:
        """Return the height of the picture, in pixels."""
        return self.tops[-1]

    @property
    def styles(self) -> list[str]:
        """Return the styles that the picture uses, in the order of the legend."""
        used_styles = {event.style for track in self.tracks for event in track.events}
        return [style for style in styles.LEGEND if style in used_styles]


def read_view(trace: Session, steps: StepOptions, windows: Sequence[Window], limits: Limits) -> View:
    """Read the events of windows. The windows are sorted and do not overlap.

    If a single window has too many events, read only its beginning.
    """
    omissions, drawn_windows = [], list(windows)

    def read_events(**query_limits: dict[str, Any]) -> list[list[Any]]:
        bounds = {
            "starts": [window.start_ns for window in drawn_windows],
            "ends": [window.end_ns for window in drawn_windows],
        }
        row_lists = ask_each(trace, steps, {name: {**bounds, **values} for name, values in query_limits.items()})
        # An event in several windows has a row for each.
        return [list(dict.fromkeys(rows)) for rows in row_lists] if len(drawn_windows) > 1 else row_lists

    host_limits: dict[str, dict[str, int]] = {
        "calls": {"max_rows": limits.calls},
        "ranges": {"max_rows": limits.ranges, "max_depth": limits.depth},
        "gaps": {},
    }
    # One round of queries is faster, and the limit is rarely exceeded.
    operations, calls, ranges, gaps = read_events(operations={"max_rows": limits.operations}, **host_limits)
    if len(operations) > limits.operations and operations[limits.operations].start_ns > drawn_windows[0].start_ns:
        full_window, to_ns = drawn_windows[0], operations[limits.operations].start_ns
        drawn_windows = [Window(full_window.start_ns, to_ns)]
        operations = operations[: limits.operations]
        omissions.append(
            f"the first {value('a_ns', to_ns - full_window.start_ns)}"
            f" of {value('a_ns', full_window.end_ns - full_window.start_ns)}, {limits.operations:,} operations"
        )
        calls, ranges, gaps = read_events(**host_limits)
    if len(calls) > limits.calls:
        omissions.append(f"the {limits.calls:,} longest calls")
    if limits.samples:
        (samples,) = read_events(metric_samples={"metrics": list(METRICS), "max_rows": limits.samples})
        if len(samples) > limits.samples:
            omissions.append(f"the first {limits.samples:,} samples of metrics")
    else:
        samples = []
    host, threads = _build_host_tracks(ranges[: limits.ranges], calls[: limits.calls])
    device, streams = _build_device_tracks(operations)
    idle, hidden_count, causes = _build_idle_tracks(gaps, limits.gaps)
    omissions += [f"{MAX_THREADS} of {threads} threads"] if threads > MAX_THREADS else []
    omissions += [f"{MAX_STREAMS} of {streams} streams"] if streams > MAX_STREAMS else []
    omissions += [f"{limits.gaps:,} longest gaps of {hidden_count + limits.gaps:,}"] if hidden_count else []
    return View([*host, *device, *idle, *_build_metric_tracks(samples)], drawn_windows, causes, omissions)


def _build_host_tracks(ranges: list[Any], calls: list[Any]) -> tuple[list[Track], int]:
    """Build the tracks of the threads with the most time in CUDA calls, each with its ranges above."""
    call_time: dict[tuple[int, int], int] = defaultdict(int)
    calls_by_thread: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for call in calls:
        call_time[call.process_id, call.thread_id] += call.end_ns - call.start_ns
        calls_by_thread[call.process_id, call.thread_id].append(call)
    for nvtx_range in ranges:
        call_time[nvtx_range.process_id, nvtx_range.thread_id] += 0
    drawn_threads = sorted(call_time, key=lambda key: (-call_time[key], key))[:MAX_THREADS]
    tracks = []
    for process, thread in drawn_threads:
        depths: dict[int, list[Event]] = defaultdict(list)
        for nvtx_range in ranges:
            if (nvtx_range.process_id, nvtx_range.thread_id) == (process, thread):
                depths[nvtx_range.depth].append(
                    Event(nvtx_range.start_ns, nvtx_range.end_ns, "range", printable(nvtx_range.name))
                )
        has_several_processes = len({key[0] for key in call_time}) > 1
        suffix = (f", {process}" if has_several_processes else "") + (
            f", thread {thread}" if len(call_time) > 1 else ""
        )
        tracks += [
            Track(f"NVTX{suffix}" if depth == min(depths) else "", "nvtx", sorted(events))
            for depth, events in sorted(depths.items())
        ]
        events = [
            Event(
                call.start_ns,
                call.end_ns,
                styles.style_call(call.call_group),
                printable(call.name),
                call.call_group,
                link=call.correlation_id,
            )
            for call in sorted(calls_by_thread[process, thread])
        ]
        if events:
            tracks.append(Track(f"calls{suffix}", "host", events, process))
    return tracks, len(call_time)


def _build_device_tracks(operations: list[Any]) -> tuple[list[Track], int]:
    """Build the tracks of the streams with the most operations."""
    streams: dict[tuple[int, int, int], list[Event]] = defaultdict(list)
    for row in operations:
        label = printable(fit(make_readable(row.name), _NAME_LENGTH))
        size_text = f", {value('a_bytes', row.size_bytes)}" if row.size_bytes else ""
        kernel = row.name_id if row.kind == "kernel" else None
        streams[row.device_id, row.process_id, row.stream_id].append(
            Event(
                row.start_ns,
                row.end_ns,
                styles.style_work(row.family),
                label,
                f"{row.family}{size_text}",
                kernel,
                link=row.correlation_id,
            )
        )
    has_several_devices = len({key[:2] for key in streams}) > 1
    drawn_streams = sorted(sorted(streams, key=lambda key: (-len(streams[key]), key))[:MAX_STREAMS])
    return [
        Track(
            f"GPU {key[0]}, {key[1]}: stream {key[2]}" if has_several_devices else f"stream {key[2]}",
            "gpu",
            streams[key],
            key[1],
        )
        for key in drawn_streams
    ], len(streams)


def _build_idle_tracks(rows: list[Any], max_gaps: int) -> tuple[list[Track], int, dict[str, int]]:
    """Build the tracks of idle time, one per GPU. A gap has the style of its main cause."""
    gaps: dict[tuple[int, int, int], list[tuple[str, str, int]]] = defaultdict(list)
    idle_by_cause: dict[str, int] = defaultdict(int)
    for gpu, start, end, cause, host, idle_ns in rows:
        gaps[gpu, start, end].append((cause, host, idle_ns))
        idle_by_cause[cause] += idle_ns
    longest = sorted(gaps, key=lambda gap: (gap[1] - gap[2], gap))[:max_gaps] if len(gaps) > max_gaps else list(gaps)
    tracks: dict[int, list[Event]] = defaultdict(list)
    for gap in sorted(longest):
        gpu, start, end = gap
        tracks[gpu].append(
            Event(start, end, styles.style_budget_row(_find_main_cause(gaps[gap])), "idle", causes=tuple(gaps[gap]))
        )
    has_several_gpus = len(tracks) > 1
    return (
        [
            Track(f"GPU {gpu} idle" if has_several_gpus else "GPU idle", "idle", events)
            for gpu, events in sorted(tracks.items())
        ],
        len(gaps) - len(longest),
        dict(idle_by_cause),
    )


def _build_metric_tracks(samples: list[Any]) -> list[Track]:
    """Build a track for each metric of each GPU. The label of an event is its value; equal samples are one event."""
    events: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for gpu, metric, start_ns, end_ns, percent in samples:
        track_events, label = events[gpu, metric], f"{percent}%"
        if track_events and track_events[-1].end_ns == start_ns and track_events[-1].label == label:
            start_ns = track_events.pop().start_ns  # noqa: PLW2901 - the sample before has the same value
        track_events.append(Event(start_ns, end_ns, "metric", label, metric))
    has_several_gpus = len({gpu for gpu, _ in events}) > 1
    return [
        Track(f"GPU {gpu} {metric}" if has_several_gpus else metric, "metric", metric_events)
        for (gpu, metric), metric_events in sorted(events.items(), key=lambda item: METRICS.index(item[0][1]))
    ]


def _find_main_cause(causes: Sequence[tuple[str, str, int]]) -> str:
    by_cause: dict[str, int] = {}
    for cause, _, idle_ns in causes:
        by_cause[cause] = by_cause.get(cause, 0) + idle_ns
    return max(by_cause, key=lambda cause: (by_cause[cause], cause)) if len(by_cause) > 1 else next(iter(by_cause))
