"""That a scrubbed trace says the same: every report of both, number by number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.errors import InsightError
from nsys_insight.packs.built_in import built_in
from nsys_insight.render.plain import plain

if TYPE_CHECKING:
    from nsys_insight.packs.pack import Pack
    from nsys_insight.session.answer import Answer, Column
    from nsys_insight.session.session import Session

_TIMES = ("start_ns", "end_ns", "timestamp_ns")
_DIGITS = 9


def differing(before: Session, after: Session, shift_ns: int) -> list[str]:
    """Return the reports whose numbers differ between two traces, of which the second is earlier by `shift_ns`.

    Texts may differ, but what is called differently in the one is called differently in the other.
    """
    before.load()
    after.load()
    found = []
    with progress.at("comparing the reports") as task:
        for number, (name, pack) in enumerate(built_in().items()):
            task.text, task.percent = f"comparing {name}", 100 * number / len(built_in())
            if _numbers(before, pack, shift_ns) != _numbers(after, pack, 0):
                found.append(name)
    return found


def _numbers(trace: Session, pack: Pack, shift_ns: int) -> object:
    """What is the same in both: the numbers of each row, how many texts each column has; or what went wrong."""
    try:
        answer = trace.answer(pack)
    except InsightError as error:
        return type(error)
    rows = answer.rows()
    texts = [at for at, column in enumerate(answer.columns) if "VARCHAR" in column.type]
    shown = sorted(_row(answer, row, shift_ns) for row in rows)
    return shown, [len({row[at] for row in rows}) for at in texts], len(answer.notes)


def _row(answer: Answer, row: tuple[Any, ...], shift_ns: int) -> list[str]:
    cells = zip(answer.columns, row, strict=True)
    return [_cell(column, plain(cell), shift_ns) for column, cell in cells if "VARCHAR" not in column.type]


def _cell(column: Column, value: Any, shift_ns: int) -> str:
    if isinstance(value, int) and column.name.endswith(_TIMES):
        value -= shift_ns
    if isinstance(value, float) and value and math.isfinite(value):
        return f"{value:.{_DIGITS}g}"
    return str(value)
