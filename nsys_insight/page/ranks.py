"""The pictures of a run of several ranks: ranks that wait by step, the worst collectives, one step of all ranks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Any

from nsys_insight.page.pictures import MAX_COLUMNS, Bar
from nsys_insight.page.queries import ask
from nsys_insight.page.windows import MIN_WIDTH_PCT, Window
from nsys_insight.text.cells import printable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# The number of ranks that are drawn: late ranks first, then the lowest numbers.
MAX_RANKS = 64
MAX_STEP_RANKS, MAX_SKEWS = 16, 10
# Draw how ranks differ only from this number of ranks on; fewer are all in the grid.
MIN_SPREAD_RANKS = 9
_TIMES = (
    ("busy_ns", "busy", "works"), ("waiting_ns", "blocked", "waits for others"),
    ("transfer_ns", "comm", "communicates"), ("idle_ns", "idle-part", "is idle"),
)  # fmt: skip
# Shades of a cell: the larger the share of the step that the rank waits, the darker.
_SHADES = 5


@dataclass(frozen=True)
class Cell:
    """A rank in one or several steps: its position in %, and whether it is late or how much it waits."""

    left: float
    width: float
    style: str
    tip: str


@dataclass(frozen=True)
class Row:
    """One rank's row of a picture. `late_count` is the number of steps in which it is late."""

    rank: int
    late_count: int
    bars: Sequence[Cell | Bar]


@dataclass(frozen=True)
class Ranks:
    """The pictures, with a sentence about the run and its notes. `omissions` lists what is not drawn."""

    headline: str
    notes: Sequence[str]
    unit: str
    grid: list[Row]
    per_column: int
    first: int
    last: int
    count: int
    spread: list[Bar]
    skews: list[Bar]
    step: int
    wall: str
    rows: list[Row]
    omissions: list[str]


