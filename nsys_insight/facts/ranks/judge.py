"""Who makes the others wait: the same ranks all along, now this one and now that, or nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, np.dtype[np.int64]]  # a row for each step, a column for each rank

# Nobody is late by less: what launches differ by anyway, a share of a step, and three times the clocks' error.
_FLOOR_NS, _FLOOR_SHARE, _ERRORS = 50_000, 0.01, 3
# The same ranks are late if that explains half of all that is waited. Ranks are late by turns if that takes this share
# of the wall: some always wait a little for others.
_EXPLAINED, _MOVING_SHARE = 0.5, 0.03
# A cause by itself accounts for two thirds of the delay.
_MAIN = 2 / 3


@dataclass(frozen=True)
class Delay:
    """Why a rank is late, by what it does more than the others in the steps in which it is.

    `cause` is gpu, host, both or None; `busy_ratio` how long it works for each ns of theirs.
    """

    more_busy: float
    more_idle: float
    busy_ratio: float | None
    cause: str | None


@dataclass(frozen=True)
class Verdict:
    """`kind` is late, moving or even; `late` are the columns of the ranks that are, `late_ns` by how much when."""

    kind: str
    late: list[int]
    late_ns: Table


def judge(wall: Table, waiting: Table, transfer: Table, error_ns: float) -> Verdict:
    """Tell who is late by how long each rank waits for others, outside of its own work: who is late waits least.

    All ranks begin and end a step together, so what a late rank communicates less is what it takes longer for the rest:
    that is by how much it is late.
    """
    import numpy as np

    steps, ranks = waiting.shape
    floor = np.maximum(max(_FLOOR_NS, _ERRORS * error_ns), _FLOOR_SHARE * wall.mean(axis=1))
    nobody = Verdict("even", [], np.zeros_like(waiting))
    if not steps or ranks < 2:
        return nobody
    wall_ns = float(wall.mean(axis=1).sum())
    order = np.argsort(waiting.mean(axis=0), kind="stable")
    # How far the first ones are from the others, of those that wait least: the first one, the first two, up to half.
    inner = waiting[:, order]
    among = np.maximum.accumulate(inner, axis=1)[:, : ranks // 2]
    others = np.minimum.accumulate(inner[:, ::-1], axis=1)[:, ::-1][:, 1 : ranks // 2 + 1]
    apart = others - among
    totals = np.where(apart >= floor[:, None], apart, 0).sum(axis=0)
    best = float(totals.max())
    late = order[: int(totals.argmax()) + 1] if best > 0 else order[:0]
    spread = float((waiting.max(axis=1) - waiting.min(axis=1)).sum())
    if best >= _FLOOR_SHARE * wall_ns and best >= _EXPLAINED * spread:
        is_late = np.isin(np.arange(ranks), late)[None, :] & (_less(waiting, late) >= floor[:, None])
        by = np.maximum(_less(waiting + transfer, late), _less(waiting, late))
        return Verdict("late", sorted(int(rank) for rank in late), np.where(is_late, by, 0))
    two = np.sort(waiting, axis=1)
    by = two[:, 1] - two[:, 0]
    alone = np.where((np.arange(ranks) == waiting.argmin(axis=1)[:, None]) & (by >= floor)[:, None], by[:, None], 0)
    turns = np.flatnonzero(alone.sum(axis=0))
    if len(turns) > 1 and float(alone.sum()) >= _MOVING_SHARE * wall_ns:
        return Verdict("moving", [int(rank) for rank in turns], alone)
    return nobody


def _less(of: Table, late: Table) -> Table:
    """How much less each rank has of something than those that are not late, at least."""
    import numpy as np

    less: Table = np.delete(of, late, axis=1).min(axis=1)[:, None] - of
    return less


def delay(busy: Table, idle: Table, verdict: Verdict, rank: int) -> Delay:
    """Compare what a late rank does in the steps in which it is late with the others: those that are not, then."""
    import numpy as np

    steps = np.flatnonzero(verdict.late_ns[:, rank])
    others = [other for other in range(busy.shape[1]) if other != rank]
    if verdict.kind == "late":
        others = [other for other in others if other not in verdict.late]
    usual_busy, usual_idle = (np.median(of[steps][:, others].astype(float), axis=1) for of in (busy, idle))
    more_busy = float((busy[steps, rank] - usual_busy).mean())
    more_idle = float((idle[steps, rank] - usual_idle).mean())
    total = max(more_busy, 0) + max(more_idle, 0)
    by = float(verdict.late_ns[steps, rank].mean())
    cause = None
    # What is more has to account for the delay in the first place.
    if total >= _EXPLAINED * by:
        cause = "gpu" if more_busy >= _MAIN * total else "host" if more_idle >= _MAIN * total else "both"
    usual = float(usual_busy.sum())
    return Delay(more_busy, more_idle, float(busy[steps, rank].sum()) / usual if usual else None, cause)
