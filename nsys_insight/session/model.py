"""The model over one trace: a copy of the template in which the raw relations show the rows of the trace."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from nsys_insight.facts import operations
from nsys_insight.facts.context import DEFAULT_OPTIONS, FactOptions
from nsys_insight.facts.store import Facts
from nsys_insight.ingest import gpus, raw, step_scope
from nsys_insight.ingest.catalogs import use_catalog
from nsys_insight.ingest.database import connect, list_tables
from nsys_insight.ingest.processes import create_macros, number_processes
from nsys_insight.ingest.scope import FULL_TRACE, Scope, finalize, prepare, write_scope_table
from nsys_insight.ingest.source import Source
from nsys_insight.model import template, views
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    import duckdb

    from nsys_insight.sql.names import Names


class Model:
    """The model over one trace, in a catalog into which the template was copied.

    Raw relations show their rows only when a query reads them: binding all of them takes longer than most questions.
    """

    def __init__(  # noqa: PLR0913 - options by keyword
        self,
        connection: duckdb.DuckDBPyConnection,
        source: Source,
        *,
        catalog: str = "",
        scope: Scope = FULL_TRACE,
        steps: StepOptions = AUTO,
        as_exported: bool = False,
    ) -> None:
        """Prepare the scope; `as_exported` adds the other tables and columns of the file to the raw relations.

        `steps` are the options for the steps that the scope selects.

        Raises:
            UsageError: The scope names an NVTX range or a step that does not exist.
        """
        self._connection, self.source, self._catalog = connection, source, catalog
        self._relations: set[str] = set()
        self._lock = Lock()
        self._in_memory = False
        with use_catalog(connection, catalog):
            write_scope_table(connection)
            raw.create_id_relations(connection, source)
            if scope != FULL_TRACE or as_exported:
                self._relations.update(raw.list_relations())
                raw.create_relations(connection, source, FULL_TRACE, self._relations, is_temporary=scope != FULL_TRACE)
            if scope != FULL_TRACE:
                if "/" in str(scope.range_pattern):
                    self._find_facts("nested_ranges", "nvtx_paths")
                if scope.phase is not None:
                    self._find_facts("phase_ranges")
                if scope.has_steps:
                    self._derive_steps(scope.step_search_scope, steps)
                prepare(connection, scope)
                raw.create_relations(connection, source, scope, self._relations)
                finalize(connection, scope)
            if as_exported:
                raw.add_exported_columns(connection, source, scope)

    def _find_facts(self, *tables: str) -> None:
        """Find facts about all NVTX ranges of the trace, from which the scope is resolved."""
        facts = Facts(self._connection, [self.source], [FULL_TRACE], lambda *_: None)
        facts.find([f"FROM facts.{table}" for table in tables], DEFAULT_OPTIONS)

    def _derive_steps(self, outer_scope: Scope, options: StepOptions) -> None:
        """Find the steps of a trace, or of a process or device in it, so that the scope can select from them."""
        connection = self._connection
        if outer_scope != FULL_TRACE:
            prepare(connection, outer_scope)
            raw.create_relations(connection, self.source, outer_scope, self._relations)
            finalize(connection, outer_scope)
        Facts(connection, [self.source], [outer_scope], lambda *_: None).find(
            [f"FROM facts.{table}" for table in step_scope.STEP_FACTS], FactOptions(options)
        )
        operations.forget(connection)  # they are of more than the scope
        if outer_scope != FULL_TRACE:
            connection.execute("TRUNCATE internal.scope_gpus; TRUNCATE internal.scope_windows")
            raw.create_relations(connection, self.source, FULL_TRACE, self._relations, is_temporary=True)
            write_scope_table(connection)

    def read_into_memory(self) -> None:
        """From now on, read the relations of a small export into tables when a query needs them.

        Planning a scan of a SQLite file takes longer than reading a small table.
        """
        self._in_memory = self.source.export is not None
        if self._in_memory:
            self._connection.execute("CREATE SCHEMA IF NOT EXISTS in_memory")

    def show(self, query: str | Names) -> None:
        """Let the raw relations that a query reads show their rows.

        `query` is built-in SQL, or the names that `sql.names.parse_names` finds in a user's.
        """
        needed = set(raw.list_relations_read(views.expand_names(query), self.source))
        if needed <= self._relations:
            return
        with self._lock, use_catalog(self._connection, self._catalog):
            missing = needed - self._relations
            raw.create_relations(self._connection, self.source, FULL_TRACE, missing, in_memory=self._in_memory)
            self._relations |= missing


def empty_model() -> duckdb.DuckDBPyConnection:
    """Create the model over an empty trace."""
    connection = connect()
    template.copy_into(connection)
    write_scope_table(connection)
    return connection


def finish_stored_model(connection: duckdb.DuckDBPyConnection) -> None:
    """Finish the model in a DuckDB file that has a copy of the template, and tables in the schema `raw`."""
    write_scope_table(connection)
    columns = list_tables(connection, connection.execute("SELECT current_database()").fetchall()[0][0], "raw")
    source = Source({table: f"raw.{identifier(table)}" for table in columns}, columns)
    (source,) = number_processes(connection, [source])
    create_macros(connection, source.shared_pids)
    gpus.create_gpu_macro(connection)
    gpus.create_timeline_macros(connection, {})
    facts = Facts(connection, [Source({}, {})], [FULL_TRACE], lambda *_: None)
    facts.find([view.create for view in views.definitions().values()], DEFAULT_OPTIONS)
    operations.forget(connection)
