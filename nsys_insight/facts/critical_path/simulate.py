"""Steps simulated, one after the other, and the way back along what each thing waited for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.critical_path.model import Element

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.facts.critical_path.model import Event, Run

# The steps are simulated so often: the first rounds fill the queue.
ROUNDS = 4
LATENCY: Element = ("launch latency", "", None)
GAP: Element = ("between operations", "", None)
RETURN: Element = ("return of waits", "", None)


# When something is reached: the time, from which moment before, and what went on from there. Hundreds of thousands are
# made: a class of its own takes twice as long.
Moment = tuple[float, "Moment | None", Element]


class Simulated(NamedTuple):
    """How long the steps take together, and the critical path: the time of each element on it."""

    period_ns: float
    path_ns: Mapping[Element, float]


def simulate(events: Sequence[Event], faster: Element | None = None, factor: float = 0.0) -> Simulated:
    """Simulate the steps over and over, with everything that one element does taking `factor` of its time."""
    simulation = _Simulation(faster, factor)
    for _ in range(ROUNDS + 1):
        simulation.starts.append(None)
        for event in events:
            simulation.do(event)
    before, last = simulation.starts[-2:]
    if not before or not last:
        return Simulated(0.0, {})
    return Simulated(last[0] - before[0], _path(last, before[0]))


class _Simulation:
    """The host, the streams, and what has ended; `starts` has the first operation of each round."""

    def __init__(self, faster: Element | None, factor: float) -> None:
        self.faster, self.factor = faster, factor
        self.now: Moment = (0.0, None, GAP)
        self.ready: dict[tuple[int, int], Moment] = {}
        self.ends: list[Moment] = []
        self.starts: list[Moment | None] = []

    def do(self, event: Event) -> None:
        """Let the host do what it does next."""
        begin = self._after(self.now, event.work, event.work_ns)
        ends, first = self.ends, len(self.ends)
        for run in event.runs:
            self._run(run, begin, event.call)
        now = self._after(begin, event.call, event.call_ns)
        if event.waits_for_own:
            awaited = ends[first:]
        else:
            awaited = [ends[-back] for back in event.waits_for or () if back <= len(ends)]
        for end in awaited:
            returned = self._after(end, RETURN, event.tail_ns)
            now = returned if returned[0] > now[0] else now
        self.now = now

    def _run(self, run: Run, begin: Moment, call: Element) -> None:
        """Let an operation start when its call, its stream and those that it waits for allow, and end."""
        ends, ready = self.ends, self.ready.get(run.stream)
        start = self._after(self._after(begin, call, run.in_call_ns), LATENCY, run.after_ns)
        if ready:
            allowed = self._after(ready, GAP, run.gap_ns)
            start = allowed if allowed[0] > start[0] else start
        for back, delay in run.others:
            if back <= len(ends):
                allowed = self._after(ends[-back], GAP, delay)
                start = allowed if allowed[0] > start[0] else start
        end = self._after(start, run.element, run.runs_ns)
        if self.starts[-1] is None:
            self.starts[-1] = start
        self.ready[run.stream] = end
        ends.append(end)

    def _after(self, before: Moment, element: Element, ns: float) -> Moment:
        return before[0] + (ns * self.factor if element == self.faster else ns), before, element


def _path(last: Moment, from_ns: float) -> Mapping[Element, float]:
    """Go back from a moment to a time, from each thing to what it waited for."""
    path: dict[Element, float] = defaultdict(float)
    at, before, element = last
    while before and at > from_ns:
        path[element] += at - max(before[0], from_ns)
        at, before, element = before
    return path
