"""A DuckDB connection over trace files: the model's views on demand, and a way on when a file is hard to read."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from nsys_insight import cache, found, load, many, model, raw, sandbox
from nsys_insight.answer import store
from nsys_insight.errors import QueryError, TraceError
from nsys_insight.found import NOTHING_SAID
from nsys_insight.scope import WHOLE_TRACE, Scope, describe, prepare, settle
from nsys_insight.source import Kind
from nsys_insight.sqltext import literal
from nsys_insight.statements import failed
from nsys_insight.trace_files import attach, exports, is_unreadable_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.found import Wanted
    from nsys_insight.statements import Statement
    from nsys_insight.trace_files import File

T = TypeVar("T")
Columns = list[tuple[str, str]]
Batch = list[tuple[Any, ...]]


class Session:
    """Runs queries over one file or several in one scope, and lets them reach nothing else (`nsys_insight.sandbox`).

    There are three ways to read a SQLite export: a DuckDB file built of it before, DuckDB's extension scanning it in
    place, and a copy made cell by cell. Each next one is slower to start and gets over what stopped the one before: a
    damaged cache, a platform without the extension, text that is not UTF-8. All give the same answers.
    """

    def __init__(  # noqa: PLR0913 - what a session is made of
        self,
        files: Sequence[File],
        scope: Scope,
        memory: str | None,
        *,
        use_cache: bool | None,
        timeout_s: float | None = None,
        ncu: Path | None = None,
    ) -> None:
        """Open the files in the first way that works.

        `ncu` is a file that `ncu import` wrote, to be read beside a single trace.

        Raises:
            TraceError: None does.
            UsageError: The scope names an NVTX range that is not there.
        """
        self.files, self.scope, self.memory, self.use_cache, self.ncu = files, scope, memory, use_cache, ncu
        self._bounded = sandbox.Runner(timeout_s)
        self.connection: duckdb.DuckDBPyConnection
        self._numbers = count(1)
        self._views: set[str] = set()
        self._relations: defaultdict[str, set[str]] = defaultdict(set)  # of each part
        self._found: found.Found
        self._loaded: dict[str, set[str]] = {}
        self._definitions: dict[tuple[str, bool], str] = {}
        self._as_exported = False
        self._cached_files: list[Path] = []
        self._sources: list[raw.Source]
        self._way: Callable[[], list[raw.Source] | None]
        self._ways: list[Callable[[], list[raw.Source] | None]] = [self._cached, self._in_place, self._copied]
        self._open()

    def table(self, query: str, wanted: Wanted = NOTHING_SAID, *, line: int = 0) -> tuple[str, Columns]:
        """Run a query over the model's views; return its result's table, with its columns' names and types.

        What the query reads of what must be found first, such as `steps`, is found as is `wanted`. `line` is where the
        query begins in what the user wrote, for messages.

        Raises:
            UsageError: Steps are to be told by an NVTX range that is not there.
            QueryError: The query failed.
            TraceError: The file cannot be read.
        """
        name = f"answer_{next(self._numbers)}"
        # The query begins on the second line of what DuckDB sees.
        return name, self._run(query, lambda: store(self.connection, name, query), line - 1, wanted)

    def stream(self, query: str, size: int, *, line: int = 0) -> tuple[Columns, Iterator[Batch]]:
        """Run a query and give its columns, and its rows in pieces of `size` while it still runs.

        Raises:
            QueryError: The query failed, at once or later.
            TraceError: The file cannot be read.
        """

        def start() -> tuple[Columns, Batch]:
            # Not on a cursor, which does not see the connection's temporary tables and macros.
            columns = [(name, kind) for name, kind, *_ in self.connection.execute(f"DESCRIBE {query}").fetchall()]
            return columns, self.connection.execute(query).fetchmany(size)

        columns, first = self._run(query, start, line)
        return columns, self._batches(first, size)

    def write_parquet(self, query: str, path: Path, *, line: int = 0) -> int:
        """Write a query's result while it runs as a Parquet file, to a `sandbox.handover`; return how many rows."""
        copy = f"COPY (\n{query}\n) TO {literal(str(path))} (FORMAT parquet)"
        return int(self._run(query, lambda: self.connection.execute(copy).fetchall(), line - 1)[0][0])

    def define(self, statement: Statement) -> None:
        """Run the definition of a table, view or macro of the user's own."""
        own = (statement.creates, statement.is_macro)
        if own not in self._definitions:
            sandbox.check_name(self.connection, statement)
        self._run(statement.sql, lambda: self.connection.execute(statement.sql), statement.line)
        self._definitions[own] = statement.sql

    @contextmanager
    def kept(self, view: str, wanted: Wanted) -> Iterator[None]:
        """Hide a view that is costly behind a temporary table of its rows and its name, while several queries read it.

        Raises:
            UsageError: Steps are to be told by an NVTX range that is not there.
            TraceError: The file cannot be read.
        """
        fill = f"CREATE OR REPLACE TEMP TABLE {view} AS FROM main.{view}"
        self._run(f"FROM {view}", lambda: self.connection.execute(fill), 0, wanted)
        try:
            yield
        finally:
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{view}")

    def sentences(self, query: str, table: str) -> list[str]:
        """Run a pack's note: a query for sentences, over the views and the table that it calls `answer`."""
        sandbox.check(query)
        self._create_views(query)
        rows = self.connection.execute(f"WITH answer AS (FROM {table}) SELECT * FROM ({query})").fetchall()
        return [text for (text,) in rows if text]

    def _run(self, sql: str, run: Callable[[], T], line: int, wanted: Wanted = NOTHING_SAID) -> T:
        """Run what `sql` asks, in the way that is open or one that gets over what stops it there."""
        import duckdb

        sandbox.check(sql)
        again = True
        while True:
            try:
                self._create_views(sql)
                self._find(sql, wanted)
                return self._bounded(self.connection, run)
            except duckdb.OutOfMemoryException as error:
                raise self._out_of_memory(error) from None
            except (duckdb.InternalException, duckdb.FatalException) as error:
                # DuckDB's own fault, seen once in hundreds of runs, makes its connection useless: ask once more anew.
                if not again and not self._cached_files:
                    raise self._failed(error, line) from None
                if not again:
                    self._get_over(error)
                else:
                    self._ways.insert(0, self._way)
                again = False
            except (duckdb.Error, UnicodeDecodeError) as error:
                broken = self._cached_files and isinstance(error, duckdb.IOException)
                if not broken and not is_unreadable_cell(error):
                    raise self._failed(error, line) from None
                self._get_over(error)
            self._open()

    def _batches(self, first: Batch, size: int) -> Iterator[Batch]:
        import duckdb

        batch = first
        try:
            while batch:
                yield batch
                batch = self._bounded(self.connection, lambda: self.connection.fetchmany(size))
        except duckdb.OutOfMemoryException as error:
            raise self._out_of_memory(error) from None
        except (duckdb.Error, UnicodeDecodeError) as error:
            raise self._failed(error, 0) from None

    def _open(self) -> None:
        """Try the ways that are left. The connection of one that failed stays: answers it gave can still be read."""
        import duckdb

        while True:
            self._way = self._ways.pop(0)
            self._views.clear()
            self._relations.clear()
            self._loaded.clear()
            self._cached_files = []
            try:
                sources = self._way()
                if sources is None:
                    continue
                self._sources = sources
                self._found = found.Found(self.connection, sources, self.scope, self._create_model)
                model.create_macros(self.connection)
                for part, source in zip(self._parts(), sources, strict=True):
                    with many.inside(self.connection, part):
                        self._prepare(source, self._relations[part])
                folders = [str(file.path) for file in self.files if file.kind is Kind.PARQUET]
                if len(self.files) > 1 or self._as_exported:
                    # DuckDB 1.5.5 takes scans of two SQLite tables that have the same columns for one, in one file or
                    # in two, and gives the rows of the first for both. The tables of the contract all differ.
                    self.connection.execute("SET disabled_optimizers = 'common_subplan'")
                sandbox.lock(self.connection, load.spill_folder(), *folders)
                for definition in self._definitions.values():
                    self._create_views(definition)
                    self._find(definition, NOTHING_SAID)
                    self.connection.execute(definition)
            except duckdb.OutOfMemoryException as error:
                raise self._out_of_memory(error) from None
            except (duckdb.Error, UnicodeDecodeError) as error:
                self._get_over(error)
            else:
                return

    def _prepare(self, source: raw.Source, relations: set[str]) -> None:
        """Create what the views over one file need in any scope; `relations` are the raw ones that are made of it."""
        raw.begin(self.connection, source)
        describe(self.connection)
        found.create_tables(self.connection)
        if self.scope == WHOLE_TRACE and not self._as_exported:
            return  # relations are made when a query needs them
        relations.update(raw.every_relation())
        raw.create_relations(self.connection, source, WHOLE_TRACE, relations)
        if self.scope != WHOLE_TRACE:
            views = model.needed("SELECT * FROM wall, nvtx_ranges, nvtx_nesting, gpu_ops")
            model.create_views(self.connection, views)
            self._views.update(view.name for view in views)
            prepare(self.connection, self.scope)
            raw.create_relations(self.connection, source, self.scope, relations)
            settle(self.connection, self.scope)
        if self._as_exported:
            raw.create_as_exported(self.connection, source, self.scope)

    def _create_views(self, mentioned_in: str) -> None:
        """Create the views that a query names, and where there are several files those that unite theirs."""
        if not self._as_exported and "raw" in model.words(mentioned_in):
            self._show_as_exported()
        self._create_model(mentioned_in)
        if len(self.files) > 1:
            labels = [file.label for file in self.files]
            many.unite(self.connection, mentioned_in, self._parts(), labels, self._sources, self._loaded)

    def _create_model(self, mentioned_in: str) -> None:
        """Create the views that a query names and has not named before, and the raw relations that they read."""
        wanted = [view for view in model.needed(mentioned_in) if view.name not in self._views]
        words = model.words(mentioned_in).union(*(model.words(view.create) for view in wanted))
        for part, source in zip(self._parts(), self._sources, strict=True):
            relations = [name for name in raw.read_by(words, source) if name not in self._relations[part]]
            with many.inside(self.connection, part):
                raw.create_relations(self.connection, source, WHOLE_TRACE, relations)
                model.create_views(self.connection, wanted)
            self._relations[part].update(relations)
        self._views.update(view.name for view in wanted)

    def _find(self, mentioned_in: str, wanted: Wanted) -> None:
        """Find what a query reads and views of the user's own may read, unless it has been."""
        queries = [mentioned_in, *self._definitions.values()]
        self._bounded(self.connection, lambda: self._found.find(queries, wanted))

    def _show_as_exported(self) -> None:
        """Give the tables of the schema `raw` with all that the files have; a cached copy holds only what is read."""
        self._as_exported = True
        if not self._cached_files:
            self._ways.insert(0, self._way)
        self._open()

    def _parts(self) -> list[str]:
        """The catalogs that hold the model of each file; one file's is the connection's own."""
        return many.catalogs(len(self.files))

    def _out_of_memory(self, error: Exception) -> QueryError:
        if "max_temp_directory_size" in str(error):
            return QueryError(
                f"this would spill more than {sandbox.SPILL} to {load.spill_folder()}", "ask for less at a time"
            )
        limit = self.memory or load.DEFAULT_MEMORY
        return QueryError(f"this needs more memory than the limit of {limit}", "raise the limit: --memory 4GB")

    def _failed(self, error: Exception, line: int) -> QueryError:
        tables = [f"raw.{table}" for source in self._sources for table in source.columns]
        named = "SELECT DISTINCT column_name FROM duckdb_columns() WHERE schema_name = 'main' ORDER BY ALL"
        columns = [name for (name,) in self.connection.cursor().execute(named).fetchall()]
        return failed(error, line=line, names=(*model.views(), *tables), columns=columns)

    def _get_over(self, error: Exception) -> None:
        """Raise, unless the next way may do better."""
        if self._cached_files and not isinstance(error, UnicodeDecodeError):
            for file in self._cached_files:
                cache.discard(file)
        elif not self._ways or not is_unreadable_cell(error):
            which = ", ".join(str(file.path) for file in self.files[:3])
            raise TraceError(
                f"{which} cannot be read: {str(error).partition(chr(10))[0]}",
                "export it again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
            ) from None

    def _cached(self) -> list[raw.Source] | None:
        if self.use_cache is False or self._as_exported:
            return None
        built: dict[Path, Path | None] = {}
        for path in exports(self.files):
            built[path] = cache.find(path)
        if self.use_cache:
            missing = [path for path, database in built.items() if database is None]
            built |= many.build(missing, self.memory)
        if built and not any(built.values()):
            return None
        self._cached_files = [database for database in built.values() if database]
        return self._attach(built)

    def _in_place(self) -> list[raw.Source] | None:
        return self._attach({})

    def _copied(self) -> list[raw.Source] | None:
        return self._attach(many.build(exports(self.files), self.memory, in_place=False))

    def _attach(self, built: Mapping[Path, Path | None]) -> list[raw.Source] | None:
        self.connection = load.connect(self.memory)
        return attach(self.connection, self.files, built, self.ncu)
