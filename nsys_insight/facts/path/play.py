"""Steps played again, one after the other, and the way back along what each thing waited for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.facts.path.model import Element, Event, Run

# Once so often the steps are played: the first rounds fill the queue.
ROUNDS = 4
LATENCY: Element = ("launch latency", "", None)
GAP: Element = ("between operations", "", None)
RETURN: Element = ("return of waits", "", None)


class Moment(NamedTuple):
    """When something is reached: from which moment before, and what went on from there."""

    at_ns: float
    before: Moment | None
    element: Element


class Played(NamedTuple):
    """How long the steps take together, and the critical path: the time of each element on it."""

    period_ns: float
    path_ns: Mapping[Element, float]


def play(events: Sequence[Event], faster: Element | None = None, factor: float = 0.0) -> Played:
    """Play the steps over and over, with everything that one element does taking `factor` of its time."""
    player = _Player(faster, factor)
    for _ in range(ROUNDS + 1):
        player.starts.append(None)
        for event in events:
            player.do(event)
    before, last = player.starts[-2:]
    if not before or not last:
        return Played(0.0, {})
    return Played(last.at_ns - before.at_ns, _path(last, before.at_ns))


class _Player:
    """The host, the streams, and what has ended; `starts` has the first operation of each round."""

    def __init__(self, faster: Element | None, factor: float) -> None:
        self.faster, self.factor = faster, factor
        self.now = Moment(0.0, None, GAP)
        self.ready: dict[tuple[int, int], Moment] = {}
        self.ends: list[Moment] = []
        self.starts: list[Moment | None] = []

    def do(self, event: Event) -> None:
        """Let the host do what it does next."""
        begin = self._after(self.now, event.work, event.work_ns)
        first = len(self.ends)
        for run in event.runs:
            self._run(run, begin, event.call)
        self.now = self._after(begin, event.call, event.call_ns)
        ends = self.ends
        awaited = (
            ends[first:]
            if event.waits_for_own
            else [ends[-back] for back in event.waits_for or () if back <= len(ends)]
        )
        for end in awaited:
            self.now = max(self.now, self._after(end, RETURN, event.tail_ns), key=_time)

    def _run(self, run: Run, begin: Moment, call: Element) -> None:
        """Let an operation start when its call, its stream and those that it waits for allow, and end."""
        start = self._after(self._after(begin, call, run.in_call_ns), LATENCY, run.after_ns)
        if run.lane in self.ready:
            start = max(start, self._after(self.ready[run.lane], GAP, run.gap_ns), key=_time)
        for back, delay in run.others:
            if back <= len(self.ends):
                start = max(start, self._after(self.ends[-back], GAP, delay), key=_time)
        end = self._after(start, run.element, run.runs_ns)
        if self.starts[-1] is None:
            self.starts[-1] = start
        self.ready[run.lane] = end
        self.ends.append(end)

    def _after(self, before: Moment, element: Element, ns: float) -> Moment:
        return Moment(before.at_ns + (ns * self.factor if element == self.faster else ns), before, element)


def _time(moment: Moment) -> float:
    return moment.at_ns


def _path(last: Moment, from_ns: float) -> Mapping[Element, float]:
    """Go back from a moment to a time, from each thing to what it waited for."""
    path: dict[Element, float] = defaultdict(float)
    moment: Moment | None = last
    while moment and moment.before and moment.at_ns > from_ns:
        path[moment.element] += moment.at_ns - max(moment.before.at_ns, from_ns)
        moment = moment.before
    return path
