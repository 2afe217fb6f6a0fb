"""The simple pictures, as numbers that a template draws: places and lengths in % of the width, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from nsys_insight.page import styles
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit_all, readable_all
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

TOP = 12
# More bars than that are narrower than a pixel on a phone; neighbouring steps are then drawn as one.
BARS = 160


@dataclass(frozen=True)
class Bar:
    """A piece of a picture: from `left` on `width` % of it; `style` gives its colour, `tip` is its tooltip.

    `name` is that of a kernel, as the trace has it.
    """

    left: float
    width: float
    style: str
    label: str
    tip: str
    figure: str = ""
    name: str = ""


@dataclass(frozen=True)
class Stack:
    """One bar made of parts that add up to 100 %."""

    title: str
    parts: list[Bar]


@dataclass(frozen=True)
class Pace:
    """The walls of steps as columns: each a `busy` part below and an `idle` part above, in % of the `most_ns`."""

    most: str
    middle: str
    columns: list[StepBar]
    per_column: int


@dataclass(frozen=True)
class StepBar:
    """One step, or the mean of several: its place and heights in %."""

    left: float
    width: float
    busy: float
    idle: float
    odd: bool
    tip: str


def idle(answer: Answer) -> list[Stack]:
    """Draw the report `idle`: for each GPU its wall, busy and idle by cause."""
    gpus: dict[Any, dict[str, list[dict[str, Any]]]] = {}
    for row in answer.dicts():
        gpus.setdefault(row["gpu_id"], {}).setdefault(row["cause"], []).append(row)
    stacks = []
    for gpu, causes in gpus.items():
        parts = []
        for cause, rows in causes.items():
            hosts = "\n".join(
                f"{row['host']}: {value('time_ns', row['time_ns'])}, {value('wall_pct', row['wall_pct'])}"
                for row in rows
                if row["host"]
            )
            parts.append((cause, sum(row["time_ns"] for row in rows), sum(row["wall_pct"] for row in rows), hosts))
        stacks.append(_stack(f"GPU {gpu}" if len(gpus) > 1 else "", parts))
    return stacks


def budget(answer: Answer) -> list[Stack]:
    """Draw the report `classify`: what a step's wall is made of."""
    parts = [
        (row["part"], row["time_ns"], row["wall_pct"], row["evidence"] or "")
        for row in answer.dicts()
        if row["part"] != "wall"
    ]
    return [_stack("", parts)] if parts else []


def _stack(title: str, parts: list[tuple[str, float, float, str]]) -> Stack:
    bars, left = [], 0.0
    for name, time_ns, pct, more in parts:
        figure = f"{value('time_ns', time_ns)} · {value('wall_pct', pct)}"
        tip = f"{name}: {value('time_ns', time_ns)}, {value('wall_pct', pct)} of the wall time"
        bars.append(Bar(left, pct, styles.of_part(name), name, f"{tip}\n{more}".strip(), figure))
        left += pct
    return Stack(title, bars)


def top(answer: Answer) -> list[Bar]:
    """Draw the report `top`: the kernels that take most of the time, against the first of them."""
    rows = answer.dicts(TOP)
    longest = max((row["total_ns"] for row in rows), default=0)
    names = readable_all(row["name"] for row in rows)
    short = fit_all(names.values(), 48)
    return [
        Bar(
            0,
            100 * row["total_ns"] / longest,
            styles.of_work(row["family"]),
            printable(short[names[row["name"]]]),
            f"{row['family']}, {row['provenance']}: {row['calls']:,} calls of {value('avg_ns', row['avg_ns'])}",
            f"{value('total_ns', row['total_ns'])} · {value('kernel_time_pct', row['kernel_time_pct'])}",
            row["name"],
        )
        for row in rows
        if longest
    ]


def pace(answer: Answer) -> Pace | None:
    """Draw the report `steps`: the wall of each step of the steady state; None where there are not two."""
    steps = [row for row in answer.dicts() if row["phase"] == "steady"]
    if len(steps) < 2:
        return None
    per_column = -(-len(steps) // BARS)
    groups = [steps[at : at + per_column] for at in range(0, len(steps), per_column)]
    walls = [[_mean(group, name) for name in ("duration_ns", "gpu_busy_ns", "gpu_idle_ns")] for group in groups]
    most = max(wall for wall, *_ in walls) or 1
    middle = median(row["duration_ns"] for row in steps)
    columns = []
    for at, (group, (wall, busy, idle_ns)) in enumerate(zip(groups, walls, strict=True)):
        name = f"step {group[0]['step']}" + (f" to {group[-1]['step']}, mean" if len(group) > 1 else "")
        odd = [row["outlier"] for row in group if row["outlier"]]
        tip = f"{name}: {value('a_ns', wall)}\nGPU busy {value('a_ns', busy)}, idle {value('a_ns', idle_ns)}"
        width = 100 / len(groups)
        columns.append(
            StepBar(
                at * width + 0.1 * width,
                0.8 * width,
                100 * busy / most,
                100 * idle_ns / most,
                bool(odd),
                "\n".join([tip, *odd[:3]]),
            )
        )
    return Pace(value("a_ns", most), value("a_ns", middle), columns, per_column)


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return sum(float(row[name] or 0) for row in rows) / len(rows)
