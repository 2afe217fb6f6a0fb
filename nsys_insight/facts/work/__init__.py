"""CPU work: what a thread did outside of CUDA calls while a GPU waited for it.

The CPU work of a late gap is the time before its launch call, minus the CUDA calls in it. It is cut into pieces where
the thread enters or leaves an operating system call, where it loses or regains a CPU, and where an NVTX range begins or
ends. The pieces of a gap add up to its CPU work, to the nanosecond.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.facts.arrays import Ints, np, read_columns
from nsys_insight.facts.intervals import Intervals

if TYPE_CHECKING:
    import duckdb

    from nsys_insight.facts.context import Context

    Columns = dict[str, Ints]

# Gaps are processed in batches of this size, with what was recorded around them.
GAPS_PER_BATCH = 1_000_000
_INPUTS = ("windows", "calls", "os_calls", "off_cpu", "places", "samples")
_INSERT_PIECES = """
    INSERT INTO facts.cpu_pieces BY NAME
    SELECT
        t.gpu_id, t.thread, p.gap_ns, p.line_start - t.shift_ns AS start_ns, p.line_end - t.shift_ns AS end_ns,
        nullif(p.os_call_id, -1) AS os_call_id, CASE WHEN t.has_switches THEN p.is_off END AS is_off,
        nullif(p.range_id, -1) AS range_id
    FROM rows_to_insert AS p
    JOIN internal.work_tracks AS t ON p.line_start BETWEEN t.from_ns + t.shift_ns AND t.to_ns + t.shift_ns"""
_INSERT_SAMPLES = """
    INSERT INTO facts.gap_samples BY NAME
    SELECT
        t.gpu_id, t.thread, s.line_start - t.shift_ns AS start_ns, s.sample_id,
        nullif(s.os_call_id, -1) AS os_call_id, nullif(s.range_id, -1) AS range_id
    FROM rows_to_insert AS s
    JOIN internal.work_tracks AS t ON s.line_start BETWEEN t.from_ns + t.shift_ns AND t.to_ns + t.shift_ns"""


def fill(context: Context) -> None:
    """Fill `facts.cpu_pieces` and `facts.gap_samples`. They stay empty where a trace does not show what a CPU did."""
    connection = context.connection
    context.runner("work")("tracks")
    if connection.execute("SELECT 1 FROM internal.work_tracks LIMIT 1").fetchall():
        _cut_all(connection, context.statements("work", *_INPUTS))
    connection.execute("DROP TABLE internal.work_tracks")


def _cut_all(connection: duckdb.DuckDBPyConnection, statements: dict[str, str]) -> None:
    """Cut the gaps of all tracks, batch by batch along their concatenated timeline."""
    windows = statements["windows"]
    ((count, last_end),) = connection.execute(f"SELECT count(*), max(line_end) FROM ({windows})").fetchall()
    batch_starts = connection.execute(
        f"""SELECT line_start FROM ({windows})
            QUALIFY row_number() OVER (ORDER BY line_start) % {GAPS_PER_BATCH} = 1 ORDER BY line_start"""
    ).fetchall()
    for start, end in pairwise([*(start for (start,) in batch_starts), last_end] if count else []):
        _cut_batch(connection, statements, start, end)


def _cut_batch(connection: duckdb.DuckDBPyConnection, statements: dict[str, str], start: int, end: int) -> None:
    """Cut the gaps that begin between two positions, and add their pieces and samples to the facts."""

    def read_rows(name: str) -> Columns:
        statement = f"FROM ({statements[name]}\n) WHERE line_start < {end} AND line_end > {start}"
        return {key: np.asarray(values) for key, values in read_columns(connection, statement).items()}

    def make_intervals(rows: Columns) -> Intervals:
        return Intervals.make_disjoint(rows["line_start"], rows["line_end"])

    windows, os_calls, ranges, samples = (read_rows(name) for name in ("windows", "os_calls", "places", "samples"))
    off_cpu_times, os_call_times = make_intervals(read_rows("off_cpu")), make_intervals(os_calls)
    work = make_intervals(windows).subtract(make_intervals(read_rows("calls")))
    pieces, os_ids, is_off = [], [], []
    for is_off_cpu, times in ((False, work.subtract(off_cpu_times)), (True, work.intersect(off_cpu_times)[0])):
        in_os_calls, os_call = times.intersect(os_call_times)
        outside_os_calls = times.subtract(os_call_times)
        pieces += [in_os_calls, outside_os_calls]
        os_ids += [os_calls["id"][os_call], np.full(len(outside_os_calls.start), -1)]
        is_off += [np.full(len(in_os_calls.start) + len(outside_os_calls.start), is_off_cpu)]
    all_pieces = Intervals(*(np.concatenate(values) for values in zip(*pieces, strict=True)))
    all_os_ids, all_is_off = np.concatenate(os_ids), np.concatenate(is_off)
    order = np.argsort(all_pieces.start, kind="stable")
    ordered = Intervals(all_pieces.start[order], all_pieces.end[order], order)
    pieces_in_ranges, range_index = ordered.intersect(make_intervals(ranges))
    owner = pieces_in_ranges.owner
    columns = {
        "line_start": pieces_in_ranges.start, "line_end": pieces_in_ranges.end, "os_call_id": all_os_ids[owner],
        "is_off": all_is_off[owner], "gap_ns": windows["gap_ns"][all_pieces.owner[owner]],
        "range_id": ranges["id"][range_index],
    }  # fmt: skip
    _insert(connection, _INSERT_PIECES, columns)
    sample_start = samples["line_start"]
    piece = np.searchsorted(pieces_in_ranges.start, sample_start, side="right") - 1
    is_in_piece = (piece >= 0) & (sample_start < np.append(pieces_in_ranges.end, 0)[piece])
    piece_columns = {name: columns[name][piece[is_in_piece]] for name in ("os_call_id", "range_id")}
    sample_columns = {"line_start": sample_start[is_in_piece], "sample_id": samples["id"][is_in_piece]}
    _insert(connection, _INSERT_SAMPLES, {**sample_columns, **piece_columns})


def _insert(connection: duckdb.DuckDBPyConnection, statement: str, rows: Columns) -> None:
    connection.register("rows_to_insert", rows)
    connection.execute(statement)
    connection.unregister("rows_to_insert")