def draw_ranks(trace: Session, steps: StepOptions, headline: str, notes: Sequence[str]) -> Ranks | None:
    """Draw a run. None if none of its steps are known."""
    rows = ask(trace, "rank_steps", steps)
    if not rows:
        return None
    (run,) = trace.rows("FROM rank_run", steps)
    late_counts: dict[int, int] = defaultdict(int)
    for row in rows:
        late_counts[row.rank] += row.late_ns > 0
    drawn_ranks = sorted(sorted(late_counts, key=lambda rank: (-late_counts[rank], rank))[:MAX_RANKS])
    omissions = [f"{len(drawn_ranks)} of {len(late_counts)} ranks"] if len(drawn_ranks) < len(late_counts) else []
    step_numbers = sorted({row.step for row in rows})
    per_column = -(-len(step_numbers) // MAX_COLUMNS)
    step = _find_worst_step(rows)
    rows_of_step = {row.rank: row for row in rows if row.step == step}
    step_ranks = sorted(
        sorted(drawn_ranks, key=lambda rank: (rows_of_step[rank].late_ns == 0, -late_counts[rank], rank))[
            :MAX_STEP_RANKS
        ]
    )
    if len(step_ranks) < len(late_counts):
        omissions.append(f"{len(step_ranks)} of {len(late_counts)} ranks in step {step}")
    rows_by_rank = {rank: {row.step: row for row in rows if row.rank == rank} for rank in drawn_ranks}
    latest_ns = max(row.late_ns for row in rows)
    longest_ns = max(row.wall_ns for row in rows_of_step.values())
    return Ranks(
        printable(headline), [printable(note) for note in notes], run.unit,
        [
            Row(rank, late_counts[rank], _draw_cells(rows_by_rank[rank], step_numbers, per_column, run.unit, latest_ns))
            for rank in drawn_ranks
        ],
        per_column, step_numbers[0], step_numbers[-1], len(late_counts),
        _draw_spread(rows), _draw_skews(trace, steps), step, value("a_ns", longest_ns),
        _draw_rows(trace, steps, step, step_ranks, longest_ns, late_counts), omissions,
    )  # fmt: skip


def _draw_spread(rows: Sequence[Any]) -> list[Bar]:
    """Draw the least and most time of a rank in a step, for each kind of time, if the ranks are many."""
    times: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        times[row.rank].append(row)
    if len(times) < MIN_SPREAD_RANKS:
        return []
    longest_ns = max(sum(row.wall_ns for row in rank_rows) / len(rank_rows) for rank_rows in times.values())
    bars = []
    for column, style, label in _TIMES:
        means = sorted(
            (sum(getattr(row, column) for row in rank_rows) / len(rank_rows), rank) for rank, rank_rows in times.items()
        )
        (min_ns, min_rank), (max_ns, max_rank) = means[0], means[-1]
        tip = f"{label}: least on rank {min_rank}, most on rank {max_rank}"
        figure = " · ".join(value("a_ns", ns) for ns in (min_ns, median(ns for ns, _ in means), max_ns))
        left, right = (100 * ns / longest_ns for ns in (min_ns, max_ns))
        bars.append(Bar(left, max(right - left, MIN_WIDTH_PCT), style, label, tip, figure))
    return bars


def _find_worst_step(rows: Sequence[Any]) -> int:
    """Return the step in which a rank is latest, or if none is late the step in which ranks wait longest."""
    return int(max(rows, key=lambda row: (row.late_ns, row.waiting_ns, -row.step)).step)


def _draw_cells(
    rows_by_step: dict[int, Any], step_numbers: Sequence[int], per_column: int, unit: str, latest_ns: int
) -> list[Cell]:
    """Draw a rank's steps. `latest_ns` is the largest delay of any rank in any step."""
    groups = [step_numbers[index : index + per_column] for index in range(0, len(step_numbers), per_column)]
    width = 100 / len(groups)
    cells = []
    for index, group in enumerate(groups):
        rows = [rows_by_step[number] for number in group if number in rows_by_step]
        if not rows:
            continue
        wall, waiting, busy = (sum(getattr(row, name) for row in rows) for name in ("wall_ns", "waiting_ns", "busy_ns"))
        late_ns = max(row.late_ns for row in rows)
        share = waiting / wall if wall else 0.0
        is_very_late = 2 * late_ns >= latest_ns
        style = (
            ("late" if is_very_late else "late-little")
            if late_ns
            else f"wait{min(int(share * _SHADES + 0.5), _SHADES)}"
        )
        name = f"{unit} {group[0]}" + (f" to {group[-1]}" if len(group) > 1 else "")
        late_text = f"\nlate by {value('a_ns', late_ns)}" if late_ns else ""
        tip = (
            f"rank {rows[0].rank}, {name}: {value('a_ns', wall / len(rows))}{late_text}\n"
            f"waits {value('a_ns', waiting / len(rows))}, works {value('a_ns', busy / len(rows))}"
        )
        cells.append(Cell(index * width, width, style, tip))
    return cells


def _draw_skews(trace: Session, steps: StepOptions) -> list[Bar]:
    rows = ask(trace, "rank_skew", steps, max_rows=MAX_SKEWS)
    bars = []
    for row in rows:
        size_text = f" of {value('a_bytes', row.bytes)}" if row.bytes is not None else ""
        step_text = f", step {row.step}" if row.step is not None else ""
        last_text = f" · rank {row.last_rank} last" if row.last_rank is not None else ""
        label = printable(f"{row.operation or 'collective'}{size_text}{step_text}")
        tip = (
            f"{label}: {row.seen_ranks} ranks\nfrom the first to the last arrival {value('a_ns', row.skew_ns)}, then"
            f" {value('a_ns', row.transfer_ns)} of transfer"
        )
        bars.append(
            Bar(0, 100 * row.skew_ns / rows[0].skew_ns, "blocked", label, tip, value("a_ns", row.skew_ns) + last_text)
        )
    return bars


def _draw_rows(  # noqa: PLR0913, PLR0917 - a step and its figures
    trace: Session,
    steps: StepOptions,
    step: int,
    step_ranks: Sequence[int],
    longest_ns: int,
    late_counts: dict[int, int],
) -> list[Row]:
    """Draw what each rank did in one step: its work, and on top the collectives and messages, each after its wait."""
    work = ask(trace, "rank_work" if len(trace.labels) == 1 else "rank_work_of_traces", steps, step=step)
    waits = ask(trace, "rank_waits", steps, step=step)
    rows = []
    for rank in step_ranks:
        work_bars = [(row.start_ns, row.end_ns, "busy", "work") for row in work if row.rank == rank]
        bars = [_draw_bar(*bar, longest_ns) for bar in _merge_close_bars(work_bars, longest_ns)]
        for row in (row for row in waits if row.rank == rank):
            waiting_end_ns = row.start_ns + row.waiting_ns
            size_text = f", {value('a_bytes', row.bytes)}" if row.bytes is not None else ""
            name = f"{row.what}{size_text}"
            if waiting_end_ns > row.start_ns:
                bars.append(_draw_bar(row.start_ns, waiting_end_ns, "blocked", f"waits in {name}", longest_ns))
            if row.end_ns > waiting_end_ns:
                bars.append(_draw_bar(waiting_end_ns, row.end_ns, "comm", name, longest_ns))
        rows.append(Row(rank, late_counts[rank], bars))
    return rows


def _merge_close_bars(bars: Iterable[tuple[int, int, str, str]], longest_ns: int) -> list[tuple[int, int, str, str]]:
    """Merge bars whose gap is too narrow to be visible."""
    min_gap_ns, merged_bars = longest_ns * MIN_WIDTH_PCT / 100, list[tuple[int, int, str, str]]()
    for _, group in groupby(sorted(bars), key=lambda piece: piece[2]):
        for start, end, style, name in group:
            if merged_bars and start - merged_bars[-1][1] < min_gap_ns:
                merged_bars[-1] = (merged_bars[-1][0], max(merged_bars[-1][1], end), style, name)
            else:
                merged_bars.append((start, end, style, name))
    return merged_bars


def _draw_bar(start: int, end: int, style: str, name: str, longest_ns: int) -> Bar:
    tip = printable(f"{name}\n{value('a_ns', end - start)}, at {value('a_ns', start)}")
    return Bar(*Window(0, longest_ns).place_bar(start, end), style, name, tip)
