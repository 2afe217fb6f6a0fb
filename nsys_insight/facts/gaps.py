"""The longest gaps, the operations on either side of them and what the hosts did about then.

In a big SQLite export that is scanned in place, what lies around the gaps is looked up, and not searched for among all
rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import raw, row_search
from nsys_insight.ingest.contract import contract
from nsys_insight.ingest.sqlite_file import opened
from nsys_insight.model.producers import producers
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.facts.context import Context
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Export, Source

    Rows = dict[str, tuple[str, set[str]]]

# More gaps are not worth looking up one by one, nor so many long calls.
MOST = 10_000
# An API call that lasts longer than this is found by its length, wherever it began.
LONG_NS = 250_000
# The operations on either side of a gap are looked for among so many rows before a time and after it, and a call among
# so many around its correlation id. Where they are not among these, all rows are read.
BEFORE, BEHIND, ABOUT = 20, 10, 20

_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
# What the views `_gpu_work` and `_host_activity` read.
_COLUMNS = {
    "start", "end", "deviceId", "globalPid", "globalTid", "correlationId", "demangledName", "copyKind", "graphId",
    "nameId", "eventClass",
}  # fmt: skip
# Gaps whose operation before them, or after them, is not among those found; and operations after one whose launch call
# is not.
_UNPRECEDED = """
    FROM facts.listed_gaps AS g
    ANTI JOIN facts.listed_operations AS o ON o.gpu_id = g.gpu_id AND o.end_ns = g.running_end_ns"""
_UNFOLLOWED = """
    FROM facts.listed_gaps AS g
    ANTI JOIN facts.listed_operations AS o ON o.gpu_id = g.gpu_id AND o.start_ns = g.next_ns"""
_UNLAUNCHED = """
    FROM facts.listed_operations AS o
    SEMI JOIN facts.listed_gaps AS g ON g.gpu_id = o.gpu_id AND g.next_ns = o.start_ns
    ANTI JOIN facts.listed_activity AS a ON a.process_id = o.process_id AND a.correlation_id = o.correlation_id"""


def fill(context: Context) -> None:
    """Fill `facts.listed_gaps`, and `listed_operations`, `listed_activity` and `listed_copies`, what is around them.

    Gaps are listed from `options.min_gap_ns` on; None is for the 1,000 longest.
    """
    connection, source, min_gap_ns = context.connection, context.source, context.options.min_gap_ns
    statements = context.statements("gaps", "longest" if min_gap_ns is None else "at_least", "operations", "activity")
    chosen, operations, activity = statements.values()
    connection.execute(bind(chosen, {"min_gap_ns": min_gap_ns}))
    gaps = connection.execute("SELECT start_ns, next_ns FROM facts.listed_gaps").fetchmany(MOST + 1)
    lookup = None
    if source.export is not None and source.extents and len(gaps) <= MOST:
        lookup = _Lookup(connection, source, source.export, context.scope, gaps)
    if not (lookup and lookup.finds_operations(operations)):
        connection.execute(operations)
    if lookup and lookup.finds_activity(activity):
        blocking = producers()["blocking_copies"].query
        context.prepare(blocking)
        lookup.fill_copies(blocking)
    else:
        connection.execute(activity)
        context.runner("gaps")("copies")


class _Lookup:
    """Fills the tables about the gaps from rows near them; leaves one empty, and says so, where they are not all."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        source: Source,
        export: Export,
        scope: Scope,
        gaps: Sequence[tuple[int, int]],
    ) -> None:
        """`gaps` are when each begins, and when the operation after it starts."""
        self.connection, self.source, self.export, self.scope, self.gaps = connection, source, export, scope, gaps
        self.calls: Rows = {}

    def finds_operations(self, statement: str) -> bool:
        """Look around where the operation after each gap starts and, if need be, where the gap began."""

        def look(times: Sequence[int]) -> None:
            found = {}
            for table, rows in tables.items():
                spans = [(place - BEFORE, place + BEHIND) for place in map(rows.place, times)]
                found[table] = self._rows(table, spans)
            self._fill("facts.listed_operations", statement, found)

        with opened(self.export.file) as database:
            work = self.source.extents.keys() & set(raw.WHOLE) - {_CALLS}
            tables = {table: row_search.Rows(database, table) for table in work}
            times = [next_ns for _, next_ns in self.gaps]
            look(times)
            if missing := self._column(f"SELECT DISTINCT running_end_ns {_UNPRECEDED}"):
                look(times + missing)
        return self._has_all("facts.listed_operations", _UNPRECEDED, _UNFOLLOWED)

    def finds_activity(self, statement: str) -> bool:
        """Look for calls that begin in a gap or shortly before, for long ones, and by their ids for launch calls."""
        if _CALLS not in self.source.extents or raw.has_repeats(self.connection, self.source):
            return False
        long = self._column(
            f"""SELECT DISTINCT c.start
                FROM (SELECT start, "end" FROM {self.source.relations[_CALLS]} WHERE "end" - start >= {LONG_NS}) AS c
                JOIN facts.listed_gaps AS g ON c.start < g.end_ns AND c."end" > g.start_ns
                LIMIT {MOST + 1}"""
        )
        if len(long) > MOST:
            return False

        def look() -> None:
            self.calls = {_CALLS: self._rows(_CALLS, spans)}
            self._fill("facts.listed_activity", statement, self.calls)

        with opened(self.export.file) as database:
            rows = row_search.Rows(database, _CALLS)
            spans = [(rows.place(start_ns - LONG_NS), rows.place(next_ns + 1)) for start_ns, next_ns in self.gaps]
            spans += [(rows.place(start_ns), rows.place(start_ns + 1)) for start_ns in long]
            look()
            if missing := self._column(
                f"SELECT DISTINCT correlation_id {_UNLAUNCHED} WHERE correlation_id IS NOT NULL"
            ):
                ids = row_search.Rows(database, _CALLS, "correlationId")
                spans += [(place - ABOUT, place + ABOUT) for place in map(ids.place, missing)]
                look()
        return self._has_all("facts.listed_activity", _UNLAUNCHED)

    def fill_copies(self, blocking: str) -> None:
        """List which of the calls found return only when their copy is done, by the query that says so of all calls."""
        self._fill(
            "facts.listed_copies",
            f"INSERT INTO facts.listed_copies BY NAME SELECT DISTINCT process_id, correlation_id FROM ({blocking})",
            self.calls,
        )

    def _rows(self, table: str, spans: row_search.Spans) -> tuple[str, set[str]]:
        columns = self.source.columns[table] & _COLUMNS
        types = {name: kind for name, kind in contract()[table].items() if name in columns}
        return row_search.keep(self.connection, self.export.catalog, table, types, spans), columns

    def _fill(self, table: str, statement: str, rows: Rows) -> None:
        self.connection.execute(f"DELETE FROM {table}")
        with raw.reading_only(self.connection, self.source, self.scope, rows):
            self.connection.execute(statement)

    def _has_all(self, table: str, *lacking: str) -> bool:
        if not any(self._column(f"SELECT count(*) {each}")[0] for each in lacking):
            return True
        self.connection.execute(f"DELETE FROM {table}")
        return False

    def _column(self, sql: str) -> list[int]:
        return [value for (value,) in self.connection.execute(sql).fetchall()]
