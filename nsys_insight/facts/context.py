"""What a producer gets to fill its tables: the argument of `fill(context)` in the module of its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import fetch_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import duckdb

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.ingest.source import Source
    from nsys_insight.model.producers import Producer

    # Runs a statement by its name, with values for its parameters, and returns its rows.
    Run = Callable[..., list[Any]]


@dataclass(frozen=True)
class FactOptions:
    """The options that facts depend on: how to find steps, and the shortest gap to list."""

    steps: StepOptions = AUTO
    min_gap_ns: int | None = None

    def restrict_to(self, names: Collection[str]) -> FactOptions:
        """Return these options, with the defaults for all others than `names`."""
        return FactOptions(**{name: getattr(self, name) for name in names})


DEFAULT_OPTIONS = FactOptions()


@dataclass(frozen=True)
class Context:
    """The trace in whose catalog a producer runs, or all traces for a cross-rank producer.

    Args:
        connection: The connection to run statements on.
        options: The options that the facts depend on.
        catalogs: The catalogs of the traces' models.
        labels: The labels of the traces' files.
        sources: What the models read, trace by trace.
        scopes: The parts of the traces that the models show.
        find: Finds the facts and creates the views that a statement reads, in some catalogs.
    """

    connection: duckdb.DuckDBPyConnection
    options: FactOptions
    catalogs: Sequence[str]
    labels: Sequence[str]
    sources: Sequence[Source]
    scopes: Sequence[Scope]
    find: Callable[[str, Sequence[str]], None]

    @property
    def source(self) -> Source:
        """Return what the model of a single trace reads."""
        return self.sources[0]

    @property
    def scope(self) -> Scope:
        """Return the part of a single trace that the model shows."""
        return self.scopes[0]

    def for_trace(self, catalog: str) -> Context:
        """Return the context of a single trace."""
        index = self.catalogs.index(catalog)
        return replace(
            self,
            catalogs=[catalog],
            labels=[self.labels[index]],
            sources=[self.sources[index]],
            scopes=[self.scopes[index]],
        )

    def has_several_gpus(self) -> bool:
        """Return whether the trace describes contexts on several GPUs, in scope or not."""
        count = "SELECT count(DISTINCT device_id) FROM _contexts"
        self.prepare(count)
        return bool(self.connection.execute(count).fetchall()[0][0] > 1)

    def prepare(self, *statements: str) -> None:
        """Find the facts and create the views that statements read."""
        for sql in statements:
            self.find(sql, self.catalogs)

    def statements(self, folder: str, *names: str) -> dict[str, str]:
        """Read statements from a folder of `nsys_insight/facts`, and prepare them."""
        texts = {name: read_query(f"facts/{folder}/{name}") for name in names}
        self.prepare(*texts.values())
        return texts

    def runner(self, folder: str) -> Run:
        """Return a function that prepares and runs statements of a folder of `nsys_insight/facts`."""

        def run(name: str, **values: Any) -> list[Any]:
            (sql,) = self.statements(folder, name).values()
            return fetch_rows(self.connection, bind(sql, values))

        return run


def can_have_rows(producer: Producer, context: Context) -> bool:
    """Return whether the trace has what the query of a producer needs to return a row."""
    context.prepare(*filter(None, [producer.check]))
    return not producer.check or bool(context.connection.execute(producer.check).fetchall())


def fill(producer: Producer, context: Context) -> None:
    """Fill the empty tables of a producer. The producer's module is imported only here."""
    if producer.query:
        context.prepare(producer.query)
        context.connection.execute(producer.fill)
    else:
        import_module(f"nsys_insight.facts.{producer.name}").fill(context)
