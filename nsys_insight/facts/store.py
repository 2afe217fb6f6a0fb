"""The facts of a connection: which of them a query reads, and each found once, until something else is said about it.

A fact is a table of the schema `facts`, which the views of the model show. `queries/facts` has what fills them: of each
kind a folder, whose `tables.sql` says what the tables hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.facts import gaps, idle
from nsys_insight.facts.fusion import candidates
from nsys_insight.facts.steps import steps
from nsys_insight.ingest import several
from nsys_insight.model import views
from nsys_insight.packs.step_options import AUTO, StepOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

    from nsys_insight.ingest.raw import Source
    from nsys_insight.ingest.scope import Scope


@dataclass(frozen=True)
class FactOptions:
    """What the user says about facts: how steps are found, and how long a gap is at least that is listed."""

    steps: StepOptions = AUTO
    min_gap_ns: int | None = None


NOTHING_SAID = FactOptions()


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of all facts, without rows, and the schema of what is needed on the way."""
    connection.execute("CREATE SCHEMA IF NOT EXISTS facts; CREATE SCHEMA IF NOT EXISTS internal")
    for kind in (idle, gaps, steps, candidates):
        kind.create_tables(connection)


class Facts:
    """The facts that have been found over a connection.

    Args:
        connection: Where the model is.
        sources: What it is over, file by file.
        scope: The part of the traces that it shows.
        prepare: Creates the views that a statement names.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        sources: Sequence[Source],
        scope: Scope,
        prepare: Callable[[str], None],
    ) -> None:
        """Nothing has been found."""
        self._connection, self._sources, self._scope, self._prepare = connection, sources, scope, prepare
        self._has_idle = self._has_candidates = False
        self._steps: StepOptions | None = None
        self._gaps: tuple[int | None] | None = None  # of which length

    def find(self, queries: Sequence[str], options: FactOptions) -> None:
        """Find the facts that the queries read.

        Raises:
            UsageError: Steps or gaps are to be found in several traces, or steps by an NVTX range that is not there.
        """
        wanted = frozenset[str]().union(*map(views.facts_read, queries))
        for what, tables in (("gaps", gaps.TABLES), ("steps", steps.TABLES | candidates.TABLES)):
            if len(self._sources) > 1 and wanted & tables:
                raise UsageError(f"{what} are found in one trace at a time", "open one of the traces")
        if not self._has_idle and wanted & idle.TABLES:
            self._prepare(idle.statements())
            for part in several.catalogs(len(self._sources)):
                with several.inside(self._connection, part):
                    idle.fill(self._connection)
            self._has_idle = True
        length = (options.min_gap_ns,)
        if self._gaps != length and wanted & gaps.TABLES:
            gaps.fill(self._connection, self._sources[0], self._scope, options.min_gap_ns, self._prepare)
            self._gaps = length
        if wanted & (steps.TABLES | candidates.TABLES) and self._steps != options.steps:
            self._has_candidates = False
            steps.fill(self._connection, options.steps, self._prepare)
            self._steps = options.steps
        if wanted & candidates.TABLES and not self._has_candidates:
            candidates.fill(self._connection, self._prepare)
            self._has_candidates = True
