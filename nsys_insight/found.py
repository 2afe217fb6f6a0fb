"""What is found in a trace before a query that reads it is run: idle time, longest gaps, steps, fusion candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight import fusion, gaps, idle, many, steps
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

    from nsys_insight.raw import Source
    from nsys_insight.scope import Scope


@dataclass(frozen=True)
class Wanted:
    """What the user says about it: how steps are told, and how long a gap is at least that is listed."""

    steps: steps.StepOptions = steps.AUTO
    min_gap_ns: int | None = None


NOTHING_SAID = Wanted()


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that are filled here, without rows."""
    for part in (idle, gaps, steps, fusion):
        part.create_tables(connection)


class Found:
    """Which of it has been found over a connection; each is found once, until something else is said about it.

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
        self._idle = self._fusions = False
        self._steps: steps.StepOptions | None = None
        self._gaps: tuple[int | None] | None = None  # of which length

    def find(self, queries: Sequence[str], wanted: Wanted) -> None:
        """Find what the queries read.

        Raises:
            UsageError: Steps or gaps are to be found in several traces, or steps by an NVTX range that is not there.
        """
        for what, needed in (("gaps", gaps.needed), ("steps", steps.needed)):
            if len(self._sources) > 1 and any(map(needed, queries)):
                raise UsageError(f"{what} are found in one trace at a time", "open one of the traces")
        if not self._idle and any(map(idle.needed, queries)):
            self._prepare(idle.statements())
            for part in many.catalogs(len(self._sources)):
                with many.inside(self._connection, part):
                    idle.find(self._connection)
            self._idle = True
        length = (wanted.min_gap_ns,)
        if self._gaps != length and any(map(gaps.needed, queries)):
            gaps.find(self._connection, self._sources[0], self._scope, wanted.min_gap_ns, self._prepare)
            self._gaps = length
        if any(map(steps.needed, queries)):
            self._find_steps(queries, wanted)

    def _find_steps(self, queries: Sequence[str], wanted: Wanted) -> None:
        if self._steps != wanted.steps:
            self._fusions = False
            steps.find(self._connection, wanted.steps, self._prepare)
            self._steps = wanted.steps
        if not self._fusions and any(map(fusion.needed, queries)):
            fusion.find(self._connection, self._prepare)
            self._fusions = True
