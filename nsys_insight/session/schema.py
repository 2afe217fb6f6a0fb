"""The model's documentation, from the comments in its files."""

from __future__ import annotations

from nsys_insight.errors import UsageError
from nsys_insight.model import views
from nsys_insight.session.answer import Answer, Column, store_result
from nsys_insight.session.model import empty_model
from nsys_insight.sql.quoting import literal
from nsys_insight.text.suggestions import did_you_mean
from nsys_insight.text.units import unit_of

_VIEW_COLUMNS = {
    "view": "The view or table to select from",
    "description": "What a row stands for",
}
_COLUMN_COLUMNS = {
    "column": "Its name",
    "type": "DuckDB's type",
    "unit": "From the suffix of the name",
    "description": "What it means",
}


def describe_schema(view: str | None = None, *, internal: bool = False) -> Answer:
    """Describe all views (view, description), or the columns of one (column, type, unit, description).

    It needs no trace: the model has the same views and columns over all of them. `internal` includes views that only
    other views read.

    Raises:
        UsageError: There is no such view.
    """
    if view is not None and view not in views.documented_views():
        hint = did_you_mean(view, views.documented_views(internal=False)) or "nsys-insight schema lists them"
        raise UsageError(f"there is no view {view!r}", hint)
    connection = empty_model()
    if view is None:
        hidden = "" if internal else " AND NOT starts_with(view_name, '_')"
        query = f"""
            SELECT view_name AS view, comment AS description FROM duckdb_views()
            WHERE comment IS NOT NULL{hidden} ORDER BY view"""
        meanings, title = _VIEW_COLUMNS, "Views"
    else:
        units = ", ".join(
            f"({literal(name)}, {literal(unit_of(name))})"
            for (name,) in connection.execute(
                f"SELECT column_name FROM duckdb_columns() WHERE table_name = {literal(view)} AND schema_name = 'main'"
            ).fetchall()
        )
        query = f"""
            SELECT column_name AS "column", data_type AS type, nullif(u.unit, '') AS unit, comment AS description
            FROM duckdb_columns() JOIN (VALUES {units}) AS u(name, unit) ON u.name = column_name
            WHERE table_name = {literal(view)} AND schema_name = 'main' ORDER BY column_index"""
        meanings, title = _COLUMN_COLUMNS, f"Columns of {view}"
    columns = store_result(connection, "described", query)
    return Answer(
        connection=connection,
        table="described",
        columns=tuple(Column(name, kind, meanings[name]) for name, kind in columns),
        report="schema",
        title=title,
    )
