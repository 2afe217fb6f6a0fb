"""Idle time: the gaps of each GPU, and what the launching thread did while a GPU waited for it.

A gap is attributed to the operation that ends it. If its launch call began before the gap, the operation was launched
in time. Otherwise the host was late. Late gaps are cut where the profiler blocked the launching thread. For a late gap,
the time that its thread spent in API calls of each kind before the launch call is counted. Two binary searches among
the thread's calls find these: one for the start of the gap, one for the start of the launch call. SQL would have to
sort gaps and calls into one order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import Columns, Ints, np, read_columns
from nsys_insight.facts.idle.calls import CallsIn, LaunchCalls
from nsys_insight.facts.idle.inserts import Inserts, cast_words
from nsys_insight.facts.intervals import Intervals, Tracks
from nsys_insight.facts.operations import find_boundaries
from nsys_insight.ingest import raw
from nsys_insight.ingest.source import ANY_TIME
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from nsys_insight.facts.context import Context

    Window = tuple[int, int]

# Operations are processed in windows of this size. The calls around them then fit in a processor's cache.
OPERATIONS_PER_WINDOW = 200_000
# Longer calls are few. They are read separately.
LONG_NS = 100_000_000
# An operation that starts later after its launch call has returned may wait on the GPU: a launch takes 5 µs.
WAIT_NS = 20_000
# If the call returned in the first tenth of a gap, and at least this long before its end, the operation was launched in
# time: it waits for something else, such as kernels that the GPU launched itself, which have no rows.
LONG_WAIT_NS = 50_000
# The kinds of API calls, in the order of their numbers in `calls.sql`: the columns of
# `facts.idle_time`, and the words of `facts.idle_calls`.
KINDS = {
    "sync_ns": "sync calls", "copy_ns": "blocking copies", "alloc_ns": "allocation", "api_ns": "API calls",
    "mpi_ns": "MPI calls",
}  # fmt: skip
_NO_CALLS = "".join(f", 0 AS {name}" for name in KINDS)
# Reason codes: why the host was not late (index from 1; 0 means late).
IN_TIME = (
    "managed memory", "same launch call", "not in the trace", "launched before", "blocking copies",
    "launch call in progress",
)  # fmt: skip
# The bits of `gaps.sql`.
_SAME_CALL, _MIGRATION, _COPY, _READ_BACK = 1, 2, 4, 8


def fill(context: Context) -> None:
    """Fill `facts.idle_time` and `facts.idle_calls`."""
    connection, source = context.connection, context.source
    statements = context.statements("idle", "edges", "migrations", "calls", "gaps", "around", "launched", "held")
    kind = "VIEW" if raw.can_read_some_rows(connection, source, "CUPTI_ACTIVITY_KIND_RUNTIME") else "TABLE"
    connection.execute(statements["edges"])
    if connection.execute(statements["migrations"]).fetchall() != [(0,)]:
        connection.execute(*context.statements("idle", "prefetches").values())
    # The kernels that graphs launch on the device have no correlation id: their number is that of the process.
    if connection.execute("SELECT 1 FROM facts.gpu_reach WHERE call BETWEEN 0 AND 16777215 LIMIT 1").fetchall():
        connection.execute(*context.statements("idle", "device_launches").values())
    connection.execute(f"CREATE OR REPLACE {kind} internal.idle_calls AS {statements['calls']}")
    long_calls = f"FROM internal.idle_calls WHERE end_ns - start_ns >= {LONG_NS}"
    connection.execute(f"CREATE OR REPLACE TABLE internal.idle_long_calls AS {long_calls}")
    windows = _windows(connection)
    with Inserts(connection) as inserts:
        filling = _Filling(connection, statements, inserts)
        for number in range(len(windows)):
            filling.add(windows[: number + 1])
    if len(filling.gpus) > 1 or (context.scope.device is not None and context.has_several_gpus()):
        waits, split = context.statements("idle", "waits", "split").values()
        connection.execute(bind(waits, {"min_ns": WAIT_NS}))
        connection.execute(split)
    connection.execute(f"DROP {kind} internal.idle_calls")
    connection.execute("DROP TABLE internal.idle_long_calls; DROP TABLE internal.idle_migrations")


def _windows(connection: duckdb.DuckDBPyConnection) -> list[Window]:
    """Divide all time into windows in which about `OPERATIONS_PER_WINDOW` operations start."""
    boundaries = find_boundaries(connection, "start_ns", "FROM facts.gpu_reach", OPERATIONS_PER_WINDOW)
    return list(pairwise([ANY_TIME[0], *boundaries, ANY_TIME[1]]))


class _Filling:
    """Adds gaps to the facts, window by window."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, statements: Mapping[str, str], inserts: Inserts) -> None:
        self._connection, self._statements, self._inserts = connection, statements, inserts
        self.gpus: set[int] = set()
        self._profiler_times = self._read("held")
        self._words = cast_words(connection, "idle_time", "host", ("late", "profiler", *IN_TIME))
        self._reason_word = _case("reason", {reason: self._words[word] for reason, word in enumerate(IN_TIME, 1)})
        kind_words = cast_words(connection, "idle_calls", "host", KINDS.values())
        self._kind_word = _case("host", dict(enumerate(kind_words.values())))

    def _read(self, name: str, **values: Any) -> Columns:
        return read_columns(self._connection, bind(self._statements[name], values))

    def add(self, windows: Sequence[Window]) -> None:
        """Add the gaps that end in the last of these windows."""
        gaps = self._read("gaps", from_ns=windows[-1][0], to_ns=windows[-1][1])
        if not len(gaps["call"]):
            return
        self.gpus |= {int(gaps["gpu_id"].min()), int(gaps["gpu_id"].max())}  # one or several: that is all that matters
        # A gap at the start of the window usually began shortly before it.
        from_ns = max(windows[-1][0] - LONG_NS, int(gaps["start_ns"].min()))
        calls = self._read("around", from_ns=from_ns, to_ns=int(gaps["end_ns"].max()), long_ns=LONG_NS)
        launches = LaunchCalls.find(gaps["call"], calls, self._look_up)
        is_copy = (gaps["bits"] & _COPY > 0) & (launches.thread >= 0)
        gaps |= {"thread": launches.thread, "call_ns": launches.start, "returned_ns": launches.end, "is_copy": is_copy}
        reason = _classify(gaps)
        is_late = reason == 0
        if not is_late.all():
            self._add_in_time(_select_rows({**gaps, "reason": reason}, ~is_late))
        if is_late.any():
            late = gaps if is_late.all() else _select_rows(gaps, is_late)
            self._add_late(late, calls, from_ns, windows[:-1])

    def _look_up(self, call_numbers: Ints) -> Columns:
        """Look up calls outside of the window, by their numbers."""
        ids = call_numbers >> 24  # the macro `call_of` shifts the correlation id
        self._connection.register("missing_calls", {"call": call_numbers})
        calls = self._read("launched", from_id=int(ids.min()), to_id=int(ids.max()))
        self._connection.unregister("missing_calls")
        return calls

    def _add_in_time(self, gaps: Columns) -> None:
        select = f"""
            SELECT
                nullif(gpu_id, -1) AS gpu_id, start_ns, end_ns, nullif(thread, -1) AS thread,
                CASE WHEN thread >= 0 THEN call_ns END AS call_ns,
                CASE WHEN thread >= 0 THEN returned_ns END AS returned_ns, is_copy,
                {self._reason_word} AS host{_NO_CALLS}
            FROM rows_to_insert"""
        self._inserts.add("idle_time", select, gaps)

    def _add_late(self, late: Columns, calls: Columns, from_ns: int, earlier_windows: Sequence[Window]) -> None:
        """Add late gaps, cut where the profiler blocked their threads, and the calls before their launch calls.

        `calls` are those from `from_ns` on. Earlier ones are read for the gaps that began earlier.
        """
        tracks = Tracks.lay_out(late["thread"], late["start_ns"], late["end_ns"])
        shift = tracks.find_shift(late["thread"])
        gaps = Intervals(late["start_ns"] + shift, late["end_ns"] + shift, np.arange(len(shift)))
        profiler = self._profiler_times
        start, end, _ = tracks.project(profiler["thread"], profiler["start_ns"], profiler["end_ns"])
        if len(start):
            profiler_times = Intervals.make_disjoint(start, end)
            self._add_pieces("profiler", late, gaps.intersect(profiler_times)[0], shift)
            gaps = gaps.subtract(profiler_times)
        if (np.diff(gaps.start) < 0).any():
            order = np.argsort(gaps.start, kind="stable")
            gaps = Intervals(*(values[order] for values in gaps))

        start, end, call_index = tracks.project(
            calls["thread"], np.maximum(calls["start_ns"], from_ns), calls["end_ns"]
        )
        gap_shift = shift[gaps.owner]
        call_start = np.clip(late["call_ns"][gaps.owner] + gap_shift, gaps.start, gaps.end)
        before_launch = Intervals(gaps.start, call_start, np.arange(len(call_start)))
        calls_in_gaps = CallsIn.find(before_launch, start, end, calls["host"][call_index])
        times = {name: calls_in_gaps.sum_times(kind, len(call_start)) for kind, name in enumerate(KINDS)}
        for piece in np.flatnonzero(gaps.start - gap_shift < from_ns).tolist():
            thread, gpu = late["thread"][gaps.owner[piece]], late["gpu_id"][gaps.owner[piece]]
            start_ns, call_ns = int((gaps.start - gap_shift)[piece]), int((call_start - gap_shift)[piece])
            for earlier_calls in self._read_earlier_calls(thread, start_ns, min(call_ns, from_ns), earlier_windows):
                for kind, name in enumerate(KINDS):
                    times[name][piece] += earlier_calls.sum_times(kind, 1)[0]
                count = len(earlier_calls.interval)
                self._add_calls(np.full(count, gpu), np.full(count, start_ns), earlier_calls)
        self._add_pieces("late", late, gaps, shift, times)
        call_shift = gap_shift[calls_in_gaps.interval]
        unshifted_calls = calls_in_gaps._replace(
            start=calls_in_gaps.start - call_shift, end=calls_in_gaps.end - call_shift
        )
        gpus = late["gpu_id"][gaps.owner[calls_in_gaps.interval]]
        self._add_calls(gpus, gaps.start[calls_in_gaps.interval] - call_shift, unshifted_calls)

    def _read_earlier_calls(self, thread: int, start: int, end: int, windows: Sequence[Window]) -> Iterator[CallsIn]:
        """Read the calls of a thread between two times, window by window.

        A gap may have begun many windows before the one in which it ends. All its calls would not fit in memory.
        """
        for window_start, window_end in windows:
            if window_start < end and window_end > start:
                from_ns, to_ns = max(window_start, start), min(window_end, end)
                calls = self._read("around", from_ns=from_ns, to_ns=to_ns, long_ns=LONG_NS)
                calls = _select_rows(calls, calls["thread"] == thread)
                interval = Intervals(np.array([from_ns]), np.array([to_ns]), np.zeros(1, dtype=np.int64))
                yield CallsIn.find(interval, calls["start_ns"], calls["end_ns"], calls["host"])

    def _add_calls(self, gpu: Ints, gap_ns: Ints, calls: CallsIn) -> None:
        columns = f"nullif(gpu_id, -1) AS gpu_id, gap_ns, start_ns, end_ns, {self._kind_word} AS host"
        rows = {"gpu_id": gpu, "gap_ns": gap_ns, "start_ns": calls.start, "end_ns": calls.end, "host": calls.host}
        self._inserts.add("idle_calls", f"SELECT {columns} FROM rows_to_insert", rows)

    def _add_pieces(self, host: str, late: Columns, gaps: Intervals, shift: Ints, times: Columns | None = None) -> None:
        """Add pieces of late gaps to `facts.idle_time`, with the time that calls of each kind took in them."""
        no_calls = "" if times else _NO_CALLS
        columns = {name: late[name][gaps.owner] for name in ("gpu_id", "thread", "call_ns", "returned_ns", "is_copy")}
        gap_shift = shift[gaps.owner]
        replaced = f"* REPLACE (nullif(gpu_id, -1) AS gpu_id), {self._words[host]} AS host{no_calls}"
        self._inserts.add(
            "idle_time",
            f"SELECT {replaced} FROM rows_to_insert",
            {**columns, "start_ns": gaps.start - gap_shift, "end_ns": gaps.end - gap_shift, **(times or {})},
        )


def _case(column: str, values: Mapping[int, str]) -> str:
    return f"CASE {column} {' '.join(f'WHEN {number} THEN {value}' for number, value in values.items())} END"


def _select_rows(columns: Columns, is_selected: Ints) -> Columns:
    return {name: values[is_selected] for name, values in columns.items()}


def _classify(gaps: Columns) -> Ints:
    """Return why the host was not late for each gap, as an index of `IN_TIME` from 1; 0 means late."""
    start, call, lacks_call = gaps["start_ns"], gaps["call_ns"], gaps["thread"] < 0
    waited, passed = gaps["end_ns"] - gaps["returned_ns"], gaps["returned_ns"] - start
    is_long_wait = (call < start) & (waited >= LONG_WAIT_NS) & (passed <= waited // 9)
    cases = (
        (gaps["bits"] & _MIGRATION > 0) & lacks_call,
        gaps["bits"] & _SAME_CALL > 0,
        lacks_call,
        (gaps["returned_ns"] <= start) | is_long_wait,
        (call < start) & (gaps["bits"] & _READ_BACK > 0),
        call < start,
    )
    reason: Ints = np.select(cases, np.arange(1, len(IN_TIME) + 1, dtype=np.uint8), np.uint8(0))
    return reason
