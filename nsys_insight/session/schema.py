"""The model's documentation, from the headers of its files."""

from __future__ import annotations

from nsys_insight.errors import UsageError
from nsys_insight.model import views
from nsys_insight.session.answer import Answer, Column, build_answer
from nsys_insight.session.model import empty_model
from nsys_insight.text.suggestions import did_you_mean
from nsys_insight.text.units import unit_of

_VIEW_COLUMNS = (
    Column("view", "VARCHAR", "The view or table to select from"),
    Column("description", "VARCHAR", "What a row stands for"),
)
_COLUMN_COLUMNS = (
    Column("column", "VARCHAR", "Its name"),
    Column("type", "VARCHAR", "DuckDB's type"),
    Column("unit", "VARCHAR", "From the suffix of the name"),
    Column("description", "VARCHAR", "What it means"),
)


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
    if view is None:
        shown_views = sorted(views.documented_views(internal=internal).values(), key=lambda view: view.name)
        rows = [(view.name, view.description) for view in shown_views]
        return build_answer(_VIEW_COLUMNS, rows, report="schema", title="Views")
    with empty_model() as connection:
        types = connection.execute(f"DESCRIBE {view}").fetchall()
    meanings = views.definitions()[view].columns
    described_columns = [(name, kind, unit_of(name) or None, meanings[name]) for name, kind, *_ in types]
    return build_answer(_COLUMN_COLUMNS, described_columns, report="schema", title=f"Columns of {view}")
