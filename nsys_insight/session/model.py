"""The model over one trace: a copy of the template whose raw relations show the rows of the trace."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from nsys_insight.facts import operations
from nsys_insight.facts.context import NOTHING_SAID, FactOptions
from nsys_insight.facts.store import Facts
from nsys_insight.ingest import chosen_steps, gpus, raw
from nsys_insight.ingest.database import connect
from nsys_insight.ingest.scope import WHOLE_TRACE, describe, prepare, settle
from nsys_insight.ingest.several import inside
from nsys_insight.ingest.source import Source
from nsys_insight.model import template, views
from nsys_insight.model.producers import producers
from nsys_insight.packs.step_options import AUTO, StepOptions

if TYPE_CHECKING:
    import duckdb

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.sql.names import Names


class Model:
    """The model over one trace, in a catalog into which the template was copied.

    The raw relations show rows when something reads them: binding all of them takes longer than most questions.
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
        """Prepare the scope; `as_exported` adds what else the file has to the raw relations.

        Steps that the scope chooses are found as `steps` says.

        Raises:
            UsageError: The scope names an NVTX range or a step that is not there.
        """
        self._connection, self.source, self._catalog = connection, source, catalog
        self._relations: set[str] = set()
        self._lock = Lock()
        self._in_memory = False
        with inside(connection, catalog):
            describe(connection)
            raw.begin(connection, source)
            if scope != WHOLE_TRACE or as_exported:
                self._relations.update(raw.every_relation())
                raw.create_relations(
                    connection, source, WHOLE_TRACE, self._relations, is_temporary=scope != WHOLE_TRACE
                )
            if scope != WHOLE_TRACE:
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
        """Find facts about the NVTX ranges of the whole trace, with which the scope is found."""
        for name in facts:
            fact = producers()[name]
            self._connection.execute(f"DROP VIEW facts.{name}; {fact.create}")
            self._connection.execute(fact.fill)

    def _find_steps(self, around: Scope, options: StepOptions) -> None:
        """Find the steps of a trace, or of a process or device in it, of which a scope is to choose."""
        connection = self._connection
        if around != WHOLE_TRACE:
            prepare(connection, around)
            raw.create_relations(connection, self.source, around, self._relations)
            settle(connection, around)
        Facts(connection, [self.source], [around], lambda *_: None).find(
            [f"FROM facts.{table}" for table in chosen_steps.FACTS], FactOptions(options)
        )
        operations.forget(connection)  # they are of more than the scope
        if around != WHOLE_TRACE:
            connection.execute("TRUNCATE internal.scope_gpus; TRUNCATE internal.scope_windows")
            raw.create_relations(connection, self.source, WHOLE_TRACE, self._relations, is_temporary=True)
            describe(connection)

    def read_into_memory(self) -> None:
        """Read relations of a small export into tables from now on, when a query needs them.

        Planning a scan of a SQLite file takes longer than reading a small table.
        """
        self._in_memory = self.source.export is not None
        if self._in_memory:
            self._connection.execute("CREATE SCHEMA IF NOT EXISTS held")

    def show(self, query: str | Names) -> None:
        """Let the raw relations that a query reads show their rows.

        `query` is a text of our own, or what `sql.names.mentioned` says of a user's.
        """
        wanted = set(raw.read_by(views.read_by_model(query), self.source))
        if wanted <= self._relations:
            return
        with self._lock, inside(self._connection, self._catalog):
            missing = wanted - self._relations
            raw.create_relations(self._connection, self.source, WHOLE_TRACE, missing, in_memory=self._in_memory)
            self._relations |= missing


def empty_model() -> duckdb.DuckDBPyConnection:
    """Create the model over a trace in which nothing happened."""
    connection = connect()
    template.copy_into(connection)
    describe(connection)
    return connection


def finish_lasting(connection: duckdb.DuckDBPyConnection) -> None:
    """Finish the model in a DuckDB file into which the template was copied, and whose schema `raw` has tables."""
    describe(connection)
    gpus.create_macro(connection)
    gpus.create_line(connection, {})
    facts = Facts(connection, [Source({}, {})], [WHOLE_TRACE], lambda *_: None)
    facts.find([view.create for view in views.definitions().values()], NOTHING_SAID)
    operations.forget(connection)
