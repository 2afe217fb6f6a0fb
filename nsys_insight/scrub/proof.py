"""That a scrubbed trace says the same: every report of both, number by number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import progress
from nsys_insight.errors import InsightError
from nsys_insight.packs.library import built_in
from nsys_insight.render.plain import plain

if TYPE_CHECKING:
    from nsys_insight.packs.pack import Pack
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

_TIMES = ("start_ns", "end_ns", "timestamp_ns")
# Sums of floating point numbers differ by the order in which threads add them up.
_CLOSE = 1e-6


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
            if not _same(_numbers(before, pack, shift_ns), _numbers(after, pack, 0)):
                found.append(name)
    return found


class _Numbers(NamedTuple):
    """What is the same in both: the numbers of each row, how many texts each column has; or what went wrong."""

    rows: list[tuple[list[str], list[float]]]
    others: object


def _numbers(trace: Session, pack: Pack, shift_ns: int) -> _Numbers:
    try:
        answer = trace.answer(pack)
    except InsightError as error:
        return _Numbers([], type(error))
    rows = answer.rows()
    texts = [at for at, column in enumerate(answer.columns) if "VARCHAR" in column.type]
    told = [len({row[at] for row in rows}) for at in texts], len(answer.notes)
    return _Numbers(sorted(_row(answer, row, shift_ns) for row in rows), told)


def _row(answer: Answer, row: tuple[Any, ...], shift_ns: int) -> tuple[list[str], list[float]]:
    """Give what of a row is exact, by which rows are told apart, and what is not."""
    exact, others = [], []
    for column, cell in zip(answer.columns, row, strict=True):
        value = plain(cell)
        if isinstance(value, float):
            others.append(value)
        elif "VARCHAR" not in column.type:
            is_time = isinstance(value, int) and column.name.endswith(_TIMES)
            exact.append(str(value - shift_ns if is_time else value))
    return exact, others


def _same(one: _Numbers, other: _Numbers) -> bool:
    return (
        one.others == other.others
        and [exact for exact, _ in one.rows] == [exact for exact, _ in other.rows]
        and all(
            len(left) == len(right)
            and all(math.isclose(*pair, rel_tol=_CLOSE, abs_tol=_CLOSE) for pair in zip(left, right, strict=True))
            for (_, left), (_, right) in zip(one.rows, other.rows, strict=True)
        )
    )
