"""Steps told by what repeats on the busiest stream: its sequence of operations, or its CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from nsys_insight.facts.context import Run

# An operation may mark a step if most of its gaps are alike, and those hold half of the operations or of the GPU time.
REGULAR, COVERED = 0.75, 0.5
# A longer period is the step if what comes once in it takes this share of the GPU time: a decoder's head and sampling
# do; a value that is logged every ten steps does not.
WEIGHT = 0.002
# Of a long stream, so many operations in its middle are looked at.
WINDOW = 400_000
# Layers fill a step but for so many times one of them: what comes before and after them.
REST = 4
# So often must the longer one of several repetitions come, and so evenly, to end a step.
NESTED, EVEN = 3, 0.9
# CUDA graphs mark steps if they hold at least half of the stream's GPU time.
GRAPHS = 0.5


class BusiestStream(NamedTuple):
    """The stream of a process that is busy for longest, and how many operations it ran."""

    process: int
    device: int
    stream: int
    ops: int

    @classmethod
    def of(cls, row: Any) -> BusiestStream:
        """Read a row of `queries/facts/steps/busiest.sql`."""
        return cls(process=row.process_id, device=row.device_id, stream=row.stream_id, ops=row.ops)


class Mark(NamedTuple):
    """Which operation begins a step, or ends it; of a step that is `each` so many repetitions, which begins these."""

    name: str
    ends: bool
    each: int = 1

    @property
    def pattern(self) -> str:
        """Where the steps are cut, in words."""
        several = f"{self.each} repetitions a step, " if self.each > 1 else ""
        return f"{several}{'after' if self.ends else 'from'} each {self.name}"


class Rhythm(NamedTuple):
    """An operation that comes back evenly; see `queries/facts/steps/rhythms.sql`."""

    token: int
    kind: str
    occurrences: int
    period: int
    own_ns: int
    first_pos: int
    waited_ns: int


@dataclass(frozen=True)
class Repeat:
    """The operations that come once in a period."""

    anchors: tuple[Rhythm, ...]

    @property
    def period(self) -> int:
        """How many operations a step has."""
        return max(self.anchors, key=lambda rhythm: (rhythm.occurrences, -rhythm.period)).period

    @property
    def own_ns(self) -> int:
        """The GPU time of the operations that come once."""
        return sum(rhythm.own_ns for rhythm in self.anchors)

    @property
    def reads_back(self) -> bool:
        """Whether a device-to-host copy is among them."""
        return any(rhythm.kind == "D2H" for rhythm in self.anchors)

    def mark(self) -> tuple[Rhythm, bool]:
        """Choose which operation begins a step, or ends it (True).

        A copy to the host ends a step. Else a step begins with the first operation for which the GPU waits about as
        long as it does for any.
        """
        most = max(rhythm.occurrences for rhythm in self.anchors)
        anchors = [rhythm for rhythm in self.anchors if rhythm.occurrences >= 0.9 * most]
        for rhythm in anchors:
            if rhythm.kind == "D2H":
                return rhythm, True
        # Where operations of a stream overlap, the GPU waits less than no time.
        longest = max(0, *(rhythm.waited_ns for rhythm in anchors))
        waited = [rhythm for rhythm in anchors if 2 * max(rhythm.waited_ns, 0) >= longest]
        return min(waited, key=lambda rhythm: rhythm.first_pos), False

    @property
    def count(self) -> int:
        """How often it comes, at least."""
        return min(rhythm.occurrences for rhythm in self.anchors)


def cut_by_rhythm(run: Run, stream: BusiestStream, *, graphs: bool, chosen: bool) -> Mark | None:
    """Fill `internal.step_pieces` from what repeats on a stream; say what marks a step, or None if nothing does.

    Args:
        run: Runs a statement of `queries/facts/steps`.
        stream: The stream to look at.
        graphs: Whether a CUDA graph must be among what repeats.
        chosen: Whether the user wants this method, and not another that might fit better.
    """
    place: dict[str, Any] = {**stream._asdict(), "whole_graphs": graphs}
    for shapes in (True, False):
        run("stream", **place, shapes=shapes)
        run("window", **_window(run, stream.ops))
        rhythms = [Rhythm(**row._asdict()) for row in run("rhythms", regular=REGULAR, covered=COVERED)]
        (time,) = run("graph_time")
        if graphs and not time.graph_ns >= (1 if chosen else GRAPHS * time.total_ns):
            return None
        repeat = choose(rhythms, time.total_ns, graphs=graphs)
        if repeat:
            return _cut(run, stream.process, repeat)
    return None


def choose(rhythms: list[Rhythm], total_ns: int, *, graphs: bool = False) -> Repeat | None:
    """Tell the period of the steps from those of what is inside a step (layers) and around it (requests, logging).

    Of the periods found, from short to long, a longer one is the step if it reads data back to the host and the shorter
    one does not; or if neither does, the shorter one (layers) fills most of it, and what comes once in it is worth a
    hundredth of the GPU time.
    """
    least = 1 if graphs else 2
    rhythms = sorted((rhythm for rhythm in rhythms if rhythm.period >= least), key=lambda r: r.period)
    levels: list[list[Rhythm]] = []
    for rhythm in rhythms:
        if levels and rhythm.period <= 1.1 * levels[-1][0].period:
            levels[-1].append(rhythm)
        else:
            levels.append([rhythm])
    chosen: Repeat | None = None
    for level in map(Repeat, map(tuple, levels)):
        if chosen is None:
            chosen = level
            continue
        rest = level.period - chosen.count // level.count * chosen.period
        fills = level.own_ns >= WEIGHT * total_ns and rest < REST * chosen.period
        if level.reads_back or (fills and not chosen.reads_back):
            chosen = level
    if chosen and graphs and not any(rhythm.kind == "graph" for rhythm in chosen.anchors):
        return None
    return chosen


def _window(run: Run, count: int) -> dict[str, int | None]:
    """Choose which part of a long stream to look at."""
    if count <= WINDOW:
        return {"from_ns": None, "to_ns": None}
    (middle,) = run("middle", share=WINDOW / count)
    return {"from_ns": middle.from_ns, "to_ns": middle.to_ns}


def _cut(run: Run, process: int, repeat: Repeat) -> Mark:
    """Cut the stream into steps, and say where."""
    mark, ends = repeat.mark()
    (typical,) = run("typical", mark=mark.token, period=mark.period)
    run("cut", mark=mark.token, ends=ends, period=mark.period, typical_pos=typical.pos + ends)
    run("pieces", process=process, ends=ends, period=mark.period)
    each = 1
    # What reads back to the host is a step; else what repeats may be a layer.
    if not ends:
        for found in run("nested", least=NESTED, regular=EVEN, covered=COVERED):
            each = found.each
            run("merged", each=each)
    (first,) = run("mark_name", process=process, pos=mark.first_pos)
    return Mark(first.name, ends, each)
