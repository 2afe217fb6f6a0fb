"""The model's documentation, read off the comments that its files carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight import found, load, model, raw
from nsys_insight.answer import Answer, Column, store
from nsys_insight.errors import UsageError
from nsys_insight.scope import WHOLE_TRACE, describe
from nsys_insight.sqltext import literal
from nsys_insight.units import unit_of

if TYPE_CHECKING:
    import duckdb

_VIEWS = {
    "view": "What to select from",
    "description": "What a row is",
}
_COLUMNS = {
    "column": "Its name",
    "type": "DuckDB's type",
    "unit": "Told by the name's suffix",
    "description": "What it means",
}


def described(view: str | None = None) -> Answer:
    """Describe all views (view, description), or the columns of one (column, type, unit, description).

    Needs no trace: the model has the same shape over all of them.

    Raises:
        UsageError: There is no such view.
    """
    names = list(model.views())
    if view is not None and view not in names:
        import difflib

        near = difflib.get_close_matches(view, names, n=1)
        raise UsageError(
            f"there is no view {view!r}", f"did you mean {near[0]}?" if near else "nsys-insight schema lists them"
        )
    connection = empty_model(view, comments=True)
    if view is None:
        query = """
            SELECT view_name AS view, comment AS description FROM duckdb_views()
            WHERE comment IS NOT NULL ORDER BY view"""
        meanings, title = _VIEWS, "Views"
    else:
        units = ", ".join(
            f"({literal(name)}, {literal(unit_of(name))})"
            for (name,) in connection.execute(
                f"SELECT column_name FROM duckdb_columns() WHERE table_name = {literal(view)}"
            ).fetchall()
        )
        query = f"""
            SELECT column_name AS "column", data_type AS type, nullif(u.unit, '') AS unit, comment AS description
            FROM duckdb_columns() JOIN (VALUES {units}) AS u(name, unit) ON u.name = column_name
            WHERE table_name = {literal(view)} AND schema_name = 'main' ORDER BY column_index"""
        meanings, title = _COLUMNS, f"Columns of {view}"
    columns = store(connection, "described", query)
    return Answer(
        connection=connection,
        table="described",
        columns=tuple(Column(name, kind, meanings[name]) for name, kind in columns),
        report="schema",
        title=title,
    )


def empty_model(mentioned_in: str | None = None, *, comments: bool = False) -> duckdb.DuckDBPyConnection:
    """Create the views that a text mentions, or all, over a trace in which nothing happened."""
    connection = load.connect()
    model.create_macros(connection)
    nothing = raw.Source({}, {})
    raw.begin(connection, nothing)
    raw.create_relations(connection, nothing, WHOLE_TRACE, raw.every_relation())
    describe(connection)
    found.create_tables(connection)
    views = model.needed(mentioned_in) if mentioned_in else list(model.definitions().values())
    model.create_views(connection, views, comments=comments)
    return connection
