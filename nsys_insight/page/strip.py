"""The timeline strip: what the host did and what the GPUs did in one step, moment by moment."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.page import looks
from nsys_insight.page.asking import ask
from nsys_insight.page.lanes import Event, Most, Window, read
from nsys_insight.page.pictures import Bar
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# So many operations, calls and gaps are drawn at most: more would make the page heavy, and no one could see them.
OPERATIONS = CALLS = GAPS = 2_000
RANGES, DEEPEST = 300, 3
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
    most = Most(OPERATIONS, CALLS, GAPS, RANGES, DEEPEST)
    found_there = read(trace, steps, [Window(drawn[0].start_ns, drawn[0].end_ns)], most)
    (window,) = found_there.windows
    lanes = [Lane(lane.name, lane.kind, [_bar(window, event) for event in lane.events]) for lane in found_there.lanes]
    return Strip(
        drawn[0].step if found else None, window.start_ns, window.end_ns, lanes, _ticks(window), found_there.idle_ns,
        found_there.cut,
    )  # fmt: skip


def _bar(window: Window, event: Event) -> Bar:
    """Place an event in a window; what is said of it is its length, when it began, and of idle time why."""
    ns = window.end_ns - window.start_ns
    first, last = max(event.start_ns, window.start_ns), min(event.end_ns, window.end_ns)
    is_inside = event.start_ns >= window.start_ns
    when = f"at {value('a_ns', event.start_ns - window.start_ns)}" if is_inside else "begun before"
    more = [event.more] * bool(event.more)
    more += [f"{cause}, {host}: {value('a_ns', idle_ns)}" for cause, host, idle_ns in event.parts]
    tip = "\n".join([event.label, f"{value('a_ns', event.end_ns - event.start_ns)}, {when}", *more])
    left = min(100 * (first - window.start_ns) / ns, 100 - _LEAST)
    return Bar(left, max(100 * (last - first) / ns, _LEAST), event.look, event.label, tip)


def _ticks(window: Window) -> list[tuple[float, str]]:
    """Round times since the start of the window, four to nine of them; none at the end, where it would be cut off."""
    ns = window.end_ns - window.start_ns
    rough = ns / 9
    power = 10 ** math.floor(math.log10(max(rough, 1)))
    apart = max(1, next(int(power * one) for one in (1, 2, 5, 10) if power * one >= rough or one == 10))
    return [(100 * at / ns, value("a_ns", at) if at else "0") for at in range(0, int(0.96 * ns), apart)]
