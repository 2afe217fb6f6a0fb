"""The model: the views and macros of `queries/model`, and the relations that each of them reads.

A file is a header in TOML and one SELECT. The folder is the topic, and the file's name is the view's name:

    description = "One row per …"   what a row stands for
    stored = true                   a fact: the rows are found once, and stored (`model.producers`)
    needs = "_cpu_pieces"           what a fact has no row without: then its query is not planned
    progress = "idle time"          its name in progress messages, if not that of the table
    columns_of = "kernel_events"    the relation that has the sentences for the other columns, if not `columns.toml`
    [columns]                       a sentence for each column, in the order of the query
    parameters = ["windows"]        a macro instead of a view; an expression instead of a SELECT makes it scalar

``{column}`` in a sentence stands for the metrics of a column of `queries/catalog/ncu_metrics.toml`. Small macros are in
the file `macros.sql` of their topic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from nsys_insight.model import construct_catalog
from nsys_insight.model.catalog_tables import name_metrics, write_table_macros
from nsys_insight.model.kernel_catalog import write_macros
from nsys_insight.paths import package_folder, queries_folder
from nsys_insight.records import parse_toml
from nsys_insight.sql.headers import join_lines, split_header
from nsys_insight.sql.names import Names, scan_names
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import duckdb

_IS_QUERY = re.compile(r"(?:\s|--[^\n]*\n)*(?:SELECT|WITH|FROM)\b")


@dataclass(frozen=True)
class View:
    """One relation of the model: a view, stored or not, or a macro that views use.

    A name that begins with an underscore is internal to the model. `path` is its file, or the `tables.toml` with
    `declared`, its table: then a Python module fills that.
    """

    name: str
    topic: str
    path: Path
    declared: dict[str, Any] = field(default_factory=dict, hash=False)

    @cached_property
    def _texts(self) -> tuple[str, str]:
        header, query = ("", "") if self.declared else split_header(self.path.read_text(encoding="utf-8"))
        return header or "", query

    @cached_property
    def header(self) -> dict[str, Any]:
        """Return the keys before `[columns]`. Parsing the columns takes longer, and few callers need them."""
        return self.declared or parse_toml(self._texts[0].partition("[columns]\n")[0])

    @property
    def query(self) -> str:
        """Return the query or expression that defines it; "" if a Python module fills its table."""
        return self._texts[1]

    @property
    def description(self) -> str:
        """Return what a row stands for; "" for a macro."""
        return join_lines(self.header.get("description", ""))

    @property
    def own_meanings(self) -> dict[str, str]:
        """Return the sentences for columns that its header or `tables.toml` has."""
        if self.declared:
            return {name: meaning for name, _, meaning in split_columns(self.declared["columns"]) if meaning}
        columns = parse_toml(self._texts[0]).get("columns", {})
        return {name: name_metrics(join_lines(text)) for name, text in columns.items()}

    @property
    def meanings(self) -> dict[str, str]:
        """Return what its columns mean; also what the other columns of `columns_of` and of `columns.toml` do."""
        source = self.header.get("columns_of")
        return (definitions()[source].meanings if source else read_common_meanings()) | self.own_meanings

    @property
    def is_stored(self) -> bool:
        """Return whether it shows a table of the schema `facts`, which its query or a Python module fills."""
        return bool(self.declared or self.header.get("stored"))

    @property
    def table(self) -> str:
        """Return the name of this table."""
        return self.name.removeprefix("_")

    @property
    def create(self) -> str:
        """Return the statement that creates it."""
        if self.is_stored:
            return f"CREATE VIEW {self.name} AS FROM facts.{self.table}"
        if "parameters" not in self.header:
            return f"CREATE VIEW {self.name} AS {self.query}"
        kind = "TABLE " if _IS_QUERY.match(self.query) else ""
        return f"CREATE MACRO {self.name}({', '.join(self.header['parameters'])}) AS {kind}{self.query}"

    def write_comments(self, columns: Iterable[str]) -> str:
        """Return the statements that document it and its columns."""
        meanings = self.meanings
        comments = {f"VIEW {self.name}": self.description}
        comments |= {f"COLUMN {self.name}.{identifier(column)}": meanings[column] for column in columns}
        return "; ".join(f"COMMENT ON {name} IS {literal(text)}" for name, text in comments.items())

    @cached_property
    def mentions(self) -> Names:
        """Return the relations and functions in the statement that creates it."""
        return scan_names(self.create)

    @property
    def is_internal(self) -> bool:
        """Return whether only other views read it."""
        return self.name.startswith("_")

    @property
    def is_cross_rank(self) -> bool:
        """Return whether it covers all open traces together: it shows facts about the ranks of a run."""
        return self.topic == "ranks"


def split_columns(columns: list[str]) -> Iterator[tuple[str, str, str]]:
    """Split the columns of a `tables.toml`, "NAME TYPE: MEANING", into the three; a meaning that is left out is ""."""
    for column in columns:
        definition, _, meaning = join_lines(column).partition(": ")
        name, _, kind = definition.partition(" ")
        yield name, kind, meaning


@cache
def read_common_meanings() -> dict[str, str]:
    """Read what columns mean in all relations whose headers do not say it: `queries/model/columns.toml`."""
    return parse_toml((queries_folder() / "model" / "columns.toml").read_text(encoding="utf-8"))


@cache
def read_declarations() -> dict[str, dict[str, Any]]:
    """Read what the folders of `nsys_insight/facts` declare in `tables.toml`; the key is the folder's name."""
    paths = sorted((package_folder() / "facts").glob("*/tables.toml"))
    return {path.parent.name: parse_toml(path.read_text(encoding="utf-8")) for path in paths}


