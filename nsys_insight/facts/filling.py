"""What fills the tables of each kind of facts; what takes Python is imported when it is needed."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nsys_insight.ingest import several
from nsys_insight.model.fact_tables import fact_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

    from nsys_insight.facts.kinds import FactOptions
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source

# What finds a kind for all traces in turn, in Python.
_FILLERS = {
    "captured": "captured", "work": "work", "python_frames": "python_frames",
    "cpu_frames": "cpu_frames", "callers": "callers", "nccl": "ranks.kernels",
}  # fmt: skip
# The same for each trace by itself, of those that take nothing but its model.
_FILLERS_OF_ONE = {"phases": "phases", "fusion": "fusion.candidates", "critical_path": "path.fill"}


class Prepare(Protocol):
    """Finds the facts and creates the views that a statement names, in all traces or in those of some catalogs."""

    def __call__(self, sql: str, among: Sequence[str] | None = ...) -> None:
        """Do so."""


class Filling(NamedTuple):
    """What facts are found over, and with.

    `parts` are the catalogs of the traces, and `labels` what their files are called.
    """

    connection: duckdb.DuckDBPyConnection
    sources: Sequence[Source]
    scopes: Sequence[Scope]
    parts: Sequence[str]
    labels: Sequence[str]
    prepare: Prepare

    def fill(self, kind: str, options: FactOptions, parts: Sequence[str]) -> None:
        """Fill the tables of a kind of facts in the catalogs `parts`."""
        connection, prepare = self.connection, self.prepare
        if kind in _FILLERS:
            import_module(f"nsys_insight.facts.{_FILLERS[kind]}").fill(connection, parts, prepare)
        elif kind == "ranks":
            from nsys_insight.facts.ranks import fill

            fill.fill(connection, self.parts, self.labels, prepare)
        elif kind == "rank_numbers":
            from nsys_insight.facts.ranks import read

            read.fill(connection, self.parts, self.labels, prepare)
        else:
            for part in parts:
                with several.inside(connection, part):
                    self._fill_one(kind, options, part, partial(prepare, among=[part]))

    def _fill_one(self, kind: str, options: FactOptions, part: str, prepare: Callable[[str], None]) -> None:
        """Fill the tables of a kind of facts of one trace."""
        at = self.parts.index(part)
        connection, source = self.connection, self.sources[at]
        if kind in _FILLERS_OF_ONE:
            import_module(f"nsys_insight.facts.{_FILLERS_OF_ONE[kind]}").fill(connection, prepare)
        elif kind == "gaps":
            from nsys_insight.facts import gaps

            gaps.fill(connection, source, self.scopes[at], options.min_gap_ns, prepare)
        elif kind == "idle":
            from nsys_insight.facts import idle

            idle.fill(connection, source, prepare)
        elif kind in ("few_callers", "gap_callers"):
            from nsys_insight.facts import few_callers

            few_callers.fill(connection, kind, prepare)
        elif kind == "steps":
            from nsys_insight.facts.steps import steps

            steps.fill(connection, options.steps, prepare)
        elif kind == "step_kernels":
            from nsys_insight.facts.steps import kernels

            kernels.fill(connection, options.steps, prepare)
        elif kind == "cpu_work":
            from nsys_insight.facts import work

            work.tell(connection, prepare)
        elif kind in fact_tables():
            fact = fact_tables()[kind]
            prepare(fact.query)
            connection.execute(fact.fill)
