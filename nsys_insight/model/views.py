"""The model: the views of `queries/model`, created over the raw relations when a query needs them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from nsys_insight.model.catalog_tables import table_macros
from nsys_insight.model.fact_tables import fact_tables
from nsys_insight.model.kernel_catalog import macros
from nsys_insight.paths import queries_folder, query
from nsys_insight.sql.known import known
from nsys_insight.sql.names import Names, mentioned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    import duckdb


# The topics whose views are about rows of one raw table, and have none where a trace lacks it.
SUBJECTS = {"ncu": "ncu_launches", "metrics": "GPU_METRICS"}


@dataclass(frozen=True)
class View:
    """One file of the model: a view, or a table macro that views are made of.

    A name that begins with an underscore is the model's own affair: what other views are made of.
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

    def is_empty(self, tables: Collection[str]) -> bool:
        """Tell whether it has no rows, where a trace has these raw tables, and can be created without what it reads."""
        subject = SUBJECTS.get(self.topic)
        return subject is not None and subject not in tables and bool(self._columns)

    @property
    def create_empty(self) -> str:
        """The statement that creates it without rows: what it is made of takes long to plan."""
        return f"CREATE VIEW {self.name} AS SELECT {self._columns} WHERE false"

    @property
    def _columns(self) -> str:
        return line.columns if (line := known(self.create)) else ""

    @cached_property
    def mentions(self) -> Names:
        """What it is made of."""
        return mentioned(self.create)

    @property
    def is_internal(self) -> bool:
        """Whether it is what other views are made of, and nothing to ask for."""
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
    """The views by name, those that others are made of first; without `internal`, those that are there to be asked."""
    return {view.name: view for view in made_of(definitions()) if view.comments and (internal or not view.is_internal)}


def needed(sql: str) -> list[View]:
    """The views that a statement names, and all that these are made of, in the order in which to create them."""
    return made_of(mentioned(sql).of_model)


def made_of(names: Iterable[str]) -> list[View]:
    """These views and all that they are made of, each after those that it reads."""
    found: dict[str, View] = {}
    for name in sorted(definitions().keys() & names):
        found |= _made_of(name)
    return list(found.values())


@cache
def _made_of(name: str) -> dict[str, View]:
    view = definitions()[name]
    below = made_of(view.mentions.of_model - {name})
    return {each.name: each for each in (*below, view)}


def facts_read(sql: str) -> frozenset[str]:
    """The tables of the schema `facts` that a statement reads, itself, by views that it names, or by other facts."""
    return _facts_of(mentioned(sql))


@cache
def _facts_of(names: Names) -> frozenset[str]:
    views = made_of(names.of_model)
    read = names.of_schema("facts").union(*(view.mentions.of_schema("facts") for view in views))
    known = fact_tables()
    return read.union(*(_facts_of(known[name].mentions) for name in read & known.keys()))


def create_macros(connection: duckdb.DuckDBPyConnection, *, lasting: bool = False) -> None:
    """Create the macros that views, packs and scope conditions use: for all catalogs, or to last in the one in use."""
    for statement in macro_statements():
        connection.execute(statement.replace("TEMP MACRO", "MACRO") if lasting else statement)


def macro_statements() -> list[str]:
    """The SQL that creates the macros, for a connection's life."""
    text = query("model/macros")
    return [text.replace("CREATE MACRO", "CREATE TEMP MACRO"), *macros(), *table_macros()]


def create_views(connection: duckdb.DuckDBPyConnection, wanted: Iterable[View], *, comments: bool = False) -> None:
    """Create views; with their comments only when somebody is going to read those, for they take as long again."""
    for view in wanted:
        connection.execute(view.create + (view.comments if comments else ""))