@cache
def definitions() -> dict[str, View]:
    """Return all views and macros by name: the files in the topic folders of `queries/model`, and described tables."""
    views = {
        path.stem: View(path.stem, path.parent.name, path)
        for path in (queries_folder() / "model").glob("*/*.sql")
        if path.name != "macros.sql"
    }
    for producer, declared in read_declarations().items():
        path = package_folder() / "facts" / producer / "tables.toml"
        tables = {name: table for name, table in declared["tables"].items() if "description" in table}
        views |= {name: View(name, declared["topic"], path, table) for name, table in tables.items()}
    return dict(sorted(views.items()))


def list_in_creation_order() -> list[View]:
    """Return all views and macros, each one after those that its query reads, also if it is stored."""
    by_table = {view.table: name for name, view in definitions().items() if view.is_stored}
    dependencies = {}
    for name, view in definitions().items():
        read = scan_names(view.query)
        read_facts = {by_table[table] for table in read.relations_in("facts") & by_table.keys()}
        dependencies[name] = (read_facts | read.model_names) & definitions().keys() - {name}
    return [definitions()[name] for name in TopologicalSorter(dependencies).static_order()]


def documented_views(*, internal: bool = True) -> dict[str, View]:
    """Return the views by name, in an order in which they can be created; without `internal`, only public ones."""
    return {
        view.name: view
        for view in with_dependencies(definitions())
        if view.description and (internal or not view.is_internal)
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


def list_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return the columns of each documented view that the current catalog of a connection has, in their order."""
    rows = connection.execute(
        """SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns()
           WHERE database_name = current_database() AND schema_name = 'main' GROUP BY ALL"""
    ).fetchall()
    return {name: columns for name, columns in rows if name in definitions() and definitions()[name].description}


def create_macros(connection: duckdb.DuckDBPyConnection, *, has_constructs: bool = True) -> None:
    """Create the macros that views and reports use; the tables of constructs take three quarters of the time."""
    for statement in macro_statements(has_constructs=has_constructs):
        connection.execute(statement)


def macro_statements(*, has_constructs: bool = True) -> list[str]:
    """Return the SQL that creates the macros, and the tables that those about constructs read."""
    files = sorted((queries_folder() / "model").glob("*/macros.sql"))
    catalogs = [*write_macros(), *(construct_catalog.write_macros() if has_constructs else ()), *write_table_macros()]
    return [*(path.read_text(encoding="utf-8") for path in files), *catalogs]
