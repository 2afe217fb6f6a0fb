"""Simulate steps one after the other, and walk back along what each call and operation waited for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.critical_path.model import Element, Event, Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Number of rounds to simulate. The first rounds fill the queue, and the last one is measured.
ROUNDS = 4
LATENCY: Element = ("launch latency", "", None)
GAP: Element = ("between operations", "", None)
RETURN: Element = ("return of waits", "", None)


# A moment: its time, the moment before it, and the element between the two. A simulation makes hundreds of thousands of
# moments, and a class would take twice as long as a tuple.
Moment = tuple[float, "Moment | None", Element]


class Simulation(NamedTuple):
    """The time of all steps together, and the critical path: the time of each element on it, in ns."""

    period_ns: float
    path_ns: Mapping[Element, float]


def simulate(events: Sequence[Event], faster: Element | None = None, factor: float = 0.0) -> Simulation:
    """Simulate the steps in several rounds. The element `faster` takes `factor` of its recorded time."""
    simulator = _Simulator(faster, factor)
    for _ in range(ROUNDS + 1):
        simulator.starts.append(None)
        for event in events:
            simulator.process(event)
    previous, last = simulator.starts[-2:]
    if not previous or not last:
        return Simulation(0.0, {})
    return Simulation(last[0] - previous[0], _walk_back(last, previous[0]))


class _Simulator:
    """The state of the host and the streams. `starts` has the start of the first operation of each round."""

    def __init__(self, faster: Element | None, factor: float) -> None:
        self.faster, self.factor = faster, factor
        self.now: Moment = (0.0, None, GAP)
        self.ready: dict[tuple[int, int], Moment] = {}
        self.ends: list[Moment] = []
        self.starts: list[Moment | None] = []

    def process(self, event: Event) -> None:
        """Advance the host by an event, and run the operations that it launches."""
        call_start = self._advance(self.now, event.work, event.work_ns)
        ends, first = self.ends, len(self.ends)
        for run in event.runs:
            self._run(run, call_start, event.call)
        now = self._advance(call_start, event.call, event.call_ns)
        if event.waits_for_own:
            awaited = ends[first:]
        else:
            awaited = [ends[-back] for back in event.waits_for or () if back <= len(ends)]
        for end in awaited:
            return_time = self._advance(end, RETURN, event.tail_ns)
            now = return_time if return_time[0] > now[0] else now
        self.now = now

    def _run(self, run: Run, call_start: Moment, call: Element) -> None:
        """Run an operation: it starts when its call, its stream, and the operations it waits for allow."""
        ends, ready = self.ends, self.ready.get(run.stream)
        start = self._advance(self._advance(call_start, call, run.in_call_ns), LATENCY, run.after_ns)
        if ready:
            earliest = self._advance(ready, GAP, run.gap_ns)
            start = earliest if earliest[0] > start[0] else start
        for back, delay in run.dependencies:
            if back <= len(ends):
                earliest = self._advance(ends[-back], GAP, delay)
                start = earliest if earliest[0] > start[0] else start
        end = self._advance(start, run.element, run.runs_ns)
        if self.starts[-1] is None:
            self.starts[-1] = start
        self.ready[run.stream] = end
        ends.append(end)

    def _advance(self, moment: Moment, element: Element, ns: float) -> Moment:
        return moment[0] + (ns * self.factor if element == self.faster else ns), moment, element


def _walk_back(last: Moment, from_ns: float) -> Mapping[Element, float]:
    """Walk back from a moment to a time, always to what was waited for. Return the time of each element on the way."""
    path: dict[Element, float] = defaultdict(float)
    time_ns, before, element = last
    while before and time_ns > from_ns:
        path[element] += time_ns - max(before[0], from_ns)
        time_ns, before, element = before
    return path
