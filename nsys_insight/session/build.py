"""Building the model: the raw relations of a trace, the tables of facts, and the views over both, when needed."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from nsys_insight.facts import operations
from nsys_insight.facts.context import NOTHING_SAID, FactOptions
from nsys_insight.facts.file import create_schemas
from nsys_insight.facts.store import Facts
from nsys_insight.ingest import chosen_steps, raw
from nsys_insight.ingest.database import connect
from nsys_insight.ingest.scope import WHOLE_TRACE, describe, prepare, settle
from nsys_insight.ingest.several import inside
from nsys_insight.ingest.source import Source
from nsys_insight.model import producers, views
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.sql.names import mentioned

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.model.views import View


class Model:
    """The model over one trace, in a catalog of a connection that has the macros of the model (`views.create_macros`).

    Relations and views are made when something names them: to make all takes longer than to answer most questions.
    """

    def __init__(  # noqa: PLR0913 - what a model is of
        self,
        connection: duckdb.DuckDBPyConnection,
        source: Source,
        *,
        catalog: str = "",
        scope: Scope = WHOLE_TRACE,
        steps: StepOptions = AUTO,
        as_exported: bool = False,
    ) -> None:
        """Make what views need in any scope; `as_exported` adds what else the file has to the raw relations.

        Steps that the scope chooses are found as `steps` says.

        Raises:
            UsageError: The scope names an NVTX range or a step that is not there.
        """
        self._connection, self.source, self._catalog = connection, source, catalog
        self._relations: set[str] = set()
        self._views: set[str] = set()
        self._lock = Lock()
        self._holds = False
        with inside(connection, catalog):
            raw.begin(connection, source)
            _create_frame(connection)
            if scope != WHOLE_TRACE or as_exported:
                self._relations.update(raw.every_relation())
                raw.create_relations(connection, source, WHOLE_TRACE, self._relations, for_now=scope != WHOLE_TRACE)
            if scope != WHOLE_TRACE:
                self._create(views.made_of(["wall", "nvtx_ranges", "nvtx_nesting", "_phase_ranges", "gpu_ops"]))
                if "/" in str(scope.ranges):
                    self._find("nvtx_stacks", "nvtx_nesting")
                if scope.phase is not None:
                    self._find("phase_ranges")
                if scope.of_steps:
                    self._find_steps(scope.around_steps, steps)
                prepare(connection, scope)
                raw.create_relations(connection, source, scope, self._relations)
                settle(connection, scope)
            if as_exported:
                raw.create_as_exported(connection, source, scope)

    def _find(self, *facts: str) -> None:
        """Find facts about the NVTX ranges of the whole trace; those of the scope take their place."""
        for name in facts:
            fact = producers.producers()[name]
            self._create(views.needed(fact.query))
            self._connection.execute(fact.create)
            self._connection.execute(fact.fill)

    def _find_steps(self, around: Scope, options: StepOptions) -> None:
        """Find the steps of a trace, or of a process or device in it, of which a scope is to choose."""
        connection = self._connection
        if around != WHOLE_TRACE:
            prepare(connection, around)
            raw.create_relations(connection, self.source, around, self._relations)
            settle(connection, around)
        Facts(connection, [self.source], [around], lambda sql, _: self.create(sql)).find(
            [f"FROM facts.{table}" for table in chosen_steps.FACTS], FactOptions(options)
        )
        operations.forget(connection)  # they are of more than the scope
        if around != WHOLE_TRACE:
            connection.execute("TRUNCATE internal.scope_gpus; TRUNCATE internal.scope_windows")
            raw.create_relations(connection, self.source, WHOLE_TRACE, self._relations, for_now=True)
            describe(connection)

    def hold(self) -> None:
        """Hold in memory the rows of relations that are made from now on, of a whole trace scanned in place.

        To plan a scan of an export takes longer than to scan a small one.
        """
        self._holds = self.source.export is not None
        if self._holds:
            self._connection.execute("CREATE SCHEMA IF NOT EXISTS held")

    def create(self, sql: str, *, comments: bool = False) -> None:
        """Create the views that a statement names, and the relations that it and they read."""
        wanted = views.needed(sql)
        if self._catalog:
            wanted = [view for view in wanted if not view.is_of_run]
        with self._lock, inside(self._connection, self._catalog):
            self._create(wanted, comments=comments)
            self._create_relations(raw.read_by(mentioned(sql), self.source))

    def create_all(self, *, comments: bool = False) -> None:
        """Create all views."""
        with inside(self._connection, self._catalog):
            self._create(views.made_of(views.definitions()), comments=comments)

    def _create(self, wanted: Iterable[View], *, comments: bool = False) -> None:
        new = [view for view in wanted if view.name not in self._views]
        empty = [] if comments else [view for view in new if view.is_empty(self.source.columns)]
        for view in empty:
            self._connection.execute(view.create_empty)
        full = [view for view in new if view not in empty]
        producers.create_tables(self._connection, {name for view in full for name in view.mentions.of_schema("facts")})
        self._create_relations(name for view in full for name in raw.read_by(view.mentions, self.source))
        views.create_views(self._connection, full, comments=comments)
        self._views.update(view.name for view in new)

    def _create_relations(self, names: Iterable[str]) -> None:
        new = set(names) - self._relations
        raw.create_relations(self._connection, self.source, WHOLE_TRACE, new, held=self._holds)
        self._relations |= new


def empty_model(sql: str | None = None, *, comments: bool = False) -> duckdb.DuckDBPyConnection:
    """Create the views that a statement names, or all, over a trace in which nothing happened."""
    connection = connect()
    views.create_macros(connection)
    model = Model(connection, Source({}, {}))
    if sql is None:
        model.create_all(comments=comments)
    else:
        model.create(sql, comments=comments)
    return connection


def create_lasting(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the whole model and all facts in a DuckDB file whose schema `raw` holds the tables of the contract."""
    views.create_macros(connection, lasting=True)
    raw.begin_stored(connection)
    _create_frame(connection)
    producers.create_tables(connection, producers.every_table())
    views.create_views(connection, views.made_of(views.definitions()), comments=True)
    facts = Facts(connection, [Source({}, {})], [WHOLE_TRACE], lambda *_: None)
    facts.find([view.create for view in views.definitions().values()], NOTHING_SAID)
    operations.forget(connection)


def _create_frame(connection: duckdb.DuckDBPyConnection) -> None:
    create_schemas(connection, "facts", "internal")
    describe(connection)
