"""Several traces in one session: each has its model in a catalog of its own, and a view of all unites them.

Ids of strings, calls and processes repeat from trace to trace. So what belongs together is joined within a trace, by
the views as they are, and only then put under each other, with a column `trace` in front.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsys_insight.facts import store
from nsys_insight.ingest.several import catalogs
from nsys_insight.model import views
from nsys_insight.sql.names import mentioned, words
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.ingest.source import Source

_FEW = 8


def unite(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    labels: Sequence[str],
    sources: Sequence[Source],
    loaded: dict[str, set[str]],
) -> None:
    """Create the views that a query names over those of all traces, which are called by their labels.

    Views of the run as a whole are created once: they are of all traces as they are.

    Of more than a few traces, a plan over all would take more memory than their rows: then the rows are loaded, trace
    by trace, with the columns that the query names. `loaded` keeps which those are.
    """
    names = mentioned(sql)
    of_run = [view for view in views.needed(sql) if view.is_of_run]
    store.create_tables(connection, {name for view in of_run for name in view.mentions.of_schema("facts")})
    for view in of_run:
        connection.execute(view.create.replace("CREATE VIEW", "CREATE VIEW IF NOT EXISTS", 1))
    parts = list(zip(catalogs(len(sources)), labels, strict=True))
    for name in names.relations_of_model & {*views.definitions(), "scope"} - {view.name for view in of_run}:
        if len(parts) <= _FEW:
            _create(connection, name, parts)
        else:
            _load(connection, name, parts, sql, loaded)
    exported = names.of_schema("raw")
    if not exported:
        return
    connection.execute("CREATE SCHEMA IF NOT EXISTS raw")
    for table in {table for source in sources for table in source.columns if table.lower() in exported}:
        having = [part for part, source in zip(parts, sources, strict=True) if table in source.columns]
        _create(connection, f"raw.{identifier(table)}", having)


def _create(connection: duckdb.DuckDBPyConnection, name: str, parts: Sequence[tuple[str, str]]) -> None:
    each = (f"SELECT {literal(label)} AS trace, * FROM {part}.{_qualified(name)}" for part, label in parts)
    connection.execute(f"CREATE VIEW IF NOT EXISTS {name} AS " + " UNION ALL BY NAME ".join(each))


def _load(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    parts: Sequence[tuple[str, str]],
    query: str,
    loaded: dict[str, set[str]],
) -> None:
    """Load of a view the columns that a query may mean: those it names, or all where it may mean all."""
    columns = [column for column, *_ in connection.execute(f"DESCRIBE {parts[0][0]}.main.{name}").fetchall()]
    every_word = words(query)
    bare = re.sub(r"count\s*\(\s*\*\s*\)", "", query, flags=re.IGNORECASE)
    chosen = re.match(r"\s*(SELECT|WITH|CREATE)\b", bare, re.IGNORECASE)
    every = not chosen or "*" in bare or every_word & {"natural", "columns"}
    needed = {column for column in columns if every or column in every_word}
    if name in loaded and loaded[name] >= needed:
        return
    loaded[name] = needed | loaded.get(name, set())
    select = ", ".join(["trace", *(identifier(column) for column in columns if column in loaded[name])])
    connection.execute("ATTACH IF NOT EXISTS ':memory:' AS united (COMPRESS)")
    for number, (part, label) in enumerate(parts):
        into = f"INSERT INTO united.main.{name} BY NAME" if number else f"CREATE OR REPLACE TABLE united.main.{name} AS"
        rows = f"SELECT {literal(label)} AS trace, * FROM {part}.main.{name}"
        connection.execute(f"{into} SELECT {select} FROM ({rows})")
    connection.execute(f"CREATE OR REPLACE VIEW {name} AS FROM united.main.{name}")


def _qualified(name: str) -> str:
    return name if "." in name else f"main.{name}"
