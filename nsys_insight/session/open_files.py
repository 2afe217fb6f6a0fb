"""The files of a session while they are open: the model over them, and a way on when a file is hard to read."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from nsys_insight.facts.context import NOTHING_SAID
from nsys_insight.facts.file import FactsFile, create_schemas
from nsys_insight.facts.store import Facts
from nsys_insight.ingest import bad_rows, database, facts_folder, raw
from nsys_insight.ingest.attach import parquet_files
from nsys_insight.ingest.identify import Kind
from nsys_insight.ingest.limits import are_small
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.ingest.several import catalogs
from nsys_insight.ingest.waiting import left_running
from nsys_insight.ingest.watch import Watch
from nsys_insight.ingest.ways import Ways
from nsys_insight.model import views
from nsys_insight.model.producers import facts_read
from nsys_insight.packs.step_options import AUTO
from nsys_insight.session import build, sandbox
from nsys_insight.session.ahead import Ahead, Question
from nsys_insight.session.kept_answers import KeptAnswers
from nsys_insight.session.recovery import Recovery
from nsys_insight.session.several import unite
from nsys_insight.sql.names import mentioned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager
    from pathlib import Path

    import duckdb

    from nsys_insight.errors import InsightError, QueryError
    from nsys_insight.facts.context import FactOptions
    from nsys_insight.ingest.cache import Part
    from nsys_insight.ingest.files import File
    from nsys_insight.ingest.limits import Limits
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.several import RankNumber

# Optimizers of DuckDB that take longer than they save where there are few rows: a twentieth of a diagnosis.
_NOT_WORTH_IT = (
    "build_side_probe_side", "column_lifetime", "common_aggregate", "common_subexpressions", "common_subplan",
    "compressed_materialization", "duplicate_groups", "filter_pullup", "in_clause", "join_elimination",
    "join_filter_pushdown", "late_materialization", "regex_range", "reorder_filter", "row_group_pruner",
    "sampling_pushdown", "statistics_propagation", "sum_rewriter", "top_n_window_elimination", "unnest_rewriter",
    "window_self_join",
)  # fmt: skip

# What takes longest of a big trace; the one is at work in NumPy half of the time, the other one in DuckDB.
_AT_ONCE = {"idle": "FROM facts.idle_time", "steps": "FROM facts.steps"}


class OpenFiles:
    """A connection over trace files in one scope, which can reach nothing else (see `sandbox`).

    `duckdb` is the connection: another one after `open`, which is called again when the files are to be read in
    another way. `definitions` are those of the user, which it then makes again. `answers` is where answers to queries
    of ours are kept. `left_out` says what rows of the files cannot be true, once a query has met one.
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
        self._ways = Ways(files, limits, use_cache=use_cache, ncu=ncu)
        self._ncu = ncu
        self.duckdb: duckdb.DuckDBPyConnection
        self._models: list[build.Model] = []
        self._facts: Facts
        self._facts_files: list[FactsFile] = []
        self.answers: KeptAnswers | None = None
        self._beside: Ahead[None] = Ahead()
        self._loaded: dict[str, set[str]] = {}
        self.definitions: dict[tuple[str, bool], str] = {}
        self._as_exported = False
        self._note = note
        self.left_out = ""
        self._watch = Watch(files)
        self._recovery = Recovery(files, self._ways, self._watch)
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
                self.duckdb, sources = self._ways.open(as_exported=self._as_exported)
                if self.scope.of_steps and not self._as_exported and self._ways.copy("few"):
                    continue  # steps take a dozen looks at all rows
                kept = self._facts_file()
                self.duckdb.execute(f"SET disabled_optimizers = '{','.join(self._optimizers_off)}'")
                # Before anything is evaluated that may come from a file.
                folders = [file.path for file in self.files if file.kind is Kind.PARQUET]
                files = [file for folder in folders for file in (*parquet_files(folder), *facts_folder.files(folder))]
                sandbox.lock(self.duckdb, files=[*files, *facts_folder.files_of_run(folders)])
                self._build(sources, kept)
                for definition in self.definitions.values():
                    self.prepare(definition, NOTHING_SAID)
                    self.duckdb.execute(definition)
            except duckdb.OutOfMemoryException as error:
                self._recovery.make_room(error)
            except (duckdb.Error, sqlite3.Error, UnicodeDecodeError) as error:
                if not self._recovery.may_get_over(error, self._facts_files):
                    self._recovery.get_over(error)
            else:
                return

    def load(self, part: Part = "lean") -> None:
        """Read a part of big exports into DuckDB first, or small ones as they are read, where much is asked."""
        if not self._as_exported and self._ways.copy(part):
            self.open()
        elif self._is_small and self.scope == WHOLE_TRACE and len(self._parts) == 1 and not self._as_exported:
            self._models[0].hold()
            # It takes a while, and DuckDB is at work meanwhile; who imports it waits.
            Thread(target=import_module, args=("numpy",), daemon=True).start()

    def prepare(self, sql: str, options: FactOptions, *, each: bool = False, ours: bool = False) -> None:
        """Make ready what a query reads: facts, then the views that show them; with `each`, those of each trace.

        Who asks for raw tables means them as exported, but for queries of `ours`, which the contract is enough for.
        """
        if not self._as_exported and not ours and mentioned(sql).of_schema("raw"):
            self._show_as_exported()
        self._find(sql, options)
        if each:
            self._create_model(sql)
        else:
            self._create_views(sql)

    def _create_views(self, sql: str) -> None:
        """Create the views that a query names, and where there are several files those that unite theirs."""
        self._create_model(sql)
        if len(self._parts) > 1:
            unite(self.duckdb, sql, self.labels, self._sources, self._loaded, self._rank_numbers)

    def _rank_numbers(self) -> list[RankNumber]:
        """Which processes of which traces are which ranks."""
        self._facts.find(["FROM facts.rank_numbers"], NOTHING_SAID)
        found = "SELECT trace, process_id, device_id, rank FROM facts.rank_numbers"
        return self.duckdb.execute(found).fetchall()

    def _create_model(self, sql: str, parts: Sequence[str] | None = None) -> None:
        for part, model in zip(catalogs(len(self._models)), self._models, strict=True):
            if parts is None or part in parts:
                model.create(sql)

    def _find(self, sql: str, options: FactOptions) -> None:
        """Find the facts that a query reads and views of the user's own may read, unless they have been."""
        queries = [sql, *self.definitions.values()]
        if any(map(facts_read, queries)):
            missing = self._facts.to_find(queries, options)
            # Steps take a dozen looks at all rows.
            if "steps" in missing or ("idle" in missing and self._ways.is_long):
                self.load("few")
            if missing.keys() >= _AT_ONCE.keys() and self._finds_two:
                at_once = [Question(sql, options=options) for sql in _AT_ONCE.values()]
                self._beside.work(self.duckdb, at_once, partial(self.prepare_over, waiting=self._beside.waiting))
            self._facts.find(queries, options)

    @property
    def serve_several(self) -> bool:
        """Whether several connections may answer questions of ours at once: about a small trace by itself.

        Of a big one, they would take ten times as long: what they hold does not fit in memory twice.
        """
        return self._is_small and len(self._parts) == 1 and not self.definitions

    @property
    def _finds_two(self) -> bool:
        """Whether two facts are found at once: of a big trace by itself, where there are threads for both."""
        return not self._is_small and len(self._parts) == 1 and self._ways.limits.settled[1] > 1

    @property
    def _is_small(self) -> bool:
        return are_small([file.path for file in self.files]) and self._ways.big_export is None

    @property
    def _optimizers_off(self) -> AbstractSet[str]:
        # DuckDB 1.5.5 takes scans of two SQLite tables that have the same columns for one, in one file or in two, and
        # gives the rows of the first for both. The tables of the contract all differ.
        look_alike = {"common_subplan"} if len(self._parts) > 1 or self._as_exported else set[str]()
        return look_alike | set(_NOT_WORTH_IT if self._is_small else ())

    def options_used(self, asked: Question) -> set[tuple[str, object]]:
        """The options, as (name, value), on which facts depend that a question reads or that have been found."""
        return self._facts.options_used(asked.statements, asked.options)

    def prepare_over(
        self,
        connection: duckdb.DuckDBPyConnection,
        asked: Question,
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Make ready what a question of ours reads over another connection, while others do so for theirs.

        It is in `waiting` while it waits for one of them.
        """
        with self._facts.over(connection, waiting):
            self._facts.find(asked.statements, asked.options)
        for statement in asked.statements:
            self._create_model(statement)

    def _show_as_exported(self) -> None:
        """Give the tables of the schema `raw` with all that the files have; a cached copy holds only what is read."""
        self._as_exported = True
        self._ways.leave_cache()
        self.open()

    def _lasts(self) -> bool:
        """Whether facts are kept for the next session: those of a part of a trace, or without bad rows, are not."""
        return self._use_cache is not False and self.scope == WHOLE_TRACE and not self._recovery.looks

    def _facts_file(self) -> AbstractSet[str]:
        """Put the facts of a big trace into a file; return which of them are known from before."""
        self.answers = None
        export = self._ways.big_export
        if export is None or len(self._parts) > 1 or not self._recovery.files_facts:
            return frozenset()
        try:
            file = FactsFile(self.duckdb, export, lasting=self._lasts())
        except OSError:
            return frozenset()
        self._facts_files.append(file)
        if file.lasting:
            self.answers = KeptAnswers(self.duckdb, file, self._ncu)
        return file.kept

    def _build(self, sources: Sequence[Source], kept: AbstractSet[str]) -> None:
        """Begin the model over each source; that of a single one is in the connection's own catalog."""
        # A catalog's own macros serve all connections to it; those of several catalogs must be the connection's.
        views.create_macros(self.duckdb, lasting=len(self._parts) == 1)
        create_schemas(self.duckdb, "internal", "facts")
        sources = [bad_rows.screened(self.duckdb, source) for source in sources]
        if self._recovery.looks:
            sources = self._without_bad_rows(sources)
        scopes = [scope for _, scope in self._parts]
        sources = sources * len(scopes) if len(sources) == 1 else sources
        self._models = [
            build.Model(
                self.duckdb, source, catalog=catalog, scope=scope, steps=self._steps, as_exported=self._as_exported
            )
            for source, catalog, scope in zip(sources, catalogs(len(sources)), scopes, strict=True)
        ]
        of_run = facts_folder.stored_of_run([file.path for file in self.files])
        self._facts = Facts(self.duckdb, sources, scopes, self._create_model, kept, self.labels, of_run)

    def _without_bad_rows(self, sources: Sequence[Source]) -> list[Source]:
        looked = [bad_rows.looked_at(self.duckdb, source, raw.contract()) for source in sources]
        labels = [f"{file.label}: " if len(self.files) > 1 else "" for file in self.files]
        said = "; ".join(label + text for label, (_, texts) in zip(labels, looked, strict=True) for text in texts)
        if said and said != self.left_out:
            self._note(said)
        self.left_out = said
        return [source for source, _ in looked]

    def may_run_again(self, error: Exception, *, first: bool) -> bool:
        """Tell whether what failed may be run again, with the files as `open` opens them next; as in `Recovery`."""
        return self._recovery.may_run_again(error, self._facts_files, first=first)

    def may_get_over(self, error: Exception) -> bool:
        """Tell whether rows may be read that could not be, with the files as `open` opens them next."""
        return self._recovery.may_get_over(error, self._facts_files)

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
        self._beside.interrupt()
        self._ways.interrupt()

    def close(self) -> None:
        """Close the connection; what was found about a big trace stays in the cache folder.

        A query that cannot be stopped holds it: then the end of the process closes it.
        """
        if left_running:
            return
        self._beside.close()
        self.duckdb.close()
        is_sound = self._recovery.files_facts and not self._watch.changed()
        if self.answers and is_sound:
            self.answers.keep()
        found = self._facts.to_keep if is_sound else frozenset[str]()
        for file in self._facts_files:
            file.keep(found if file == self._facts_files[-1] else frozenset())
