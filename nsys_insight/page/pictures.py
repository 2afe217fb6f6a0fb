"""The simple pictures, as numbers for a template: positions and lengths in % of the width, labels and tooltips."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from nsys_insight.page import styles
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit_all, make_all_readable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

MAX_KERNELS = 12
# More columns would be narrower than a pixel on a phone, so adjacent steps share one.
MAX_COLUMNS = 160


@dataclass(frozen=True)
class Bar:
    """A bar of a picture: it starts at `left` % and is `width` % wide. `style` sets its color, `tip` is its tooltip.

    `name` is the kernel's name as the trace has it, if the bar is a kernel.
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
    """One stacked bar: its `bars` add up to 100%."""

    title: str
    bars: list[Bar]


@dataclass(frozen=True)
class Pace:
    """The wall times of steps as columns, with busy time below and idle time above, in % of the longest."""

    longest: str
    median: str
    columns: list[StepBar]
    per_column: int


@dataclass(frozen=True)
class StepBar:
    """One step, or the mean of several: its position and heights in %."""

    left: float
    width: float
    busy: float
    idle: float
    is_outlier: bool
    tip: str


def draw_idle(answer: Answer) -> list[Stack]:
    """Draw the report `idle`: the wall time of each GPU, busy and idle by cause."""
    gpus: dict[Any, dict[str, list[dict[str, Any]]]] = {}
    for row in answer.dicts():
        gpus.setdefault(row["gpu_id"], {}).setdefault(row["cause"], []).append(row)
    stacks = []
    for gpu, causes in gpus.items():
        shares = []
        for cause, rows in causes.items():
            hosts = "\n".join(
                f"{row['host']}: {value('time_ns', row['time_ns'])}, {value('wall_pct', row['wall_pct'])}"
                for row in rows
                if row["host"]
            )
            shares.append((cause, sum(row["time_ns"] for row in rows), sum(row["wall_pct"] for row in rows), hosts))
        stacks.append(_draw_stack(f"GPU {gpu}" if len(gpus) > 1 else "", shares))
    return stacks


def draw_budget(answer: Answer) -> list[Stack]:
    """Draw the report `classify`: what a step's wall time consists of."""
    shares = [
        (row["part"], row["time_ns"], row["wall_pct"], row["evidence"] or "")
        for row in answer.dicts()
        if row["part"] != "wall"
    ]
    return [_draw_stack("", shares)] if shares else []


def _draw_stack(title: str, shares: list[tuple[str, float, float, str]]) -> Stack:
    bars, left = [], 0.0
    for name, time_ns, pct, note in shares:
        figure = f"{value('time_ns', time_ns)} · {value('wall_pct', pct)}"
        tip = f"{name}: {value('time_ns', time_ns)}, {value('wall_pct', pct)} of the wall time"
        bars.append(Bar(left, pct, styles.style_budget_row(name), name, f"{tip}\n{note}".strip(), figure))
        left += pct
    return Stack(title, bars)


def draw_top(answer: Answer) -> list[Bar]:
    """Draw the report `top`: the kernels with the most time, relative to the first."""
    rows = answer.dicts(MAX_KERNELS)
    longest = max((row["total_ns"] for row in rows), default=0)
    names = make_all_readable(row["name"] for row in rows)
    short_names = fit_all(names.values(), 48)
    return [
        Bar(
            0,
            100 * row["total_ns"] / longest,
            styles.style_work(row["family"]),
            printable(short_names[names[row["name"]]]),
            f"{row['family']}, {row['provenance']}: {row['calls']:,} calls of {value('avg_ns', row['avg_ns'])}",
            f"{value('total_ns', row['total_ns'])} · {value('kernel_time_pct', row['kernel_time_pct'])}",
            row["name"],
        )
        for row in rows
        if longest
    ]


def draw_pace(answer: Answer) -> Pace | None:
    """Draw the report `steps`: the wall time of each step of the steady state. None if there are fewer than two."""
    steps = [row for row in answer.dicts() if row["phase"] == "steady"]
    if len(steps) < 2:
        return None
    per_column = -(-len(steps) // MAX_COLUMNS)
    groups = [steps[index : index + per_column] for index in range(0, len(steps), per_column)]
    walls = [[_average(group, name) for name in ("duration_ns", "gpu_busy_ns", "gpu_idle_ns")] for group in groups]
    longest_ns = max(wall for wall, *_ in walls) or 1
    median_ns = median(row["duration_ns"] for row in steps)
    columns = []
    for index, (group, (wall, busy, idle_ns)) in enumerate(zip(groups, walls, strict=True)):
        name = f"step {group[0]['step']}" + (f" to {group[-1]['step']}, mean" if len(group) > 1 else "")
        outliers = [row["outlier"] for row in group if row["outlier"]]
        tip = f"{name}: {value('a_ns', wall)}\nGPU busy {value('a_ns', busy)}, idle {value('a_ns', idle_ns)}"
        width = 100 / len(groups)
        columns.append(
            StepBar(
                index * width + 0.1 * width,
                0.8 * width,
                100 * busy / longest_ns,
                100 * idle_ns / longest_ns,
                bool(outliers),
                "\n".join([tip, *outliers[:3]]),
            )
        )
    return Pace(value("a_ns", longest_ns), value("a_ns", median_ns), columns, per_column)


def _average(rows: list[dict[str, Any]], column: str) -> float:
    return sum(float(row[column] or 0) for row in rows) / len(rows)
