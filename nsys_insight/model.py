"""The model: the views of `queries/model`, created over the raw relations when a query needs them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.catalog import macros
from nsys_insight.catalog_tables import table_macros
from nsys_insight.paths import queries_folder, query

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class View:
    """One file of the model: the statement that creates the view, and those that document it; a macro has none."""

    name: str
    create: str
    comments: str


def views() -> dict[str, View]:
    """All views by name, in the order in which they build on each other."""
    return {name: view for name, view in definitions().items() if view.comments}


@cache
def definitions() -> dict[str, View]:
    """The views, and the table macros that views are made of: a file's digit is its layer."""
    found = {}
    for path in sorted((queries_folder() / "model").glob("[1-9]_*.sql")):
        create, comment, rest = path.read_text(encoding="utf-8").partition("COMMENT ON ")
        name = path.stem[2:]
        found[name] = View(name, create, comment + rest)
    return found


def needed(sql: str) -> list[View]:
    """The views that a query names, and all that these are made of, in the order in which to create them."""
    wanted, found = set(words(sql)), []
    for view in reversed(definitions().values()):
        if view.name in wanted:
            found.append(view)
            wanted |= words(view.create)
    return found[::-1]


def create_macros(connection: duckdb.DuckDBPyConnection, *, lasting: bool = False) -> None:
    """Create the macros that views, packs and scope conditions use, for all catalogs, or to last in a file."""
    for statement in macro_statements():
        connection.execute(statement.replace("TEMP MACRO", "MACRO") if lasting else statement)


def macro_statements() -> list[str]:
    """The SQL that creates the macros, for a connection's life."""
    text = query("model/0_macros")
    return [text.replace("CREATE MACRO", "CREATE TEMP MACRO"), *macros(), *table_macros()]


def create_views(connection: duckdb.DuckDBPyConnection, wanted: list[View], *, comments: bool = False) -> None:
    """Create views; with their comments only when somebody is going to read those, for they take as long again."""
    for view in wanted:
        connection.execute(view.create + (view.comments if comments else ""))


@cache
def words(sql: str) -> frozenset[str]:
    """The names in a statement, and more; but no words of its comments and texts. SQL does not care for case."""
    bare = re.sub(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL)
    return frozenset(re.findall(r"\w+", bare.lower()))
