"""The model's documentation, from the headers of its files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.model import views
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.session.model import empty_model
from nsys_insight.text.suggestions import did_you_mean
from nsys_insight.text.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_VIEW_COLUMNS, _COLUMN_COLUMNS = read_columns("session/views"), read_columns("session/view")
# The views that most questions need, the most important first.
_MAIN_VIEWS = (
    "kernels", "api_calls", "operations", "memcpys", "launches", "waits", "gpu_gaps", "steps", "nvtx_ranges", "loops",
    "memsets", "step_budget", "collectives", "gpus", "processes",
)  # fmt: skip
VIEWS_BUDGET = 3_000


def write_views(view: str | None = None, budget: int = VIEWS_BUDGET) -> str:
    """Write the views for a coding agent in at most `budget` characters: those of most questions with their columns.

    The others have only their names. For one view, write its columns with types and descriptions.

    Raises:
        UsageError: There is no such view.
    """
    if view is not None:
        rows = describe_schema(view).dicts()
        lines = [f"{view}:", *(f"{row['column']} {row['type']}: {row['description']}" for row in rows)]
        text = "".join(f"{line}\n" for line in lines)
        return text if len(text) <= budget else text[: budget - 2].rpartition("\n")[0] + "\n…\n"
    names = sorted(views.documented_views(internal=False))
    heading = "Views with their columns (times in ns, sizes in bytes; _pct is 0 to 100):"
    listed_views: list[str] = []
    with empty_model() as connection:
        columns = views.list_columns(connection)
    for name in _MAIN_VIEWS:
        line = f"{name}({', '.join(_fold_dimensions(columns[name]))})"
        remainder = ", ".join(other for other in names if other not in _MAIN_VIEWS[: len(listed_views) + 1])
        if sum(map(len, (heading, *listed_views, line, remainder))) + len(listed_views) + 20 > budget:
            break
        listed_views.append(line)
    remainder = ", ".join(name for name in names if name not in _MAIN_VIEWS[: len(listed_views)])
    return "\n".join([heading, *listed_views, f"Others: {remainder}"])[: budget - 1] + "\n"


def _fold_dimensions(columns: Iterable[str]) -> list[str]:
    """Write grid_x, grid_y and grid_z as one."""
    return list(dict.fromkeys(re.sub(r"_[xyz]$", "_x/_y/_z", column) for column in columns))


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
    meanings = views.definitions()[view].meanings
    described_columns = [(name, kind, unit_of(name) or None, meanings[name]) for name, kind, *_ in types]
    return build_answer(_COLUMN_COLUMNS, described_columns, report="schema", title=f"Columns of {view}")
