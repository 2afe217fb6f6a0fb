"""The tracks of a timeline and their events: ranges and calls of threads, work of streams, idle time of GPUs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.page import styles
from nsys_insight.page.queries import ask_each
from nsys_insight.page.windows import Window
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit, readable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

THREADS, STREAMS = 4, 12
_NAME = 72  # characters of a kernel's name
# Pixels: how tall tracks of each kind are, how far apart, and the time scale above them. page.css has the same heights
# for the tracks' names.
HEIGHTS = {"nvtx": 18, "host": 20, "gpu": 28, "idle": 16}
GAP, SCALE = 4, 22


class Most(NamedTuple):
    """How much is drawn at most, and how deep ranges are."""

    operations: int
    calls: int
    gaps: int
    ranges: int
    deepest: int


class Event(NamedTuple):
    """Something that took time: its style and name, a further line, and which kernel it is, if it is one.

    `parts` are of idle time: its causes, what the host did, and for how long.
    """

    start_ns: int
    end_ns: int
    style: str
    label: str
    more: str = ""
    kernel: int | None = None
    parts: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class Track:
    """One line: a thread's ranges of one depth or its calls, a stream's work, a GPU's idle time."""

    name: str
    kind: str
    events: list[Event]

    @property
    def height(self) -> int:
        """How tall it is, in pixels."""
        return HEIGHTS[self.kind]


@dataclass(frozen=True)
class View:
    """The tracks from the top, and the windows that they are of, the first of which is cut where too much is in it.

    `idle_ns` is the idle time by cause; `cut` says what is not drawn.
    """

    tracks: list[Track]
    windows: list[Window]
    idle_ns: dict[str, int] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)

    @property
    def tops(self) -> list[int]:
        """Where each track begins, in pixels, and where the last one and the gap below it end."""
        return list(accumulate((track.height + GAP for track in self.tracks), initial=SCALE))

    @property
    def height(self) -> int:
        """How tall the picture is, in pixels."""
        return self.tops[-1]

    @property
    def styles(self) -> list[str]:
        """The styles that are in the picture, in the order of the legend."""
        used = {event.style for track in self.tracks for event in track.events}
        return [style for style in styles.LEGEND if style in used]


def read(trace: Session, steps: StepOptions, windows: Sequence[Window], most: Most) -> View:
    """Read windows that do not overlap, in order; of a single one that holds too much, the beginning."""
    cut, kept = [], list(windows)

    def within(**limits: dict[str, int]) -> list[list[Any]]:
        starts, ends = ([window[at] for window in kept] for at in (0, 1))
        asked = {name: {"starts": starts, "ends": ends, **values} for name, values in limits.items()}
        found = ask_each(trace, steps, asked)
        # An event that reaches over several windows is found in each of them.
        return [list(dict.fromkeys(rows)) for rows in found] if len(kept) > 1 else found

    of_host: dict[str, dict[str, int]] = {
        "calls": {"most": most.calls}, "ranges": {"most": most.ranges, "deepest": most.deepest}, "gaps": {}
    }  # fmt: skip
    # There is rarely too much, and one round of queries is faster.
    operations, calls, ranges, gaps = within(operations={"most": most.operations}, **of_host)
    if len(operations) > most.operations and operations[most.operations].start_ns > kept[0].start_ns:
        whole, to_ns = kept[0], operations[most.operations].start_ns
        kept = [Window(whole.start_ns, to_ns)]
        operations = operations[: most.operations]
        cut.append(
            f"the first {value('a_ns', to_ns - whole.start_ns)} of {value('a_ns', whole.end_ns - whole.start_ns)},"
            f" {most.operations:,} operations"
        )
        calls, ranges, gaps = within(**of_host)
    if len(calls) > most.calls:
        cut.append(f"the {most.calls:,} longest calls")
    host, threads = _host(ranges[: most.ranges], calls[: most.calls])
    device, streams = _device(operations)
    idle, hidden, causes = _idle(gaps, most.gaps)
    cut += [f"{THREADS} of {threads} threads"] if threads > THREADS else []
    cut += [f"{STREAMS} of {streams} streams"] if streams > STREAMS else []
    cut += [f"{most.gaps:,} longest gaps of {hidden + most.gaps:,}"] if hidden else []
    return View([*host, *device, *idle], kept, causes, cut)


