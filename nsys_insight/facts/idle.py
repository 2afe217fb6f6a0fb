"""Idle time: the gaps of each GPU, and what the launching thread was at while a GPU waited for it.

A gap belongs to the operation that ends it: if its launch call began before the gap, the operation was launched in
time, else the host was late. Late gaps are cut where the profiler held the launching thread up. Of a late gap counts
how long its thread was in API calls of each kind before the launch call. Two look-ups in running sums over the thread's
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
from nsys_insight.facts.launch_calls import LaunchCalls
from nsys_insight.facts.thread_calls import ThreadCalls
from nsys_insight.ingest import raw
from nsys_insight.ingest.source import ANY_TIME
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import duckdb

    from nsys_insight.facts.intervals import Ints
    from nsys_insight.facts.launch_calls import Columns
    from nsys_insight.ingest.source import Source

    Window = tuple[int, int]
    # Runs a statement of `queries/facts/idle` by its name, with values for its parameters.
    Read = Callable[..., Columns]

# Operations are looked at so many at a time, with the calls around them; a million take some 200 MB.
MOST = 800_000
# What a thread can be at, by its number in `queries/facts/idle/calls.sql`: columns of `facts.idle_time`, and words of
# `facts.idle_calls`.
KINDS = {"sync_ns": "sync calls", "copy_ns": "blocking copies", "alloc_ns": "allocation", "api_ns": "API calls"}
# Why the host was not late, by the number that stands for it here; 0 is late.
IN_TIME = (
    "managed memory", "same launch call", "not in the trace", "launched before", "blocking copies",
    "launch call under way",
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
    windows = _windows(connection)
    for number, (start, end) in enumerate(windows):
        gaps = read("gaps", from_ns=start, to_ns=end)
        if len(gaps["call"]):
            _add(connection, gaps, held, windows[: number + 1], read)
    connection.execute(f"DROP {kind} internal.idle_calls")
    heap.give_back()


def _windows(connection: duckdb.DuckDBPyConnection) -> list[Window]:
    """Divide all time into parts in which about `MOST` operations start."""
    ((count,),) = connection.execute("SELECT count(*) FROM facts.gpu_reach").fetchall()
    inner = cuts(connection, "start_ns", "FROM facts.gpu_reach", round(count / MOST))
    return list(pairwise([ANY_TIME[0], *inner, ANY_TIME[1]]))


def _add(
    connection: duckdb.DuckDBPyConnection, gaps: Columns, held: Columns, windows: Sequence[Window], read: Read
) -> None:
    """Add the gaps that end in the last window to the facts."""
    first = max(windows[-1][0], int(gaps["start_ns"].min()))
    calls = read("around", from_ns=first, to_ns=int(gaps["end_ns"].max()))
    gaps = _with_launch_calls(connection, gaps, calls, read)
    host = _why_in_time(gaps)
    is_late = host == 0
    in_time = _chosen(gaps, ~is_late)
    _insert_in_time(connection, {**in_time, "number": host[~is_late]})
    if is_late.any():
        late = _chosen(gaps, is_late) if len(in_time["call"]) else gaps
        _add_late(connection, late, calls, held, windows, read)


def _chosen(columns: Columns, which: Ints) -> Columns:
    return {name: values[which] for name, values in columns.items()}


def _with_launch_calls(connection: duckdb.DuckDBPyConnection, gaps: Columns, calls: Columns, read: Read) -> Columns:
    """Add the launch call of the operation that ends each gap: most are among the calls around the gaps."""

    def look_up(numbers: Ints) -> Columns:
        connection.register("wanted", {"call": numbers})
        found = read("launched")
        connection.unregister("wanted")
        return found

    found = LaunchCalls.of(gaps["call"], calls, look_up)
    is_copy = (gaps["bits"] & _COPY > 0) & (found.thread >= 0)
    return {**gaps, "thread": found.thread, "call_ns": found.start, "returned_ns": found.end, "is_copy": is_copy}


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
    number: Ints = np.select(cases, np.arange(1, len(IN_TIME) + 1, dtype=np.uint8), np.uint8(0))
    return number


def _insert_in_time(connection: duckdb.DuckDBPyConnection, found: Columns) -> None:
    cases = " ".join(f"WHEN {number} THEN idle_host('{word}')" for number, word in enumerate(IN_TIME, 1))
    select = f"""
        SELECT
            nullif(gpu_id, -1) AS gpu_id, start_ns, end_ns, nullif(thread, -1) AS thread,
            CASE WHEN thread >= 0 THEN call_ns END AS call_ns,
            CASE WHEN thread >= 0 THEN returned_ns END AS returned_ns, is_copy, CASE number {cases} END AS host,
            0 AS sync_ns, 0 AS copy_ns, 0 AS alloc_ns, 0 AS api_ns
        FROM found"""
    _insert(connection, "idle_time", select, found)


def _add_late(  # noqa: PLR0913, PLR0917 - what is known of them
    connection: duckdb.DuckDBPyConnection,
    late: Columns,
    calls: Columns,
    held: Columns,
    windows: Sequence[Window],
    read: Read,
) -> None:
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

    begins = np.maximum(calls["start_ns"], windows[-1][0])
    start, end, placed = lanes.place(calls["thread"], begins, calls["end_ns"])
    met = ThreadCalls.of(start, end, calls["host"][placed])
    back = shift[gaps.of]
    called = np.clip(late["call_ns"][gaps.of] + back, gaps.start, gaps.end)
    first, last = met.begun(gaps.start), met.begun(called)
    times = {name: met.time_between((gaps.start, first), (called, last), number) for number, name in enumerate(KINDS)}
    for piece in np.flatnonzero(gaps.start - back < windows[-1][0]).tolist():
        thread, gpu = late["thread"][gaps.of[piece]], late["gpu_id"][gaps.of[piece]]
        began, until = int((gaps.start - back)[piece]), int((called - back)[piece])
        for before in _calls_before(thread, began, until, windows[:-1], read):
            for number, name in enumerate(KINDS):
                times[name][piece] += (before.end - before.start)[before.host == number].sum()
            _insert_calls(connection, np.full(len(before.start), gpu), np.full(len(before.start), began), before)
    _insert_late(connection, "late", late, gaps, shift, times)
    which, call = met.met(gaps.start, called, first, last)
    back = back[which]
    start, end = np.maximum(met.start[call], gaps.start[which]) - back, np.minimum(met.end[call], called[which]) - back
    in_gaps = ThreadCalls(start, end, met.host[call])
    _insert_calls(connection, late["gpu_id"][gaps.of[which]], gaps.start[which] - back, in_gaps)


def _calls_before(thread: int, start: int, end: int, windows: Sequence[Window], read: Read) -> Iterator[ThreadCalls]:
    """Give the calls of a thread from one time to another, as far as these are in some windows, one by one.

    A gap that ends in one window may have begun in any before: with all calls in it, memory would not do.
    """
    import numpy as np

    for first, last in windows:
        if first < end and last > start:
            since, until = max(first, start), min(last, end)
            calls = read("around", from_ns=since, to_ns=until)
            calls = _chosen(calls, calls["thread"] == thread)
            begins, ends = np.maximum(calls["start_ns"], since), np.minimum(calls["end_ns"], until)
            yield ThreadCalls.of(begins, ends, calls["host"])


def _insert_calls(connection: duckdb.DuckDBPyConnection, gpu: Ints, gap: Ints, calls: ThreadCalls) -> None:
    words = " ".join(f"WHEN {number} THEN call_host('{word}')" for number, word in enumerate(KINDS.values()))
    select = f"SELECT nullif(gpu_id, -1) AS gpu_id, gap_ns, start_ns, end_ns, CASE host {words} END AS host FROM found"
    found = {"gpu_id": gpu, "gap_ns": gap, "start_ns": calls.start, "end_ns": calls.end, "host": calls.host}
    _insert(connection, "idle_calls", select, found)


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
