"""The files of a session while they are open: the model over them, and what is tried when a file is hard to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.context import NOTHING_SAID
from nsys_insight.facts.store import Facts
from nsys_insight.ingest import bad_rows, database, facts_folder
from nsys_insight.ingest.attach import parquet_files
from nsys_insight.ingest.contract import contract
from nsys_insight.ingest.files import Kind
from nsys_insight.ingest.limits import are_small
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.ingest.several import catalogs
from nsys_insight.ingest.waiting import left_running
from nsys_insight.ingest.watch import Watch
from nsys_insight.model import template
from nsys_insight.model.producers import facts_read
from nsys_insight.packs.step_options import AUTO
from nsys_insight.session import sandbox
from nsys_insight.session.model import Model
from nsys_insight.session.open_strategies import OpenStrategies
from nsys_insight.session.recovery import Recovery
from nsys_insight.session.several import unite
from nsys_insight.session.store import Store
from nsys_insight.sql.names import mentioned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.errors import InsightError, QueryError
    from nsys_insight.facts.context import FactOptions
    from nsys_insight.ingest.files import File
    from nsys_insight.ingest.limits import Limits
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.prefetch import Question
    from nsys_insight.session.several import RankNumber
    from nsys_insight.sql.names import Names


class Database:
    """A connection over trace files in one scope, which can reach nothing else (see `sandbox`).

    `duckdb` is the connection: another one after `open`, which is called again when the files are to be read in
    another way. `definitions` are those of the user, which it then makes again. `store` keeps facts of a big trace and
    answers to queries of ours. `left_out` says which rows of the files are impossible, once a query has met one.
    """

    def __init__(  # noqa: PLR0913 - what is opened
        self,
        files: Sequence[File],
        scope: Scope,
        limits: Limits,
        *,
        use_cache: bool | None,
        ncu: Path | None = None,
        parts: Sequence[tuple[str, Scope]] = (),
        steps: StepOptions = AUTO,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the files in the first way that works.

        Steps that the scope chooses are found as `steps` says. `note` is called with a sentence about what is left out
        of the files. `ncu` is a file that `ncu import` wrote, to be read beside a single trace. Where `parts` of a
        single trace are given, each with its label, they are as several traces.

        Raises:
            TraceError: None does.
            UsageError: The scope names an NVTX range or a step that is not there.
        """
        self.files, self.scope, self._use_cache, self._steps = files, scope, use_cache, steps
        self._parts = parts or [(file.label, scope) for file in files]
        self._strategies = OpenStrategies(files, limits, use_cache=use_cache, ncu=ncu)
        self._ncu = ncu
        self.duckdb: duckdb.DuckDBPyConnection
        self._opened: list[duckdb.DuckDBPyConnection] = []
        self._models: list[Model] = []
        self._facts: Facts
        self._stores: list[Store] = []
        self.store: Store | None = None
        self._loaded: dict[str, set[str]] = {}
        self.definitions: dict[tuple[str, bool], str] = {}
        self._as_exported = False
        self._note = note
        self.left_out = ""
        self._watch = Watch(files)
        self._recovery = Recovery(files, self._strategies, self._watch)
        self.open()

    @property
    def labels(self) -> list[str]:
        """What the traces are called, or the parts of one."""
        return [label for label, _ in self._parts]

    def open(self) -> None:
        """Try the ways that are left. The connection of one that failed stays: answers it gave can still be read."""
        import sqlite3

        import duckdb

        while True:
            self._loaded.clear()
            try:
                self.duckdb, sources = self._strategies.open(as_exported=self._as_exported)
                self._opened.append(self.duckdb)
                if self.scope.of_steps and not self._as_exported and self._strategies.copy():
                    continue  # steps take a dozen looks at all rows
                self.store = self._open_store()
                self._prepare_connection()
                if self.store:
                    self.store.show_kept()
                self._build(sources)
                for definition in self.definitions.values():
                    self.prepare(definition, mentioned(definition), NOTHING_SAID)
                    self.duckdb.execute(definition)
            except duckdb.OutOfMemoryException as error:
                self._recovery.make_room(error)
            except (duckdb.Error, sqlite3.Error, UnicodeDecodeError) as error:
                if not self._recovery.may_get_over(error, self._stores):
                    self._recovery.get_over(error)
            else:
                return

    def _prepare_connection(self) -> None:
        """Copy the model into it, and lock it before anything is evaluated that may come from a file."""
        if len(self._parts) > 1 or self._as_exported:
            # DuckDB 1.5.5 takes scans of two SQLite tables that have the same columns, in one file or in two, for one
            # scan, and returns the rows of the first for both. The tables of the contract all differ.
            self.duckdb.execute("SET disabled_optimizers = 'common_subplan'")
        own = self.duckdb.execute("SELECT current_database()").fetchall()[0][0]
        others = list(filter(None, catalogs(len(self._parts))))
        for catalog in others:
            self.duckdb.execute(f"ATTACH ':memory:' AS {catalog}")
        template.copy_into(self.duckdb, own, *others, lasting=self._use_cache is not False)
        folders = [file.path for file in self.files if file.kind is Kind.PARQUET]
        files = [file for folder in folders for file in (*parquet_files(folder), *facts_folder.files(folder))]
        sandbox.lock(self.duckdb, files=[*files, *facts_folder.files_of_run(folders)])

    def load(self) -> None:
        """Copy big exports into DuckDB first, and read small ones into memory, where much will be asked."""
        if not self._as_exported and self._strategies.copy():
            self.open()
        elif self._is_small and self.scope == WHOLE_TRACE and len(self._parts) == 1 and not self._as_exported:
            self._models[0].read_into_memory()

    def prepare(self, sql: str, names: Names, options: FactOptions, *, each: bool = False, ours: bool = False) -> None:
        """Prepare what a query with these names reads: facts, then raw relations; with `each`, those of each trace.

        Who asks for raw tables means them as exported, except for queries of `ours`, which the contract is enough for.
        """
        if not self._as_exported and not ours and names.of_schema("raw"):
            self._show_as_exported()
        self._find(names, options)
        self._show(names)
        if len(self._parts) > 1 and not each:
            unite(self.duckdb, sql, names, self.labels, self._sources, self._loaded, self._rank_numbers)

    def _rank_numbers(self) -> list[RankNumber]:
        """Which processes of which traces are which ranks."""
        self._facts.find(["FROM facts.rank_numbers"], NOTHING_SAID)
        found = "SELECT trace, process_id, device_id, rank FROM facts.rank_numbers"
        return self.duckdb.execute(found).fetchall()

    def _show(self, query: str | Names, parts: Sequence[str] | None = None) -> None:
        for part, model in zip(catalogs(len(self._models)), self._models, strict=True):
            if parts is None or part in parts:
                model.show(query)

    def _find(self, names: Names, options: FactOptions) -> None:
        """Find the facts that a query reads, and those that views of the user's own may read, unless they have been."""
        queries = [names, *map(mentioned, self.definitions.values())]
        if any(map(facts_read, queries)):
            # Steps take a dozen looks at all rows.
            if "steps" in self._facts.to_find(queries, options):
                self.load()
            self._facts.find(queries, options)

    @property
    def serve_several(self) -> bool:
        """Whether several connections may answer questions of ours at once: about a small trace by itself.

        Of a big one, they would take ten times as long: what they hold does not fit in memory twice.
        """
        return self._is_small and len(self._parts) == 1 and not self.definitions

    @property
    def _is_small(self) -> bool:
        return are_small([file.path for file in self.files]) and self._strategies.big_export is None

    def options_used(self, asked: Question) -> set[tuple[str, object]]:
        """The options, as (name, value), on which facts depend that a question reads or that have been found."""
        return self._facts.options_used(asked.names, asked.options)

    def prepare_over(self, connection: duckdb.DuckDBPyConnection, asked: Question) -> None:
        """Prepare what a question reads over another connection, while others do so for theirs."""
        with self._facts.over(connection):
            self._facts.find(asked.names, asked.options)
        for names in asked.names:
            self._show(names)

    def _show_as_exported(self) -> None:
        """Give the tables of the schema `raw` with all that the files have; a cached copy holds only what is read."""
        self._as_exported = True
        self._strategies.leave_cache()
        self.open()

    def _lasts(self) -> bool:
        """Whether facts are kept for the next session: those of a part of a trace, or without bad rows, are not."""
        return self._use_cache is not False and self.scope == WHOLE_TRACE and not self._recovery.validates_rows

    def _open_store(self) -> Store | None:
        """Put what is found about a big trace into a file."""
        export = self._strategies.big_export
        if export is None or len(self._parts) > 1 or not self._recovery.uses_files:
            return None
        try:
            store = Store(self.duckdb, export, self._ncu, lasting=self._lasts())
        except OSError:
            return None
        self._stores.append(store)
        return store

    def _build(self, sources: Sequence[Source]) -> None:
        """Show the model over each source; that of a single one is in the connection's own catalog."""
        sources = [bad_rows.screened(self.duckdb, source) for source in sources]
        if self._recovery.validates_rows:
            sources = self._without_bad_rows(sources)
        scopes = [scope for _, scope in self._parts]
        sources = sources * len(scopes) if len(sources) == 1 else sources
        self._models = [
            Model(self.duckdb, source, catalog=catalog, scope=scope, steps=self._steps, as_exported=self._as_exported)
            for source, catalog, scope in zip(sources, catalogs(len(sources)), scopes, strict=True)
        ]
        kept = self.store.kept if self.store else frozenset[str]()
        of_run = facts_folder.stored_of_run([file.path for file in self.files])
        self._facts = Facts(self.duckdb, sources, scopes, self._show, kept, self.labels, of_run)

    def _without_bad_rows(self, sources: Sequence[Source]) -> list[Source]:
        looked = [bad_rows.looked_at(self.duckdb, source, contract()) for source in sources]
        labels = [f"{file.label}: " if len(self.files) > 1 else "" for file in self.files]
        said = "; ".join(label + text for label, (_, texts) in zip(labels, looked, strict=True) for text in texts)
        if said and said != self.left_out:
            self._note(said)
        self.left_out = said
        return [source for source, _ in looked]

    def may_run_again(self, error: Exception, *, first: bool) -> bool:
        """Tell whether what failed may be run again, with the files as `open` opens them next; as in `Recovery`."""
        return self._recovery.may_run_again(error, self._stores, first=first)

    def may_get_over(self, error: Exception) -> bool:
        """Tell whether rows may be read that could not be, with the files as `open` opens them next."""
        return self._recovery.may_get_over(error, self._stores)

    def out_of_memory(self, error: Exception) -> QueryError:
        """Say what was too little."""
        return self._recovery.out_of_memory(error)

    def check(self) -> None:
        """Raise, if a file is not what it was when it was opened."""
        if changed := self._recovery.changed():
            raise changed

    def why(self, error: Exception) -> InsightError | None:
        """Say why a query failed where neither the query nor the rows are to blame."""
        return self._recovery.changed() or database.spill_failed(error)

    @property
    def tables(self) -> list[str]:
        """The raw tables that the files have."""
        return [f"raw.{table}" for source in self._sources for table in source.columns]

    @property
    def _sources(self) -> list[Source]:
        return [model.source for model in self._models]

    def interrupt(self) -> None:
        """Stop what runs."""
        self.duckdb.interrupt()
        self._strategies.interrupt()

    def close(self) -> None:
        """Close the connection; what was found about a big trace stays in the cache folder.

        A query that cannot be stopped holds it: then the end of the process closes it.
        """
        if left_running:
            return
        for connection in self._opened:
            connection.close()
        self._strategies.release()
        if self.store and self._recovery.uses_files and not self._watch.changed():
            self.store.keep(self._facts.to_keep)
        for store in self._stores:
            store.close()
