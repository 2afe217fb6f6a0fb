"""The facts of a connection: which a query reads, and each found once, until it is asked for with other options."""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock, local
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.facts.context import NOTHING_SAID, Context, fill
from nsys_insight.facts.file import definitions
from nsys_insight.ingest import several
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.model.producers import create_tables, facts_read, options_of, producer_of, producers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    import duckdb

    from nsys_insight.facts.context import FactOptions
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source, Stored
    from nsys_insight.model.producers import Producer
    from nsys_insight.sql.names import Names


class _Mine(local):
    """The connection over which each thread finds facts, and the tables that it is filling."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection, self.under_way = connection, set[str]()


class Facts:
    """The facts that have been found over a connection.

    Args:
        connection: Where the model is.
        sources: What it is over, file by file.
        scopes: The part of each trace that it shows.
        prepare: Shows the rows that a statement reads, in some catalogs or in all.
        kept: The facts that were found before, for the whole trace, and are shown by views in place of tables.
        labels: What the files are called.
        of_run: The facts about all files together that are stored beside them.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what facts are found in
        self,
        connection: duckdb.DuckDBPyConnection,
        sources: Sequence[Source],
        scopes: Sequence[Scope],
        prepare: Callable[[str, Sequence[str] | None], None],
        kept: AbstractSet[str] = frozenset(),
        labels: Sequence[str] = ("",),
        of_run: Stored | None = None,
    ) -> None:
        """Nothing has been found but what was kept."""
        self._main, self._sources, self._scopes, self._show = connection, sources, scopes, prepare
        self._mine = _Mine(connection)
        self._locks: dict[str, Any] = {}
        self._labels, self._of_run = labels, of_run
        self._tables = self._existing_tables() if any(scope != WHOLE_TRACE for scope in scopes) else set()
        self._found = {
            (producer.name, catalog): NOTHING_SAID
            for producer in map(producer_of, kept) if producer.tables <= kept for catalog in self._catalogs_of(producer)
        }  # fmt: skip

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self._mine.connection

    def to_find(
        self, queries: Sequence[str | Names], options: FactOptions, catalogs: Sequence[str] | None = None
    ) -> dict[str, list[str]]:
        """Tell whose tables the queries read that have yet to be filled with these options, and in which catalogs.

        `catalogs` are those of the traces that are meant; None is all.
        """
        wanted = _read(queries) - self._mine.under_way
        missing = {
            name: self._lacking(producers()[name], options, catalogs)
            for name in sorted({producer_of(table).name for table in wanted})
        }
        return {name: where for name, where in missing.items() if where}

    def _lacking(self, producer: Producer, options: FactOptions, catalogs: Sequence[str] | None) -> list[str]:
        """The catalogs in which the tables of a producer have yet to be filled."""
        used = options.only(options_of(producer.name))
        of_producer = self._catalogs_of(producer, catalogs)
        return [catalog for catalog in of_producer if self._found.get((producer.name, catalog)) != used]

    @contextmanager
    def over(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Find facts over another connection to the same database, in this thread and within the block."""
        self._mine.connection = connection
        try:
            yield
        finally:
            self._mine.connection = self._main

    def options_used(self, queries: Sequence[str | Names], options: FactOptions) -> set[tuple[str, object]]:
        """The options, as (name, value), on which facts depend that these queries read or that have been found."""
        asked = [(producer_of(table).name, options) for table in _read(queries)]
        found = [(name, used) for (name, _), used in list(self._found.items())]  # another thread may be adding to them
        return {(each, getattr(used, each)) for name, used in (*asked, *found) for each in options_of(name)}

    def find(self, queries: Sequence[str | Names], options: FactOptions, catalogs: Sequence[str] | None = None) -> None:
        """Find the facts that the queries read, in all traces or in those of some catalogs.

        Raises:
            UsageError: Steps are to be found by an NVTX range that is not there.
        """
        for name in self.to_find(queries, options, catalogs):
            producer = producers()[name]
            with self._locks.setdefault(producer.scratch, RLock()):
                # Another producer may have needed it, or another thread.
                if where := self._lacking(producer, options, catalogs):
                    self._find(name, options, where)
                    used = options.only(options_of(name))
                    self._found |= dict.fromkeys(((name, catalog) for catalog in where), used)

    @property
    def to_keep(self) -> AbstractSet[str]:
        """The tables of the facts that hold for the trace whatever the options of the next question are."""
        names = [name for (name, _), used in self._found.items() if used == NOTHING_SAID]
        return frozenset[str]().union(*(producers()[name].tables for name in names))

    def _find(self, name: str, options: FactOptions, catalogs: Sequence[str]) -> None:
        """Fill the tables of a producer anew, and before them those that it reads."""
        producer = producers()[name]
        tables = producer.tables
        self._mine.under_way |= tables
        try:
            for catalog in catalogs:
                with several.inside(self._connection, catalog):
                    # Until it is found, a fact is a view: without rows, or of those that were kept.
                    for table in tables:
                        if (table, catalog) not in self._tables:
                            self._connection.execute(f"DROP VIEW IF EXISTS facts.{table}")
                            self._tables.add((table, catalog))
                    create_tables(self._connection, tables)
                    self._connection.execute("; ".join(f"TRUNCATE facts.{table}" for table in tables))
            with progress.at(f"finding {producer.progress}"):
                if left := [catalog for catalog in catalogs if not self._is_stored(producer, options, catalog)]:
                    self._fill(name, options, left)
        finally:
            self._mine.under_way -= tables

    def _is_stored(self, producer: Producer, options: FactOptions, catalog: str) -> bool:
        """Tell whether the facts that are asked for lie beside the trace; they are then taken from there."""
        is_of_run = producer.is_cross_rank
        sources = self._sources if is_of_run else [self._sources[self._catalogs.index(catalog)]]
        stored = self._of_run if is_of_run else sources[0].facts
        is_part = any(scope != WHOLE_TRACE for scope in self._scopes) or any(source.screen.looked for source in sources)
        if stored is None or is_part or options.only(options_of(producer.name)) != NOTHING_SAID:
            return False
        if stored.definitions != definitions():
            return False
        with several.inside(self._connection, catalog):
            for table in producer.tables & stored.tables.keys():
                self._connection.execute(f"INSERT INTO facts.{table} BY NAME FROM {stored.tables[table]}")
        return True

    def _fill(self, name: str, options: FactOptions, catalogs: Sequence[str]) -> None:
        """Fill the tables of a producer, after those that it reads."""

        def prepare(sql: str, among: Sequence[str]) -> None:
            self.find([sql], options, among)
            self._show(sql, among)

        producer = producers()[name]
        every = Context(self._connection, options, self._catalogs, self._labels, self._sources, self._scopes, prepare)
        if producer.is_cross_rank:
            fill(producer, every)
            return
        for catalog in catalogs:
            with several.inside(self._connection, catalog):
                fill(producer, every.of_trace(catalog))

    def _existing_tables(self) -> set[tuple[str, str]]:
        """The tables, with their catalogs, with which a scope was found."""
        found = self._main.execute(
            """SELECT table_name, CASE WHEN database_name = current_database() THEN '' ELSE database_name END
               FROM duckdb_tables() WHERE schema_name = 'facts'"""
        )
        return set(found.fetchall())

    @property
    def _catalogs(self) -> list[str]:
        """The catalogs in which the traces have their models."""
        return several.catalogs(len(self._sources))

    def _catalogs_of(self, producer: Producer, among: Sequence[str] | None = None) -> Sequence[str]:
        """The catalogs in which a producer has its tables, of those that are meant."""
        return [""] if producer.is_cross_rank else self._catalogs if among is None else among


def _read(queries: Sequence[str | Names]) -> frozenset[str]:
    """The tables of facts that queries read."""
    return frozenset[str]().union(*map(facts_read, queries))