def _host(ranges: list[Any], calls: list[Any]) -> tuple[list[Track], int]:
    """The tracks of the threads that are longest in CUDA calls, each with its ranges above."""
    busy: dict[tuple[int, int], int] = defaultdict(int)
    calls_of: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for call in calls:
        busy[call.process_id, call.thread_id] += call.end_ns - call.start_ns
        calls_of[call.process_id, call.thread_id].append(call)
    for each in ranges:
        busy[each.process_id, each.thread_id] += 0
    shown = sorted(busy, key=lambda key: (-busy[key], key))[:THREADS]
    tracks = []
    for process, thread in shown:
        depths: dict[int, list[Event]] = defaultdict(list)
        for each in ranges:
            if (each.process_id, each.thread_id) == (process, thread):
                depths[each.depth].append(Event(each.start_ns, each.end_ns, "range", printable(each.name)))
        several = len({key[0] for key in busy}) > 1
        name = (f", {process}" if several else "") + (f", thread {thread}" if len(busy) > 1 else "")
        tracks += [
            Track(f"NVTX{name}" if depth == min(depths) else "", "nvtx", sorted(events))
            for depth, events in sorted(depths.items())
        ]
        events = [
            Event(call.start_ns, call.end_ns, styles.of_call(call.call_group), printable(call.name), call.call_group)
            for call in sorted(calls_of[process, thread])
        ]
        if events:
            tracks.append(Track(f"calls{name}", "host", events))
    return tracks, len(busy)


def _device(operations: list[Any]) -> tuple[list[Track], int]:
    """The tracks of the streams with most operations."""
    streams: dict[tuple[int, int, int], list[Event]] = defaultdict(list)
    for row in operations:
        label = printable(fit(readable(row.name), _NAME))
        more = f", {value('a_bytes', row.size_bytes)}" if row.size_bytes else ""
        kernel = row.name_id if row.kind == "kernel" else None
        streams[row.device_id, row.process_id, row.stream_id].append(
            Event(row.start_ns, row.end_ns, styles.of_work(row.family), label, f"{row.family}{more}", kernel)
        )
    several = len({key[:2] for key in streams}) > 1
    shown = sorted(sorted(streams, key=lambda key: (-len(streams[key]), key))[:STREAMS])
    return [
        Track(f"GPU {key[0]}, {key[1]}: stream {key[2]}" if several else f"stream {key[2]}", "gpu", streams[key])
        for key in shown
    ], len(streams)


def _idle(rows: list[Any], most: int) -> tuple[list[Track], int, dict[str, int]]:
    """The tracks of idle time, a GPU each; a gap has the style of its main cause."""
    gaps: dict[tuple[int, int, int], list[tuple[str, str, int]]] = defaultdict(list)
    causes: dict[str, int] = defaultdict(int)
    for gpu, start, end, cause, host, idle_ns in rows:
        gaps[gpu, start, end].append((cause, host, idle_ns))
        causes[cause] += idle_ns
    longest = sorted(gaps, key=lambda gap: (gap[1] - gap[2], gap))[:most] if len(gaps) > most else list(gaps)
    tracks: dict[int, list[Event]] = defaultdict(list)
    for gap in sorted(longest):
        gpu, start, end = gap
        tracks[gpu].append(Event(start, end, _mainly(gaps[gap]), "idle", parts=tuple(gaps[gap])))
    named = len(tracks) > 1
    return (
        [Track(f"GPU {gpu} idle" if named else "GPU idle", "idle", events) for gpu, events in sorted(tracks.items())],
        len(gaps) - len(longest),
        dict(causes),
    )


def _mainly(parts: Sequence[tuple[str, str, int]]) -> str:
    """The main cause of a gap."""
    by_cause: dict[str, int] = {}
    for cause, _, idle_ns in parts:
        by_cause[cause] = by_cause.get(cause, 0) + idle_ns
    return max(by_cause, key=lambda cause: (by_cause[cause], cause)) if len(by_cause) > 1 else next(iter(by_cause))
