"""What a producer is given to fill its tables: `fill(context)` of the module that has its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import named_rows

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
    """The options that facts depend on: how steps are found, and how long a gap is at least that is listed."""

    steps: StepOptions = AUTO
    min_gap_ns: int | None = None

    def only(self, names: Collection[str]) -> FactOptions:
        """These options, the others as if not given."""
        return FactOptions(**{name: getattr(self, name) for name in names})


NOTHING_SAID = FactOptions()


@dataclass(frozen=True)
class Context:
    """One trace, in whose catalog a producer runs, or all of them.

    `catalogs` are where the traces have their models, and `labels` what their files are called. `find` finds the facts
    that a statement names and creates the views, in some catalogs.
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
        """What the model of a single trace is over."""
        return self.sources[0]

    @property
    def scope(self) -> Scope:
        """The part of a single trace that the model shows."""
        return self.scopes[0]

    def of_trace(self, catalog: str) -> Context:
        """The context of a single one of the traces."""
        at = self.catalogs.index(catalog)
        return replace(
            self, catalogs=[catalog], labels=[self.labels[at]], sources=[self.sources[at]], scopes=[self.scopes[at]]
        )

    def prepare(self, *statements: str) -> None:
        """Find the facts and create the views that statements name."""
        for sql in statements:
            self.find(sql, self.catalogs)

    def statements(self, folder: str, *names: str) -> dict[str, str]:
        """Read statements of a folder of `queries/facts`, and prepare what they name."""
        found = {name: query(f"facts/{folder}/{name}") for name in names}
        self.prepare(*found.values())
        return found

    def runner(self, folder: str) -> Run:
        """Give a function that prepares and runs statements of a folder of `queries/facts`."""

        def run(name: str, **values: Any) -> list[Any]:
            (sql,) = self.statements(folder, name).values()
            return named_rows(self.connection, bind(sql, values))

        return run


def fill(producer: Producer, context: Context) -> None:
    """Fill the tables of a producer, which are empty; its module is imported only here."""
    if producer.is_statement:
        context.prepare(producer.query)
        context.connection.execute(producer.fill)
    else:
        import_module(f"nsys_insight.facts.{producer.name}").fill(context)
