"""Steps told by what repeats on the busiest stream: its sequence of operations, or its CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.packs import bind
from nsys_insight.paths import queries_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

# An operation marks a step if most of its gaps are alike and the step holds at least half of the stream's GPU time.
REGULAR, COVERED = 0.75, 0.5
# A longer period is the step if what comes once in it takes this share of the GPU time: a decoder's head and sampling do;
# a value that is logged every ten steps does not.
WEIGHT = 0.01
# Of a long stream, so many operations in its middle are looked at.
WINDOW = 400_000
# CUDA graphs mark steps if they hold at least half of the stream's GPU time.
GRAPHS = 0.5


class Stream(NamedTuple):
    """A stream of a process, and how many operations it ran."""

    process: int
    device: int
    stream: int
    ops: int


class Rhythm(NamedTuple):
    """An operation that comes back evenly; see `queries/steps/rhythms.sql`."""

    token: int
    kind: str
    occurrences: int
    period: int
    covered_ns: int
    own_ns: int
    first_pos: int


@dataclass(frozen=True)
class Repeat:
    """The operations that come once a step, how many operations a step has, and what they cover."""

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

    @property
    def count(self) -> int:
        """How often it comes, at least."""
        return min(rhythm.occurrences for rhythm in self.anchors)


def find(
    connection: duckdb.DuckDBPyConnection, stream: Stream, prepare: Callable[[str], None], *, graphs: bool, asked: bool
) -> str | None:
    """Fill the table `step_pieces` from what repeats on a stream; say what marks a step, or None if nothing does.

    Args:
        connection: Where the model is.
        stream: The stream to look at.
        prepare: Creates the views that a statement names.
        graphs: Whether a CUDA graph must be among what repeats.
        asked: Whether the user wants this method, and not another that might fit better.
    """
    place: dict[str, Any] = {**stream._asdict(), "whole_graphs": graphs}
    for shapes in (True, False):
        run(connection, "stream", prepare, **place, shapes=shapes)
        from_ns, to_ns = _window(connection, stream.ops)
        run(connection, "window", prepare, from_ns=from_ns, to_ns=to_ns)
        rhythms = [Rhythm(*row) for row in run(connection, "rhythms", prepare, regular=REGULAR, covered=COVERED)]
        total, in_graphs = connection.execute(
            "SELECT sum(duration_ns)::BIGINT, coalesce(sum(duration_ns) FILTER (kind = 'graph'), 0)::BIGINT FROM step_stream"
        ).fetchall()[0]
        if graphs and not in_graphs >= (1 if asked else GRAPHS * total):
            return None
        repeat = choose(rhythms, total, graphs=graphs)
        if repeat:
            return _cut(connection, stream, repeat, prepare)
    return None


def choose(rhythms: list[Rhythm], total_ns: int, *, graphs: bool = False) -> Repeat | None:
    """Tell the period of the steps from those of what is inside a step (layers) and around it (requests, logging).

    Of the periods found, from short to long, a longer one is the step if it reads data back to the host and the shorter
    one does not; or if neither does, the shorter one fills it but for less than one more of itself (layers, with what
    comes before and after them), and what comes once in it is worth a hundredth of the GPU time.
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
        fills = level.own_ns >= WEIGHT * total_ns and rest < chosen.period
        if level.reads_back or (fills and not chosen.reads_back):
            chosen = level
    if chosen and graphs and not any(rhythm.kind == "graph" for rhythm in chosen.anchors):
        return None
    return chosen


def _window(connection: duckdb.DuckDBPyConnection, count: int) -> tuple[int | None, int | None]:
    """Choose which part of a long stream to look at: when it begins and ends."""
    if count <= WINDOW:
        return None, None
    half = WINDOW / count / 2
    # One operation in a few hundred tells where the middle is; the same ones each time.
    bounds = connection.execute(
        f"SELECT quantile_disc(start_ns, [{0.5 - half}, {0.5 + half}]) FROM step_ops WHERE hash(start_ns) % 256 = 0"
    ).fetchall()[0][0]
    return bounds[0], bounds[1]


def _cut(connection: duckdb.DuckDBPyConnection, stream: Stream, repeat: Repeat, prepare: Callable[[str], None]) -> str:
    """Cut the stream into steps, and say where."""
    anchor, ends = _mark(connection, repeat)
    typical = connection.execute(
        f"""SELECT quantile_disc(pos, 0.5) + {int(ends)}
            FROM (SELECT pos, lead(pos) OVER (ORDER BY pos) - pos AS gap FROM step_stream WHERE token = {anchor.token})
            WHERE gap = {anchor.period}"""
    ).fetchall()[0][0]
    marks = {"ends": ends, "period": anchor.period}
    run(connection, "cut", prepare, mark=anchor.token, typical_pos=typical, **marks)
    run(connection, "pieces", prepare, process=stream.process, **marks)
    connection.execute("DROP TABLE step_cut")
    prepare("SELECT * FROM strings")
    name = connection.execute(
        f"""SELECT coalesce(any_value(n.name), any_value(s.kind))
            FROM step_stream AS s
            LEFT JOIN kernel_events AS k ON k.correlation_id = s.correlation_id AND k.start_ns = s.start_ns
                AND k.process_id = {stream.process} AND s.kind = 'kernel'
            LEFT JOIN strings AS n USING (name_id)
            WHERE s.pos = {anchor.first_pos}"""
    ).fetchall()[0][0]
    what = {"D2H": "D2H copy", "H2D": "H2D copy", "D2D": "D2D copy", "graph": "CUDA graph"}.get(name, name)
    return f"{'after' if ends else 'from'} each {what}"


def _mark(connection: duckdb.DuckDBPyConnection, repeat: Repeat) -> tuple[Rhythm, bool]:
    """Choose which operation begins a step, or ends it (True).

    A copy to the host ends a step. Else a step begins where the GPU has waited longest for it, or else with what came
    first.
    """
    most = max(rhythm.occurrences for rhythm in repeat.anchors)
    anchors = [rhythm for rhythm in repeat.anchors if rhythm.occurrences >= 0.9 * most]
    for rhythm in anchors:
        if rhythm.kind == "D2H":
            return rhythm, True
    idle = dict(
        connection.execute(
            f"""SELECT s.token, quantile_disc(s.start_ns - b.end_ns, 0.5)
                FROM step_stream AS s JOIN step_stream AS b ON b.pos = s.pos - 1
                WHERE s.token IN ({", ".join(str(rhythm.token) for rhythm in anchors)})
                GROUP BY s.token"""
        ).fetchall()
    )
    return max(anchors, key=lambda rhythm: (idle.get(rhythm.token, 0), -rhythm.first_pos)), False


def run(connection: duckdb.DuckDBPyConnection, name: str, prepare: Callable[[str], None], **values: Any) -> list[Any]:
    """Run a statement of `queries/steps`, with the views that it names."""
    sql = (queries_folder() / "steps" / f"{name}.sql").read_text(encoding="utf-8")
    prepare(sql)
    return connection.execute(bind(sql, values)).fetchall()
