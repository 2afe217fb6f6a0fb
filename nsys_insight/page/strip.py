"""The timeline strip: what the host did and what the GPUs did in one step, moment by moment."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.page import looks
from nsys_insight.page.asking import ask
from nsys_insight.page.pictures import Bar
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit, readable
from nsys_insight.text.quantities import value

if TYPE_CHECKING:
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# So many operations, calls and gaps are drawn at most: more would make the page heavy, and no one could see them.
OPERATIONS = CALLS = GAPS = 2_000
RANGES, DEEPEST = 300, 3
THREADS, STREAMS = 4, 12
# Pixels: how tall the lanes of each kind are, how far apart, and the scale above them.
_HEIGHTS, _APART, _SCALE = {"nvtx": 18, "host": 20, "gpu": 28, "idle": 16}, 4, 22
# The narrowest that still can be seen and pointed at, in % of the width.
_LEAST = 0.06


@dataclass(frozen=True)
class Lane:
    """One line of the strip: a thread's ranges or calls, a stream's work, a GPU's idle time."""

    name: str
    kind: str
    bars: list[Bar]

    @property
    def height(self) -> int:
        """How tall it is, in pixels."""
        return _HEIGHTS[self.kind]


@dataclass(frozen=True)
class Strip:
    """The drawn window: from `from_ns` to `to_ns` of the trace's time; `step` is the number of the step, if it is one.

    `ticks` are places in % with the time since the start of the window; `cut` says what is not drawn.
    """

    step: int | None
    from_ns: int
    to_ns: int
    lanes: list[Lane]
    ticks: list[tuple[float, str]]
    idle_ns: dict[str, int]
    cut: list[str] = field(default_factory=list)

    @property
    def tops(self) -> list[int]:
        """Where each lane begins, in pixels, and where the last one ends."""
        return list(accumulate((lane.height + _APART for lane in self.lanes), initial=_SCALE))

    @property
    def looks(self) -> list[str]:
        """The looks that are in the picture, in the order of the legend."""
        seen = {bar.look for lane in self.lanes for bar in lane.bars}
        return [look for look in looks.LEGEND if look in seen]


class _Window:
    """A window of time; gives the places of what happens in it."""

    def __init__(self, from_ns: int, to_ns: int) -> None:
        self.from_ns, self.to_ns = from_ns, to_ns
        self.ns = to_ns - from_ns

    def bar(self, start: int, end: int, look: str, label: str, tip: str) -> Bar:
        first, last = max(start, self.from_ns), min(end, self.to_ns)
        when = f"at {value('a_ns', start - self.from_ns)}" if start >= self.from_ns else "begun before"
        width = max(100 * (last - first) / self.ns, _LEAST)
        left = min(100 * (first - self.from_ns) / self.ns, 100 - _LEAST)
        return Bar(left, width, look, label, f"{label}\n{value('a_ns', end - start)}, {when}{tip}")


def strip(trace: Session, steps: StepOptions, step: int | None = None) -> Strip | None:
    """Draw the step of this number, or a typical one, or where there are no steps the whole.

    Returns None where nothing ran on a GPU.

    Raises:
        UsageError: There is no step of this number.
    """
    found = ask(trace, "step", steps) if step is None else ask(trace, "one_step", steps, step=step)
    if step is not None and not found:
        raise UsageError(f"there is no step {step}", "nsys-insight steps lists them")
    drawn = found or ask(trace, "whole", steps)
    if not drawn or drawn[0].start_ns == drawn[0].end_ns:
        return None
    number = drawn[0].step if found else None
    from_ns, to_ns = drawn[0].start_ns, drawn[0].end_ns
    cut = []
    operations = ask(trace, "operations", steps, from_ns=from_ns, to_ns=to_ns, most=OPERATIONS)
    if len(operations) > OPERATIONS and operations[OPERATIONS].start_ns > from_ns:
        whole_ns, to_ns = to_ns - from_ns, operations[OPERATIONS].start_ns
        operations = operations[:OPERATIONS]
        cut.append(
            f"the first {value('a_ns', to_ns - from_ns)} of {value('a_ns', whole_ns)}, {OPERATIONS:,} operations"
        )
    window = _Window(from_ns, to_ns)
    calls = ask(trace, "calls", steps, from_ns=from_ns, to_ns=to_ns, most=CALLS)
    if len(calls) > CALLS:
        cut.append(f"the {CALLS:,} longest calls")
    ranges = ask(trace, "ranges", steps, from_ns=from_ns, to_ns=to_ns, most=RANGES, deepest=DEEPEST)
    gaps = ask(trace, "gaps", steps, from_ns=from_ns, to_ns=to_ns)
    host, threads = _host(window, ranges[:RANGES], calls[:CALLS])
    device, streams = _device(window, operations)
    idle, hidden, causes = _idle(window, gaps)
    cut += [f"{THREADS} of {threads} threads"] if threads > THREADS else []
    cut += [f"{STREAMS} of {streams} streams"] if streams > STREAMS else []
    cut += [f"{GAPS:,} longest gaps of {hidden + GAPS:,}"] if hidden else []
    return Strip(number, from_ns, to_ns, [*host, *device, *idle], _ticks(window), causes, cut)


