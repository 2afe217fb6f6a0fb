"""Idle time: the gaps of each GPU, and what the launching thread did while a GPU waited for it.

A gap belongs to the operation that ends it: if its launch call began before the gap, the operation was launched in
time, else the host was late. Late gaps are cut where the profiler held the launching thread up. Of a late gap counts
how long its thread was in API calls of each kind before the launch call. Two look-ups among the thread's calls tell
which these are, one where the gap begins and one where the launch call does; SQL would have to sort gaps and calls into
one order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.idle.calls import CallsIn, LaunchCalls
from nsys_insight.facts.idle.inserts import Inserts, words
from nsys_insight.facts.intervals import Intervals, Tracks
from nsys_insight.facts.reading import cuts, read_columns
from nsys_insight.ingest import raw
from nsys_insight.ingest.source import ANY_TIME
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.intervals import Ints
    from nsys_insight.facts.reading import Columns

    Window = tuple[int, int]

# Operations are looked at so many at a time, with the calls around them, which then fit in a processor's cache.
MOST = 200_000
# Calls that last longer are few, and are looked for by themselves.
LONG_NS = 100_000_000
# What a thread can do, by its number in `queries/facts/idle/calls.sql`: columns of `facts.idle_time`, and words of
# `facts.idle_calls`.
KINDS = {"sync_ns": "sync calls", "copy_ns": "blocking copies", "alloc_ns": "allocation", "api_ns": "API calls"}
_NO_CALLS = "".join(f", 0 AS {name}" for name in KINDS)
# Reason codes: why the host was not late, from 1 on; 0 is late.
IN_TIME = (
    "managed memory", "same launch call", "not in the trace", "launched before", "blocking copies",
    "launch call under way",
)  # fmt: skip
# The bits of `queries/facts/idle/gaps.sql`.
_SAME_CALL, _MIGRATION, _COPY, _READ = 1, 2, 4, 8


def fill(context: Context) -> None:
    """Fill `facts.idle_time` and `facts.idle_calls`."""
    connection, source = context.connection, context.source
    statements = context.statements("idle", "edges", "migrations", "calls", "gaps", "around", "launched", "held")
    kind = "VIEW" if raw.is_read_in_parts(connection, source, "CUPTI_ACTIVITY_KIND_RUNTIME") else "TABLE"
    connection.execute(statements["edges"])
    connection.execute(statements["migrations"])
    calls, long_calls = (bind(statements["calls"], {"least_ns": least_ns}) for least_ns in (None, LONG_NS))
    connection.execute(f"CREATE OR REPLACE {kind} internal.idle_calls AS {calls}")
    connection.execute(f"CREATE OR REPLACE TABLE internal.idle_long_calls AS {long_calls}")
    windows = _windows(connection)
    with Inserts(connection) as inserts:
        filling = _Filling(connection, statements, inserts)
        for number in range(len(windows)):
            filling.add(windows[: number + 1])
    connection.execute(f"DROP {kind} internal.idle_calls")
    connection.execute("DROP TABLE internal.idle_long_calls; DROP TABLE internal.idle_migrations")


def _windows(connection: duckdb.DuckDBPyConnection) -> list[Window]:
    """Divide all time into parts in which about `MOST` operations start."""
    inner = cuts(connection, "start_ns", "FROM facts.gpu_reach", MOST)
    return list(pairwise([ANY_TIME[0], *inner, ANY_TIME[1]]))


class _Filling:
    """Adds gaps to the facts, window by window."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, statements: Mapping[str, str], inserts: Inserts) -> None:
        self._connection, self._statements, self._inserts = connection, statements, inserts
        self._held = self._read("held")
        self._words = words(connection, "idle_time", "host", ("late", "profiler", *IN_TIME))
        self._in_time = _case("number", {number: self._words[text] for number, text in enumerate(IN_TIME, 1)})
        in_calls = words(connection, "idle_calls", "host", KINDS.values())
        self._in_calls = _case("host", dict(enumerate(in_calls.values())))

    def _read(self, name: str, **values: Any) -> Columns:
        return read_columns(self._connection, bind(self._statements[name], values))

    def add(self, windows: Sequence[Window]) -> None:
        """Add the gaps that end in the last one of some windows."""
        gaps = self._read("gaps", from_ns=windows[-1][0], to_ns=windows[-1][1])
        if not len(gaps["call"]):
            return
        first = max(windows[-1][0], int(gaps["start_ns"].min()))
        calls = self._read("around", from_ns=first, to_ns=int(gaps["end_ns"].max()), long_ns=LONG_NS)
        launches = LaunchCalls.of(gaps["call"], calls, self._look_up)
        is_copy = (gaps["bits"] & _COPY > 0) & (launches.thread >= 0)
        gaps |= {"thread": launches.thread, "call_ns": launches.start, "returned_ns": launches.end, "is_copy": is_copy}
        number = _why_in_time(gaps)
        is_late = number == 0
        if not is_late.all():
            self._add_in_time(_chosen({**gaps, "number": number}, ~is_late))
        if is_late.any():
            self._add_late(gaps if is_late.all() else _chosen(gaps, is_late), calls, windows)

    def _look_up(self, numbers: Ints) -> Columns:
        """Look up calls that lie elsewhere, by their numbers."""
        ids = numbers >> 24  # as `call_of` puts them together
        self._connection.register("wanted", {"call": numbers})
        found = self._read("launched", from_id=int(ids.min()), to_id=int(ids.max()))
        self._connection.unregister("wanted")
        return found

    def _add_in_time(self, found: Columns) -> None:
        select = f"""
            SELECT
                nullif(gpu_id, -1) AS gpu_id, start_ns, end_ns, nullif(thread, -1) AS thread,
                CASE WHEN thread >= 0 THEN call_ns END AS call_ns,
                CASE WHEN thread >= 0 THEN returned_ns END AS returned_ns, is_copy, {self._in_time} AS host{_NO_CALLS}
            FROM found"""
        self._inserts.add("idle_time", select, found)

    def _add_late(self, late: Columns, calls: Columns, windows: Sequence[Window]) -> None:
        """Add late gaps, cut where the profiler held their threads up, and the calls before their launch calls."""
        import numpy as np

        tracks = Tracks.around(late["thread"], late["start_ns"], late["end_ns"])
        shift = tracks.shift_of(late["thread"])
        gaps = Intervals(late["start_ns"] + shift, late["end_ns"] + shift, np.arange(len(shift)))
        start, end, _ = tracks.place(self._held["thread"], self._held["start_ns"], self._held["end_ns"])
        if len(start):
            by_profiler = Intervals.outermost(start, end)
            self._add_parts("profiler", late, gaps.shared(by_profiler)[0], shift)
            gaps = gaps.without(by_profiler)
        if (np.diff(gaps.start) < 0).any():
            order = np.argsort(gaps.start, kind="stable")
            gaps = Intervals(*(values[order] for values in gaps))

        start, end, placed = tracks.place(
            calls["thread"], np.maximum(calls["start_ns"], windows[-1][0]), calls["end_ns"]
        )
        back = shift[gaps.of]
        called = np.clip(late["call_ns"][gaps.of] + back, gaps.start, gaps.end)
        until_called = Intervals(gaps.start, called, np.arange(len(called)))
        found = CallsIn.find(until_called, start, end, calls["host"][placed])
        times = {name: found.time(kind, len(called)) for kind, name in enumerate(KINDS)}
        for piece in np.flatnonzero(gaps.start - back < windows[-1][0]).tolist():
            thread, gpu = late["thread"][gaps.of[piece]], late["gpu_id"][gaps.of[piece]]
            began, until = int((gaps.start - back)[piece]), int((called - back)[piece])
            for before in self._calls_before(thread, began, until, windows[:-1]):
                for kind, name in enumerate(KINDS):
                    times[name][piece] += before.time(kind, 1)[0]
                self._add_calls(np.full(len(before.of), gpu), np.full(len(before.of), began), before)
        self._add_parts("late", late, gaps, shift, times)
        back = back[found.of]
        moved = found._replace(start=found.start - back, end=found.end - back)
        self._add_calls(late["gpu_id"][gaps.of[found.of]], gaps.start[found.of] - back, moved)

    def _calls_before(self, thread: int, start: int, end: int, windows: Sequence[Window]) -> Iterator[CallsIn]:
        """Give the calls of a thread from one time to another, as far as these are in some windows, one by one.

        A gap that ends in one window may have begun in any before: with all calls in it, memory would not do.
        """
        import numpy as np

        for first, last in windows:
            if first < end and last > start:
                since, until = max(first, start), min(last, end)
                calls = self._read("around", from_ns=since, to_ns=until, long_ns=LONG_NS)
                calls = _chosen(calls, calls["thread"] == thread)
                within = Intervals(np.array([since]), np.array([until]), np.zeros(1, dtype=np.int64))
                yield CallsIn.find(within, calls["start_ns"], calls["end_ns"], calls["host"])

    def _add_calls(self, gpu: Ints, gap: Ints, calls: CallsIn) -> None:
        select = f"SELECT nullif(gpu_id, -1) AS gpu_id, gap_ns, start_ns, end_ns, {self._in_calls} AS host FROM found"
        found = {"gpu_id": gpu, "gap_ns": gap, "start_ns": calls.start, "end_ns": calls.end, "host": calls.host}
        self._inserts.add("idle_calls", select, found)

    def _add_parts(self, host: str, late: Columns, gaps: Intervals, shift: Ints, times: Columns | None = None) -> None:
        """Add parts of late gaps to `facts.idle_time`, with how long calls of each kind took in them."""
        no_calls = "" if times else _NO_CALLS
        columns = {name: late[name][gaps.of] for name in ("gpu_id", "thread", "call_ns", "returned_ns", "is_copy")}
        back = shift[gaps.of]
        self._inserts.add(
            "idle_time",
            f"SELECT * REPLACE (nullif(gpu_id, -1) AS gpu_id), {self._words[host]} AS host{no_calls} FROM found",
            {**columns, "start_ns": gaps.start - back, "end_ns": gaps.end - back, **(times or {})},
        )


def _case(column: str, values: Mapping[int, str]) -> str:
    return f"CASE {column} {' '.join(f'WHEN {number} THEN {value}' for number, value in values.items())} END"


def _chosen(columns: Columns, which: Ints) -> Columns:
    return {name: values[which] for name, values in columns.items()}


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
