"""Several traces in one session: each has its model in a catalog of its own, and a view of all unites them.

Ids of strings, calls and processes repeat from trace to trace. So what belongs together is joined within a trace, by
the views as they are, and only then put under each other, with the columns `trace` and `rank` in front.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.ingest.several import catalogs
from nsys_insight.model import producers, views
from nsys_insight.sql.names import mentioned, words
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

    from nsys_insight.ingest.source import Source

    RankNumber = tuple[str, int | None, int | None, int]  # trace, process, device, rank

_FEW = 8


class Part(NamedTuple):
    """A trace: the catalog of its model, what it is called, and which of its processes are which ranks."""

    catalog: str
    label: str
    numbers: Sequence[RankNumber]

    def select(self, connection: duckdb.DuckDBPyConnection, name: str) -> str:
        """Write the query for its rows of a view, with `trace` and `rank` in front."""
        view = f"{self.catalog}.{_qualified(name)}"
        return f"SELECT {literal(self.label)} AS trace, ({self._rank(connection, view)})::BIGINT AS rank, * FROM {view}"

    def _rank(self, connection: duckdb.DuckDBPyConnection, view: str) -> str:
        """A trace of one rank is that; else a row is its process's, or its device's, if it says which that is."""
        if len(self.numbers) == 1:
            return literal(self.numbers[0][-1])
        columns = (
            {column for column, *_ in connection.execute(f"DESCRIBE {view}").fetchall()} if self.numbers else set()
        )
        cases = []
        for _, process, device, rank in self.numbers:
            is_alone = sum(other[1] == process for other in self.numbers) == 1
            if "process_id" in columns and (is_alone or "device_id" in columns):
                of_device = "" if is_alone else f" AND device_id = {device}"
                cases.append(f"WHEN process_id = {process}{of_device} THEN {rank}")
        return f"CASE {' '.join(cases)} END" if cases else "NULL"


def unite(  # noqa: PLR0913, PLR0917 - what is united, and what is known of it
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    labels: Sequence[str],
    sources: Sequence[Source],
    loaded: dict[str, set[str]],
    numbers: Callable[[], Sequence[RankNumber]],
) -> None:
    """Create the views that a query names over those of all traces, which are called by their labels.

    Views of the run as a whole are created once: they are of all traces as they are.

    Of more than a few traces, a plan over all would take more memory than their rows: then the rows are loaded, trace
    by trace, with the columns that the query names. `loaded` keeps which those are. `numbers` tells
    which rank is which.
    """
    names = mentioned(sql)
    of_run = [view for view in views.needed(sql) if view.is_of_run]
    producers.create_tables(connection, {name for view in of_run for name in view.mentions.of_schema("facts")})
    for view in of_run:
        connection.execute(view.create.replace("CREATE VIEW", "CREATE VIEW IF NOT EXISTS", 1))
    of_each = names.relations_of_model & {*views.definitions(), "scope"} - {view.name for view in of_run}
    exported = names.of_schema("raw")
    if not of_each and not exported:
        return
    known = numbers()
    parts = [
        Part(catalog, label, [number for number in known if number[0] == label])
        for catalog, label in zip(catalogs(len(sources)), labels, strict=True)
    ]
    for name in of_each:
        if len(parts) <= _FEW:
            _create(connection, name, parts)
        else:
            _load(connection, name, parts, sql, loaded)
    if not exported:
        return
    connection.execute("CREATE SCHEMA IF NOT EXISTS raw")
    for table in {table for source in sources for table in source.columns if table.lower() in exported}:
        having = [part for part, source in zip(parts, sources, strict=True) if table in source.columns]
        _create(connection, f"raw.{identifier(table)}", having)


def _create(connection: duckdb.DuckDBPyConnection, name: str, parts: Sequence[Part]) -> None:
    each = (part.select(connection, name) for part in parts)
    connection.execute(f"CREATE VIEW IF NOT EXISTS {name} AS " + " UNION ALL BY NAME ".join(each))


def _load(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    parts: Sequence[Part],
    query: str,
    loaded: dict[str, set[str]],
) -> None:
    """Load of a view the columns that a query may mean: those it names, or all where it may mean all."""
    columns = [column for column, *_ in connection.execute(f"DESCRIBE {parts[0].catalog}.main.{name}").fetchall()]
    every_word = words(query)
    bare = re.sub(r"count\s*\(\s*\*\s*\)", "", query, flags=re.IGNORECASE)
    chosen = re.match(r"\s*(SELECT|WITH|CREATE)\b", bare, re.IGNORECASE)
    every = not chosen or "*" in bare or every_word & {"natural", "columns"}
    needed = {column for column in columns if every or column in every_word}
    if name in loaded and loaded[name] >= needed:
        return
    loaded[name] = needed | loaded.get(name, set())
    select = ", ".join(["trace", "rank", *(identifier(column) for column in columns if column in loaded[name])])
    connection.execute("ATTACH IF NOT EXISTS ':memory:' AS united (COMPRESS)")
    for number, part in enumerate(parts):
        into = f"INSERT INTO united.main.{name} BY NAME" if number else f"CREATE OR REPLACE TABLE united.main.{name} AS"
        connection.execute(f"{into} SELECT {select} FROM ({part.select(connection, name)})")
    connection.execute(f"CREATE OR REPLACE VIEW {name} AS FROM united.main.{name}")


def _qualified(name: str) -> str:
    return name if "." in name else f"main.{name}"
