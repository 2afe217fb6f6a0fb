"""The facts of a connection: which ones a query reads. Each is found once per set of options."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from threading import RLock, local
from typing import TYPE_CHECKING, Any

from nsys_insight import cache_folder, progress
from nsys_insight.facts.context import DEFAULT_OPTIONS, Context, FactOptions, can_have_rows, fill
from nsys_insight.ingest import facts_folder
from nsys_insight.ingest.catalogs import name_catalogs, use_catalog
from nsys_insight.ingest.scope import FULL_TRACE, Scope
from nsys_insight.model.producers import Producer, create_table, facts_read, get_producer, options_of, producer_of
from nsys_insight.paths import package_folder, queries_folder, user_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    import duckdb

    from nsys_insight.ingest.source import Source, StoredFacts
    from nsys_insight.sql.names import Names


class _ThreadState(local):
    """The connection on which a thread finds facts, and the tables that it is filling."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection, self.tables_in_progress = connection, set[str]()


class Facts:
    """The facts that have been found on a connection.

    Args:
        connection: The connection with the model.
        sources: What the model reads, file by file.
        scopes: The part of each trace that the model shows.
        prepare: Creates the raw relations that a statement reads, in some or all catalogs.
        stored_tables: The tables of facts that an earlier session stored for the unscoped trace. Views show them.
        labels: The labels of the files.
        run_facts: The stored cross-rank facts of all files together.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what facts are found in
        self,
        connection: duckdb.DuckDBPyConnection,
        sources: Sequence[Source],
        scopes: Sequence[Scope],
        prepare: Callable[[str, Sequence[str] | None], None],
        stored_tables: AbstractSet[str] = frozenset(),
        labels: Sequence[str] = ("",),
        run_facts: StoredFacts | None = None,
    ) -> None:
        """Begin with the stored facts only."""
        self._main, self._sources, self._scopes, self._show = connection, sources, scopes, prepare
        self._thread = _ThreadState(connection)
        self._locks: dict[str, Any] = {}
        self._labels, self._run_facts, self._stored_tables = labels, run_facts, stored_tables
        self._tables = self._existing_tables() if any(scope != FULL_TRACE for scope in scopes) else set()
        # The options that the tables of a producer are filled with, by its name and the catalog.
        self._fill_options = {
            (producer.name, catalog): DEFAULT_OPTIONS
            for producer in map(producer_of, stored_tables) if producer.tables <= stored_tables
            for catalog in self._catalogs_of(producer)
        }  # fmt: skip

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self._thread.connection

    def list_missing(
        self, queries: Sequence[str | Names], options: FactOptions, catalogs: Sequence[str] | None = None
    ) -> dict[str, list[str]]:
        """Return the producers whose tables the queries read, and the catalogs where these are not filled yet.

        Tables that are filled with other options count as missing. `catalogs` limits the traces; None means all.
        """
        tables = _tables_read_by(queries) - self._thread.tables_in_progress
        missing = {
            name: self._missing_catalogs(get_producer(name), options, catalogs)
            for name in sorted({producer_of(table).name for table in tables})
        }
        return {name: missing_catalogs for name, missing_catalogs in missing.items() if missing_catalogs}

    def _missing_catalogs(self, producer: Producer, options: FactOptions, catalogs: Sequence[str] | None) -> list[str]:
        """Return the catalogs in which the tables of a producer are not filled yet."""
        options = options.restrict_to(options_of(producer.name))
        producer_catalogs = self._catalogs_of(producer, catalogs)
        return [catalog for catalog in producer_catalogs if self._fill_options.get((producer.name, catalog)) != options]

    @contextmanager
    def use_connection(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Find facts on another connection to the same database, in this thread and within the block."""
        self._thread.connection = connection
        try:
            yield
        finally:
            self._thread.connection = self._main

    def collect_options(self, queries: Sequence[str | Names], options: FactOptions) -> set[tuple[str, object]]:
        """Return the options (name, value) that the facts depend on which these queries read or which are filled."""
        read_options = [(producer_of(table).name, options) for table in _tables_read_by(queries)]
        # The list is a copy: another thread may add to the dictionary.
        filled_options = [(name, fill_options) for (name, _), fill_options in list(self._fill_options.items())]
        return {
            (option, getattr(fill_options, option))
            for name, fill_options in (*read_options, *filled_options)
            for option in options_of(name)
        }

    def find(self, queries: Sequence[str | Names], options: FactOptions, catalogs: Sequence[str] | None = None) -> None:
        """Find the facts that the queries read, in all traces or in those of some catalogs.

        Raises:
            UsageError: The options select steps by an NVTX range that does not exist.
        """
        for name in self.list_missing(queries, options, catalogs):
            producer = get_producer(name)
            with self._locks.setdefault(producer.scratch, RLock()):
                # Another producer or another thread may have filled them meanwhile.
                if missing_catalogs := self._missing_catalogs(producer, options, catalogs):
                    # If this fails, the tables are empty, also for the options that they were filled with.
                    for catalog in missing_catalogs:
                        self._fill_options.pop((name, catalog), None)
                    self._find(name, options, missing_catalogs)
                    fill_options = options.restrict_to(options_of(name))
                    self._fill_options |= dict.fromkeys(((name, catalog) for catalog in missing_catalogs), fill_options)

    @property
    def reusable_tables(self) -> AbstractSet[str]:
        """Return the tables that are filled with the default options: later sessions can use them."""
        names = [name for (name, _), options in self._fill_options.items() if options == DEFAULT_OPTIONS]
        return frozenset[str]().union(*(get_producer(name).tables for name in names))

    def _find(self, name: str, options: FactOptions, catalogs: Sequence[str]) -> None:
        """Fill the tables of a producer again, after the tables that it reads."""
        producer = get_producer(name)
        tables = producer.tables
        self._thread.tables_in_progress |= tables
        try:
            with progress.show_task(f"finding {producer.progress}"):
                if to_fill := [catalog for catalog in catalogs if not self._load_stored(producer, options, catalog)]:
                    self._fill(name, options, to_fill)
        finally:
            self._thread.tables_in_progress -= tables

    def _load_stored(self, producer: Producer, options: FactOptions, catalog: str) -> bool:
        """Fill the tables from the facts that are stored next to the trace. Return False if no stored facts match.

        Raises:
            TraceError: A stored table has other columns or types than the fact.
        """
        import duckdb

        is_cross_rank = producer.is_cross_rank
        sources = self._sources if is_cross_rank else [self._sources[self._catalogs.index(catalog)]]
        stored_facts = self._run_facts if is_cross_rank else sources[0].facts
        is_partial = any(scope != FULL_TRACE for scope in self._scopes) or any(
            source.row_checks.is_filtered for source in sources
        )
        if stored_facts is None or is_partial or options.restrict_to(options_of(producer.name)) != DEFAULT_OPTIONS:
            return False
        if stored_facts.definitions != digest_definitions():
            return False
        with use_catalog(self._connection, catalog):
            self._empty_tables(producer, catalog, is_created=True)
            for table in producer.tables & stored_facts.tables.keys():
                try:
                    self._connection.execute(f"INSERT INTO facts.{table} BY NAME FROM {stored_facts.tables[table]}")
                except (duckdb.BinderException, duckdb.ConversionException):
                    folder = self._labels[self._catalogs.index(catalog)]
                    problem = f"facts/{table}.parquet has other columns or types than a table of this version"
                    raise facts_folder.damaged_folder_error(folder, problem) from None
        return True

    def _fill(self, name: str, options: FactOptions, catalogs: Sequence[str]) -> None:
        """Fill the tables of a producer, after the tables that it reads."""

        def prepare(sql: str, catalogs: Sequence[str]) -> None:
            self.find([sql], options, catalogs)
            self._show(sql, catalogs)

        producer = get_producer(name)
        all_traces = Context(
            self._connection, options, self._catalogs, self._labels, self._sources, self._scopes, prepare
        )
        if producer.is_cross_rank:
            self._empty_tables(producer, "")
            fill(producer, all_traces)
            return
        for catalog in catalogs:
            context = all_traces.for_trace(catalog)
            with use_catalog(self._connection, catalog):
                if can_have_rows(producer, context):
                    self._empty_tables(producer, catalog)
                    fill(producer, context)
                elif (name, catalog) in self._tables or name in self._stored_tables:
                    self._empty_tables(producer, catalog, is_created=True)

    def _empty_tables(self, producer: Producer, catalog: str, *, is_created: bool = False) -> None:
        """Replace the views of facts that are not found yet by empty tables, and empty the other tables.

        A query creates its table itself, unless the table `is_created` here: for stored rows, or for none.
        """
        creates_table = bool(producer.query) and not is_created
        for table in producer.tables:
            if (table, catalog) in self._tables:
                self._connection.execute(f"{'DROP TABLE IF EXISTS' if creates_table else 'TRUNCATE'} facts.{table}")
            elif creates_table:
                self._connection.execute(f"DROP VIEW IF EXISTS facts.{table}")
            else:
                create_table(self._connection, table)
            self._tables.add((table, catalog))

    def _existing_tables(self) -> set[tuple[str, str]]:
        """Return the tables (name, catalog) that exist already, because a scope was resolved with them."""
        rows = self._main.execute(
            """SELECT table_name, CASE WHEN database_name = current_database() THEN '' ELSE database_name END
               FROM duckdb_tables() WHERE schema_name = 'facts'"""
        )
        return set(rows.fetchall())

    @property
    def _catalogs(self) -> list[str]:
        """Return the catalogs of the traces' models."""
        return name_catalogs(len(self._sources))

    def _catalogs_of(self, producer: Producer, catalogs: Sequence[str] | None = None) -> Sequence[str]:
        """Return the catalogs in which a producer has its tables, among `catalogs` or all."""
        return [""] if producer.is_cross_rank else self._catalogs if catalogs is None else catalogs


def _tables_read_by(queries: Sequence[str | Names]) -> frozenset[str]:
    return frozenset[str]().union(*map(facts_read, queries))


@cache
def digest_definitions() -> str:
    """Return the digest of all queries, catalogs and modules that define the facts.

    Stored facts with another digest are out of date. The files count, not the macros that are
    written from them: parsing the catalogs takes longer than hashing them.
    """
    folders = [queries_folder() / "catalog", queries_folder() / "model", package_folder() / "facts"]
    folders += [package_folder() / "model", user_folder("catalog")]
    files = [file for folder in folders for suffix in ("sql", "toml", "py") for file in folder.rglob(f"*.{suffix}")]
    return cache_folder.digest(*(path.read_bytes() for path in sorted(files)))
