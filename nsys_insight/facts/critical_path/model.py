"""Steps as a host that does one thing after another and streams that run their operations in order.

What each call and operation waited for is told from the recording: the later one of the two times that it had to wait
for. The other one is given no more delay than is usual, so that it counts as soon as the first one is faster.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# What an element of a step is: its kind, its name, and the NVTX ranges around CPU work.
Element = tuple[str, str, str | None]

# The least time between two operations of a stream, where the trace shows none.
LEAST_GAP_NS = 700.0
# An operation that starts later than this after the one before it, its call long made, waited for something else.
MOST_GAP_NS = 5_000.0
# A launch call that takes so many times as long as usual, and this long, had no room left in the queue.
BLOCKED, BLOCKED_NS = 10, 50_000.0
# From a call to the start of its operation, where no stream is ever idle.
LAUNCH_NS = 5_000.0
# What a wait takes that finds its work done, where the trace shows none.
LEAST_WAIT_NS = 1_000.0


class Call(NamedTuple):
    """A call of the host, as recorded; `path` are the NVTX ranges around the time before it."""

    start_ns: int
    end_ns: int
    thread_id: int
    name: str
    call_group: str
    correlation_id: int | None
    path: str | None


class Operation(NamedTuple):
    """An operation of a GPU, as recorded."""

    start_ns: int
    end_ns: int
    kind: str
    name: str
    is_communication: bool
    device_id: int
    stream_id: int
    correlation_id: int

    @property
    def stream(self) -> tuple[int, int]:
        """Its stream."""
        return self.device_id, self.stream_id


class Wait(NamedTuple):
    """What a call waits for: its own copy, a stream, or all where no stream is known."""

    correlation_id: int
    is_copy: bool
    until_ns: int | None
    device_id: int | None
    stream_id: int | None


@dataclass
class Run:
    """A simulated operation: it starts `gap_ns` after the one before it on its stream, or when its call allows.

    That is `in_call_ns` after the begin of the call, which are a part of the call, and `after_ns`.
    """

    element: Element
    stream: tuple[int, int]
    runs_ns: float
    in_call_ns: float = 0.0
    after_ns: float = 0.0
    gap_ns: float = 0.0
    # The operations of other streams that it waits for: how many before it in the order of launch, and the delay.
    others: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class Event:
    """What the host does: for `work_ns` nothing with CUDA, then a call.

    A call that waits returns `tail_ns` after the last of the operations that it waits for: of each stream that many
    before the next one to be launched.
    """

    work: Element
    work_ns: float
    call: Element
    call_ns: float
    runs: list[Run] = field(default_factory=list)
    waits_for: list[int] | None = None
    waits_for_own: bool = False
    tail_ns: float = 0.0


def _element(operation: Operation) -> Element:
    return "communication" if operation.is_communication else operation.kind, operation.name, None


def overlap(calls: Sequence[Call]) -> float:
    """The share of time in calls in which another thread is in a call, too."""
    total, both = 0, 0
    until = calls[0].start_ns if calls else 0
    for call in calls:
        total += call.end_ns - call.start_ns
        both += max(0, min(until, call.end_ns) - call.start_ns)
        until = max(until, call.end_ns)
    return both / total if total else 0.0


def events(
    calls: Sequence[Call], operations: Sequence[Operation], waits: Sequence[Wait], from_ns: int, to_ns: int
) -> list[Event]:
    """Put steps into the host's order: calls and operations by the begin of their call, with what each waited for.

    A call at `to_ns` or after is not theirs: the host's work up to `to_ns` is before it.
    """
    steps = _Steps([call for call in calls if call.start_ns < to_ns], operations, waits)
    return steps.events(from_ns, to_ns, next((call.path for call in calls if call.start_ns >= to_ns), None))


class _Steps:
    """What was recorded of some steps, and the usual delays in them."""

    def __init__(self, calls: Sequence[Call], operations: Sequence[Operation], waits: Sequence[Wait]) -> None:
        self.calls = calls
        of_call: dict[int, list[Operation]] = defaultdict(list)
        for operation in operations:
            of_call[operation.correlation_id].append(operation)
        self.own = [of_call.get(call.correlation_id or -1, []) for call in calls]
        self.launched = [operation for own in self.own for operation in own]
        self.call_of = [call for call, own in zip(calls, self.own, strict=True) for _ in own]
        self.waits = {wait.correlation_id: wait for wait in waits}
        self.before: list[Operation | None] = []
        last: dict[tuple[int, int], Operation] = {}
        for operation in self.launched:
            self.before.append(last.get(operation.stream))
            last[operation.stream] = operation
        gaps = [
            operation.start_ns - before.end_ns
            for operation, before, call in zip(self.launched, self.before, self.call_of, strict=True)
            if before and call.end_ns <= before.end_ns < operation.start_ns
        ]
        self.least_ns = sorted(gaps)[len(gaps) // 20] if gaps else LEAST_GAP_NS
        delays: dict[str, list[int]] = defaultdict(list)
        for operation, before, call in zip(self.launched, self.before, self.call_of, strict=True):
            if before and before.end_ns <= call.start_ns:
                delays[call.name].append(operation.start_ns - call.start_ns)
        self.delays = {name: median(each) for name, each in delays.items()}
        self.delay_ns = median([each for some in delays.values() for each in some] or [LAUNCH_NS])
        times: dict[str, list[int]] = defaultdict(list)
        for call in calls:
            times[call.name].append(call.end_ns - call.start_ns)
        self.usual_ns = {name: median(each) for name, each in times.items()}

    def events(self, from_ns: int, to_ns: int, last_path: str | None) -> list[Event]:
        made, number, until = [], 0, from_ns
        for call, own in zip(self.calls, self.own, strict=True):
            wait = self.waits.get(call.correlation_id or -1)
            event = Event(
                ("CPU work", "", call.path), max(0.0, call.start_ns - until),
                ("API call", call.name, None), float(call.end_ns - max(call.start_ns, min(until, call.end_ns))),
            )  # fmt: skip
            event.runs = [self._run(number + at, at) for at in range(len(own))]
            if wait:
                self._wait(event, call, wait, number + len(own), number)
            elif own and self._is_blocked(call, number):
                event.call_ns = self.usual_ns[call.name]
            number += len(own)
            until = max(until, call.end_ns)
            made.append(event)
        rest: Element = ("CPU work", "", last_path)
        return [*made, Event(rest, max(0.0, to_ns - until), rest, 0.0)]

    def _is_blocked(self, call: Call, number: int) -> bool:
        """Whether a launch call took so long because the queue was full."""
        before = self.before[number]
        took = call.end_ns - call.start_ns
        return bool(
            before and before.end_ns > call.end_ns and took > max(BLOCKED_NS, BLOCKED * self.usual_ns[call.name])
        )

    def _run(self, number: int, place: int) -> Run:
        operation, call, before = self.launched[number], self.call_of[number], self.before[number]
        took = float(call.end_ns - call.start_ns)
        delay = float(max(0, operation.start_ns - call.start_ns))
        gap = float(max(0, operation.start_ns - before.end_ns)) if before else self.least_ns
        run = Run(_element(operation), operation.stream, float(operation.end_ns - operation.start_ns))
        if place:  # the nodes of a graph follow each other without the host
            delay, usual = 0.0, 0.0
        else:
            usual = self.delays.get(call.name, self.delay_ns)
        # The stream was idle when the call began, or when the call usually reaches it.
        is_late = (
            before is not None
            and not place
            and (call.start_ns >= before.end_ns or call.start_ns + usual > before.end_ns + self.least_ns)
        )
        delay = delay if is_late else min(delay, usual)
        run.in_call_ns = min(delay, took)
        run.after_ns = delay - run.in_call_ns
        run.gap_ns = min(gap, self.least_ns)
        if is_late or not before:  # what the first one of a stream came after is not among these steps
            return run
        other = self._other(number, before) if gap > MOST_GAP_NS else None
        if other is not None:
            run.others = [(number - other, float(operation.start_ns - self.launched[other].end_ns))]
        else:
            run.gap_ns = gap
        return run

    def _other(self, number: int, before: Operation) -> int | None:
        """The operation of another stream, launched before, at whose end this one started."""
        operation = self.launched[number]
        for other in range(number - 1, max(-1, number - 500), -1):
            end = self.launched[other].end_ns
            if before.end_ns < end <= operation.start_ns and operation.start_ns - end <= MOST_GAP_NS:
                return other
        return None

    def _wait(self, event: Event, call: Call, wait: Wait, launched: int, before: int) -> None:
        """Say what a call waits for, and how long it takes by itself."""
        took = float(call.end_ns - call.start_ns)
        if wait.is_copy and launched > before:
            event.waits_for_own = True
            ends = [self.launched[at].end_ns for at in range(before, launched)]
        else:
            streams: dict[tuple[int, int], int] = {}
            for at in range(launched):
                operation = self.launched[at]
                is_meant = wait.stream_id is None or (
                    operation.stream_id == wait.stream_id and wait.device_id in (None, operation.device_id)
                )
                if (
                    is_meant
                    and self.call_of[at].start_ns < (wait.until_ns or call.start_ns)
                    and operation.end_ns <= call.end_ns
                ):
                    streams[operation.stream] = at
            event.waits_for = [launched - at for at in streams.values()]
            ends = [self.launched[at].end_ns for at in streams.values()]
        end = max(ends, default=call.start_ns)
        if end > call.start_ns:
            event.tail_ns = max(0.0, float(call.end_ns - end))
            event.call_ns = min(took, event.tail_ns, LEAST_WAIT_NS)
        else:
            event.tail_ns = min(LEAST_WAIT_NS, float(call.end_ns - end))