def _host(window: _Window, ranges: list[Any], calls: list[Any]) -> tuple[list[Lane], int]:
    """The lanes of the threads that are longest in CUDA calls, each with its ranges above."""
    busy: dict[tuple[int, int], int] = defaultdict(int)
    for call in calls:
        busy[call.process_id, call.thread_id] += call.end_ns - call.start_ns
    for each in ranges:
        busy[each.process_id, each.thread_id] += 0
    shown = sorted(busy, key=lambda key: (-busy[key], key))[:THREADS]
    lanes = []
    for process, thread in shown:
        depths: dict[int, list[Bar]] = defaultdict(list)
        for each in ranges:
            if (each.process_id, each.thread_id) == (process, thread):
                bar = window.bar(each.start_ns, each.end_ns, "range", printable(each.name), "")
                depths[each.depth].append(bar)
        several = len({key[0] for key in busy}) > 1
        name = (f", {process}" if several else "") + (f", thread {thread}" if len(busy) > 1 else "")
        lanes += [
            Lane(f"NVTX{name}" if depth == min(depths) else "", "nvtx", bars) for depth, bars in sorted(depths.items())
        ]
        bars = [
            window.bar(call.start_ns, call.end_ns, looks.of_call(call.call_group), call.name, f"\n{call.call_group}")
            for call in sorted(calls, key=lambda call: (call.start_ns, call.end_ns, call.call_group, call.name))
            if (call.process_id, call.thread_id) == (process, thread)
        ]
        if bars:
            lanes.append(Lane(f"calls{name}", "host", bars))
    return lanes, len(busy)


def _device(window: _Window, operations: list[Any]) -> tuple[list[Lane], int]:
    """The lanes of the streams with most operations."""
    streams: dict[tuple[int, int, int], list[Bar]] = defaultdict(list)
    short: dict[str, str] = {}
    for row in operations:
        label = short.setdefault(row.name, printable(fit(readable(row.name), 72)))
        more = f", {value('a_bytes', row.size_bytes)}" if row.size_bytes else ""
        streams[row.device_id, row.process_id, row.stream_id].append(
            window.bar(row.start_ns, row.end_ns, looks.of_work(row.family), label, f"\n{row.family}{more}")
        )
    several = len({key[:2] for key in streams}) > 1
    shown = sorted(sorted(streams, key=lambda key: (-len(streams[key]), key))[:STREAMS])
    return [
        Lane(f"GPU {key[0]}, {key[1]}: stream {key[2]}" if several else f"stream {key[2]}", "gpu", streams[key])
        for key in shown
    ], len(streams)


def _idle(window: _Window, rows: list[Any]) -> tuple[list[Lane], int, dict[str, int]]:
    """The lanes of idle time, a GPU each; a gap has the colour of its main cause."""
    gaps: dict[tuple[int, int, int], list[tuple[str, str, int]]] = defaultdict(list)
    causes: dict[str, int] = defaultdict(int)
    for row in rows:
        gaps[row.gpu_id, row.start_ns, row.end_ns].append((row.cause, row.host, row.idle_ns))
        causes[row.cause] += row.idle_ns
    longest = sorted(gaps, key=lambda gap: (gap[1] - gap[2], gap))[:GAPS]
    lanes: dict[int, list[Bar]] = defaultdict(list)
    for gpu, start, end in sorted(longest):
        made_of = gaps[gpu, start, end]
        by_cause: dict[str, int] = defaultdict(int)
        for cause, _, idle_ns in made_of:
            by_cause[cause] += idle_ns
        mainly = max(by_cause, key=lambda cause: (by_cause[cause], cause))
        tip = "".join(f"\n{cause}, {host}: {value('a_ns', idle_ns)}" for cause, host, idle_ns in made_of)
        lanes[gpu].append(window.bar(start, end, mainly, "idle", tip))
    named = len(lanes) > 1
    return (
        [Lane(f"GPU {gpu} idle" if named else "GPU idle", "idle", bars) for gpu, bars in sorted(lanes.items())],
        len(gaps) - len(longest),
        dict(causes),
    )


def _ticks(window: _Window) -> list[tuple[float, str]]:
    """Round times since the start of the window, four to nine of them; none at the end, where it would be cut off."""
    rough = window.ns / 9
    power = 10 ** math.floor(math.log10(max(rough, 1)))
    apart = max(1, next(int(power * one) for one in (1, 2, 5, 10) if power * one >= rough or one == 10))
    return [(100 * at / window.ns, value("a_ns", at) if at else "0") for at in range(0, int(0.96 * window.ns), apart)]
