"""The open files of a session: the connection, the model over the files, and recovery from read errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError, TraceError
from nsys_insight.facts.context import DEFAULT_OPTIONS, FactOptions
from nsys_insight.facts.store import Facts
from nsys_insight.ingest import bad_rows, database, facts_folder, processes, scope_check
from nsys_insight.ingest.catalogs import name_catalogs
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.files import File, FileGuard, Kind, list_parquet_files
from nsys_insight.ingest.limits import Limits, are_small_files
from nsys_insight.ingest.scope import FULL_TRACE, Scope
from nsys_insight.ingest.waiting import left_running
from nsys_insight.model import template
from nsys_insight.model.producers import facts_read
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.session import sandbox
from nsys_insight.session.model import Model
from nsys_insight.session.open_strategies import OpenStrategies
from nsys_insight.session.recovery import Recovery
from nsys_insight.session.store import Store
from nsys_insight.session.united_traces import unite_traces
from nsys_insight.sql.names import Names, parse_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.source import Source, Window
    from nsys_insight.session.prefetch import Question
    from nsys_insight.session.united_traces import RankNumber

_NAMED_TABLES = frozenset({"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"})
_NO_NAMES_NOTE = """this export has no StringIds, the table with the names of kernels and calls: export the report \
again, without --tables or with StringIds in it"""


class Database:
    """A connection over trace files in one scope, without access to anything else (see `sandbox`).

    `duckdb` is the connection. `open` replaces it when the files must be read in another way, and runs the user's
    `definitions` again. `store` stores facts about a big trace, and answers to built-in queries. `left_out` is a
    sentence about impossible rows of the files; it is "" until a query has read one. `shared_pids` are the pids of
    the processes that have a number of `ingest.processes`. `recovery` chooses how to open the files after a failure.
    """

    def __init__(  # noqa: PLR0913 - options by keyword
        self,
        files: Sequence[File],
        scope: Scope,
        limits: Limits,
        *,
        use_cache: bool | None,
        ncu: Path | None = None,
        part_scopes: Sequence[tuple[str, Scope]] = (),
        steps: StepOptions = AUTO,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take the files and how to read them; `open` opens them.

        `steps` are the options for the steps that the scope selects. `note` is called with a sentence about rows that
        are left out. `ncu` is a file that `ncu import` wrote, to be read along with a single trace. `part_scopes` are
        labels and scopes of parts of a single trace, which are then treated as several traces.
        """
        self.files, self.scope, self._use_cache, self._steps = files, scope, use_cache, steps
        self._part_scopes = part_scopes or [(file.label, scope) for file in files]
        self._strategies = OpenStrategies(files, limits, use_cache=use_cache, ncu=ncu)
        self._ncu = ncu
        self.duckdb: duckdb.DuckDBPyConnection
        self._connections: list[duckdb.DuckDBPyConnection] = []
        self._models: list[Model] = []
        self._facts: Facts
        self._stores: list[Store] = []
        self.store: Store | None = None
        self._loaded: dict[str, set[str]] = {}
        self.definitions: dict[tuple[str, bool], str] = {}
        self._as_exported = False
        self._note = note
        self.left_out = ""
        self.shared_pids: dict[int, int] = {}
        self._watch = FileGuard(files)
        self.recovery = Recovery(files, self._strategies, self._watch, self._stores)

    @property
    def labels(self) -> list[str]:
        """Return the labels of the traces, or of the parts of a trace."""
        return [label for label, _ in self._part_scopes]

    def open(self) -> None:
        """Try the remaining ways to open the files. Earlier connections stay open: their answers can still be read.

        Raises:
            TraceError: The files cannot be read in any way.
            UsageError: The scope names an NVTX range or a step that does not exist.
        """
        import sqlite3

        import duckdb

        while True:
            self._loaded.clear()
            try:
                self.duckdb, sources = self._strategies.open(as_exported=self._as_exported)
                self._connections.append(self.duckdb)
                if self.scope.has_steps and not self._as_exported and self._strategies.switch_to_copy():
                    continue  # finding steps scans all rows a dozen times
                self.store = self._open_store()
                self._prepare_connection()
                if self.store:
                    self.store.show_stored_facts()
                self._build(sources)
                for definition in self.definitions.values():
                    self.prepare(definition, parse_names(definition), DEFAULT_OPTIONS)
                    self.duckdb.execute(definition)
            except duckdb.OutOfMemoryException as error:
                self.recovery.raise_limits(error)
            except (duckdb.Error, sqlite3.Error, UnicodeDecodeError) as error:
                if not self.recovery.prepare_fallback(error):
                    self.recovery.fall_back(error)
            else:
                return

    def _prepare_connection(self) -> None:
        """Copy the model into the connection, and lock it before it evaluates anything from a file."""
        if len(self._part_scopes) > 1 or self._as_exported:
            # DuckDB 1.5.5 merges the scans of two SQLite tables with the same columns, in one file or in two, and
            # returns the rows of the first table for both. The tables of the expected schema all have different
            # columns.
            self.duckdb.execute("SET disabled_optimizers = 'common_subplan'")
        own_catalog = self.duckdb.execute("SELECT current_database()").fetchall()[0][0]
        other_catalogs = list(filter(None, name_catalogs(len(self._part_scopes))))
        for catalog in other_catalogs:
            self.duckdb.execute(f"ATTACH ':memory:' AS {catalog}")
        template.copy_into(self.duckdb, own_catalog, *other_catalogs, use_cache=self._use_cache is not False)
        folders = [file.path for file in self.files if file.kind is Kind.PARQUET]
        files = [
            file for folder in folders for file in (*list_parquet_files(folder), *facts_folder.list_fact_files(folder))
        ]
        sandbox.lock(self.duckdb, files=[*files, *facts_folder.list_run_files(folders)])

    def load(self) -> None:
        """Copy big exports into DuckDB, and read small ones into memory, before many questions.

        Raises:
            TraceError: The names are missing, so answers would be sentences without a subject.
        """
        if any(map(_lacks_names, self._sources)):
            raise TraceError(
                "this needs the names of kernels and calls, which the export does not have",
                "export the report again: nsys export --type sqlite trace.nsys-rep",
            )
        if not self._as_exported and self._strategies.switch_to_copy():
            self.open()
        elif self._is_small and self.scope == FULL_TRACE and len(self._part_scopes) == 1 and not self._as_exported:
            self._models[0].read_into_memory()

    def prepare(
        self, sql: str, names: Names, options: FactOptions, *, per_trace: bool = False, is_built_in: bool = False
    ) -> None:
        """Prepare what a query with these names reads: first the facts, then the raw relations.

        With `per_trace`, the query runs for each trace separately, so the traces are not united. A user's query gets
        raw tables with all exported columns; for built-in queries, the columns of the expected schema are enough.
        """
        if not self._as_exported and not is_built_in and names.relations_in("raw"):
            self._show_as_exported()
        self._derive_facts(names, options)
        self._show(names)
        if len(self._part_scopes) > 1 and not per_trace:
            unite_traces(self.duckdb, sql, names, self.labels, self._sources, self._loaded, self._read_rank_numbers)

    def _read_rank_numbers(self) -> list[RankNumber]:
        """Read the rank of each process and device of all traces."""
        self._facts.find(["FROM facts.rank_numbers"], DEFAULT_OPTIONS)
        query = "SELECT trace, process_id, device_id, rank FROM facts.rank_numbers"
        return self.duckdb.execute(query).fetchall()

    def _show(self, query: str | Names, only_catalogs: Sequence[str] | None = None) -> None:
        for catalog, model in zip(name_catalogs(len(self._models)), self._models, strict=True):
            if only_catalogs is None or catalog in only_catalogs:
                model.show(query)

    def _derive_facts(self, names: Names, options: FactOptions) -> None:
        """Derive the missing facts that a query and the user's own views can read."""
        queries = [names, *map(parse_names, self.definitions.values())]
        if any(map(facts_read, queries)):
            # Finding steps scans all rows a dozen times.
            if "steps" in self._facts.list_missing(queries, options):
                self.load()
            self._facts.find(queries, options)

    @property
    def can_prefetch(self) -> bool:
        """Return whether several connections can answer built-in questions at once: only for a single small trace.

        For a big trace this takes ten times as long: the data of both queries does not fit into memory.
        """
        return self._is_small and len(self._part_scopes) == 1 and not self.definitions

    @property
    def _is_small(self) -> bool:
        return are_small_files([file.path for file in self.files]) and self._strategies.big_export is None

    def collect_options(self, question: Question) -> set[tuple[str, object]]:
        """Collect the options (name, value) of the facts that a question reads, and of all facts derived so far."""
        return self._facts.collect_options(question.names, question.options)

    def prepare_on(self, connection: duckdb.DuckDBPyConnection, question: Question) -> None:
        """Prepare what a question reads over another connection; other threads can do so over theirs."""
        with self._facts.use_connection(connection):
            self._facts.find(question.names, question.options)
        for names in question.names:
            self._show(names)

    def _show_as_exported(self) -> None:
        """Show the tables of the schema `raw` with all columns of the files; a cached copy has only some of them."""
        self._as_exported = True
        self._strategies.leave_cache()
        self.open()

    def _open_store(self) -> Store | None:
        """Open the work file for facts about a big trace; return None if it is not needed or not possible."""
        export = self._strategies.big_export
        if export is None or len(self._part_scopes) > 1 or not self.recovery.stores_facts:
            return None
        try:
            # Facts of a scope, or of validated rows, are not for the next session.
            is_persistent = (
                self._use_cache is not False and self.scope == FULL_TRACE and not self.recovery.validates_rows
            )
            store = Store(self.duckdb, export, self._ncu, is_persistent=is_persistent)
        except OSError:
            return None
        self._stores.append(store)
        return store

    def _build(self, sources: Sequence[Source]) -> None:
        """Create the model over each source; a single one is in the connection's own catalog."""
        sources = processes.number_processes(self.duckdb, sources)
        self._note_shared_pids(sources)
        sources = [bad_rows.guard_rows(self.duckdb, source) for source in sources]
        for source in sources:
            if source.time_shift_ns and not self._connections[1:]:
                self._note(f"all times are shifted by {-source.time_shift_ns:,} ns, to begin with the session")
        if any(map(_lacks_names, sources)) and not self._connections[1:]:
            self._note(_NO_NAMES_NOTE)
        if self.recovery.validates_rows:
            sources = self._drop_invalid_rows(sources)
        scopes = [scope for _, scope in self._part_scopes]
        scope_check.refuse_missing(self.duckdb, sources, scopes)
        sources = sources * len(scopes) if len(sources) == 1 else sources
        self._models = [
            Model(self.duckdb, source, catalog=catalog, scope=scope, steps=self._steps, as_exported=self._as_exported)
            for source, catalog, scope in zip(sources, name_catalogs(len(sources)), scopes, strict=True)
        ]
        stored_tables = self.store.stored_tables if self.store else frozenset[str]()
        run_facts = facts_folder.locate_run_facts([file.path for file in self.files])
        self._facts = Facts(self.duckdb, sources, scopes, self._show, stored_tables, self.labels, run_facts)

    def _note_shared_pids(self, sources: Sequence[Source]) -> None:
        """Note which processes share a pid, once, and refuse such a pid as the process of a scope."""
        shared_pids = [process for source in sources for process in source.shared_pids]
        if {process.process_id: process.pid for process in shared_pids} == self.shared_pids:
            return
        self.shared_pids = {process.process_id: process.pid for process in shared_pids}
        for _, scope in self._part_scopes:
            processes.refuse_shared_pid(scope.process, shared_pids)
        if all(scope.process is None for _, scope in self._part_scopes):
            self._note(processes.describe_shared_pids(shared_pids))

    def _drop_invalid_rows(self, sources: Sequence[Source]) -> list[Source]:
        validated = [bad_rows.drop_invalid_rows(self.duckdb, source, read_expected_schema()) for source in sources]
        labels = [f"{file.label}: " if len(self.files) > 1 else "" for file in self.files]
        message = "; ".join(label + text for label, (_, texts) in zip(labels, validated, strict=True) for text in texts)
        if message and message != self.left_out:
            self._note(message)
        self.left_out = message
        return [source for source, _ in validated]

    def check(self) -> None:
        """Raise if a file has changed since it was opened."""
        if error := self.recovery.file_change_error():
            raise error

    def find_cause(self, error: Exception) -> InsightError | None:
        """Return the cause of a failure that is due to neither the query nor the rows; None for other failures."""
        return self.recovery.file_change_error() or database.explain_spill_error(error)

    @property
    def tables(self) -> list[str]:
        """Return the names of all raw tables of the files."""
        return [f"raw.{table}" for source in self._sources for table in source.columns]

    @property
    def windows(self) -> list[Window]:
        """Return, for each file, the period in which its times are possible."""
        return [source.row_checks.window for source in self._sources]

    @property
    def _sources(self) -> list[Source]:
        return [model.source for model in self._models]

    def interrupt(self) -> None:
        """Stop all running queries and copies."""
        self._strategies.interrupt()
        self.duckdb.interrupt()

    def close(self) -> None:
        """Close the connection; facts about a big trace stay in the cache folder.

        A query that cannot be stopped still uses the connection: then it is closed when the process ends.
        """
        if left_running:
            return
        for connection in self._connections:
            connection.close()
        self._strategies.release()
        if self.store and self.recovery.stores_facts and not self._watch.find_change():
            self.store.save(self._facts.reusable_tables)
        for store in self._stores:
            store.close()


def _lacks_names(source: Source) -> bool:
    """Return whether an export has kernels or calls, but not the table with their names."""
    return "StringIds" not in source.columns and not _NAMED_TABLES.isdisjoint(source.columns)
