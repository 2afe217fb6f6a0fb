"""Idle time: the gaps of each GPU, and what the launching thread was at while a GPU waited for it.

A gap belongs to the operation that ends it: if its launch call began before the gap, the operation was launched in
time, else the host was late. Late gaps are cut where the profiler held the launching thread up. Of a late gap counts how
long its thread was in API calls of each kind before the launch call. Two look-ups in running sums over the thread's
calls tell that, one where the gap begins and one where the launch call does; SQL would have to sort gaps and calls into
one order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.facts import heap
from nsys_insight.facts.cuts import cuts
from nsys_insight.facts.intervals import Intervals
from nsys_insight.facts.lanes import Lanes
from nsys_insight.facts.thread_calls import ThreadCalls
from nsys_insight.ingest import raw
from nsys_insight.ingest.source import ANY_TIME
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from nsys_insight.facts.intervals import Ints
    from nsys_insight.ingest.source import Source

    Columns = dict[str, Ints]
    # Runs a statement of `queries/facts/idle` by its name, with values for its parameters.
    Read = Callable[..., Columns]

# Operations are looked at so many at a time, with the calls around them; a million take some 200 MB.
MOST = 800_000
# What a thread can be at, by its number in `queries/facts/idle/calls.sql`: columns of `facts.idle_time`, and words of
# `facts.idle_calls`.
KINDS = {"sync_ns": "sync calls", "copy_ns": "blocking copies", "alloc_ns": "allocation", "api_ns": "API calls"}
# Why the host was not late, by the number that stands for it here; 0 is late.
IN_TIME = (
    "managed memory", "same launch call", "not in the trace", "launched before", "blocking copies", "launch call under way",
)  # fmt: skip
# The bits of `queries/facts/idle/gaps.sql`.
_SAME_CALL, _MIGRATION, _COPY, _READ = 1, 2, 4, 8


def fill(connection: duckdb.DuckDBPyConnection, source: Source, prepare: Callable[[str], None]) -> None:
    """Fill `facts.idle_time` and `facts.idle_calls`.

    Args:
        connection: Where the model is.
        source: What it is over.
        prepare: Creates the views that a statement names.
    """
    names = ("edges", "calls", "gaps", "around", "launched", "held")
    statements = {name: query(f"facts/idle/{name}") for name in names}
    for statement in statements.values():
        prepare(statement)

    def read(name: str, **values: Any) -> Columns:
        return connection.execute(bind(statements[name], values)).fetchnumpy()

    kind = "VIEW" if raw.is_read_in_parts(connection, source, "CUPTI_ACTIVITY_KIND_RUNTIME") else "TABLE"
    connection.execute(statements["edges"])
    connection.execute(f"CREATE OR REPLACE {kind} internal.idle_calls AS {statements['calls']}")
    held = read("held")
    for start, end in _windows(connection):
        gaps = read("gaps", from_ns=start, to_ns=end)
        if len(gaps["call"]):
            _add(connection, gaps, held, read)
    connection.execute(f"DROP {kind} internal.idle_calls")
    heap.give_back()


def _windows(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, int]]:
    """Divide all time into parts in which about `MOST` operations start."""
    ((count,),) = connection.execute("SELECT count(*) FROM facts.gpu_reach").fetchall()
    inner = cuts(connection, "start_ns", "FROM facts.gpu_reach", round(count / MOST))
    return list(pairwise([ANY_TIME[0], *inner, ANY_TIME[1]]))


def _add(connection: duckdb.DuckDBPyConnection, gaps: Columns, held: Columns, read: Read) -> None:
    """Add gaps to the facts."""
    calls = read("around", from_ns=int(gaps["start_ns"].min()), to_ns=int(gaps["end_ns"].max()))
    gaps = _with_launch_calls(connection, gaps, calls, read)
    host = _why_in_time(gaps)
    is_late = host == 0
    in_time = _chosen(gaps, ~is_late)
    _insert_in_time(connection, {**in_time, "number": host[~is_late]})
    if is_late.any():
        _add_late(connection, _chosen(gaps, is_late) if len(in_time["call"]) else gaps, calls, held)


def _chosen(columns: Columns, which: Ints) -> Columns:
    return {name: values[which] for name, values in columns.items()}


def _with_launch_calls(connection: duckdb.DuckDBPyConnection, gaps: Columns, calls: Columns, read: Read) -> Columns:
    """Add the launch call of the operation that ends each gap; the thread is -1 where the trace lacks it.

    Most are among the calls around the gaps; the others are looked up.
    """
    import numpy as np

    found = {name: np.full(len(gaps["call"]), -1, dtype=np.int64) for name in ("thread", "start_ns", "end_ns")}
    left = np.arange(len(gaps["call"]))
    for among in (calls, None):
        if among is None:
            connection.register("wanted", {"call": np.unique(gaps["call"][left])})
            among = read("launched")
            connection.unregister("wanted")
        order = np.argsort(among["call"], kind="stable")
        ids, wanted = among["call"][order], gaps["call"][left]
        at = np.searchsorted(ids, wanted)
        is_there = at < len(ids)
        is_there[is_there] = ids[at[is_there]] == wanted[is_there]
        is_there &= wanted > ANY_TIME[0]
        for name, values in found.items():
            values[left[is_there]] = among[name][order[at[is_there]]]
        left = left[~is_there]
        if not len(left):
            break
    return {
        **gaps, "thread": found["thread"], "call_ns": found["start_ns"], "returned_ns": found["end_ns"],
        "is_copy": (gaps["bits"] & _COPY > 0) & (found["thread"] >= 0),
    }  # fmt: skip


def _why_in_time(gaps: Columns) -> Ints:
    """Tell why the host was not late, as a number; see `IN_TIME`."""
    import numpy as np

    start, call, lacks_call = gaps["start_ns"], gaps["call_ns"], gaps["thread"] < 0
    cases = (
        (gaps["bits"] & _MIGRATION > 0) & lacks_call,
        gaps["bits"] & _SAME_CALL > 0,
        lacks_call,
        gaps["returned_ns"] <= start,
        (call < start) & (gaps["bits"] & _READ > 0),
        call < start,
    )
    return np.select(cases, np.arange(1, len(IN_TIME) + 1, dtype=np.uint8), np.uint8(0))


def _insert_in_time(connection: duckdb.DuckDBPyConnection, found: Columns) -> None:
    cases = " ".join(f"WHEN {number} THEN idle_host('{word}')" for number, word in enumerate(IN_TIME, 1))
    select = f"""
        SELECT
            nullif(gpu_id, -1) AS gpu_id, start_ns, end_ns, nullif(thread, -1) AS thread, CASE WHEN thread >= 0 THEN call_ns END AS call_ns,
            CASE WHEN thread >= 0 THEN returned_ns END AS returned_ns, is_copy, CASE number {cases} END AS host,
            0 AS sync_ns, 0 AS copy_ns, 0 AS alloc_ns, 0 AS api_ns
        FROM found"""
    _insert(connection, "idle_time", select, found)


def _add_late(connection: duckdb.DuckDBPyConnection, late: Columns, calls: Columns, held: Columns) -> None:
    """Add late gaps, cut where the profiler held their threads up, and the calls before their launch calls."""
    import numpy as np

    lanes = Lanes.around(late["thread"], late["start_ns"], late["end_ns"])
    shift = lanes.shift_of(late["thread"])
    gaps = Intervals(late["start_ns"] + shift, late["end_ns"] + shift, np.arange(len(shift)))
    start, end, _ = lanes.place(held["thread"], held["start_ns"], held["end_ns"])
    by_profiler = Intervals.outermost(start, end)
    if len(start):
        _insert_late(connection, "profiler", late, gaps.shared(by_profiler)[0], shift)
        gaps = gaps.without(by_profiler)
    if (np.diff(gaps.start) < 0).any():
        order = np.argsort(gaps.start, kind="stable")
        gaps = Intervals(*(values[order] for values in gaps))

    start, end, placed = lanes.place(calls["thread"], calls["start_ns"], calls["end_ns"])
    met = ThreadCalls.of(start, end, calls["host"][placed])
    called = np.clip((late["call_ns"] + shift)[gaps.of], gaps.start, gaps.end)
    first, last = met.begun(gaps.start), met.begun(called)
    times = {name: met.time_between((gaps.start, first), (called, last), number) for number, name in enumerate(KINDS)}
    _insert_late(connection, "late", late, gaps, shift, times)
    which, call = met.met(gaps.start, called, first, last)
    back = shift[gaps.of[which]]
    words = " ".join(f"WHEN {number} THEN call_host('{word}')" for number, word in enumerate(KINDS.values()))
    _insert(
        connection,
        "idle_calls",
        f"SELECT nullif(gpu_id, -1) AS gpu_id, gap_ns, start_ns, end_ns, CASE host {words} END AS host FROM found",
        {
            "gpu_id": late["gpu_id"][gaps.of[which]],
            "gap_ns": gaps.start[which] - back,
            "start_ns": np.maximum(met.start[call], gaps.start[which]) - back,
            "end_ns": np.minimum(met.end[call], called[which]) - back,
            "host": met.host[call],
        },
    )


def _insert_late(  # noqa: PLR0913, PLR0917 - what is known of them
    connection: duckdb.DuckDBPyConnection,
    host: str,
    late: Columns,
    gaps: Intervals,
    shift: Ints,
    times: Columns | None = None,
) -> None:
    """Add parts of late gaps to `facts.idle_time`, with how long calls of each kind took in them."""
    zeros = "" if times else "".join(f", 0 AS {name}" for name in KINDS)
    columns = {name: late[name][gaps.of] for name in ("gpu_id", "thread", "call_ns", "returned_ns", "is_copy")}
    back = shift[gaps.of]
    _insert(
        connection,
        "idle_time",
        f"SELECT * REPLACE (nullif(gpu_id, -1) AS gpu_id), idle_host('{host}') AS host{zeros} FROM found",
        {**columns, "start_ns": gaps.start - back, "end_ns": gaps.end - back, **(times or {})},
    )


def _insert(connection: duckdb.DuckDBPyConnection, fact: str, select: str, found: Columns) -> None:
    connection.register("found", found)
    connection.execute(f"INSERT INTO facts.{fact} BY NAME {select}")
    connection.unregister("found")
