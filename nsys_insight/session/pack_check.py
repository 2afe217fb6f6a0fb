"""What is wrong with a pack: the promises that every report of the package keeps, for one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.errors import InsightError
from nsys_insight.model import views
from nsys_insight.packs.pack import parse
from nsys_insight.session import sandbox
from nsys_insight.session.model import empty_model
from nsys_insight.sql.names import tables_read
from nsys_insight.sql.parameters import bind, parameters
from nsys_insight.sql.statements import failed, one_query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from nsys_insight.packs.pack import Pack

TYPES = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN")


def problems(path: Path) -> list[str]:
    """Say what is wrong with a pack, a sentence for each; empty if nothing is.

    It is run over a trace in which nothing happened, with its defaults and with each choice of its parameters.
    """
    try:
        pack = parse(path)
    except InsightError as error:
        return [error.message]
    try:
        return list(dict.fromkeys([*_of_parameters(pack), *_of_sql(pack)]))
    except InsightError as error:
        return [error.message]


def _of_parameters(pack: Pack) -> Iterator[str]:
    used = parameters(pack.sql)
    for name in sorted(used - pack.params.keys()):
        yield f"${name} is used but not declared: add [params.{name}]"
    for name in sorted(pack.params.keys() - used):
        yield f"[params.{name}] is declared but not used"
    for note, sql in pack.notes.items():
        for name in sorted(parameters(sql) - pack.params.keys()):
            yield f"${name} is used in the note {note!r} but not declared"
    for param in pack.params.values():
        if param.choices and param.default not in param.choices:
            yield f"the default of [params.{param.name}] is not one of its choices"


def _of_sql(pack: Pack) -> Iterator[str]:
    import duckdb

    if parameters(pack.sql) - pack.params.keys():
        return
    values = {name: param.default for name, param in pack.params.items()}
    for note in pack.notes.values():
        sandbox.check(bind(note, values))
    known = {*views.documented(), "scope"}
    with empty_model() as connection:
        sandbox.lock(connection)
        for question in _questions(pack):
            statement = one_query(pack.statement(question)[0])
            sandbox.check(statement)
            for table in tables_read(statement):
                if table not in known:
                    yield f"it reads {table}, which is not a view: nsys-insight schema lists them"
            if "OVER ()" in statement.upper():
                yield "a window covers all rows, OVER (): use a scalar subquery, which DuckDB computes once"
            if "order by" not in statement.lower():
                yield "it has no ORDER BY: rows come in a different order every time"
            try:
                yield from _of_columns(pack, connection, statement)
            except duckdb.Error as error:
                raise failed(error, names=tuple(known)) from None


def _of_columns(pack: Pack, connection: duckdb.DuckDBPyConnection, statement: str) -> Iterator[str]:
    found = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {statement}").fetchall()}
    connection.execute(statement)
    for name in found.keys() - pack.columns.keys():
        yield f"the column {name} is not described: add it to [columns]"
    for name in pack.columns.keys() - found.keys():
        yield f"[columns] describes {name}, which the query does not return"
    if found.keys() == pack.columns.keys() and list(found) != list(pack.columns):
        yield f"[columns] is in a different order than the query's columns: {', '.join(found)}"
    for name, kind in found.items():
        if kind not in TYPES:
            wanted = "BIGINT" if kind == "HUGEINT" else "one of " + ", ".join(TYPES)
            yield f"the column {name} is {kind}: cast it to {wanted}"


def _questions(pack: Pack) -> Iterator[dict[str, Any]]:
    yield {}
    for param in pack.params.values():
        for choice in param.choices:
            yield {param.name: choice}
