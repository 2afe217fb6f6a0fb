"""The model: the views and table macros of `queries/model`, and what each of them reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from nsys_insight.model.catalog_tables import table_macros
from nsys_insight.model.kernel_catalog import macros
from nsys_insight.paths import queries_folder, query
from nsys_insight.sql.names import Names, mentioned_by_ours

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb


# The topics whose views show rows of one raw table, and are empty where a trace lacks it.
SUBJECTS = {"ncu": "ncu_launches", "metrics": "GPU_METRICS"}


@dataclass(frozen=True)
class View:
    """One file of the model: a view, or a table macro that views use.

    A name that begins with an underscore is internal to the model.
    """

    name: str
    topic: str
    path: Path

    @cached_property
    def _text(self) -> tuple[str, str, str]:
        return self.path.read_text(encoding="utf-8").partition("COMMENT ON ")

    @property
    def create(self) -> str:
        """The statement that creates it."""
        return self._text[0]

    @property
    def comments(self) -> str:
        """The statements that document it; a macro has none."""
        return self._text[1] + self._text[2]

    @cached_property
    def mentions(self) -> Names:
        """The relations and functions in its text."""
        return mentioned_by_ours(self.create)

    @property
    def is_internal(self) -> bool:
        """Whether only other views read it."""
        return self.name.startswith("_")

    @property
    def is_of_run(self) -> bool:
        """Whether it is of all traces together, where there are several: it shows facts about the ranks of a run."""
        return self.topic == "ranks"


@dataclass(frozen=True)
class FactView(View):
    """A view that shows a table of facts as it is; `path` is the file that defines the table and documents the view."""

    @cached_property
    def _text(self) -> tuple[str, str, str]:
        statements = _COMMENT.split(self.path.read_text(encoding="utf-8"))
        comments = "".join(each for each in statements if _commented(each) == self.name)
        return f"CREATE VIEW {self.name} AS FROM facts.{self.name.removeprefix('_')};", "", comments


_COMMENT = re.compile(r"^(?=COMMENT ON )", re.MULTILINE)


def _commented(statement: str) -> str:
    """The name of the view that a statement comments on, or on a column of."""
    found = re.match(r"COMMENT ON (?:VIEW|COLUMN) (\w+)", statement)
    return found[1] if found else ""


def fact_views() -> dict[str, View]:
    """The views that show a table of facts as it is: the comments of its file name them, the header their topic."""
    found: dict[str, View] = {}
    for path in [*(queries_folder() / "facts").glob("*.sql"), *(queries_folder() / "facts").glob("*/tables.sql")]:
        definition, *comments = _COMMENT.split(path.read_text(encoding="utf-8"))
        topic = re.search(r'^(?:/\* )?topic = "(\w+)"', definition, re.MULTILINE)
        found |= {name: FactView(name, topic[1], path) for name in map(_commented, comments) if topic}
    return found


@cache
def definitions() -> dict[str, View]:
    """The views and the table macros by name: the files below the topics of `queries/model`, and views of facts."""
    files = (queries_folder() / "model").glob("*/*.sql")
    found = {path.stem: View(path.stem, path.parent.name, path) for path in files} | fact_views()
    return dict(sorted(found.items()))


def documented(*, internal: bool = True) -> dict[str, View]:
    """The views by name, in the order in which they can be created; without `internal`, only the public ones."""
    return {
        view.name: view for view in with_parts(definitions()) if view.comments and (internal or not view.is_internal)
    }


def views_read(query: str | Names) -> list[View]:
    """The views and macros of the model that a query reads, directly or through others, each after what it reads.

    `query` is a text of our own, or what `sql.names.mentioned` says of a user's.
    """
    return with_parts(names_of(query).of_model)


def with_parts(names: Iterable[str]) -> list[View]:
    """These views and all that they read, each after what it reads."""
    found: dict[str, View] = {}
    for name in sorted(definitions().keys() & names):
        found |= _with_parts(name)
    return list(found.values())


@cache
def _with_parts(name: str) -> dict[str, View]:
    view = definitions()[name]
    parts = with_parts(view.mentions.of_model - {name})
    return {each.name: each for each in (*parts, view)}


def read_by_model(query: str | Names) -> Names:
    """The names in a query, and those in all views that it reads."""
    return _read_by_model(names_of(query))


@cache
def _read_by_model(names: Names) -> Names:
    every = [names, *(view.mentions for view in with_parts(names.of_model))]
    return Names(
        frozenset().union(*(each.relations for each in every)), frozenset().union(*(each.functions for each in every))
    )


def names_of(query: str | Names) -> Names:
    """The names in a text of our own; or what `sql.names.mentioned` says of a user's, as it is."""
    return mentioned_by_ours(query) if isinstance(query, str) else query


def create_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the macros that views and reports use."""
    for statement in macro_statements():
        connection.execute(statement)


def macro_statements() -> list[str]:
    """The SQL that creates the macros."""
    return [query("model/macros"), *macros(), *table_macros()]
