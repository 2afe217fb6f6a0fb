"""The facts of a connection: which of them a query reads, and each found once, until something else is said about it.

A fact is a table of the schema `facts`, which the views of the model show. `queries/facts` has what fills them: a file
for each that one statement finds, and a folder for each kind that takes more, whose `tables.sql` says what they hold.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from threading import Lock, RLock, local
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.facts.file import definitions
from nsys_insight.ingest import several
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.model import views
from nsys_insight.model.fact_tables import fact_tables
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    import duckdb

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source, Stored


@dataclass(frozen=True)
class FactOptions:
    """What the user says about facts: how steps are found, and how long a gap is at least that is listed."""

    steps: StepOptions = AUTO
    min_gap_ns: int | None = None


NOTHING_SAID = FactOptions()
_NEVER = object()
# The facts that more than one statement finds, by the folder of `queries/facts` that has these.
_KINDS = {
    "captured": frozenset({"captured"}),
    "idle": frozenset({"idle_time", "idle_calls"}),
    "work": frozenset({"cpu_pieces", "gap_samples"}),
    "cpu_work": frozenset({"cpu_work"}),
    "python_frames": frozenset({"python_lines", "python_frames", "python_chains"}),
    "cpu_frames": frozenset({"cpu_frames", "cpu_chains"}),
    "callers": frozenset({"callers", "called_from", "call_places"}),
    "few_callers": frozenset({"few_callers", "few_stacks", "few_calls"}),
    "gap_callers": frozenset({"gap_callers", "gap_stacks", "gap_calls"}),
    "gaps": frozenset({"listed_gaps", "listed_operations", "listed_activity", "listed_copies"}),
    "steps": frozenset({"steps", "step_calls", "step_launches", "step_method"}),
    "step_kernels": frozenset({"step_kernels"}),
    "critical_path": frozenset({"critical_path", "critical_path_run"}),
    "phases": frozenset({"phase_steps", "requests"}),
    "fusion": frozenset({"fusions", "fusion_kernels", "fusion_step"}),
    "nccl": frozenset({"nccl_kernels", "nccl_messages", "nccl_ranks"}),
    "rank_numbers": frozenset({"rank_numbers"}),
    "ranks": frozenset(
        {"ranks", "collectives", "collective_ranks", "messages", "rank_steps", "rank_delays", "rank_run"}
    ),
}
# What finds those for all traces in turn, in Python; the module is imported when it is needed.
_FILLERS = {
    "captured": "captured", "work": "work", "python_frames": "python_frames",
    "cpu_frames": "cpu_frames", "callers": "callers", "nccl": "ranks.kernels",
}  # fmt: skip
# The same for each trace by itself, of those that take nothing but its model.
_FILLERS_OF_ONE = {"phases": "phases", "fusion": "fusion.candidates", "critical_path": "path.fill"}
# The kinds that are of all traces together: they are in the connection's own catalog.
OF_RUN = frozenset({"ranks", "rank_numbers"})
# How progress names what is being found, where it is not the name of the fact.
_WORDS = {
    "idle": "idle time",
    "fusion": "fusion candidates",
    "gpu_reach": "GPU activity",
    "overlapping_threads": "API calls",
    "inner_calls": "API calls",
    "captured": "settings",
    "api_frames": "call chains",
    "python_frames": "call chains of Python",
    "few_callers": "callers",
    "gap_callers": "callers",
    "cpu_frames": "call chains of samples",
    "work": "CPU time",
    "cpu_work": "CPU work",
    "critical_path": "the critical path",
    "nccl": "collectives",
    "rank_numbers": "ranks",
    "ranks": "who is late",
}
# Kinds whose statements use the scratch tables of another kind: only one thread at a time finds any of both.
_SCRATCH_OF = {"phases": "steps", "step_kernels": "steps", "gap_callers": "few_callers"}
# Two threads may be the first to need a table.
_CREATING = Lock()
_KIND_OF = {table: kind for kind, tables in _KINDS.items() for table in tables}


def create_schemas(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Create schemas, but for those in whose place a database of the name is attached (`FactsFile`)."""
    attached = {name for (name,) in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
    for name in names:
        if name not in attached:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")


def create_tables(connection: duckdb.DuckDBPyConnection, names: AbstractSet[str]) -> None:
    """Create tables of facts that are not there yet, without rows, for the views that show them."""
    with _CREATING:
        for kind, tables in _KINDS.items():
            if names & tables:
                connection.execute(query(f"facts/{kind}/tables"))
        for name in names & fact_tables().keys():
            connection.execute(fact_tables()[name].create)


def every_table() -> AbstractSet[str]:
    """The names of all facts."""
    return fact_tables().keys() | frozenset().union(*_KINDS.values())


def tables_of_trace() -> AbstractSet[str]:
    """The names of the facts that are of a trace by itself, whatever others are open."""
    return every_table() - tables_of_run()


def tables_of_run() -> AbstractSet[str]:
    """The names of the facts that are of all traces together."""
    return frozenset().union(*(_KINDS[kind] for kind in OF_RUN))


def _tables_of(kind: str) -> AbstractSet[str]:
    return _KINDS.get(kind, frozenset({kind}))


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
        writes_all: Whether also that is written which is read a single time: it is kept for later questions, or little.
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
        *,
        writes_all: bool = True,
    ) -> None:
        """Nothing has been found but what was kept."""
        self._main, self._sources, self._scopes, self._create_views = connection, sources, scopes, prepare
        self._mine = _Mine(connection)
        self._locks: dict[str, Any] = {}
        self._labels, self._of_run, self._writes_all = labels, of_run, writes_all
        self._kept = set(kept)
        kinds = {_KIND_OF.get(table, table) for table in kept}
        self._found = {
            (kind, part): self._said(kind, NOTHING_SAID)
            for kind in kinds if _tables_of(kind) <= kept for part in self._parts_of(kind)
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
        kinds = sorted({_KIND_OF.get(name, name) for name in wanted})
        missing = {
            kind: [
                part for part in self._parts_of(kind, parts)
                if self._found.get((kind, part), _NEVER) != self._said(kind, options)
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
        return {*(self._said(_KIND_OF.get(name, name), options) for name in read), *found} - {None}

    def find(self, queries: Sequence[str], options: FactOptions, parts: Sequence[str] | None = None) -> None:
        """Find the facts that the queries read, in all traces or in those whose catalogs are `parts`.

        Raises:
            UsageError: Steps are to be found by an NVTX range that is not there.
        """
        for kind in self.to_find(queries, options, parts):
            said = self._said(kind, options)
            with self._alone(self._locks.setdefault(_SCRATCH_OF.get(kind, kind), RLock())):
                # Another of them may have needed it, or another thread.
                where = [part for part in self._parts_of(kind, parts) if self._found.get((kind, part), _NEVER) != said]
                if where:
                    self._find(kind, options, where)
                    self._found |= dict.fromkeys(((kind, part) for part in where), said)

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
        kinds = [kind for (kind, _), said in self._found.items() if said == self._said(kind, NOTHING_SAID)]
        return frozenset[str]().union(*map(_tables_of, kinds))

    def _said(self, kind: str, options: FactOptions) -> object:
        """What the user said that these facts depend on."""
        if kind in ("gaps", "gap_callers", "explained_gaps"):
            return options.min_gap_ns
        if kind in ("steps", "step_kernels", "fusion", "cpu_work", "critical_path", "ranks"):
            return options.steps
        about_steps = kind in fact_tables() and views.facts_read(fact_tables()[kind].query) & _KINDS["steps"]
        return options.steps if about_steps else None

    def _find(self, kind: str, options: FactOptions, parts: Sequence[str]) -> None:
        """Find a kind of facts anew, and before it those that it is found in."""
        tables = _tables_of(kind)
        self._mine.under_way |= tables
        for table in self._kept & tables:
            self._connection.execute(f"DROP VIEW facts.{table}")
        self._kept -= tables
        try:
            for part in parts:
                with several.inside(self._connection, part):
                    create_tables(self._connection, tables)
                    self._connection.execute("; ".join(f"TRUNCATE facts.{table}" for table in tables))
            with progress.at(f"finding {_WORDS.get(kind, kind.replace('_', ' '))}"):
                if left := [part for part in parts if not self._is_stored(kind, options, part)]:
                    self._fill(kind, options, left)
        finally:
            self._mine.under_way -= tables

    def _is_stored(self, kind: str, options: FactOptions, part: str) -> bool:
        """Tell whether facts of a kind were stored, and are those that are asked for; they are then taken."""
        sources = self._sources if kind in OF_RUN else [self._sources[self._parts.index(part)]]
        stored = self._of_run if kind in OF_RUN else sources[0].facts
        is_part = any(scope != WHOLE_TRACE for scope in self._scopes) or any(source.screen.looked for source in sources)
        if stored is None or is_part or self._said(kind, options) != self._said(kind, NOTHING_SAID):
            return False
        if stored.definitions != definitions():
            return False
        with several.inside(self._connection, part):
            for table in _tables_of(kind) & stored.tables.keys():
                self._connection.execute(f"INSERT INTO facts.{table} BY NAME FROM {stored.tables[table]}")
        return True

    def _fill(self, kind: str, options: FactOptions, parts: Sequence[str]) -> None:
        """Fill the tables of a kind of facts; what takes Python is imported when it is needed."""

        def prepare(sql: str, among: Sequence[str] | None = parts) -> None:
            self.find([sql], options, among)
            self._create_views(sql, among)

        if kind in _FILLERS:
            import_module(f"nsys_insight.facts.{_FILLERS[kind]}").fill(self._connection, parts, prepare)
        elif kind == "ranks":
            from nsys_insight.facts.ranks import fill

            fill.fill(self._connection, self._parts, self._labels, prepare)
        elif kind == "rank_numbers":
            from nsys_insight.facts.ranks import read

            read.fill(self._connection, self._parts, self._labels, prepare)
        else:
            for part in parts:
                with several.inside(self._connection, part):
                    self._fill_one(kind, options, part, partial(prepare, among=[part]))

    def _fill_one(self, kind: str, options: FactOptions, part: str, prepare: Callable[[str], None]) -> None:
        """Fill the tables of a kind of facts of one trace."""
        if kind in _FILLERS_OF_ONE:
            import_module(f"nsys_insight.facts.{_FILLERS_OF_ONE[kind]}").fill(self._connection, prepare)
        elif kind == "gaps":
            from nsys_insight.facts import gaps

            at = self._parts.index(part)
            with self._read_once("gpu_reach", part, prepare):
                gaps.fill(self._connection, self._sources[at], self._scopes[at], options.min_gap_ns, prepare)
        elif kind == "idle":
            from nsys_insight.facts import idle

            idle.fill(self._connection, self._sources[self._parts.index(part)], prepare)
        elif kind in ("few_callers", "gap_callers"):
            from nsys_insight.facts import few_callers

            few_callers.fill(self._connection, self._sources[self._parts.index(part)], kind, prepare)
        elif kind == "steps":
            from nsys_insight.facts.steps import steps

            steps.fill(self._connection, options.steps, prepare)
        elif kind == "step_kernels":
            from nsys_insight.facts.steps import kernels

            kernels.fill(self._connection, options.steps, prepare)
        elif kind == "cpu_work":
            from nsys_insight.facts import work

            work.tell(self._connection, prepare)
        elif kind in fact_tables():
            fact = fact_tables()[kind]
            prepare(fact.query)
            self._connection.execute(fact.fill)

    @contextmanager
    def _read_once(self, name: str, part: str, prepare: Callable[[str], None]) -> Iterator[None]:
        """Let a fact that is not kept be a view of its query within the block, where it is read a single time.

        To write millions of rows takes half as long again as to find them.
        """
        if self._writes_all or (name, part) in self._found:
            yield
            return
        fact = fact_tables()[name]
        prepare(fact.query)
        # Views over it, which are made meanwhile or were before, want the columns of the table.
        self._connection.execute(fact.create)
        columns = self._connection.execute(f"DESCRIBE facts.{name}").fetchall()
        typed = ", ".join(f"{column}::{kind} AS {column}" for column, kind, *_ in columns)
        self._connection.execute(
            f"DROP TABLE facts.{name}; CREATE VIEW facts.{name} AS SELECT {typed} FROM ({fact.query})"
        )
        self._mine.under_way.add(name)
        try:
            yield
        finally:
            self._mine.under_way.remove(name)
            self._connection.execute(f"DROP VIEW facts.{name}; {fact.create}")

    @property
    def _parts(self) -> list[str]:
        """The catalogs in which the traces have their models."""
        return several.catalogs(len(self._sources))

    def _parts_of(self, kind: str, parts: Sequence[str] | None = None) -> Sequence[str]:
        """The catalogs in which facts of a kind are, of those that are meant."""
        return [""] if kind in OF_RUN else self._parts if parts is None else parts
