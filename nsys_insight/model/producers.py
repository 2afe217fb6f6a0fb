"""Producers: they fill the tables of the schema `facts`, which the views of the model show.

A producer is a file of `queries/facts` whose statement fills the table of the same name, or a folder. In a folder,
`tables.sql` defines the tables, and the module of the same name in `nsys_insight.facts` fills them with the other
statements. The opening comment of the file or of `tables.sql` declares other properties in TOML:

    topic = "gpu"             topic of the views that show its tables; comments in the file name these views
    progress = "idle time"    name in progress messages, if not the producer's name
    options = ["steps"]       fields of `FactOptions` that `fill` takes, without those of the facts that it reads
    is_cross_rank = true      filled once for all traces together
    scratch = "steps"         shares the scratch tables of that producer, so only one thread at a time fills either
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from nsys_insight.model import views
from nsys_insight.paths import queries_folder
from nsys_insight.sql import headers
from nsys_insight.sql.names import Names, scan_names

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb

_DEFINITION = "CREATE TABLE IF NOT EXISTS facts."
# Two threads may need the same table at the same time.
_CREATE_LOCK = Lock()


@dataclass(frozen=True)
class Producer:
    """It fills one or more tables of the schema `facts`; `path` is the file that defines them."""

    name: str
    path: Path

    @property
    def is_statement(self) -> bool:
        """Return whether one statement fills its table; otherwise the module of the same name does."""
        return self.path.stem == self.name

    @cached_property
    def _texts(self) -> tuple[str | None, str, str]:
        """Return the header, the definition of the tables, and the statement that fills the table."""
        header, text = headers.split_header(self.path.read_text(encoding="utf-8"))
        text = text.partition("COMMENT ON ")[0]  # comments are for the views that show the tables (`views.fact_views`)
        create, insert, statement = text.partition("INSERT INTO ") if self.is_statement else (text, "", "")
        return header, create, insert + statement

    @cached_property
    def _declared(self) -> dict[str, Any]:
        import tomllib

        return tomllib.loads(self._texts[0] or "")

    @property
    def progress(self) -> str:
        """Return its name in progress messages."""
        return str(self._declared.get("progress", self.name.replace("_", " ")))

    @property
    def options(self) -> frozenset[str]:
        """Return the options that it takes itself; see `options_of`."""
        return frozenset(self._declared.get("options", ()))

    @property
    def is_cross_rank(self) -> bool:
        """Return whether it covers all traces together; its tables are then in the connection's own catalog."""
        return bool(self._declared.get("is_cross_rank"))

    @property
    def scratch(self) -> str:
        """Return the producer whose scratch tables its statements use."""
        return str(self._declared.get("scratch", self.name))

    @property
    def create(self) -> str:
        """Return the statements that create its tables, without rows, unless they exist."""
        return self._texts[1]

    @cached_property
    def tables(self) -> frozenset[str]:
        """Return the names of its tables."""
        return frozenset(part.split(maxsplit=1)[0] for part in self.create.split(_DEFINITION)[1:])

    @property
    def fill(self) -> str:
        """Return the statement that fills its table."""
        return self._texts[2]

    @property
    def query(self) -> str:
        """Return the query of the statement that fills its table."""
        return self.fill.partition("BY NAME")[2].strip().rstrip(";")

    @property
    def mentions(self) -> Names:
        """Return the names in this query."""
        return scan_names(self.query)

    @property
    def statements(self) -> list[str]:
        """Return the statements that it can run to fill its tables."""
        if self.is_statement:
            return [self.query]
        return [
            path.read_text(encoding="utf-8") for path in sorted(self.path.parent.glob("*.sql")) if path != self.path
        ]


@cache
def all_producers() -> dict[str, Producer]:
    """Return all producers by name."""
    folder = queries_folder() / "facts"
    paths = {path.stem: path for path in folder.glob("*.sql")}
    paths |= {path.parent.name: path for path in folder.glob("*/tables.sql")}
    return {name: Producer(name, path) for name, path in sorted(paths.items())}


@cache
def _producer_by_table() -> dict[str, Producer]:
    producers = all_producers().values()
    by_statement = {producer.name: producer for producer in producers if producer.is_statement}
    by_module = {table: producer for producer in producers if not producer.is_statement for table in producer.tables}
    return by_statement | by_module


def producer_of(table: str) -> Producer:
    """Return the producer that fills a table."""
    return _producer_by_table()[table]


def fact_tables() -> AbstractSet[str]:
    """Return the names of all fact tables."""
    return _producer_by_table().keys()


def cross_rank_tables() -> AbstractSet[str]:
    """Return the names of the fact tables that cover all traces together."""
    return frozenset(table for table, producer in _producer_by_table().items() if producer.is_cross_rank)


def per_trace_tables() -> AbstractSet[str]:
    """Return the names of the fact tables that cover a single trace, independent of other open traces."""
    return fact_tables() - cross_rank_tables()


def create_tables(connection: duckdb.DuckDBPyConnection, names: AbstractSet[str]) -> None:
    """Create missing fact tables, without rows, for the views that show them."""
    with _CREATE_LOCK:
        for producer in {producer.name: producer for producer in map(producer_of, names & fact_tables())}.values():
            connection.execute(producer.create)


def facts_read(query: str | Names) -> frozenset[str]:
    """Return the fact tables that a query reads: directly, through views, or through the producers of such tables.

    `query` is built-in SQL, or the names that `sql.names.parse_names` finds in a user's.
    The tables that producers with a module read are left out: they depend on the trace.
    """
    return _find_facts(views.to_names(query)) & fact_tables()


@cache
def _find_facts(names: Names) -> frozenset[str]:
    facts = views.expand_names(names).relations_in("facts")
    producers = (producer_of(name) for name in facts & fact_tables())
    return facts.union(*(_find_facts(producer.mentions) for producer in producers if producer.is_statement))


@cache
def options_of(name: str) -> frozenset[str]:
    """Return the options that a producer's tables depend on: those it takes, and those of the facts it reads."""
    producer = all_producers()[name]
    tables = frozenset[str]().union(*map(facts_read, producer.statements)) - producer.tables
    return producer.options.union(*map(options_of, {producer_of(table).name for table in tables}))
