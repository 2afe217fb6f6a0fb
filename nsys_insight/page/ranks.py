"""The pictures of a run of several ranks: who waits in which step, the worst collectives, one step of all ranks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nsys_insight.page.pictures import BARS, Bar
from nsys_insight.page.queries import ask
from nsys_insight.page.windows import LEAST_PCT, Window
from nsys_insight.text.cells import printable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# The most ranks that are drawn: those that are late, then the first ones.
RANKS = 64
ROWS, SKEWS = 16, 10
# How dark a cell is: the share of the step that the rank waits, in so many shades.
_SHADES = 5


@dataclass(frozen=True)
class Cell:
    """A rank in a step, or in several: its place in %, and whether it is late or how much it waits."""

    left: float
    width: float
    style: str
    tip: str


@dataclass(frozen=True)
class Row:
    """One rank's line of a picture; `late` is how often it is late."""

    rank: int
    late: int
    bars: Sequence[Cell | Bar]


@dataclass(frozen=True)
class Ranks:
    """The pictures, with a sentence about the run and notes that belong to it; `cut` says what is not drawn."""

    headline: str
    notes: Sequence[str]
    unit: str
    grid: list[Row]
    per_column: int
    first: int
    last: int
    skews: list[Bar]
    step: int
    wall: str
    rows: list[Row]
    cut: list[str]


def ranks(trace: Session, steps: StepOptions, headline: str, notes: Sequence[str]) -> Ranks | None:
    """Draw a run; None where no steps of it are known."""
    rows = ask(trace, "rank_steps", steps)
    if not rows:
        return None
    (run,) = trace.rows("FROM rank_run", steps)
    late: dict[int, int] = defaultdict(int)
    for row in rows:
        late[row.rank] += row.late_ns > 0
    chosen = sorted(sorted(late, key=lambda rank: (-late[rank], rank))[:RANKS])
    cut = [f"{len(chosen)} of {len(late)} ranks"] if len(chosen) < len(late) else []
    numbers = sorted({row.step for row in rows})
    per_column = -(-len(numbers) // BARS)
    step = _worst(rows)
    of_step = {row.rank: row for row in rows if row.step == step}
    shown = sorted(sorted(chosen, key=lambda rank: (of_step[rank].late_ns == 0, -late[rank], rank))[:ROWS])
    if len(shown) < len(late):
        cut.append(f"{len(shown)} of {len(late)} ranks in step {step}")
    by_rank = {rank: {row.step: row for row in rows if row.rank == rank} for rank in chosen}
    most = max(row.late_ns for row in rows)
    longest = max(row.wall_ns for row in of_step.values())
    return Ranks(
        printable(headline), [printable(note) for note in notes], run.unit,
        [Row(rank, late[rank], _cells(by_rank[rank], numbers, per_column, run.unit, most)) for rank in chosen],
        per_column, numbers[0], numbers[-1], _skews(trace, steps), step, value("a_ns", longest),
        _rows(trace, steps, step, shown, longest, late), cut,
    )  # fmt: skip


def _worst(rows: Sequence[Any]) -> int:
    """The step in which a rank is latest, else the one in which ranks wait longest."""
    return int(max(rows, key=lambda row: (row.late_ns, row.waiting_ns, -row.step)).step)


def _cells(of: dict[int, Any], numbers: Sequence[int], per_column: int, unit: str, most: int) -> list[Cell]:
    """Draw a rank's steps; `most` is by how much any rank is late in any."""
    groups = [numbers[at : at + per_column] for at in range(0, len(numbers), per_column)]
    width = 100 / len(groups)
    cells = []
    for at, group in enumerate(groups):
        found = [of[number] for number in group if number in of]
        if not found:
            continue
        wall, waiting, busy = (
            sum(getattr(row, name) for row in found) for name in ("wall_ns", "waiting_ns", "busy_ns")
        )
        late_ns = max(row.late_ns for row in found)
        share = waiting / wall if wall else 0.0
        is_most = 2 * late_ns >= most
        style = ("late" if is_most else "late-little") if late_ns else f"wait{min(int(share * _SHADES + 0.5), _SHADES)}"
        name = f"{unit} {group[0]}" + (f" to {group[-1]}" if len(group) > 1 else "")
        late = f"\nlate by {value('a_ns', late_ns)}" if late_ns else ""
        tip = (
            f"rank {found[0].rank}, {name}: {value('a_ns', wall / len(found))}{late}\n"
            f"waits {value('a_ns', waiting / len(found))}, works {value('a_ns', busy / len(found))}"
        )
        cells.append(Cell(at * width, width, style, tip))
    return cells


def _skews(trace: Session, steps: StepOptions) -> list[Bar]:
    found = ask(trace, "rank_skew", steps, most=SKEWS)
    bars = []
    for row in found:
        size = f" of {value('a_bytes', row.bytes)}" if row.bytes is not None else ""
        where = f", step {row.step}" if row.step is not None else ""
        last = f" · rank {row.last_rank} last" if row.last_rank is not None else ""
        label = printable(f"{row.operation or 'collective'}{size}{where}")
        tip = (
            f"{label}: {row.seen_ranks} ranks\nfrom the first to the last arrival {value('a_ns', row.skew_ns)}, then"
            f" {value('a_ns', row.transfer_ns)} of transfer"
        )
        bars.append(
            Bar(0, 100 * row.skew_ns / found[0].skew_ns, "blocked", label, tip, value("a_ns", row.skew_ns) + last)
        )
    return bars


def _rows(  # noqa: PLR0913, PLR0917 - a step, and what is known of it
    trace: Session, steps: StepOptions, step: int, shown: Sequence[int], longest: int, late: dict[int, int]
) -> list[Row]:
    """Draw what each rank did in one step: its work, and over it the collectives and messages, waiting first."""
    work = ask(trace, "rank_work" if len(trace.labels) == 1 else "rank_work_of_traces", steps, step=step)
    waits = ask(trace, "rank_waits", steps, step=step)
    rows = []
    for rank in shown:
        pieces = [(row.start_ns, row.end_ns, "busy", "work") for row in work if row.rank == rank]
        bars = [_bar(*one, longest) for one in _together(pieces, longest)]
        for row in (row for row in waits if row.rank == rank):
            until = row.start_ns + row.waiting_ns
            size = f", {value('a_bytes', row.bytes)}" if row.bytes is not None else ""
            name = f"{row.what}{size}"
            if until > row.start_ns:
                bars.append(_bar(row.start_ns, until, "blocked", f"waits in {name}", longest))
            if row.end_ns > until:
                bars.append(_bar(until, row.end_ns, "comm", name, longest))
        rows.append(Row(rank, late[rank], bars))
    return rows


def _together(pieces: Iterable[tuple[int, int, str, str]], longest: int) -> list[tuple[int, int, str, str]]:
    """Draw as one what is too close together to be seen apart."""
    least, found = longest * LEAST_PCT / 100, list[tuple[int, int, str, str]]()
    for _, group in groupby(sorted(pieces), key=lambda piece: piece[2]):
        for start, end, style, name in group:
            if found and start - found[-1][1] < least:
                found[-1] = (found[-1][0], max(found[-1][1], end), style, name)
            else:
                found.append((start, end, style, name))
    return found


def _bar(start: int, end: int, style: str, name: str, longest: int) -> Bar:
    tip = printable(f"{name}\n{value('a_ns', end - start)}, at {value('a_ns', start)}")
    return Bar(*Window(0, longest).placed(start, end), style, name, tip)
