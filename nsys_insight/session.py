"""A DuckDB connection over a trace file: the model's views on demand, and a way on when a file is hard to read."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from nsys_insight import cache, fusion, load, model, steps
from nsys_insight.answer import store
from nsys_insight.errors import QueryError, TraceError
from nsys_insight.scope import WHOLE_TRACE, Scope, describe, prepare, settle
from nsys_insight.source import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import duckdb


class Session:
    """Runs queries over one file in one scope.

    There are three ways to read a SQLite export: a DuckDB file built of it before, DuckDB's extension scanning it in
    place, and a copy made cell by cell. Each next one is slower to start and gets over what stopped the one before: a
    damaged cache, a platform without the extension, text that is not UTF-8. All give the same answers.
    """

    def __init__(self, file: Path, kind: Kind, scope: Scope, memory: str | None, *, use_cache: bool | None) -> None:
        """Open the file in the first way that works.

        Raises:
            TraceError: None does.
            UsageError: The scope names an NVTX range that is not there.
        """
        self.file, self.scope, self.memory, self.use_cache = file, scope, memory, use_cache
        self.connection: duckdb.DuckDBPyConnection
        self._numbers = count(1)
        self._views: set[str] = set()
        self._steps: steps.StepOptions | None = None
        self._fusions_found = False
        self._cached_file: Path | None = None
        parquet, sqlite = [self._as_folder], [self._cached, self._in_place, self._copied]
        self._way: Callable[[], load.Source | None]
        self._ways: list[Callable[[], load.Source | None]] = parquet if kind is Kind.PARQUET else sqlite
        self._open()

    def table(self, query: str, options: steps.StepOptions = steps.AUTO) -> tuple[str, list[tuple[str, str]]]:
        """Run a query over the model's views; return its result's table, with its columns' names and types.

        Where the query reads `steps`, they are found first, as the options say; and so are the fusion candidates.

        Raises:
            UsageError: Steps are to be told by an NVTX range that is not there.
            QueryError: The query failed.
            TraceError: The file cannot be read.
        """
        import duckdb

        name = f"answer_{next(self._numbers)}"
        again = True
        while True:
            try:
                self._create_views(query)
                self._find_steps(query, options)
                return name, store(self.connection, name, query)
            except duckdb.OutOfMemoryException:
                raise self._out_of_memory() from None
            except (duckdb.InternalException, duckdb.FatalException) as error:
                # DuckDB's own fault, seen once in hundreds of runs, makes its connection useless: ask once more anew.
                if not again and self._cached_file is None:
                    raise _failed(error) from None
                if not again:
                    self._get_over(error)
                else:
                    self._ways.insert(0, self._way)
                again = False
            except (duckdb.Error, UnicodeDecodeError) as error:
                broken = self._cached_file is not None and isinstance(error, duckdb.IOException)
                if not broken and not _is_unreadable_cell(error):
                    raise _failed(error) from None
                self._get_over(error)
            self._open()

    def sentences(self, query: str, table: str) -> list[str]:
        """Run a pack's note: a query for sentences, over the views and the table that it calls `answer`."""
        self._create_views(query)
        rows = self.connection.execute(f"WITH answer AS (FROM {table}) SELECT * FROM ({query})").fetchall()
        return [text for (text,) in rows if text]

    def _open(self) -> None:
        """Try the ways that are left. The connection of one that failed stays: answers it gave can still be read."""
        import duckdb

        while True:
            self._way = self._ways.pop(0)
            self.connection = load.connect(self.memory)
            self._views.clear()
            self._steps, self._fusions_found = None, False
            self._cached_file = None
            try:
                source = self._way()
                if source is None:
                    continue
                model.create_macros(self.connection)
                load.create_raw_views(self.connection, source, WHOLE_TRACE)
                describe(self.connection)
                steps.create_tables(self.connection)
                fusion.create_tables(self.connection)
                if self.scope != WHOLE_TRACE:
                    self._create_views("SELECT * FROM wall, nvtx_ranges, nvtx_nesting, gpu_ops, devices")
                    prepare(self.connection, self.scope)
                    load.create_raw_views(self.connection, source, self.scope)
                    settle(self.connection, self.scope)
            except duckdb.OutOfMemoryException:
                raise self._out_of_memory() from None
            except (duckdb.Error, UnicodeDecodeError) as error:
                self._get_over(error)
            else:
                return

    def _out_of_memory(self) -> QueryError:
        limit = self.memory or load.DEFAULT_MEMORY
        return QueryError(f"this needs more memory than the limit of {limit}", "raise the limit: --memory 4GB")

    def _get_over(self, error: Exception) -> None:
        """Raise, unless the next way may do better."""
        if self._cached_file is not None and not isinstance(error, UnicodeDecodeError):
            cache.discard(self._cached_file)
        elif not self._ways or not _is_unreadable_cell(error):
            raise TraceError(
                f"{self.file} cannot be read: {str(error).partition(chr(10))[0]}",
                "export it again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
            ) from None

    def _create_views(self, mentioned_in: str) -> None:
        wanted = [view for view in model.needed(mentioned_in) if view.name not in self._views]
        model.create_views(self.connection, wanted)
        self._views.update(view.name for view in wanted)

    def _find_steps(self, query: str, options: steps.StepOptions) -> None:
        if steps.needed(query) and self._steps != options:
            steps.find(self.connection, options, self._create_views)
            self._steps, self._fusions_found = options, False
        if fusion.needed(query) and not self._fusions_found:
            fusion.find(self.connection, self._create_views)
            self._fusions_found = True

    def _cached(self) -> load.Source | None:
        database = None if self.use_cache is False else cache.find(self.file)
        if database is None and self.use_cache:
            database = cache.build(self.file, self.memory)
        if database is None:
            return None
        self._cached_file = database
        return load.attach_database(self.connection, database)

    def _in_place(self) -> load.Source | None:
        return load.attach_sqlite(self.connection, self.file)

    def _copied(self) -> load.Source | None:
        return load.attach_database(self.connection, cache.build(self.file, self.memory, in_place=False))

    def _as_folder(self) -> load.Source | None:
        return load.attach_parquet(self.connection, self.file)


def _failed(error: Exception) -> QueryError:
    """Say what is wrong with a query: DuckDB's own words, but for a view that is not there."""
    import difflib
    import re

    missing = re.search(r"Table with name (\w+) does not exist", str(error))
    if missing:
        near = difflib.get_close_matches(missing[1], model.views(), n=1)
        hint = f"did you mean {near[0]}?" if near else "nsys-insight schema lists the views"
        return QueryError(f"there is no view {missing[1]!r}", hint)
    return QueryError(str(error).partition("\n\nLINE ")[0], "nsys-insight schema VIEW lists a view's columns")


def _is_unreadable_cell(error: Exception) -> bool:
    """Tell whether the extension met text that is not UTF-8, or a cell of another type than its column's."""
    text = str(error)
    return isinstance(error, UnicodeDecodeError) or "Mismatch Type Error" in text or "nvalid unicode" in text
