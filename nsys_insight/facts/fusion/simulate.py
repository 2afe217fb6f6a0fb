"""The typical step, simulated with some of its kernels fused: what saved host or GPU time saves in wall time.

The host does one thing at a time: launch calls, the work between them, and waits for the GPU. A stream runs its
operations in order. Each starts when its launch call has reached the GPU and the operation before it has ended. So a
chain in a deep queue saves only GPU time, and a chain that the GPU waits for saves only host time. Events between
streams are not simulated.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.fusion.stream import Op, Wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# The minimum gap between two kernels of a stream, where the trace shows none: the value in graphs and deep queues on an
# H200.
MIN_GAP_NS = 700.0
# Starting and ending a kernel costs about 1 µs. If even the shortest kernels take longer than this, they do work.
MAX_FIXED_NS = 2_000.0
# A kernel has not waited for the kernel before it if its latency is at most this multiple of the usual latency.
MAX_LATENCY_RATIO = 1.5
ROUNDS = 4


class Event(NamedTuple):
    """What the host does next: it launches an operation, or waits (without `op`).

    `advance_ns` is the time until the next event, from the start of a call or the end of a wait. An operation starts at
    the later of two times: `latency_ns` after its call, and `gap_ns` after the operation before it. A wait returns
    `tail_ns` after the last operation if `is_dependent`; otherwise it takes that long.
    """

    op: Op | None
    advance_ns: float
    latency_ns: float = 0.0
    gap_ns: float = 0.0
    tail_ns: float = 0.0
    is_dependent: bool = True


@dataclass
class Change:
    """Fused chains: the operations that disappear, and the operations that replace them.

    `runs` has duration and preceding gap of each fused kernel. `extra` is the host time by which the launch of a fused
    kernel is longer. `calls` is the time by which a graph launch is shorter for its removed nodes, by correlation id.
    """

    removed: set[Op] = field(default_factory=set)
    runs: dict[Op, tuple[float, float]] = field(default_factory=dict)
    extra: dict[Op, float] = field(default_factory=dict)
    calls: dict[int, float] = field(default_factory=dict)

    def merge(self, other: Change) -> Change:
        """Return both changes together."""
        calls = {call: self.calls.get(call, 0) + other.calls.get(call, 0) for call in self.calls | other.calls}
        return Change(self.removed | other.removed, self.runs | other.runs, self.extra | other.extra, calls)


NOTHING = Change()


class Timeline:
    """The typical step as the host's events in order, with what each kernel waits for.

    Args:
        ops: The operations of all streams.
        waits: The waits of the host.
        host_ns: How long the step lasts on the host.
        wall_ns: The step time.
    """

    def __init__(self, ops: Sequence[Op], waits: Sequence[Wait], host_ns: float, wall_ns: float) -> None:
        """Determine for each operation whether it waited for its call or for its stream."""
        self.fixed_ns = min(MAX_FIXED_NS, _low_quantile([op.duration_ns for op in ops if op.kind == "kernel"]))
        with_call = [op for op in ops if op.call_ns is not None]
        # The GPU never waits for a host that is always half a step ahead.
        self.is_ahead = not with_call or min(op.start_ns - (op.call_ns or 0) for op in with_call) > wall_ns / 2
        neighbors = _pair_neighbors(ops)
        self.previous_end = {op: earlier.end_ns - (wall_ns if wraps else 0) for earlier, op, wraps in neighbors}
        # The nodes of a graph follow each other without the host.
        self.nodes_after = {
            op
            for earlier, op, wraps in neighbors
            if op.is_in_graph and earlier.correlation == op.correlation and not wraps
        }
        self.late = {op for op in with_call if (op.call_ns or 0) > self.previous_end[op]}
        self.usual_ns = median([op.start_ns - (op.call_ns or 0) for op in self.late] or [0.0])
        queued = [op.start_ns - self.previous_end[op] for op in ops if op not in self.late]
        self.min_gap_ns = _low_quantile([gap for gap in queued if gap > 0]) or MIN_GAP_NS
        self.events = self._build_events(ops, waits, host_ns)
        self.advance_ns = {event.op: event.advance_ns for event in self.events if event.op}
        self.nodes: dict[int, int] = defaultdict(int)
        for op in ops:
            self.nodes[op.correlation or 0] += op.is_in_graph

    def _build_events(self, ops: Sequence[Op], waits: Sequence[Wait], host_ns: float) -> list[Event]:
        """Put calls and waits in the host's order. An operation without a call goes with the operation before it."""
        ordered = sorted(ops, key=lambda op: (op.call_ns if op.call_ns is not None else op.start_ns, op.start_ns))
        moments: list[tuple[float, int, Op | Wait]] = [
            (op.call_ns if op.call_ns is not None else 0.0, 0, op) for op in ordered
        ]
        moments += [(wait.start_ns, 1, wait) for wait in waits]
        moments.sort(key=lambda moment: moment[:2])
        events, last_end = [], 0.0
        for index, (start, _, action) in enumerate(moments):
            next_start = moments[index + 1][0] if index + 1 < len(moments) else host_ns + moments[0][0]
            if isinstance(action, Wait):
                # A wait cannot depend on an earlier operation that ends after it.
                is_dependent = last_end <= action.end_ns
                tail = action.end_ns - (max(last_end, action.start_ns) if is_dependent else action.start_ns)
                events.append(
                    Event(None, max(0.0, next_start - action.end_ns), tail_ns=tail, is_dependent=is_dependent)
                )
            else:
                advance = 0.0 if self.is_ahead else max(0.0, next_start - start)
                events.append(Event(action, advance, *self._measure_delays(action)))
                last_end = max(last_end, action.end_ns)
        return events

    def _measure_delays(self, op: Op) -> tuple[float, float]:
        """Return the minimum time from its call to an operation, and from the operation before it."""
        gap = max(0.0, op.start_ns - self.previous_end[op])
        if op.call_ns is None or op in self.nodes_after:
            return 0.0, gap
        latency = op.start_ns - op.call_ns
        if op in self.late or (latency <= MAX_LATENCY_RATIO * self.usual_ns and gap > self.min_gap_ns):
            return latency, min(gap, self.min_gap_ns)
        return min(latency, self.usual_ns), gap

    def simulate_period(self, change: Change = NOTHING) -> float:
        """Return the step time when steps with this change follow each other, in ns."""
        # Events are the same in each round: streams, delays and durations.
        events = list(self._apply(change))
        now, last_end, round_ends = 0.0, 0.0, []
        ready = {event[0]: -1e18 for event in events}
        for _ in range(ROUNDS):
            for stream, advance, latency, min_gap, duration, is_dependent in events:
                if stream is None:
                    now = (last_end if is_dependent and last_end > now else now) + latency + advance
                    continue
                if duration is not None:
                    arrived, free = now + latency, ready[stream] + min_gap
                    ready[stream] = end = (arrived if arrived > free else free) + duration  # noqa: FURB136 - max() is slow
                    last_end = end if end > last_end else last_end  # noqa: FURB136
                now += advance
            round_ends.append(last_end)
        return round_ends[-1] - round_ends[-2]

    def _apply(
        self, change: Change
    ) -> Iterator[tuple[tuple[int, int] | None, float, float, float, float | None, bool]]:
        """Yield the events with a change: stream, advance, latency, gap, duration, and `is_dependent`.

        A wait has no stream, and a removed operation no duration. The latency of a wait is its tail.
        """
        for op, advance, latency, gap, tail, is_dependent in self.events:
            if op is None:
                yield None, advance, tail, 0.0, None, is_dependent
                continue
            stream = (op.device, op.stream)
            shorter = change.calls.get(op.correlation or 0, 0.0) if op.is_in_graph else 0.0
            if op in change.removed:
                yield stream, max(0.0, advance - shorter) if op.is_in_graph else 0.0, 0.0, 0.0, None, False
                continue
            duration, min_gap = change.runs.get(op) or (op.duration_ns, gap)
            new_advance = max(0.0, advance - shorter) + change.extra.get(op, 0.0)
            yield stream, new_advance, max(0.0, latency - shorter), min_gap, duration, False


def _pair_neighbors(ops: Sequence[Op]) -> list[tuple[Op, Op, bool]]:
    """Pair each operation with the operation before it on its stream, and flag pairs that wrap around.

    The operation before the first is the last operation of the step before.
    """
    streams: dict[tuple[int, int], list[Op]] = defaultdict(list)
    for op in ops:
        streams[op.device, op.stream].append(op)
    return [
        (earlier, op, index == 0)
        for stream_ops in streams.values()
        for index, (earlier, op) in enumerate(zip([stream_ops[-1], *stream_ops], stream_ops, strict=False))
    ]


def _low_quantile(values: list[float]) -> float:
    """Return the 5th percentile; 0 without values."""
    return sorted(values)[len(values) // 20] if values else 0.0
