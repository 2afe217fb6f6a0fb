"""A DuckDB connection over trace files: the model's views on demand, and a way on when a file is hard to read."""

from __future__ import annotations

from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from nsys_insight.errors import MetLateError, QueryError
from nsys_insight.facts.file import FactsFile
from nsys_insight.facts.store import NOTHING_SAID, Facts, create_schemas
from nsys_insight.ingest import bad_rows, database, facts_folder, raw
from nsys_insight.ingest.attach import parquet_files
from nsys_insight.ingest.identify import Kind
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.ingest.several import catalogs, inside
from nsys_insight.ingest.waiting import left_running
from nsys_insight.ingest.watch import Watch
from nsys_insight.ingest.ways import Ways
from nsys_insight.model import views
from nsys_insight.packs.step_options import AUTO
from nsys_insight.session import build, sandbox
from nsys_insight.session.answer import HAS_ZONE, store, without_zone
from nsys_insight.session.kept_answers import KeptAnswers
from nsys_insight.session.recovery import Recovery
from nsys_insight.session.several import unite
from nsys_insight.sql.names import mentioned
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.statements import as_select, failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb

    from nsys_insight.errors import InsightError
    from nsys_insight.facts.store import FactOptions
    from nsys_insight.ingest.cache import Part
    from nsys_insight.ingest.files import File
    from nsys_insight.ingest.limits import Limits
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.answer import Batch, Columns
    from nsys_insight.session.kept_answers import Stored
    from nsys_insight.session.several import RankNumber
    from nsys_insight.sql.statements import Statement

T = TypeVar("T")
Table = tuple[str, "Columns"]  # a result's name, and its columns


