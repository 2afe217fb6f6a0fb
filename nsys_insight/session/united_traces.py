"""Several traces in one session: each model is in a separate catalog, and views unite the rows of all traces.

Ids of strings, calls and processes repeat in different traces. So the model's views join rows within each trace, and
only their results are united, with the columns `trace` and `rank` in front.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.ingest.catalogs import name_catalogs
from nsys_insight.model import views
from nsys_insight.sql.names import Names, find_words
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

    from nsys_insight.ingest.source import Source

    RankNumber = tuple[str, int | None, int | None, int]  # trace, process, device, rank

_MAX_UNION_TRACES = 8


class TracePart(NamedTuple):
    """A trace: the catalog of its model, its label, and the ranks of its processes."""

    catalog: str
    label: str
    ranks: Sequence[RankNumber]

    def select(self, connection: duckdb.DuckDBPyConnection, name: str) -> str:
        """Write the query for its rows in a view, with `trace` and `rank` in front."""
        view = f"{self.catalog}.{name if '.' in name else f'main.{name}'}"
        return f"SELECT {literal(self.label)} AS trace, ({self._rank(connection, view)})::BIGINT AS rank, * FROM {view}"

    def _rank(self, connection: duckdb.DuckDBPyConnection, view: str) -> str:
        """Write the rank of a row: that of a trace with one rank, or that of the row's process or device, or NULL."""
        if len(self.ranks) == 1:
            return literal(self.ranks[0][-1])
        columns = {column for column, *_ in connection.execute(f"DESCRIBE {view}").fetchall()} if self.ranks else set()
        cases = []
        for _, process, device, rank in self.ranks:
            has_one_device = sum(other[1] == process for other in self.ranks) == 1
            if "process_id" in columns and (has_one_device or "device_id" in columns):
                of_device = "" if has_one_device else f" AND device_id = {device}"
                cases.append(f"WHEN process_id = {process}{of_device} THEN {rank}")
        return f"CASE {' '.join(cases)} END" if cases else "NULL"


def unite_traces(  # noqa: PLR0913, PLR0917 - what is united, and what is known of it
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    names: Names,
    labels: Sequence[str],
    sources: Sequence[Source],
    loaded: dict[str, set[str]],
    read_ranks: Callable[[], Sequence[RankNumber]],
) -> None:
    """Let the views that a query names show the rows of all traces, with their labels.

    Views about all ranks of a run stay unchanged: they cover all traces already.

    With many traces, a plan over all of them needs more memory than their rows. So the rows are loaded, trace by trace,
    with the columns that the query names. `loaded` has the columns loaded so far, by view. `read_ranks` returns the
    ranks of all traces.
    """
    cross_rank_views = {name for name, view in views.definitions().items() if view.is_cross_rank}
    per_trace_views = names.model_relations & {*views.definitions(), "scope"} - cross_rank_views
    exported = names.relations_in("raw")
    if not per_trace_views and not exported:
        return
    rank_rows = read_ranks()
    trace_parts = [
        TracePart(catalog, label, [number for number in rank_rows if number[0] == label])
        for catalog, label in zip(name_catalogs(len(sources)), labels, strict=True)
    ]
    for name in per_trace_views:
        if len(trace_parts) > _MAX_UNION_TRACES:
            _load_rows(connection, name, trace_parts, sql, loaded)
        elif name not in loaded:
            _create_union(connection, name, trace_parts)
            loaded[name] = set()
    for table in {table for source in sources for table in source.columns if table.lower() in exported}:
        if table not in loaded:
            having_table = [part for part, source in zip(trace_parts, sources, strict=True) if table in source.columns]
            _create_union(connection, f"raw.{identifier(table)}", having_table)
            loaded[table] = set()


def _create_union(connection: duckdb.DuckDBPyConnection, name: str, trace_parts: Sequence[TracePart]) -> None:
    selects = (part.select(connection, name) for part in trace_parts)
    connection.execute(f"CREATE OR REPLACE VIEW {name} AS " + " UNION ALL BY NAME ".join(selects))


def _load_rows(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    trace_parts: Sequence[TracePart],
    query: str,
    loaded: dict[str, set[str]],
) -> None:
    """Load the columns of a view that a query can use: the named columns, or all columns for ``*`` and the like."""
    columns = [column for column, *_ in connection.execute(f"DESCRIBE {trace_parts[0].catalog}.main.{name}").fetchall()]
    every_word = find_words(query)
    without_counts = re.sub(r"count\s*\(\s*\*\s*\)", "", query, flags=re.IGNORECASE)
    selects_columns = re.match(r"\s*(SELECT|WITH|CREATE)\b", without_counts, re.IGNORECASE)
    needs_all = not selects_columns or "*" in without_counts or every_word & {"natural", "columns"}
    needed = {column for column in columns if needs_all or column in every_word}
    if name in loaded and loaded[name] >= needed:
        return
    loaded[name] = needed | loaded.get(name, set())
    select = ", ".join(["trace", "rank", *(identifier(column) for column in columns if column in loaded[name])])
    connection.execute("ATTACH IF NOT EXISTS ':memory:' AS united (COMPRESS)")
    for number, part in enumerate(trace_parts):
        into = f"INSERT INTO united.main.{name} BY NAME" if number else f"CREATE OR REPLACE TABLE united.main.{name} AS"
        connection.execute(f"{into} SELECT {select} FROM ({part.select(connection, name)})")
    connection.execute(f"CREATE OR REPLACE VIEW {name} AS FROM united.main.{name}")
