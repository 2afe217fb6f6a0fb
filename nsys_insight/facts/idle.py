"""Idle time: the gaps of each GPU, and what the launching thread was at while a GPU waited for it.

Of a late gap counts how long its thread was in API calls of each kind before the launch call. Two look-ups in running
sums over the thread's calls tell that, one where the gap begins and one where the launch call does; SQL would have to
sort gaps and calls into one order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.call_windows import call_windows
from nsys_insight.facts.cuts import cuts
from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb
    import numpy as np

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    # Times, and how many calls begin before each.
    Times = tuple[Ints, Ints]

# Late gaps are looked at so many at a time, with the calls around them; a million take some 300 MB.
MOST = 1_000_000
# What a thread can be at, by its number in `queries/facts/idle/find.sql`: columns of `facts.idle_time`.
KINDS = ("sync_ns", "copy_ns", "alloc_ns", "api_ns")


def fill(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], prepare: Callable[[str], None]) -> None:
    """Fill `facts.idle_time` and `facts.idle_calls`.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        prepare: Creates the views that a statement names.
    """
    edges, gaps, find = (query(f"facts/idle/{name}") for name in ("edges", "gaps", "find"))
    for statement in (edges, gaps, find):
        prepare(statement)
    for part in parts:
        with several.inside(connection, part):
            connection.execute(edges)
            for first, last in call_windows(connection):
                connection.execute(bind(gaps, {"from_id": first, "to_id": last}))
            connection.execute(find)
            for start, end in _parts(connection):
                _look(connection, start, end)
            for table in ("found", "lanes", "calls"):
                connection.execute(f"DROP TABLE internal.idle_{table}")


def _parts(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, int]]:
    """Divide the line on which late gaps lie into parts that have about as many each, `MOST` of them."""
    late = "FROM internal.idle_found JOIN internal.idle_lanes AS l USING (thread) WHERE host = idle_host('late')"
    at = "start_ns + l.shift_ns"
    ((count, first, last),) = connection.execute(f"SELECT count(*), min({at}), max({at}) {late}").fetchall()
    if not count:
        return []
    inner = (cut for cut in cuts(connection, at, late, -(-count // MOST)) if first < cut <= last)
    return list(pairwise([first, *inner, last + 1]))


def _look(connection: duckdb.DuckDBPyConnection, start: int, end: int) -> None:
    """Add the late gaps that begin in a part of the line to the facts."""
    import numpy as np

    def rows(name: str, **times: int) -> dict[str, Ints]:
        return connection.execute(bind(query(f"facts/idle/{name}"), times)).fetchnumpy()

    late = rows("late", from_ns=start, to_ns=end, **_times(connection, start, end))
    if not len(late["line_start"]):
        return
    order = np.argsort(late["line_start"], kind="stable")
    late = {name: values[order] for name, values in late.items()}
    calls = Calls.of(**rows("calls", from_ns=start, to_ns=int(late["line_end"].max())))
    starts, ends = late.pop("line_start"), late.pop("line_end")
    first, last = calls.begun(starts), calls.begun(ends)
    for number, kind in enumerate(KINDS):
        late[kind] = calls.time_between((starts, first), (ends, last), number)
    _insert(connection, "idle_time", "SELECT *, 'late' AS host FROM found", late)
    gaps, met = calls.met(starts, ends, first, last)
    shift = (starts - late["start_ns"])[gaps]
    host = (
        "CASE host WHEN 0 THEN call_host('sync calls') WHEN 1 THEN call_host('blocking copies')"
        " WHEN 2 THEN call_host('allocation') ELSE call_host('API calls') END"
    )
    _insert(
        connection,
        "idle_calls",
        f"SELECT * REPLACE ({host} AS host) FROM found",
        {
            "gpu_id": late["gpu_id"][gaps],
            "gap_ns": late["start_ns"][gaps],
            "start_ns": np.maximum(calls.start[met], starts[gaps]) - shift,
            "end_ns": np.minimum(calls.end[met], ends[gaps]) - shift,
            "host": calls.host[met],
        },
    )


def _times(connection: duckdb.DuckDBPyConnection, start: int, end: int) -> dict[str, int]:
    """When a part of the line begins and ends: by bounds of a column itself, DuckDB skips other parts."""
    lanes = connection.execute(
        "SELECT from_ns + shift_ns, to_ns + shift_ns, shift_ns FROM internal.idle_lanes"
    ).fetchall()
    met = [(first, last, shift) for first, last, shift in lanes if first < end and last >= start]
    return {
        "first_ns": min(max(first, start) - shift for first, _, shift in met),
        "last_ns": max(min(last, end) - shift for _, last, shift in met),
    }


def _insert(connection: duckdb.DuckDBPyConnection, fact: str, select: str, found: dict[str, Ints]) -> None:
    connection.register("found", found)
    connection.execute(f"INSERT INTO facts.{fact} BY NAME {select}")
    connection.unregister("found")


class Calls(NamedTuple):
    """When threads are in API calls, in order of time: of a call inside another one counts nothing."""

    start: Ints
    end: Ints
    host: Ints

    @classmethod
    def of(cls, line_start: Ints, line_end: Ints, host: Ints) -> Calls:
        """Put calls in order, in which what counts of each is after the latest end so far."""
        import numpy as np

        order = np.lexsort((-line_end, line_start))
        start, end, host = line_start[order], line_end[order], host[order]
        if len(start):
            start[1:] = np.maximum(start[1:], np.maximum.accumulate(end)[:-1])
        counts = end > start
        return cls(start[counts], end[counts], host[counts])

    def begun(self, times: Ints) -> Ints:
        """How many calls begin before each time."""
        import numpy as np

        begun: Ints = np.searchsorted(self.start, times)
        return begun

    def time_between(self, start: Times, end: Times, kind: int) -> Ints:
        """How long the threads were in calls of a kind between times; each has with it how many calls begin before."""
        import numpy as np

        is_kind = self.host == kind
        if not is_kind.any():
            return np.zeros(len(start[0]), dtype=np.int64)
        sums = np.concatenate(([0], np.cumsum(np.where(is_kind, self.end - self.start, 0))))
        last_end = np.concatenate(([0], np.where(is_kind, self.end, 0)))
        until_start, until_end = (sums[begun] - np.maximum(last_end[begun] - times, 0) for times, begun in (start, end))
        between: Ints = until_end - until_start
        return between

    def met(self, starts: Ints, ends: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints]:
        """Which calls lie in which gaps: the number of the gap and that of the call, pair by pair.

        Args:
            starts: When the gaps begin, no time before 0.
            ends: When they end.
            first: How many calls begin before each gap.
            last: How many begin before its end.
        """
        import numpy as np

        last_end = np.concatenate(([0], self.end))
        first = first - (last_end[first] > starts)
        count = np.where(ends > starts, last - first, 0)
        gaps = np.repeat(np.arange(len(starts)), count)
        return gaps, np.arange(len(gaps)) - np.repeat(np.cumsum(count) - count - first, count)
