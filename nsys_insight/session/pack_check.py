"""Checks of a single pack: the rules that every report of the package follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.errors import InsightError
from nsys_insight.model import views
from nsys_insight.packs.pack import Pack, parse_pack
from nsys_insight.packs.step_options import step_params_of
from nsys_insight.session import sandbox
from nsys_insight.session.model import empty_model
from nsys_insight.sql.names import list_tables_read
from nsys_insight.sql.parameters import bind, find_parameters
from nsys_insight.sql.statements import explain_failure, read_one_query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb


COLUMN_TYPES = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN")


def find_problems(path: Path) -> list[str]:
    """Return the problems of a pack, one sentence per problem.

    The pack runs over an empty trace, with its defaults and with each choice of its parameters.
    """
    try:
        pack = parse_pack(path)
    except InsightError as error:
        return [error.message]
    try:
        return list(dict.fromkeys([*_check_parameters(pack), *_check_sql(pack)]))
    except InsightError as error:
        return [error.message]


def _check_parameters(pack: Pack) -> Iterator[str]:
    used_names = find_parameters(pack.sql)
    for name in sorted(used_names - pack.params.keys()):
        yield f"${name} is used but not declared: add [params.{name}]"
    own_names = {param.name for param in pack.params.values() if not param.report}
    for name in sorted(own_names - used_names):
        yield f"[params.{name}] is declared but not used"
    for name in sorted(pack.params.keys() & step_params_of(pack.names).keys()):
        yield f"[params.{name}] needs another name: every report about steps takes {name!r}"
    for name, note in pack.notes.items():
        for parameter in sorted(find_parameters(note.query) - pack.params.keys()):
            yield f"${parameter} is used in the note {name!r} but not declared"
    for param in pack.params.values():
        if param.choices and param.default not in param.choices:
            yield f"the default of [params.{param.name}] is not one of its choices"


def _check_sql(pack: Pack) -> Iterator[str]:
    import duckdb

    if find_parameters(pack.sql) - pack.params.keys():
        return
    values = {name: param.default for name, param in pack.params.items()}
    for note in pack.notes.values():
        sandbox.check_query(bind(note.query, values))
    view_names = {*views.documented_views(), "scope"}
    with empty_model() as connection:
        sandbox.lock(connection)
        for question in _list_choices(pack):
            statement = read_one_query(pack.statement(question)[0])
            sandbox.check_query(statement)
            for table in list_tables_read(statement):
                if table not in view_names:
                    yield f"it reads {table}, which is not a view: nsys-insight schema lists them"
            if "OVER ()" in statement.upper():
                yield "a window covers all rows, OVER (): use a scalar subquery, which DuckDB computes once"
            if "order by" not in statement.lower():
                yield "it has no ORDER BY: rows come in a different order every time"
            try:
                yield from _check_columns(pack, connection, statement)
                if not question:  # each choice has the same columns
                    yield from _check_notes(pack, connection, values)
            except duckdb.Error as error:
                raise explain_failure(error, names=tuple(view_names)) from None


def _check_columns(pack: Pack, connection: duckdb.DuckDBPyConnection, statement: str) -> Iterator[str]:
    types = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {statement}").fetchall()}
    connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS {statement}")
    for name in types.keys() - pack.columns.keys():
        yield f"the column {name} is not described: add it to [columns]"
    for name in pack.columns.keys() - types.keys():
        yield f"[columns] describes {name}, which the query does not return"
    if types.keys() == pack.columns.keys() and list(types) != list(pack.columns):
        yield f"[columns] is in a different order than the query's columns: {', '.join(types)}"
    for name, kind in types.items():
        if kind not in COLUMN_TYPES:
            expected = "BIGINT" if kind == "HUGEINT" else "one of " + ", ".join(COLUMN_TYPES)
            yield f"the column {name} is {kind}: cast it to {expected}"


def _check_notes(pack: Pack, connection: duckdb.DuckDBPyConnection, values: dict[str, Any]) -> Iterator[str]:
    for name, note in pack.notes.items():
        query = f"DESCRIBE SELECT * FROM (\n{bind(note.query, values)}\n)"
        columns = {column for column, *_ in connection.execute(query).fetchall()}
        for column in sorted(note.columns - columns):
            yield f"the text of the note {name!r} names {column}, which its query does not return"


def _list_choices(pack: Pack) -> Iterator[dict[str, Any]]:
    yield {}
    for param in pack.params.values():
        for choice in param.choices:
            yield {param.name: choice}
