"""The facts of a connection: which a query reads, and each found once, until something else is said about it."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from threading import RLock, local
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.facts.file import definitions
from nsys_insight.facts.filling import Filling
from nsys_insight.facts.kinds import NOTHING_SAID, OF_RUN, create_tables, kind_of, said, scratch_of, tables_of, word
from nsys_insight.ingest import several
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.model import views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    import duckdb

    from nsys_insight.facts.kinds import FactOptions
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source, Stored

_NEVER = object()


class _Mine(local):
    """What each thread finds facts over, and which it is finding."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection, self.under_way = connection, set[str]()
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext


class Facts:
    """The facts that have been found over a connection.

    Args:
        connection: Where the model is.
        sources: What it is over, file by file.
        scopes: The part of each trace that it shows.
        prepare: Creates the views that a statement names, in some catalogs or in all.
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
        self._main, self._sources, self._scopes, self._create_views = connection, sources, scopes, prepare
        self._mine = _Mine(connection)
        self._locks: dict[str, Any] = {}
        self._labels, self._of_run = labels, of_run
        self._kept = set(kept)
        kinds = {kind_of(table) for table in kept}
        self._found = {
            (kind, part): said(kind, NOTHING_SAID)
            for kind in kinds if tables_of(kind) <= kept for part in self._parts_of(kind)
        }  # fmt: skip

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self._mine.connection

    def to_find(
        self, queries: Sequence[str], options: FactOptions, parts: Sequence[str] | None = None
    ) -> dict[str, list[str]]:
        """Tell which kinds of facts the queries read that have not been found, or not as the user says, and where.

        `parts` are the catalogs of the traces that are meant; None is all.
        """
        wanted = frozenset[str]().union(*map(views.facts_read, queries)) - self._mine.under_way
        kinds = sorted({kind_of(name) for name in wanted})
        missing = {
            kind: [
                part for part in self._parts_of(kind, parts)
                if self._found.get((kind, part), _NEVER) != said(kind, options)
            ]
            for kind in kinds
        }  # fmt: skip
        return {kind: where for kind, where in missing.items() if where}

    @contextmanager
    def over(
        self, connection: duckdb.DuckDBPyConnection, waiting: Callable[[], AbstractContextManager[None]]
    ) -> Iterator[None]:
        """Find facts over another connection to the same database, in this thread and within the block.

        It is in `waiting` while it waits for facts that another thread finds.
        """
        self._mine.connection, self._mine.waiting = connection, waiting
        try:
            yield
        finally:
            self._mine.connection, self._mine.waiting = self._main, nullcontext

    def said_of(self, queries: Sequence[str], options: FactOptions) -> set[object]:
        """What the user says that facts depend on which these queries read, or that have been found."""
        read = frozenset[str]().union(*map(views.facts_read, queries))
        found = list(self._found.values())  # at once: another thread may be adding to them
        return {*(said(kind_of(name), options) for name in read), *found} - {None}

    def find(self, queries: Sequence[str], options: FactOptions, parts: Sequence[str] | None = None) -> None:
        """Find the facts that the queries read, in all traces or in those whose catalogs are `parts`.

        Raises:
            UsageError: Steps are to be found by an NVTX range that is not there.
        """
        for kind in self.to_find(queries, options, parts):
            told = said(kind, options)
            with self._alone(self._locks.setdefault(scratch_of(kind), RLock())):
                # Another of them may have needed it, or another thread.
                where = [part for part in self._parts_of(kind, parts) if self._found.get((kind, part), _NEVER) != told]
                if where:
                    self._find(kind, options, where)
                    self._found |= dict.fromkeys(((kind, part) for part in where), told)

    @contextmanager
    def _alone(self, lock: Any) -> Iterator[None]:
        if not lock.acquire(blocking=False):
            with self._mine.waiting():
                lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @property
    def to_keep(self) -> AbstractSet[str]:
        """The tables of the facts that hold for the trace whatever the next question says about them."""
        kinds = [kind for (kind, _), told in self._found.items() if told == said(kind, NOTHING_SAID)]
        return frozenset[str]().union(*map(tables_of, kinds))

    def _find(self, kind: str, options: FactOptions, parts: Sequence[str]) -> None:
        """Find a kind of facts anew, and before it those that it is found in."""
        tables = tables_of(kind)
        self._mine.under_way |= tables
        for table in self._kept & tables:
            self._connection.execute(f"DROP VIEW facts.{table}")
        self._kept -= tables
        try:
            for part in parts:
                with several.inside(self._connection, part):
                    create_tables(self._connection, tables)
                    self._connection.execute("; ".join(f"TRUNCATE facts.{table}" for table in tables))
            with progress.at(f"finding {word(kind)}"):
                if left := [part for part in parts if not self._is_stored(kind, options, part)]:
                    self._fill(kind, options, left)
        finally:
            self._mine.under_way -= tables

    def _is_stored(self, kind: str, options: FactOptions, part: str) -> bool:
        """Tell whether facts of a kind were stored, and are those that are asked for; they are then taken."""
        sources = self._sources if kind in OF_RUN else [self._sources[self._parts.index(part)]]
        stored = self._of_run if kind in OF_RUN else sources[0].facts
        is_part = any(scope != WHOLE_TRACE for scope in self._scopes) or any(source.screen.looked for source in sources)
        if stored is None or is_part or said(kind, options) != said(kind, NOTHING_SAID):
            return False
        if stored.definitions != definitions():
            return False
        with several.inside(self._connection, part):
            for table in tables_of(kind) & stored.tables.keys():
                self._connection.execute(f"INSERT INTO facts.{table} BY NAME FROM {stored.tables[table]}")
        return True

    def _fill(self, kind: str, options: FactOptions, parts: Sequence[str]) -> None:
        """Fill the tables of a kind of facts, after those that it is found in."""

        def prepare(sql: str, among: Sequence[str] | None = parts) -> None:
            self.find([sql], options, among)
            self._create_views(sql, among)

        filling = Filling(self._connection, self._sources, self._scopes, self._parts, self._labels, prepare)
        filling.fill(kind, options, parts)

    @property
    def _parts(self) -> list[str]:
        """The catalogs in which the traces have their models."""
        return several.catalogs(len(self._sources))

    def _parts_of(self, kind: str, parts: Sequence[str] | None = None) -> Sequence[str]:
        """The catalogs in which facts of a kind are, of those that are meant."""
        return [""] if kind in OF_RUN else self._parts if parts is None else parts
