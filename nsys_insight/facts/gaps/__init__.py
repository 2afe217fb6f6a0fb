"""The longest gaps, the operations on either side of each gap, and what the hosts did around that time.

In a big SQLite export that is scanned in place, the rows near the gaps are looked up instead of scanning all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import raw, row_search
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.gpus import GPU_TABLES
from nsys_insight.ingest.sqlite_file import open_read_only
from nsys_insight.model.producers import get_producer
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.facts.context import Context
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Export, Source

    Rows = dict[str, tuple[str, set[str]]]

# With more gaps than this, or more long calls, a scan is faster than looking them up one by one.
MAX_LOOKUPS = 10_000
# API calls that last longer than this are found by their length. Shorter ones begin shortly before the gap.
LONG_NS = 250_000
# Rows to read before and after the time of an operation, and on each side of a correlation id. If the operation or the
# call is not among them, all rows are read.
ROWS_BEFORE, ROWS_AFTER, ROWS_AROUND_ID = 20, 10, 20

_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
# The columns that the views `_gpu_work` and `_host_activity` read.
_COLUMNS = {
    "start", "end", "deviceId", "globalPid", "globalTid", "correlationId", "demangledName", "copyKind", "graphId",
    "nameId", "eventClass",
}  # fmt: skip
# What a look-up has not found: the operation before a gap, the operation after it, and the launch call of the latter.
_GAPS_WITHOUT_OPERATION_BEFORE = """
    FROM facts.listed_gaps AS g
    ANTI JOIN facts.listed_operations AS o ON o.gpu_id = g.gpu_id AND o.end_ns = g.running_end_ns"""
_GAPS_WITHOUT_OPERATION_AFTER = """
    FROM facts.listed_gaps AS g
    ANTI JOIN facts.listed_operations AS o ON o.gpu_id = g.gpu_id AND o.start_ns = g.next_ns"""
_OPERATIONS_WITHOUT_CALL = """
    FROM facts.listed_operations AS o
    SEMI JOIN facts.listed_gaps AS g ON g.gpu_id = o.gpu_id AND g.next_ns = o.start_ns
    ANTI JOIN facts.listed_activity AS a ON a.process_id = o.process_id AND a.correlation_id = o.correlation_id"""


def fill(context: Context) -> None:
    """Fill `facts.listed_gaps`, and what is around the gaps: `listed_operations`, `_activity` and `_copies`.

    Gaps are listed from a length of `options.min_gap_ns` on; None means the 1,000 longest gaps.
    """
    connection, source, min_gap_ns = context.connection, context.source, context.options.min_gap_ns
    run = context.runner("gaps")
    statements = context.statements("gaps", "longest" if min_gap_ns is None else "at_least", "operations", "activity")
    list_gaps, operations, activity = statements.values()
    connection.execute(bind(list_gaps, {"min_gap_ns": min_gap_ns}))
    rows = connection.execute(
        "SELECT start_ns, next_ns, (SELECT count(DISTINCT gpu_id) FROM facts.listed_gaps) FROM facts.listed_gaps"
    ).fetchmany(MAX_LOOKUPS + 1)
    gaps = [(start_ns, next_ns) for start_ns, next_ns, _ in rows]
    lookup = None
    if source.export is not None and source.time_bounds and len(gaps) <= MAX_LOOKUPS:
        lookup = _Lookup(connection, source, source.export, context.scope, gaps)
    if not (lookup and lookup.fill_operations(operations)):
        connection.execute(operations)
    if lookup and lookup.fill_activity(activity):
        copies_query = get_producer("blocking_copies").query
        context.prepare(copies_query)
        lookup.fill_copies(copies_query)
    else:
        connection.execute(activity)
        run("copies")
    has_several_gpus = any(gpus > 1 for *_, gpus in rows[:1])
    if has_several_gpus or (context.scope.device is not None and context.has_several_gpus()):
        run("waits")


class _Lookup:
    """Fills the tables around the gaps from the rows near these.

    A table for which these rows do not suffice is left empty, and the method returns False.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        source: Source,
        export: Export,
        scope: Scope,
        gaps: Sequence[tuple[int, int]],
    ) -> None:
        """Take the gaps: for each, its start and the start of the operation after it."""
        self.connection, self.source, self.export, self.scope, self.gaps = connection, source, export, scope, gaps
        self.calls: Rows = {}

    def fill_operations(self, statement: str) -> bool:
        """Read operations near the end of each gap and, if necessary, near its start. Return whether all are there."""

        def look_up(times: Sequence[int]) -> None:
            rows_by_table = {}
            for table, table_rows in tables.items():
                spans = [(row - ROWS_BEFORE, row + ROWS_AFTER) for row in map(table_rows.find_row, times)]
                rows_by_table[table] = self._store_near_rows(table, spans)
            self._fill("facts.listed_operations", statement, rows_by_table)

        with open_read_only(self.export.file) as database:
            work = self.source.time_bounds.keys() & set(GPU_TABLES)
            tables = {table: row_search.Rows(database, table) for table in work}
            times = [next_ns for _, next_ns in self.gaps]
            look_up(times)
            if missing := self._read_column(f"SELECT DISTINCT running_end_ns {_GAPS_WITHOUT_OPERATION_BEFORE}"):
                look_up(times + missing)
        return self._has_all("facts.listed_operations", _GAPS_WITHOUT_OPERATION_BEFORE, _GAPS_WITHOUT_OPERATION_AFTER)

    def fill_activity(self, statement: str) -> bool:
        """Read the calls that begin in a gap or shortly before it, long calls, and by their ids the launch calls.

        Return whether all launch calls are there.
        """
        if _CALLS not in self.source.time_bounds or raw.has_repeated_ids(self.connection, self.source):
            return False
        long_calls = self._read_column(
            f"""SELECT DISTINCT c.start
                FROM (SELECT start, "end" FROM {self.source.relations[_CALLS]} WHERE "end" - start >= {LONG_NS}) AS c
                JOIN facts.listed_gaps AS g ON c.start < g.end_ns AND c."end" > g.start_ns
                LIMIT {MAX_LOOKUPS + 1}"""
        )
        if len(long_calls) > MAX_LOOKUPS:
            return False

        def look_up() -> None:
            self.calls = {_CALLS: self._store_near_rows(_CALLS, spans)}
            self._fill("facts.listed_activity", statement, self.calls)

        with open_read_only(self.export.file) as database:
            rows = row_search.Rows(database, _CALLS)
            spans = [(rows.find_row(start_ns - LONG_NS), rows.find_row(next_ns + 1)) for start_ns, next_ns in self.gaps]
            spans += [(rows.find_row(start_ns), rows.find_row(start_ns + 1)) for start_ns in long_calls]
            look_up()
            if missing := self._read_column(
                f"SELECT DISTINCT correlation_id {_OPERATIONS_WITHOUT_CALL} WHERE correlation_id IS NOT NULL"
            ):
                ids = row_search.Rows(database, _CALLS, "correlationId")
                spans += [(row - ROWS_AROUND_ID, row + ROWS_AROUND_ID) for row in map(ids.find_row, missing)]
                look_up()
        return self._has_all("facts.listed_activity", _OPERATIONS_WITHOUT_CALL)

    def fill_copies(self, copies_query: str) -> None:
        """List the calls, among those found, that return only when their copy is done."""
        self._fill(
            "facts.listed_copies",
            "INSERT INTO facts.listed_copies BY NAME"
            f" SELECT DISTINCT process_id, correlation_id, is_to_host FROM ({copies_query})",
            self.calls,
        )

    def _store_near_rows(self, table: str, spans: row_search.Spans) -> tuple[str, set[str]]:
        """Store the rows of some spans in a table. Return its name and its columns."""
        columns = self.source.columns[table] & _COLUMNS
        types = {name: kind for name, kind in read_expected_schema()[table].items() if name in columns}
        return row_search.copy_rows(self.connection, self.export.catalog, table, types, spans), columns

    def _fill(self, table: str, statement: str, rows: Rows) -> None:
        self.connection.execute(f"DELETE FROM {table}")
        with raw.replace_unscoped_rows(self.connection, self.source, self.scope, rows):
            self.connection.execute(statement)

    def _has_all(self, table: str, *missing_rows: str) -> bool:
        """Return whether none of these FROM clauses has rows; if one has, empty the table."""
        if not any(self._read_column(f"SELECT count(*) {from_clause}")[0] for from_clause in missing_rows):
            return True
        self.connection.execute(f"DELETE FROM {table}")
        return False

    def _read_column(self, sql: str) -> list[int]:
        return [value for (value,) in self.connection.execute(sql).fetchall()]
