"""A model of steps: a host that does one thing at a time, and streams that run their operations in order.

Each call and operation waited for the later of its two dependencies, inferred from the recorded times. The earlier
dependency gets no more than the usual delay, so it becomes critical as soon as the later one is faster.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# An element of a step: its kind, its name, and for CPU work the NVTX ranges around it.
Element = tuple[str, str, str | None]

# The minimum gap between two operations of a stream, where the trace shows none.
MIN_GAP_NS = 700.0
# An operation waited for something else if it starts later than this after the operation before it, and was launched
# long before.
MAX_GAP_NS = 5_000.0
# A launch call was blocked by a full queue if it took this multiple of the usual time, and at least this long.
BLOCKED_FACTOR, BLOCKED_NS = 10, 50_000.0
# An operation that starts this long after its call has returned, at the end of one of another stream, waited for that:
# the first launch of a kernel waits for the kernels that run, and a block for an SM that has room for it. Such a block
# starts before the last block of the other kernel has ended.
LONG_LATENCY_NS = 50_000.0
# The time from a call to the start of its operation, where no stream is ever idle.
LAUNCH_NS = 5_000.0
# The duration of a wait whose work has already ended, where the trace shows none.
MIN_WAIT_NS = 1_000.0


class Call(NamedTuple):
    """A recorded call of the host. `path` are the NVTX ranges around the time before it."""

    start_ns: int
    end_ns: int
    thread_id: int
    name: str
    call_group: str
    correlation_id: int | None
    path: str | None


class Operation(NamedTuple):
    """A recorded GPU operation."""

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
        """Return its device and stream."""
        return self.device_id, self.stream_id


class Wait(NamedTuple):
    """What a call waits for: its own copy, a stream, or all streams without a `stream_id`.

    It waits for operations launched before `until_ns`, or before its own start where that is unknown.
    """

    correlation_id: int
    is_copy: bool
    until_ns: int | None
    device_id: int | None
    stream_id: int | None


@dataclass
class Run:
    """A simulated operation, which starts at the later of two times.

    One is `gap_ns` after the operation before it on its stream. The other is `in_call_ns` after the start of its call,
    within the call, plus `after_ns`. `dependencies` are operations of other streams that it also waits for: how many
    operations back in launch order, and the delay after the end in ns.
    """

    element: Element
    stream: tuple[int, int]
    runs_ns: float
    in_call_ns: float = 0.0
    after_ns: float = 0.0
    gap_ns: float = 0.0
    dependencies: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class Event:
    """What the host does: `work_ns` without CUDA, then a call.

    A call that waits returns `tail_ns` after the last operation that it waits for: one operation for each stream, given
    as how many operations back in launch order from the next operation.
    """

    work: Element
    work_ns: float
    call: Element
    call_ns: float
    runs: list[Run] = field(default_factory=list)
    waits_for: list[int] | None = None
    waits_for_own: bool = False
    tail_ns: float = 0.0


def measure_overlap(calls: Sequence[Call]) -> float:
    """Return the share of the time in calls during which another thread is also in a call."""
    total, overlapping = 0, 0
    latest_end = calls[0].start_ns if calls else 0
    for call in calls:
        total += call.end_ns - call.start_ns
        overlapping += max(0, min(latest_end, call.end_ns) - call.start_ns)
        latest_end = max(latest_end, call.end_ns)
    return overlapping / total if total else 0.0


def build_events(
    calls: Sequence[Call], operations: Sequence[Operation], waits: Sequence[Wait], from_ns: int, to_ns: int
) -> list[Event]:
    """Put the steps in the host's order: calls and operations by start of call, each with what it waited for.

    Calls at `to_ns` or later do not belong to the steps. The host's work up to `to_ns` does.
    """
    steps = _Steps([call for call in calls if call.start_ns < to_ns], operations, waits)
    last_path = next((call.path for call in calls if call.start_ns >= to_ns), None)
    return steps.build_events(from_ns, to_ns, last_path)


class _Steps:
    """The recorded calls, operations and waits of some steps, and the usual delays in them.

    Operations are numbered in the order of their calls: `launch_order`, `call_of` and `before` have the same index.
    """

    def __init__(self, calls: Sequence[Call], operations: Sequence[Operation], waits: Sequence[Wait]) -> None:
        self.calls = calls
        operations_by_call: dict[int, list[Operation]] = defaultdict(list)
        for operation in operations:
            operations_by_call[operation.correlation_id].append(operation)
        self.operations_of_calls = [operations_by_call.get(call.correlation_id or -1, []) for call in calls]
        self.launch_order = [operation for call_operations in self.operations_of_calls for operation in call_operations]
        self.call_of = [
            call for call, call_operations in zip(calls, self.operations_of_calls, strict=True) for _ in call_operations
        ]
        # Before 2023.4, nsys states device 0 for waits on any device, and the trace does not describe its contexts.
        devices = {operation.device_id for operation in operations}
        self.waits = {
            wait.correlation_id: wait if wait.device_id in devices else wait._replace(device_id=None) for wait in waits
        }
        self.before: list[Operation | None] = []
        last: dict[tuple[int, int], Operation] = {}
        for operation in self.launch_order:
            self.before.append(last.get(operation.stream))
            last[operation.stream] = operation
        gaps = [
            operation.start_ns - before.end_ns
            for operation, before, call in zip(self.launch_order, self.before, self.call_of, strict=True)
            if before and call.end_ns <= before.end_ns < operation.start_ns
        ]
        self.min_gap_ns = sorted(gaps)[len(gaps) // 20] if gaps else MIN_GAP_NS
        delays: dict[str, list[int]] = defaultdict(list)
        for number, (operation, before, call) in enumerate(
            zip(self.launch_order, self.before, self.call_of, strict=True)
        ):
            if before and before.end_ns <= call.start_ns and self._find_hidden_dependency(number) is None:
                delays[call.name].append(operation.start_ns - call.start_ns)
        self.delays = {name: median(values) for name, values in delays.items()}
        self.delay_ns = median([delay for values in delays.values() for delay in values] or [LAUNCH_NS])
        durations: dict[str, list[int]] = defaultdict(list)
        for call in calls:
            durations[call.name].append(call.end_ns - call.start_ns)
        self.usual_ns = {name: median(values) for name, values in durations.items()}

    def build_events(self, from_ns: int, to_ns: int, last_path: str | None) -> list[Event]:
        events, number, latest_end = [], 0, from_ns
        for call, call_operations in zip(self.calls, self.operations_of_calls, strict=True):
            wait = self.waits.get(call.correlation_id or -1)
            event = Event(
                ("CPU work", "", call.path), max(0.0, call.start_ns - latest_end),
                ("API call", call.name, None),
                float(call.end_ns - max(call.start_ns, min(latest_end, call.end_ns))),
            )  # fmt: skip
            event.runs = [self._build_run(number + index, index) for index in range(len(call_operations))]
            if wait:
                self._add_wait(event, call, wait, number + len(call_operations), number)
            elif call_operations and self._is_blocked(call, number):
                event.call_ns = self.usual_ns[call.name]
            number += len(call_operations)
            latest_end = max(latest_end, call.end_ns)
            events.append(event)
        final_work: Element = ("CPU work", "", last_path)
        return [*events, Event(final_work, max(0.0, to_ns - latest_end), final_work, 0.0)]

    def _is_blocked(self, call: Call, number: int) -> bool:
        """Return whether a launch call took long because the queue was full."""
        before = self.before[number]
        duration = call.end_ns - call.start_ns
        return bool(
            before
            and before.end_ns > call.end_ns
            and duration > max(BLOCKED_NS, BLOCKED_FACTOR * self.usual_ns[call.name])
        )

    def _build_run(self, number: int, index: int) -> Run:
        """Build the simulated operation for an operation, which is at `index` among those of its call."""
        operation, call, before = self.launch_order[number], self.call_of[number], self.before[number]
        call_ns = float(call.end_ns - call.start_ns)
        delay = float(max(0, operation.start_ns - call.start_ns))
        gap = float(max(0, operation.start_ns - before.end_ns)) if before else self.min_gap_ns
        kind = "communication" if operation.is_communication else operation.kind
        run = Run((kind, operation.name, None), operation.stream, float(operation.end_ns - operation.start_ns))
        if index:  # the nodes of a graph follow each other without the host
            delay, usual_delay = 0.0, 0.0
        else:
            usual_delay = self.delays.get(call.name, self.delay_ns)
        # The stream was idle when the call began, or when calls usually reach it.
        is_late = (
            before is not None
            and not index
            and (call.start_ns >= before.end_ns or call.start_ns + usual_delay > before.end_ns + self.min_gap_ns)
        )
        dependency = self._find_hidden_dependency(number) if is_late else None
        delay = delay if is_late and dependency is None else min(delay, usual_delay)
        run.in_call_ns = min(delay, call_ns)
        run.after_ns = delay - run.in_call_ns
        run.gap_ns = min(gap, self.min_gap_ns)
        if not before or (is_late and dependency is None):  # what precedes the first operation of a stream is unknown
            return run
        if not is_late and gap > MAX_GAP_NS:
            dependency = self._find_dependency(number, before)
        if dependency is not None:
            delay_after = float(operation.start_ns - self.launch_order[dependency].end_ns)
            run.dependencies = [(number - dependency, delay_after)]
        else:
            run.gap_ns = gap
        return run

    def _find_dependency(self, number: int, before: Operation, most_early_ns: float = 0) -> int | None:
        """Find the operation of another stream, launched earlier, at whose end this operation started."""
        operation = self.launch_order[number]
        for other in range(number - 1, max(-1, number - 500), -1):
            end = self.launch_order[other].end_ns
            if before.end_ns < end and -most_early_ns <= operation.start_ns - end <= MAX_GAP_NS:
                return other
        return None

    def _find_hidden_dependency(self, number: int) -> int | None:
        """Find the same for an operation that starts long after its launch call has returned, on an idle stream."""
        operation, call, before = self.launch_order[number], self.call_of[number], self.before[number]
        is_long = operation.start_ns - call.end_ns > LONG_LATENCY_NS
        return self._find_dependency(number, before, MAX_GAP_NS) if is_long and before else None

    def _add_wait(self, event: Event, call: Call, wait: Wait, next_number: int, first_number: int) -> None:
        """Set what a call waits for, and how long the call takes without waiting.

        The operations of the call are those from `first_number` up to `next_number`.
        """
        duration = float(call.end_ns - call.start_ns)
        if wait.is_copy and next_number > first_number:
            event.waits_for_own = True
            ends = [self.launch_order[number].end_ns for number in range(first_number, next_number)]
        else:
            streams: dict[tuple[int, int], int] = {}
            for number in range(next_number):
                operation = self.launch_order[number]
                is_awaited = wait.stream_id is None or (
                    operation.stream_id == wait.stream_id and wait.device_id in (None, operation.device_id)
                )
                if (
                    is_awaited
                    and self.call_of[number].start_ns < (wait.until_ns or call.start_ns)
                    and operation.end_ns <= call.end_ns
                ):
                    streams[operation.stream] = number
            event.waits_for = [next_number - number for number in streams.values()]
            ends = [self.launch_order[number].end_ns for number in streams.values()]
        end = max(ends, default=call.start_ns)
        if end > call.start_ns:
            event.tail_ns = max(0.0, float(call.end_ns - end))
            event.call_ns = min(duration, event.tail_ns, MIN_WAIT_NS)
        else:
            event.tail_ns = min(MIN_WAIT_NS, float(call.end_ns - end))