class Connection:
    """Runs queries over one file or several in one scope, and lets them reach nothing else (see `sandbox`).

    `left_out` says what rows of the files cannot be true, once a query has met one.
    """

    def __init__(  # noqa: PLR0913 - what a connection is made of
        self,
        files: Sequence[File],
        scope: Scope,
        limits: Limits,
        *,
        use_cache: bool | None,
        timeout_s: float | None = None,
        ncu: Path | None = None,
        parts: Sequence[tuple[str, Scope]] = (),
        steps: StepOptions = AUTO,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the files in the first way that works.

        Steps that the scope chooses are found as `steps` says. `note` is told what is left out of the files. `ncu` is
        a file that `ncu import` wrote, to be read beside a single trace. Where `parts` of a single trace are given,
        each with its label, they are as several traces.

        Raises:
            TraceError: None does.
            UsageError: The scope names an NVTX range or a step that is not there.
        """
        self.files, self.scope, self._use_cache, self._steps = files, scope, use_cache, steps
        self._parts = parts or [(file.label, scope) for file in files]
        self._ways = Ways(files, limits, use_cache=use_cache, ncu=ncu)
        self._ncu = ncu
        self._bounded = sandbox.Runner(timeout_s)
        self.duckdb: duckdb.DuckDBPyConnection
        self._numbers = count(1)
        self._models: list[build.Model] = []
        self._facts: Facts
        self._files: list[FactsFile] = []
        self._answers: KeptAnswers | None = None
        self._loaded: dict[str, set[str]] = {}
        self._definitions: dict[tuple[str, bool], str] = {}
        self._as_exported = False
        self._is_ready = False
        self._note = note
        self.left_out = ""
        self._watch = Watch(files)
        self._recovery = Recovery(files, self._ways, self._watch)
        self._open()

    @property
    def labels(self) -> list[str]:
        """What the traces are called, or the parts of one."""
        return [label for label, _ in self._parts]

    def interrupt(self) -> None:
        """Stop what runs."""
        self.duckdb.interrupt()

    def load(self, part: Part = "lean") -> None:
        """Read a part of big exports into DuckDB first, where much is asked of all their rows."""
        if not self._as_exported and self._ways.copy(part):
            self._open()

    def table(self, query: str, options: FactOptions = NOTHING_SAID, *, line: int = 0, ours: bool = False) -> Table:
        """Run a query over the model's views; return its result's table, with its columns' names and types.

        The facts that it reads, such as `steps`, are found as the `options` say. `line` is where the query begins in
        what the user wrote, for messages; with `ours`, the user wrote none of it.

        Raises:
            UsageError: Steps are to be told by an NVTX range that is not there.
            QueryError: The query failed.
            TraceError: The file cannot be read.
        """
        # The query begins on the second line of what DuckDB sees.
        answer, _ = self._stored(query, (), options, line - 1, ours=ours)
        return answer

    def report(
        self, query: str, notes: Sequence[str], options: FactOptions, *, ours: bool
    ) -> tuple[Table, list[list[str]]]:
        """Run a report's query as `table` does, and its notes: queries for sentences, over views and its `answer`.

        Raises:
            As `table`.
        """
        return self._stored(query, notes, options, -1, ours=ours)

    def report_of_each(
        self, query: str, notes: Sequence[str], options: FactOptions, *, ours: bool, ranks: Mapping[str, int]
    ) -> tuple[Table, list[list[str]]]:
        """Run a report as `report` does, of each of several traces by itself.

        Rows come by their place: the first ones of all traces, then the second ones. What all say alike is noted once.
        Columns `trace` and, where any of `ranks` is known by the trace's label, `rank` are in front.

        Raises:
            As `table`.
        """
        name = f"memory.internal.answer_{next(self._numbers)}"
        labels = self.labels
        beside = {"trace": "VARCHAR"} | ({"rank": "BIGINT"} if ranks else {})

        def run() -> tuple[Table, list[list[str]]]:
            self._make_ready((query, *notes), options, each=True, ours=ours)
            columns: Columns = []
            said: list[dict[str, list[str]]] = [{} for _ in notes]
            for number, (part, label) in enumerate(zip(catalogs(len(labels)), labels, strict=True)):
                with inside(self.duckdb, part):
                    columns = store(self.duckdb, f"{name}_{number}", query)
                    for texts, note in zip(said, notes, strict=True):
                        for (text,) in self._noted(note, f"{name}_{number}"):
                            texts.setdefault(text, []).append(label)
            pieces = " UNION ALL BY NAME ".join(
                f"SELECT {number} AS piece_, {literal(label)} AS trace"
                f"{f', {literal(ranks.get(label))}::BIGINT AS rank' if ranks else ''}, * FROM {name}_{number}"
                for number, label in enumerate(labels)
            )
            self.duckdb.execute(
                f"CREATE TABLE {name} AS SELECT * EXCLUDE (piece_)"
                f" REPLACE (row_number() OVER (ORDER BY row_, piece_) AS row_) FROM ({pieces})"
            )
            for number in range(len(labels)):
                self.duckdb.execute(f"DROP TABLE {name}_{number}")
            return (name, [*beside.items(), *columns]), [_of_which(texts, labels) for texts in said]

        return self._run(run, -1, query, *notes, ours=ours)

    def _stored(
        self, query: str, notes: Sequence[str], options: FactOptions, line: int, *, ours: bool
    ) -> tuple[Table, list[list[str]]]:
        """Run a query and its notes, or take their answer from where those of ours are kept."""
        name = f"internal.answer_{next(self._numbers)}"

        def run() -> Stored:
            answers = self._answers_of(ours=ours)
            if answers and (kept := answers.take(name, options, query, *notes)):
                return kept
            began = perf_counter()
            self._make_ready((query, *notes), options, ours=ours)
            columns = store(self.duckdb, name, query)
            said = [[text for (text,) in self._noted(note, name) if text] for note in notes]
            if answers := self._answers_of(ours=ours):  # others, if the files were opened anew
                answers.add(perf_counter() - began, said, name, options, query, *notes)
            return columns, said

        columns, said = self._run(run, line, query, *notes, ours=ours)
        return (name, columns), said

    def _answers_of(self, *, ours: bool) -> KeptAnswers | None:
        return self._answers if ours and not self._definitions else None

    def _noted(self, note: str, answer: str) -> list[tuple[str]]:
        import duckdb

        try:
            rows: list[tuple[str]] = self.duckdb.execute(
                f"WITH answer AS (FROM {answer}) SELECT * FROM ({note})"
            ).fetchall()
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
            what = str(error).partition("\n")[0]
            raise QueryError(f"a note of the report failed: {what}", "nsys-insight packs check FILE") from None
        return rows

    def stream(self, query: str, size: int, *, line: int = 0) -> tuple[Columns, Iterator[Batch]]:
        """Run a query and give its columns, and its rows in pieces of `size` while it still runs.

        Raises:
            QueryError: The query failed, at once or later.
            TraceError: The file cannot be read.
        """

        def start() -> tuple[Columns, Batch]:
            self._make_ready((query,))
            # Not on a cursor, which does not see the connection's temporary tables and macros.
            select = as_select(query)
            columns = [(name, kind) for name, kind, *_ in self.duckdb.execute(f"DESCRIBE {select}").fetchall()]
            if zoned := [identifier(name) for name, kind in columns if HAS_ZONE in kind]:
                texts = ", ".join(f"{name}::VARCHAR AS {name}" for name in zoned)
                select = f"SELECT * REPLACE ({texts}) FROM (\n{select}\n)"
            return [(name, without_zone(kind)) for name, kind in columns], self.duckdb.execute(select).fetchmany(size)

        columns, first = self._run(start, line, query)
        return columns, self._batches(first, size)

    def write_parquet(self, query: str, path: Path, *, line: int = 0, options: str = "", ours: bool = False) -> int:
        """Write a query's result while it runs as a Parquet file, to a `sandbox.handover`; return how many rows.

        With `ours`, the user wrote none of it, and raw tables have the columns of the contract.
        """

        def run() -> int:
            self._make_ready((query,), ours=ours)
            copy = f"COPY (\n{as_select(query)}\n) TO {literal(str(path))} (FORMAT parquet{options})"
            return int(self.duckdb.execute(copy).fetchall()[0][0])

        return self._run(run, line - 1, query, ours=ours)

    def define(self, statement: Statement) -> None:
        """Run the definition of a table, view or macro of the user's own."""
        own = (statement.creates, statement.is_macro)
        if own not in self._definitions:
            sandbox.check_name(self.duckdb, statement)

        def run() -> None:
            self._make_ready((statement.sql,))
            self.duckdb.execute(statement.sql)

        self._run(run, statement.line, statement.sql, check=sandbox.check_definition)
        self._definitions[own] = statement.sql

    def _make_ready(
        self, statements: Sequence[str], options: FactOptions = NOTHING_SAID, *, each: bool = False, ours: bool = False
    ) -> None:
        for statement in statements:
            self._prepare(statement, options, each=each, ours=ours)
        self._is_ready = True

    def _run(
        self,
        run: Callable[[], T],
        line: int,
        *asked: str,
        ours: bool = False,
        check: Callable[[str], None] = sandbox.check,
    ) -> T:
        """Run what is asked, in the way that is open or one that gets over what stops it there."""
        import sqlite3

        import duckdb

        for statement in asked:
            check(statement)
        again = True
        while True:
            self._is_ready = False
            try:
                done = self._bounded(self, run)
                self._check_files()
            except (duckdb.Error, sqlite3.Error, UnicodeDecodeError) as error:
                if not self._recovery.may_run_again(error, self._files, first=again):
                    raise self._failed(error, line, ours=ours or not self._is_ready) from None
                again = again and not isinstance(error, (duckdb.InternalException, duckdb.FatalException))
            except Exception:
                self._check_files()
                raise
            else:
                return done
            self._open()

    def _batches(self, first: Batch, size: int) -> Iterator[Batch]:
        import duckdb

        batch = first
        try:
            while batch:
                yield batch
                batch = self._bounded(self, lambda: self.duckdb.fetchmany(size))
            self._check_files()
        except duckdb.OutOfMemoryException as error:
            raise self._recovery.out_of_memory(error) from None
        except (duckdb.Error, UnicodeDecodeError) as error:
            if self._recovery.may_get_over(error, self._files):
                self._open()
                raise MetLateError(
                    "a row could not be read after others had been written",
                    "write to a file, which is restarted without it: -o answer.csv",
                ) from None
            raise self._failed(error, 0) from None

    def _check_files(self) -> None:
        """Raise, if a file is not what it was when it was opened."""
        if changed := self._recovery.changed():
            raise changed

    def _open(self) -> None:
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
                if len(self._parts) > 1 or self._as_exported:
                    # DuckDB 1.5.5 takes scans of two SQLite tables that have the same columns for one, in one file or
                    # in two, and gives the rows of the first for both. The tables of the contract all differ.
                    self.duckdb.execute("SET disabled_optimizers = 'common_subplan'")
                # Before anything is evaluated that may come from a file.
                folders = [file.path for file in self.files if file.kind is Kind.PARQUET]
                files = [file for folder in folders for file in (*parquet_files(folder), *facts_folder.files(folder))]
                sandbox.lock(self.duckdb, files=[*files, *facts_folder.files_of_run(folders)])
                self._build(sources, kept)
                for definition in self._definitions.values():
                    self._prepare(definition, NOTHING_SAID)
                    self.duckdb.execute(definition)
            except duckdb.OutOfMemoryException as error:
                self._recovery.make_room(error)
            except (duckdb.Error, sqlite3.Error, UnicodeDecodeError) as error:
                if not self._recovery.may_get_over(error, self._files):
                    self._recovery.get_over(error)
            else:
                return

    def _lasts(self) -> bool:
        """Whether facts are kept for the next session: those of a part of a trace, or without bad rows, are not."""
        return self._use_cache is not False and self.scope == WHOLE_TRACE and not self._recovery.looks

    def _facts_file(self) -> AbstractSet[str]:
        """Put the facts of a big trace into a file; return which of them are known from before."""
        self._answers = None
        export = self._ways.big_export
        if export is None or len(self._parts) > 1 or not self._recovery.files_facts:
            return frozenset()
        try:
            file = FactsFile(self.duckdb, export, lasting=self._lasts())
        except OSError:
            return frozenset()
        self._files.append(file)
        if file.lasting:
            self._answers = KeptAnswers(self.duckdb, file, self._ncu)
        return file.kept

    def close(self) -> None:
        """Close the connection; what was found about a big trace stays in the cache folder.

        A query that cannot be stopped holds it: then the end of the process closes it.
        """
        if left_running:
            return
        self.duckdb.close()
        is_sound = self._recovery.files_facts and not self._watch.changed()
        if self._answers and is_sound:
            self._answers.keep()
        found = self._facts.to_keep if is_sound else frozenset[str]()
        for file in self._files:
            file.keep(found if file == self._files[-1] else frozenset())

    def _build(self, sources: Sequence[Source], kept: AbstractSet[str]) -> None:
        """Begin the model over each source; that of a single one is in the connection's own catalog."""
        views.create_macros(self.duckdb)
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

    def _prepare(self, sql: str, options: FactOptions, *, each: bool = False, ours: bool = False) -> None:
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
        queries = [sql, *self._definitions.values()]
        if any(map(views.facts_read, queries)):
            missing = self._facts.to_find(queries, options)
            # Steps take a dozen looks at all rows.
            if "steps" in missing or ("idle" in missing and self._ways.is_long):
                self.load("few")
            self._facts.find(queries, options)

    def _show_as_exported(self) -> None:
        """Give the tables of the schema `raw` with all that the files have; a cached copy holds only what is read."""
        self._as_exported = True
        self._ways.leave_cache()
        self._open()

    @property
    def _sources(self) -> list[Source]:
        return [model.source for model in self._models]

    def _failed(self, error: Exception, line: int, *, ours: bool = False) -> InsightError:
        told = self._recovery.changed() or database.spill_failed(error)
        if told:
            return told
        if ours:
            what = str(error).partition("\n")[0]
            return QueryError(f"this cannot be answered: {what}", "nsys-insight info shows what the trace contains")
        tables = [f"raw.{table}" for source in self._sources for table in source.columns]
        here = "schema_name = 'main' AND database_name = current_database()"
        named = f"SELECT DISTINCT column_name FROM duckdb_columns() WHERE {here} ORDER BY ALL"
        columns = [name for (name,) in self.duckdb.cursor().execute(named).fetchall()]
        return failed(error, line=line, names=(*views.documented(internal=False), *tables), columns=columns)


def _of_which(said: dict[str, list[str]], labels: Sequence[str]) -> list[str]:
    """Say of which traces something holds, where it is not all."""
    return [text if whose == labels else f"{', '.join(whose)}: {text}" for text, whose in said.items() if text]
