"""An opened trace: the reports as methods, and SQL over the model's views."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import cache, load, model, packs
from nsys_insight.answer import Answer, Column, store
from nsys_insight.errors import QueryError, TraceError
from nsys_insight.scope import WHOLE_TRACE, Scope, describe, prepare
from nsys_insight.source import Kind, identify, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


class Trace:
    """A trace, opened read-only.

    Every report is a method that returns a polars frame with raw values (ns, bytes, NULL for unknown):
    ``trace.top(group_by="family")``. `run` does the same by name, `answer` returns the result with its notes and the
    meaning of its columns, `sql` takes any question over the views (`nsys-insight schema` lists them), and `scope`
    returns the same trace narrowed to a part of it.

    Args:
        path: A `.nsys-rep` or `.qdrep` (exported with your nsys), its SQLite export, or a parquetdir.
        scope: The part of the trace to look at.
        memory: What a query may hold in memory before it spills to disk, such as ``"2GB"``.
        use_cache: True builds a DuckDB copy in the cache folder first, which makes further questions on a big trace
            faster; None uses one if it is there; False does not look.
        note: Called with every sentence that the user should know.
        progress: Called with the percentage while nsys exports a report.

    Raises:
        TraceError: The file cannot be read.
        ToolError: The report needs nsys, which is missing or failed.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        scope: Scope = WHOLE_TRACE,
        memory: str | None = None,
        use_cache: bool | None = None,
        note: Callable[[str], None] = lambda _: None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        """Open the trace and create the model over it."""
        self.path = Path(path)
        self.scope_ = scope
        self._options: dict[str, Any] = {"memory": memory, "use_cache": use_cache, "note": note, "progress": progress}
        self._numbers = count(1)
        kind = identify(self.path)
        self.file = self.path
        if kind is Kind.REPORT:
            from nsys_insight.export import exported

            self.file = exported(self.path, note=note, progress=progress)
        elif kind is Kind.SQLITE:
            self.file = settled(self.path, note)
        self._ways = [self._as_folder] if kind is Kind.PARQUET else [self._cached, self._in_place, self._copied]
        self._way: Callable[[], load.Source | None] = self._ways[0]
        self._next_way()

    def _cached(self) -> load.Source | None:
        use = self._options["use_cache"]
        database = None if use is False else cache.find(self.file)
        if database is None and use:
            database = cache.build(self.file, self._options["memory"])
        if database is None:
            return None
        self._database = database
        return load.attach_database(self.connection, database)

    def _in_place(self) -> load.Source | None:
        return load.attach_sqlite(self.connection, self.file)

    def _copied(self) -> load.Source | None:
        database = cache.build(self.file, self._options["memory"], in_place=False)
        return load.attach_database(self.connection, database)

    def _as_folder(self) -> load.Source | None:
        return load.attach_parquet(self.connection, self.file)

    def _next_way(self) -> None:
        """Open the file in the first way left that works: a cached DuckDB file, in place, or copied cell by cell.

        The connection of a way that failed is left alone: answers that it gave before can still be read.
        """
        import duckdb

        while self._ways:
            self._way = self._ways.pop(0)
            self.connection = load.connect(self._options["memory"])
            try:
                source = self._way()
                if source is None:
                    continue
                self._created: set[str] = set()
                model.create_macros(self.connection)
                load.create_raw_views(self.connection, source, WHOLE_TRACE)
                describe(self.connection)
                if self.scope_ != WHOLE_TRACE:
                    self._create_views("wall nvtx_ranges gpu_ops")
                    prepare(self.connection, self.scope_)
                    load.create_raw_views(self.connection, source, self.scope_)
            except (duckdb.Error, UnicodeDecodeError) as error:
                self._give_up_on_way(error)
                continue
            return

    def _give_up_on_way(self, error: Exception) -> None:
        """Raise, unless the next way may get over the error: a damaged cache, or a cell that the extension cannot read."""
        if self._way == self._cached and not isinstance(error, UnicodeDecodeError):
            cache.discard(self._database)
        elif not self._ways or not _is_unreadable_cell(error):
            raise TraceError(
                f"{self.path} cannot be read: {_first_line(error)}",
                "export it again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
            ) from None

    def scope(self, **parts: Any) -> Trace:
        """Return this trace narrowed: ``trace.scope(nvtx="decode_step", device=0)``.

        Parts: nvtx, from_ns, to_ns, device, process, stream; those that are not given stay as they are.
        """
        return Trace(self.path, scope=self.scope_.narrowed(**parts), **self._options)

    def run(self, report: str, **params: Any) -> pl.DataFrame:
        """Answer a report as a polars frame: ``trace.run("gaps", min_gap_ns=5000)``."""
        return self.answer(report, **params).frame()

    def answer(self, report: str, **params: Any) -> Answer:
        """Answer a report, with its notes and what its columns mean."""
        pack = packs.find(report)
        statement, values = pack.statement(params, self.scope_.flags)
        table, columns = self._store(statement)
        notes = self._notes(pack, statement, values, table)
        return Answer(
            connection=self.connection,
            table=table,
            columns=tuple(Column(name, kind, pack.columns.get(name, "")) for name, kind in columns),
            report=pack.name,
            title=pack.title,
            params=values,
            notes=notes,
            empty=pack.empty,
            trace=self.facts(),
        )

    def sql(self, query: str) -> pl.DataFrame:
        """Answer an SQL query over the model's views as a polars frame."""
        return self.query(query).frame()

    def query(self, query: str) -> Answer:
        """Answer an SQL query over the model's views."""
        table, columns = self._store(query.strip().rstrip(";"))
        return Answer(
            connection=self.connection,
            table=table,
            columns=tuple(Column(name, kind) for name, kind in columns),
            report="sql",
            title="",
            trace=self.facts(),
        )

    def facts(self) -> dict[str, Any]:
        """A few facts that an answer carries: the file's name and the scope."""
        scope = {name: value for name, value in vars(self.scope_).items() if value is not None}
        return {"file": self.path.name, "scope": scope}

    def close(self) -> None:
        """Close the trace; its answers cannot be read afterwards."""
        self.connection.close()

    def __enter__(self) -> Trace:
        """Use the trace as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it at the end of the block."""
        self.close()

    def __getattr__(self, name: str) -> Callable[..., pl.DataFrame]:
        """Give every pack as a method."""
        if name.startswith("_") or name.replace("_", "-") not in packs.built_in():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda **params: self.run(name, **params)

    def __dir__(self) -> list[str]:
        """Let a notebook complete the reports' names."""
        return [*super().__dir__(), *(name.replace("-", "_") for name in packs.built_in())]

    def __repr__(self) -> str:
        """Show what is opened."""
        scope = ", ".join(f"{name}={value!r}" for name, value in vars(self.scope_).items() if value is not None)
        return f"<Trace {str(self.path)!r}{' ' + scope if scope else ''}>"

    def _store(self, statement: str) -> tuple[str, list[tuple[str, str]]]:
        import duckdb

        table = f"answer_{next(self._numbers)}"
        while True:
            try:
                self._create_views(statement)
                return table, store(self.connection, table, statement)
            except (duckdb.Error, UnicodeDecodeError) as error:
                damaged_cache = self._way == self._cached and isinstance(error, duckdb.IOException | duckdb.FatalException)
                if not (damaged_cache or _is_unreadable_cell(error)):
                    raise QueryError(str(error)) from None
                self._give_up_on_way(error)
            self._next_way()

    def _create_views(self, mentioned_in: str) -> None:
        wanted = [view for view in model.needed(mentioned_in) if view.name not in self._created]
        model.create_views(self.connection, wanted)
        self._created.update(view.name for view in wanted)

    def _notes(self, pack: packs.Pack, statement: str, values: dict[str, Any], table: str) -> tuple[str, ...]:
        """Ask the pack's own notes, each a query for at most one sentence over `answer` and the views."""
        found = []
        for query in pack.notes.values():
            bound = packs.bind(query, values)
            self._create_views(bound)
            rows = self.connection.execute(f"WITH answer AS (FROM {table}) SELECT * FROM ({bound})").fetchall()
            found += [text for (text,) in rows if text]
        return tuple(found)


def _is_unreadable_cell(error: Exception) -> bool:
    """Text that is not UTF-8, or a cell of another type than its column's: SQLite stores both."""
    return isinstance(error, UnicodeDecodeError) or "Mismatch Type Error" in str(error) or "nvalid unicode" in str(error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
