"""The timeline that the page's script draws: events as numbers, and the whole run they are of, in steps and gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.page import looks
from nsys_insight.page.asking import ask
from nsys_insight.page.lanes import Lane, Lanes, Most, Window, read
from nsys_insight.page.windows import EVENTS, chosen
from nsys_insight.text.cells import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# At most: operations and calls of the first window alone, gaps, ranges and how deep these are.
MOST = Most(EVENTS, EVENTS, EVENTS, 6_000, 6)
# Of more steps than that, those between the ones that are unlike the others are left out of the overview.
STEPS = 1_500
# Into so many pieces the run is cut, to say how busy the GPUs were in each.
PIECES = 300
GAPS = 10
_HEIGHTS, _APART, _SCALE = {"nvtx": 18, "host": 20, "gpu": 28, "idle": 16}, 4, 22
_PHASES = ("steady", "warm-up", "tail", "prefill", "other")


@dataclass(frozen=True)
class Timeline:
    """What is drawn first (`step` is its number, if it is a step), the lanes from the top, and the numbers to draw.

    `cut` says what is not drawn. `kernels` are the names' ids of the kernels that are in it.
    """

    step: int | None
    first: Window
    lanes: list[Lane]
    cut: list[str]
    data: dict[str, Any]
    kernels: list[int]

    @property
    def looks(self) -> list[str]:
        """The looks that are in the picture, in the order of the legend."""
        seen = {event.look for lane in self.lanes for event in lane.events}
        return [look for look in looks.LEGEND if look in seen]

    @property
    def height(self) -> int:
        """How tall the picture is, in pixels."""
        return _SCALE + sum(_HEIGHTS[lane.kind] + _APART for lane in self.lanes)


def timeline(trace: Session, steps: StepOptions, gaps: Sequence[dict[str, Any]] = ()) -> Timeline | None:
    """Gather a timeline that begins with a typical step, or where there are no steps with the whole.

    Returns None where nothing ran on a GPU.

    Args:
        trace: The trace, in its scope.
        steps: How steps are found.
        gaps: The longest gaps, as the report `gaps` says them.
    """
    found = ask(trace, "step", steps)
    shown = found or ask(trace, "whole", steps)
    whole = ask(trace, "run", steps)
    if not whole or not shown or shown[0].start_ns == shown[0].end_ns:
        return None
    first = Window(shown[0].start_ns, shown[0].end_ns)
    run = Window(min(whole[0].start_ns, first.start_ns), max(whole[0].end_ns, first.end_ns))
    longest = [_Gap(gap["start_ns"], gap["end_ns"], gap["cause"] or "unknown") for gap in gaps[:GAPS]]
    rows = ask(trace, "run_steps", steps)
    drawn = read(trace, steps, chosen(trace, steps, run, first, rows, longest), MOST)
    if first not in drawn.windows and len(drawn.windows) == 1 and drawn.cut:
        first = Window(first.start_ns, min(first.end_ns, drawn.windows[0].end_ns))
    data, kernels = _events(drawn, run)
    listed = _steps(rows, run)
    data |= {
        "origin": run.start_ns,
        "ns": run.end_ns - run.start_ns,
        "first": _within(run, first),
        "windows": [_within(run, window) for window in drawn.windows],
        "steps": listed,
        "gaps": [[*_within(run, Window(gap.start_ns, gap.end_ns)), gap.cause] for gap in longest],
        "busy": _busy(ask(trace, "run_busy", steps, pieces=PIECES), run),
    }
    cut = drawn.cut + ([f"{len(listed):,} of {len(rows):,} steps above"] if len(listed) < len(rows) else [])
    return Timeline(shown[0].step if found else None, first, drawn.lanes, cut, data, kernels)


@dataclass(frozen=True)
class _Gap:
    start_ns: int
    end_ns: int
    cause: str


def _within(run: Window, window: Window) -> list[int]:
    return [window.start_ns - run.start_ns, window.end_ns - run.start_ns]


def _events(drawn: Lanes, run: Window) -> tuple[dict[str, Any], list[int]]:
    """Write events as numbers: when after the one before, how long, and which of the things they are.

    A thing is a look, a label, what more is said, and the place of a kernel among `kernels`, or -1. Of idle time it is
    the causes, each with what the host did; how long each was is in `parts`, where there are several.
    """
    things: dict[tuple[Any, ...], int] = {}
    kernels: dict[int, int] = {}
    lanes = []
    for lane in drawn.lanes:
        at, lasts, what, parts = [], [], [], {}
        before = run.start_ns
        for place, (start_ns, end_ns, look, label, more, name_id, made_of) in enumerate(lane.events):
            kernel = -1 if name_id is None else kernels.setdefault(name_id, len(kernels))
            thing = (look, label, more, kernel, *[f"{cause}, {host}" for cause, host, _ in made_of])
            at.append(start_ns - before)
            lasts.append(end_ns - start_ns)
            what.append(things.setdefault(thing, len(things)))
            if len(made_of) > 1:
                parts[place] = [idle_ns for *_, idle_ns in made_of]
            before = start_ns
        lanes.append(
            {
                "name": lane.name, "kind": lane.kind, "height": _HEIGHTS[lane.kind],
                "at": at, "lasts": lasts, "what": what, "parts": parts,
            }
        )  # fmt: skip
    return {"things": [list(thing) for thing in things], "lanes": lanes}, list(kernels)


def _steps(rows: Sequence[Any], run: Window) -> list[list[Any]]:
    """Give the steps as number, phase, begin, wall, busy time, and what differs where they are outliers."""
    every = -(-len(rows) // STEPS)
    kept = (row for at, row in enumerate(rows) if not at % every or row.is_outlier or row.phase != "steady")
    return [
        [
            row.step, row.phase, row.start_ns - run.start_ns, row.duration_ns, row.gpu_busy_ns,
            printable(row.reason or "outlier") if row.is_outlier else "",
        ]
        for row in kept
    ]  # fmt: skip


def _busy(rows: Sequence[Any], run: Window) -> dict[str, Any] | None:
    """Say how busy the GPUs were, in % of each of the pieces of one length that the wall is cut into."""
    if not rows:
        return None
    from_ns, to_ns = rows[0].start_ns, rows[0].end_ns
    return {"from": from_ns - run.start_ns, "each": to_ns - from_ns, "pct": [round(row.busy_pct) for row in rows]}
