"""Producers: what fills the tables of the schema `facts`, which the views of the model show.

A producer is a file of `queries/facts`, whose statement fills the table of its name; or a folder: its `tables.sql`
defines the tables, and the module of its name in `nsys_insight.facts` fills them by the other statements. What the
statements do not tell is declared in TOML, in the comment that the file or `tables.sql` begins with:

    topic = "gpu"             the topic of the views that show its tables, which comments in the file name
    progress = "idle time"    what progress says is being found, if not the name
    options = ["steps"]       the fields of `FactOptions` that `fill` takes; those of what it reads follow
    is_cross_rank = true      filled once for all traces together
    scratch = "steps"         shares the scratch tables of that producer: one thread at a time fills either
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from nsys_insight.model import views
from nsys_insight.paths import queries_folder
from nsys_insight.sql import headers
from nsys_insight.sql.names import Names, mentioned_by_ours

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb

_DEFINITION = "CREATE TABLE IF NOT EXISTS facts."
# Two threads may be the first to need a table.
_CREATING = Lock()


@dataclass(frozen=True)
class Producer:
    """What fills some tables of the schema `facts`; `path` is the file that defines them."""

    name: str
    path: Path

    @property
    def is_statement(self) -> bool:
        """Whether one statement fills its table; else the module of its name does."""
        return self.path.stem == self.name

    @cached_property
    def _texts(self) -> tuple[str | None, str, str]:
        """The header, the definition of the tables, and the statement that fills one."""
        header, text = headers.split(self.path.read_text(encoding="utf-8"))
        text = text.partition("COMMENT ON ")[0]  # of the views that show the tables (`views.fact_views`)
        create, insert, rest = text.partition("INSERT INTO ") if self.is_statement else (text, "", "")
        return header, create, insert + rest

    @cached_property
    def _declared(self) -> dict[str, Any]:
        import tomllib

        return tomllib.loads(self._texts[0] or "")

    @property
    def progress(self) -> str:
        """What progress says is being found."""
        return str(self._declared.get("progress", self.name.replace("_", " ")))

    @property
    def options(self) -> frozenset[str]:
        """The options that it takes itself; see `options_of`."""
        return frozenset(self._declared.get("options", ()))

    @property
    def is_cross_rank(self) -> bool:
        """Whether it is of all traces together: its tables are then in the connection's own catalog."""
        return bool(self._declared.get("is_cross_rank"))

    @property
    def scratch(self) -> str:
        """The producer whose scratch tables its statements use."""
        return str(self._declared.get("scratch", self.name))

    @property
    def create(self) -> str:
        """The statements that create its tables, without rows, unless they are there."""
        return self._texts[1]

    @cached_property
    def tables(self) -> frozenset[str]:
        """The names of its tables."""
        return frozenset(part.split(maxsplit=1)[0] for part in self.create.split(_DEFINITION)[1:])

    @property
    def fill(self) -> str:
        """The statement that fills its table."""
        return self._texts[2]

    @property
    def query(self) -> str:
        """The query in it."""
        return self.fill.partition("BY NAME")[2].strip().rstrip(";")

    @property
    def mentions(self) -> Names:
        """What that reads."""
        return mentioned_by_ours(self.query)

    @property
    def statements(self) -> list[str]:
        """What it runs, all or some of it, to fill its tables."""
        if self.is_statement:
            return [self.query]
        return [
            path.read_text(encoding="utf-8") for path in sorted(self.path.parent.glob("*.sql")) if path != self.path
        ]


@cache
def producers() -> dict[str, Producer]:
    """The producers by name."""
    folder = queries_folder() / "facts"
    found = {path.stem: path for path in folder.glob("*.sql")}
    found |= {path.parent.name: path for path in folder.glob("*/tables.sql")}
    return {name: Producer(name, path) for name, path in sorted(found.items())}


@cache
def _producer_by_table() -> dict[str, Producer]:
    known = producers().values()
    of_statements = {producer.name: producer for producer in known if producer.is_statement}
    return of_statements | {table: one for one in known if not one.is_statement for table in one.tables}


def producer_of(table: str) -> Producer:
    """The producer that fills a table."""
    return _producer_by_table()[table]


def every_table() -> AbstractSet[str]:
    """The names of all tables of facts."""
    return _producer_by_table().keys()


def tables_of_run() -> AbstractSet[str]:
    """The names of the tables that are of all traces together."""
    return frozenset(table for table, producer in _producer_by_table().items() if producer.is_cross_rank)


def tables_of_trace() -> AbstractSet[str]:
    """The names of the tables that are of a trace by itself, whatever others are open."""
    return every_table() - tables_of_run()


def create_tables(connection: duckdb.DuckDBPyConnection, names: AbstractSet[str]) -> None:
    """Create tables of facts that are not there yet, without rows, for the views that show them."""
    with _CREATING:
        for producer in {table.name: table for table in map(producer_of, names & every_table())}.values():
            connection.execute(producer.create)


def facts_read(query: str | Names) -> frozenset[str]:
    """The tables of facts that a query reads: itself, by views that it names, or by what fills one of them.

    `query` is a text of our own, or what `sql.names.mentioned` says of a user's.
    What producers with a module read is not among them: it depends on the trace.
    """
    return _facts_of(views.names_of(query)) & every_table()


@cache
def _facts_of(names: Names) -> frozenset[str]:
    read = views.read_by_model(names).of_schema("facts")
    found = (producer_of(name) for name in read & every_table())
    return read.union(*(_facts_of(producer.mentions) for producer in found if producer.is_statement))


@cache
def options_of(name: str) -> frozenset[str]:
    """The options that the tables of a producer depend on: those that it takes, and those of what it reads."""
    producer = producers()[name]
    read = frozenset[str]().union(*map(facts_read, producer.statements)) - producer.tables
    return producer.options.union(*(options_of(each) for each in {producer_of(table).name for table in read}))
