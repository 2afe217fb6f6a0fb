"""Producers: they fill the tables of the schema `facts`, which views of the model show.

A view with ``stored = true`` (`model.views`) is a producer: its query fills its table. Any other producer is a folder
of `nsys_insight/facts`: the function `fill` of its module fills the tables, with the statements in the folder, whose
`tables.toml` declares the tables and other properties:

    topic = "gpu"             topic of the views that show its tables
    progress = "idle time"    name in progress messages, if not the producer's name
    options = ["steps"]       fields of `FactOptions` that `fill` takes, without those of the facts that it reads
    is_cross_rank = true      filled once for all traces together
    scratch = "steps"         shares the scratch tables of that producer, so only one thread at a time fills either

    [tables.step_calls]       with a description, a view of this name shows the table; its name may begin with _
    description = "How many CUDA API calls each thread made in each step"
    columns = ["step BIGINT: The step, as in `steps`", …]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.model import views
from nsys_insight.model.views import read_declarations
from nsys_insight.paths import package_folder
from nsys_insight.sql.names import Names, scan_names
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import duckdb


@dataclass(frozen=True)
class Producer:
    """It fills one or more tables of the schema `facts`: with its query, or if that is "", with the module of its name.

    Attributes:
        needs: What its query returns no row without, as the text after FROM.
        progress: Its name in progress messages.
        options: The options that it takes itself; see `options_of`.
        is_cross_rank: Whether it covers all traces together; its tables are then in the connection's own catalog.
        scratch: The producer whose scratch tables its statements use.
    """

    name: str
    tables: frozenset[str]
    query: str = ""
    needs: str = ""
    progress: str = ""
    options: frozenset[str] = frozenset()
    is_cross_rank: bool = False
    scratch: str = ""

    @property
    def fill(self) -> str:
        """Return the statement that creates its table."""
        return f"CREATE TABLE facts.{self.name} AS {self.query}"

    @property
    def check(self) -> str:
        """Return the query that has a row if its query can have one; "" if that is always so."""
        return f"SELECT 1 FROM {self.needs} LIMIT 1" if self.needs else ""

    @property
    def statements(self) -> list[str]:
        """Return the statements that it can run to fill its tables."""
        files = (package_folder() / "facts" / self.name).glob("*.sql")
        return [self.check, self.query] if self.query else [file.read_text(encoding="utf-8") for file in sorted(files)]


def _make_producer(name: str, tables: Iterable[str], declared: Mapping[str, Any], query: str = "") -> Producer:
    return Producer(
        name,
        frozenset(table.removeprefix("_") for table in tables),
        query,
        declared.get("needs", ""),
        declared.get("progress", name.replace("_", " ")),
        frozenset(declared.get("options", ())),
        declared.get("is_cross_rank", False),
        declared.get("scratch", name),
    )


@cache
def _module_producers() -> dict[str, Producer]:
    return {name: _make_producer(name, declared["tables"], declared) for name, declared in read_declarations().items()}


@cache
def _module_by_table() -> dict[str, Producer]:
    return {table: producer for producer in _module_producers().values() for table in producer.tables}


@cache
def _find_producer(table: str) -> Producer | None:
    """Find the producer of a table. Only the files of the views with its name are read, not all files of the model."""
    if producer := _module_by_table().get(table):
        return producer
    for name in (table, f"_{table}"):
        if (view := views.definitions().get(name)) and view.is_stored:
            return _make_producer(table, [table], view.header, view.query)
    return None


def producer_of(table: str) -> Producer:
    """Return the producer that fills a table."""
    if not (producer := _find_producer(table)):
        raise KeyError(table)
    return producer


def get_producer(name: str) -> Producer:
    """Return the producer with this name: that of a module, or of the table that its query fills."""
    return _module_producers().get(name) or producer_of(name)


def all_producers() -> dict[str, Producer]:
    """Return all producers by name."""
    stored_tables = {view.table for view in views.definitions().values() if view.is_stored} - _module_by_table().keys()
    return dict(sorted((_module_producers() | {table: producer_of(table) for table in stored_tables}).items()))


def fact_tables() -> dict[str, Producer]:
    """Return the producer of each fact table."""
    return {table: producer for producer in all_producers().values() for table in producer.tables}


def create_table(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Replace the view of a fact that is not found yet, without rows or of a stored table, by an empty table."""
    tables = read_declarations().get(producer_of(name).name, {}).get("tables", {})
    if declared := tables.get(name) or tables.get(f"_{name}"):
        columns = [(column, kind) for column, kind, _ in views.split_columns(declared["columns"])]
    else:
        columns = [row[:2] for row in connection.execute(f"DESCRIBE facts.{name}").fetchall()]
    definition = ", ".join(f"{identifier(column)} {kind}" for column, kind in columns)
    connection.execute(f"DROP VIEW facts.{name}; CREATE TABLE facts.{name} ({definition})")


def facts_read(query: str | Names) -> frozenset[str]:
    """Return the fact tables that a query reads: directly, through views, or through the queries of stored views.

    `query` is built-in SQL, or the names that `sql.names.parse_names` finds in a user's.
    The tables that producers with a module read are left out, as are those of a stored view after its check: they
    depend on the trace.
    """
    return _find_facts(views.to_names(query))


@cache
def _find_facts(names: Names) -> frozenset[str]:
    tables = frozenset(filter(_find_producer, views.expand_names(names).relations_in("facts")))
    producers = map(producer_of, tables)
    return tables.union(*(_find_facts(scan_names(producer.check or producer.query)) for producer in producers))


@cache
def options_of(name: str) -> frozenset[str]:
    """Return the options that a producer's tables depend on: those it takes, and those of the facts it reads."""
    producer = get_producer(name)
    tables = frozenset[str]().union(*map(facts_read, producer.statements)) - producer.tables
    return producer.options.union(*map(options_of, {producer_of(table).name for table in tables}))
