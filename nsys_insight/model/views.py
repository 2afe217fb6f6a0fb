"""The model: the views and table macros of `queries/model`, and the relations that each of them reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from nsys_insight.model.catalog_tables import write_table_macros
from nsys_insight.model.kernel_catalog import write_macros
from nsys_insight.paths import queries_folder, read_query
from nsys_insight.sql.names import Names, scan_names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb


# The raw table of each topic whose views show rows of one raw table; they are empty if a trace lacks it.
RAW_TABLE_BY_TOPIC = {"ncu": "ncu_launches", "metrics": "GPU_METRICS"}


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
        """Return the statement that creates it."""
        return self._text[0]

    @property
    def comments(self) -> str:
        """Return the statements that document it; "" for a macro."""
        return self._text[1] + self._text[2]

    @cached_property
    def mentions(self) -> Names:
        """Return the relations and functions in its text."""
        return scan_names(self.create)

    @property
    def is_internal(self) -> bool:
        """Return whether only other views read it."""
        return self.name.startswith("_")

    @property
    def is_cross_rank(self) -> bool:
        """Return whether it covers all open traces together: it shows facts about the ranks of a run."""
        return self.topic == "ranks"


@dataclass(frozen=True)
class FactView(View):
    """A view that shows a fact table unchanged; `path` is the file that defines the table and documents the view."""

    @cached_property
    def _text(self) -> tuple[str, str, str]:
        statements = _COMMENT.split(self.path.read_text(encoding="utf-8"))
        comments = "".join(statement for statement in statements if _commented_view(statement) == self.name)
        return f"CREATE VIEW {self.name} AS FROM facts.{self.name.removeprefix('_')};", "", comments


_COMMENT = re.compile(r"^(?=COMMENT ON )", re.MULTILINE)


def _commented_view(statement: str) -> str:
    """Return the name of the view that a COMMENT statement documents, itself or a column of it."""
    match = re.match(r"COMMENT ON (?:VIEW|COLUMN) (\w+)", statement)
    return match[1] if match else ""


def fact_views() -> dict[str, View]:
    """Return the views that show a fact table unchanged. The comments of its file name them, the header their topic."""
    views_by_name: dict[str, View] = {}
    for path in [*(queries_folder() / "facts").glob("*.sql"), *(queries_folder() / "facts").glob("*/tables.sql")]:
        definition, *comments = _COMMENT.split(path.read_text(encoding="utf-8"))
        topic = re.search(r'^(?:/\* )?topic = "(\w+)"', definition, re.MULTILINE)
        views_by_name |= {name: FactView(name, topic[1], path) for name in map(_commented_view, comments) if topic}
    return views_by_name


@cache
def definitions() -> dict[str, View]:
    """Return all views and table macros by name: the files in the topic folders of `queries/model`, and fact views."""
    files = (queries_folder() / "model").glob("*/*.sql")
    views = {path.stem: View(path.stem, path.parent.name, path) for path in files} | fact_views()
    return dict(sorted(views.items()))


def documented_views(*, internal: bool = True) -> dict[str, View]:
    """Return the views by name, in an order in which they can be created; without `internal`, only public ones."""
    return {
        view.name: view
        for view in with_dependencies(definitions())
        if view.comments and (internal or not view.is_internal)
    }


def views_read(query: str | Names) -> list[View]:
    """Return the views and macros that a query reads, directly or through others; each one follows its dependencies.

    `query` is built-in SQL, or the names that `sql.names.parse_names` finds in a user's.
    """
    return with_dependencies(to_names(query).model_names)


def with_dependencies(names: Iterable[str]) -> list[View]:
    """Return the views with these names and all views that they read; each one follows its dependencies."""
    ordered: dict[str, View] = {}
    for name in sorted(definitions().keys() & names):
        ordered |= _with_dependencies(name)
    return list(ordered.values())


@cache
def _with_dependencies(name: str) -> dict[str, View]:
    view = definitions()[name]
    dependencies = with_dependencies(view.mentions.model_names - {name})
    return {dependency.name: dependency for dependency in dependencies} | {view.name: view}


def expand_names(query: str | Names) -> Names:
    """Return the names in a query, and those in all views that it reads."""
    return _expand_names(to_names(query))


@cache
def _expand_names(names: Names) -> Names:
    all_names = [names, *(view.mentions for view in with_dependencies(names.model_names))]
    return Names(
        frozenset().union(*(names.relations for names in all_names)),
        frozenset().union(*(names.functions for names in all_names)),
    )


def to_names(query: str | Names) -> Names:
    """Scan built-in SQL for names; return the names of a user's query (`sql.names.parse_names`) unchanged."""
    return scan_names(query) if isinstance(query, str) else query


def create_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the macros that views and reports use."""
    for statement in macro_statements():
        connection.execute(statement)


def macro_statements() -> list[str]:
    """Return the SQL that creates the macros."""
    return [read_query("model/macros"), *write_macros(), *write_table_macros()]
