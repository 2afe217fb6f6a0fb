"""What the CPU did while a GPU waited for a thread that was outside of CUDA calls.

The time of a late gap before its launch call, without the CUDA calls in it, is cut where the thread enters and leaves
calls of the operating system, where it loses its CPU and gets one again, and where NVTX ranges begin and end. The
pieces of a gap add up to that time, to the nanosecond.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.facts.intervals import Intervals
from nsys_insight.facts.reading import read_columns

if TYPE_CHECKING:
    import duckdb

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.intervals import Ints

    Columns = dict[str, Ints]

# Gaps are looked at so many at a time, with what was recorded around them.
MOST = 1_000_000
_READ = ("windows", "calls", "os_calls", "off_cpu", "places", "samples")
_PIECES = """
    INSERT INTO facts.cpu_pieces BY NAME
    SELECT
        l.gpu_id, l.thread, f.gap_ns, f.line_start - l.shift_ns AS start_ns, f.line_end - l.shift_ns AS end_ns,
        nullif(f.os_call_id, -1) AS os_call_id, CASE WHEN l.has_switches THEN f.is_off END AS is_off,
        nullif(f.range_id, -1) AS range_id
    FROM found AS f
    JOIN internal.work_tracks AS l ON f.line_start BETWEEN l.from_ns + l.shift_ns AND l.to_ns + l.shift_ns"""
_SAMPLES = """
    INSERT INTO facts.gap_samples BY NAME
    SELECT
        l.gpu_id, l.thread, f.line_start - l.shift_ns AS start_ns, f.sample_id,
        nullif(f.os_call_id, -1) AS os_call_id, nullif(f.range_id, -1) AS range_id
    FROM found AS f
    JOIN internal.work_tracks AS l ON f.line_start BETWEEN l.from_ns + l.shift_ns AND l.to_ns + l.shift_ns"""


def fill(context: Context) -> None:
    """Fill `facts.cpu_pieces` and `facts.gap_samples`; nothing where a trace says nothing of what a CPU did."""
    connection = context.connection
    context.runner("work")("tracks")
    if connection.execute("SELECT 1 FROM internal.work_tracks LIMIT 1").fetchone():
        _find(connection, context.statements("work", *_READ))
    connection.execute("DROP TABLE internal.work_tracks")


def _find(connection: duckdb.DuckDBPyConnection, statements: dict[str, str]) -> None:
    """Cut the gaps of all tracks, part by part of their concatenated timeline."""
    windows = statements["windows"]
    ((count, last),) = connection.execute(f"SELECT count(*), max(line_end) FROM ({windows})").fetchall()
    edges = connection.execute(
        f"""SELECT line_start FROM ({windows})
            QUALIFY row_number() OVER (ORDER BY line_start) % {MOST} = 1 ORDER BY line_start"""
    ).fetchall()
    for start, end in pairwise([*(edge for (edge,) in edges), last] if count else []):
        _cut(connection, statements, start, end)


def _cut(connection: duckdb.DuckDBPyConnection, statements: dict[str, str], start: int, end: int) -> None:
    """Cut the gaps that begin in a part of the timeline, and add the pieces and the samples in them to the facts."""
    import numpy as np

    def rows(name: str) -> Columns:
        statement = f"FROM ({statements[name]}\n) WHERE line_start < {end} AND line_end > {start}"
        return {key: np.asarray(values) for key, values in read_columns(connection, statement).items()}

    def intervals(found: Columns) -> Intervals:
        return Intervals.outermost(found["line_start"], found["line_end"])

    windows, os_calls, places, samples = (rows(name) for name in ("windows", "os_calls", "places", "samples"))
    off_cpu, in_os = intervals(rows("off_cpu")), intervals(os_calls)
    work = intervals(windows).without(intervals(rows("calls")))
    pieces, os_ids, is_off = [], [], []
    for off, part in ((False, work.without(off_cpu)), (True, work.shared(off_cpu)[0])):
        inside, which = part.shared(in_os)
        outside = part.without(in_os)
        pieces += [inside, outside]
        os_ids += [os_calls["id"][which], np.full(len(outside.start), -1)]
        is_off += [np.full(len(inside.start) + len(outside.start), off)]
    every = Intervals(*(np.concatenate(values) for values in zip(*pieces, strict=True)))
    os_id, was_off = np.concatenate(os_ids), np.concatenate(is_off)
    order = np.argsort(every.start, kind="stable")
    cut, place = Intervals(every.start[order], every.end[order], order).shared(intervals(places))
    columns = {
        "line_start": cut.start, "line_end": cut.end, "os_call_id": os_id[cut.of], "is_off": was_off[cut.of],
        "gap_ns": windows["gap_ns"][every.of[cut.of]], "range_id": places["id"][place],
    }  # fmt: skip
    _insert(connection, _PIECES, columns)
    at = samples["line_start"]
    piece = np.searchsorted(cut.start, at, side="right") - 1
    kept = (piece >= 0) & (at < np.append(cut.end, 0)[piece])
    columns = {name: columns[name][piece[kept]] for name in ("os_call_id", "range_id")}
    _insert(connection, _SAMPLES, {"line_start": at[kept], "sample_id": samples["id"][kept], **columns})


def _insert(connection: duckdb.DuckDBPyConnection, statement: str, found: Columns) -> None:
    connection.register("found", found)
    connection.execute(statement)
    connection.unregister("found")
