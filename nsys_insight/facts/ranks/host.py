"""How long the host of a rank works in a step, and where it works longest without a CUDA call.

A host that keeps ahead of its GPU works in a step at another time than the GPU. So its steps are counted from launch
call to launch call of the same collectives, and the time in which it waits for the GPU is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.intervals import Intervals
from nsys_insight.facts.reading import read_columns
from nsys_insight.ingest.catalogs import use_catalog
from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import fetch_rows

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.rank import Ints, Rank

# A long call is a wait for the GPU if the GPU is occupied for this share of it: the queue of launches is full.
_OCCUPIED_SHARE = 0.9


@dataclass(frozen=True)
class HostTime:
    """The host's time in each step, in ns: from its first launch call to the next one's, and how much of it it works.

    `launch_call` is the median duration of its launch calls, in ns.
    """

    starts: Ints
    ends: Ints
    working: Ints
    launch_call: int


class Stretch(NamedTuple):
    """The longest time of a step in which no launching thread is in a CUDA call, in ns, and what it launches next."""

    length: int
    next_operation: str | None


def measure_host(context: Context, rank: Rank, occupied: Intervals, edges: tuple[Ints, Ints]) -> HostTime | None:
    """Measure how long a host works in each step; None where the trace lacks its calls.

    Args:
        context: The traces.
        rank: The rank.
        occupied: When its GPU works or communicates.
        edges: The indices of the NCCL kernels that end the step before, and this step.
    """
    import numpy as np

    calls, blocked = (_read(context, rank, name) for name in ("launched", "blocked"))
    rows = np.searchsorted(calls["start_ns"], rank.start)
    if not len(calls["start_ns"]) or not np.array_equal(
        calls["start_ns"][np.minimum(rows, len(calls["start_ns"]) - 1)], rank.start
    ):
        return None
    call_times = calls["called_ns"][rows].astype(np.int64)
    start, end = blocked["start_ns"].astype(np.int64), blocked["end_ns"].astype(np.int64)
    is_busy = occupied.measure_within(start, end) >= _OCCUPIED_SHARE * (end - start)
    is_wait = blocked["is_wait"].astype(bool) | is_busy
    waits = Intervals.make_disjoint(start[is_wait], end[is_wait])
    starts, ends = (call_times[kernels] for kernels in edges)
    working = ends - starts - waits.measure_within(starts, ends)
    return HostTime(starts, ends, working, int(np.median(calls["call_ns"])))


def find_stretches(context: Context, rank: Rank, host: HostTime) -> list[Stretch]:
    """Find the longest stretch outside of CUDA calls in each step of a host."""
    import numpy as np

    (statement,) = context.statements("ranks", "calls_in_order").values()
    with use_catalog(context.connection, context.catalogs[rank.trace]):
        rows = fetch_rows(context.connection, bind(statement, {"process": rank.process_id}))
    if not rows:
        return []
    start, end = (np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in ("start_ns", "end_ns"))
    calls = Intervals.make_disjoint(start, end)
    stretches = []
    for first, last in zip(host.starts, host.ends, strict=True):
        gaps = calls.find_gaps(int(first), int(last))
        if gaps:
            following = rows[int(np.searchsorted(start, gaps[0][1])) :]
            operation = next((row.what for row in following if row.what is not None), None)
            stretches.append(Stretch(gaps[0][1] - gaps[0][0], operation))
    return stretches


def _read(context: Context, rank: Rank, name: str) -> dict[str, Ints]:
    statement = bind(read_query(f"facts/ranks/{name}"), {"process": rank.process_id, "gpu": rank.gpu_id})
    catalog = context.catalogs[rank.trace]
    context.for_trace(catalog).prepare(statement)
    with use_catalog(context.connection, catalog):
        return read_columns(context.connection, f"FROM ({statement}) ORDER BY start_ns")
