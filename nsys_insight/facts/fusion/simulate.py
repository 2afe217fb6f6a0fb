"""The typical step simulated with some of its kernels fused: what saved host or GPU time is worth in wall time.

The host does one thing after another: launch calls, what it does between them, and waits for the GPU. A stream runs its
operations in order, each when its launch call has reached the GPU and the one before it is done. So a chain that is
fused in a queue that is deep saves GPU time only, and one that the GPU waits for saves host time only. Events between
streams are not simulated.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.fusion.stream import Wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.facts.fusion.stream import Op

# The least time between two kernels of a stream, where the trace shows none: as in graphs and deep queues on an H200.
LEAST_GAP_NS = 700.0
# Starting and ending a kernel costs about 1 µs; where even the shortest kernels take longer than this, they work.
MOST_FIXED_NS = 2_000.0
# A kernel that starts within so many times the usual latency of its call has not waited for the one before it.
AT_ONCE = 1.5
ROUNDS = 4


class Event(NamedTuple):
    """What the host does next: launches an operation, or waits (op is None).

    From the beginning of a call, or the end of a wait, it takes `advance_ns` until the next event.
    """

    op: Op | None
    advance_ns: float
    latency_ns: float = 0.0
    gap_ns: float = 0.0
    tail_ns: float = 0.0
    depends: bool = True


@dataclass
class Change:
    """What is fused: operations that vanish, and those that take their place.

    `runs` has the duration and the gap before those, `extra` the host time that their calls take more; `calls` what a
    graph launch takes less for nodes that vanish.
    """

    gone: set[Op] = field(default_factory=set)
    runs: dict[Op, tuple[float, float]] = field(default_factory=dict)
    extra: dict[Op, float] = field(default_factory=dict)
    calls: dict[int, float] = field(default_factory=dict)

    def with_(self, other: Change) -> Change:
        """Both changes."""
        calls = {call: self.calls.get(call, 0) + other.calls.get(call, 0) for call in self.calls | other.calls}
        return Change(self.gone | other.gone, self.runs | other.runs, self.extra | other.extra, calls)


NOTHING = Change()


class Timeline:
    """The typical step as the host's events in order, with what each kernel waits for.

    Args:
        ops: The operations of all streams.
        waits: When the host waits.
        host_ns: How long the step lasts on the host.
        wall_ns: How long it lasts.
    """

    def __init__(self, ops: Sequence[Op], waits: Sequence[Wait], host_ns: float, wall_ns: float) -> None:
        """Tell for each operation whether it waited for its call or for its stream."""
        self.fixed_ns = min(MOST_FIXED_NS, _low([op.duration_ns for op in ops if op.kind == "kernel"]))
        called = [op for op in ops if op.call_ns is not None]
        # A host that is half a step ahead, always, is never waited for.
        self.is_ahead = not called or min(op.start_ns - (op.call_ns or 0) for op in called) > wall_ns / 2
        neighbours = _neighbours(ops)
        self.before = {op: earlier.end_ns - (wall_ns if wraps else 0) for earlier, op, wraps in neighbours}
        # The nodes of a graph follow each other without the host.
        self.nodes_after = {
            op
            for earlier, op, wraps in neighbours
            if op.in_graph and earlier.correlation == op.correlation and not wraps
        }
        self.late = {op for op in called if (op.call_ns or 0) > self.before[op]}
        self.usual_ns = median([op.start_ns - (op.call_ns or 0) for op in self.late] or [0.0])
        queued = [op.start_ns - self.before[op] for op in ops if op not in self.late]
        self.least_ns = _low([gap for gap in queued if gap > 0]) or LEAST_GAP_NS
        self.events = self._events(ops, waits, host_ns)
        self.advance_ns = {event.op: event.advance_ns for event in self.events if event.op}
        self.nodes: dict[int, int] = defaultdict(int)
        for op in ops:
            self.nodes[op.correlation or 0] += op.in_graph

    def _events(self, ops: Sequence[Op], waits: Sequence[Wait], host_ns: float) -> list[Event]:
        """Put calls and waits in the host's order. An operation without a call goes with the one before it."""
        known = sorted(ops, key=lambda op: (op.call_ns if op.call_ns is not None else op.start_ns, op.start_ns))
        moments: list[tuple[float, int, Op | Wait]] = [
            (op.call_ns if op.call_ns is not None else 0.0, 0, op) for op in known
        ]
        moments += [(wait.start_ns, 1, wait) for wait in waits]
        moments.sort(key=lambda moment: moment[:2])
        events, done = [], 0.0
        for at, (start, _, what) in enumerate(moments):
            following = moments[at + 1][0] if at + 1 < len(moments) else host_ns + moments[0][0]
            if isinstance(what, Wait):
                # What was launched before and ends later than the wait is not what was waited for.
                depends = done <= what.end_ns
                tail = what.end_ns - max(done, what.start_ns) if depends else what.end_ns - what.start_ns
                events.append(Event(None, max(0.0, following - what.end_ns), tail_ns=tail, depends=depends))
            else:
                advance = 0.0 if self.is_ahead else max(0.0, following - start)
                events.append(Event(what, advance, *self._starts(what)))
                done = max(done, what.end_ns)
        return events

    def _starts(self, op: Op) -> tuple[float, float]:
        """How long after its call an operation may start, and how long after the one before it."""
        gap = max(0.0, op.start_ns - self.before[op])
        if op.call_ns is None or op in self.nodes_after:
            return 0.0, gap
        latency = op.start_ns - op.call_ns
        if op in self.late or (latency <= AT_ONCE * self.usual_ns and gap > self.least_ns):
            return latency, min(gap, self.least_ns)
        return min(latency, self.usual_ns), gap

    def period(self, change: Change = NOTHING) -> float:
        """How long a step lasts when steps like this follow each other, in ns."""
        # What is the same in each round: on which stream something runs, if it does, and how long what takes.
        events = list(self._changed(change))
        now, done, ends = 0.0, 0.0, []
        ready = {event[0]: -1e18 for event in events}
        for _ in range(ROUNDS):
            for stream, advance, latency, least, duration, depends in events:
                if stream is None:
                    now = (max(now, done) if depends else now) + latency + advance
                    continue
                if duration is not None:
                    ready[stream] = end = max(now + latency, ready[stream] + least) + duration
                    done = max(done, end)
                now += advance
            ends.append(done)
        return ends[-1] - ends[-2]

    def _changed(
        self, change: Change
    ) -> Iterator[tuple[tuple[int, int] | None, float, float, float, float | None, bool]]:
        """Give the events with a change: waits without a stream, and operations that are gone without a duration."""
        for op, advance, latency, gap, tail, depends in self.events:
            if op is None:
                yield None, advance, tail, 0.0, None, depends
                continue
            stream, cut = (op.device, op.stream), change.calls.get(op.correlation or 0, 0.0) if op.in_graph else 0.0
            if op in change.gone:
                yield stream, max(0.0, advance - cut) if op.in_graph else 0.0, 0.0, 0.0, None, False
                continue
            duration, least = change.runs.get(op) or (op.duration_ns, gap)
            moved = max(0.0, advance - cut) + change.extra.get(op, 0.0)
            yield stream, moved, max(0.0, latency - cut), least, duration, False


def _neighbours(ops: Sequence[Op]) -> list[tuple[Op, Op, bool]]:
    """Each operation after the one before it on its stream; the first after the last one, of the step before."""
    streams: dict[tuple[int, int], list[Op]] = defaultdict(list)
    for op in ops:
        streams[op.device, op.stream].append(op)
    return [
        (earlier, op, at == 0)
        for line in streams.values()
        for at, (earlier, op) in enumerate(zip([line[-1], *line], line, strict=False))
    ]


def _low(values: list[float]) -> float:
    """The 5th percentile; 0 of nothing."""
    return sorted(values)[len(values) // 20] if values else 0.0
