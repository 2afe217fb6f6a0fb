"""Which ranks delay the others: the same ranks in all steps, a different rank from step to step, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import Ints, np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Table = np.ndarray[Any, np.dtype[np.int64]]  # a row for each step, a column for each rank

# A rank is late only by more than each of these: the usual variation between launches, a share of a step, and a
# multiple of the clocks' error.
FLOOR_NS, FLOOR_SHARE, ERROR_FACTOR = 50_000, 0.01, 3
# The same ranks are late if they explain this share of all waiting. Different ranks are late if their delays take at
# least this share of the wall time: some short waits always occur.
EXPLAINED_SHARE, MOVING_SHARE = 0.5, 0.03
# A single cause accounts for at least this share of the delay.
MAIN_SHARE = 2 / 3
# The hosts of all ranks set the pace if one of them works for this share of a step.
HOST_SHARE = 0.75
# A cut by less than the rest of this share is within the noise of the steps.
CUT_SHARE = 0.9


@dataclass(frozen=True)
class Delay:
    """Why a rank is late: what it does more than the others in the steps in which it is late.

    `cause` is gpu, host, both or None. `busy_ratio` is its busy time divided by that of the others.
    """

    more_busy_ns: float
    more_idle_ns: float
    busy_ratio: float | None
    cause: str | None


@dataclass(frozen=True)
class Verdict:
    """Which ranks are late, and when.

    `kind` is late, moving, even or host. `late_columns` are the columns of the late ranks. `late_ns` is the delay of
    each rank in each step. host: each host works for most of the step, so no rank could be much earlier.
    """

    kind: str
    late_columns: list[int]
    late_ns: Table


def judge(wall: Table, waiting: Table, transfer: Table, error_ns: float) -> Verdict:
    """Find the late ranks from how long each rank only waits for others: a late rank waits least.

    All ranks begin and end a step together. A late rank takes longer for the rest of the step, and communicates less by
    the same amount. That amount is the delay.
    """
    steps, ranks = waiting.shape
    floor = np.maximum(max(FLOOR_NS, ERROR_FACTOR * error_ns), FLOOR_SHARE * wall.mean(axis=1))
    even = Verdict("even", [], np.zeros_like(waiting))
    if not steps or ranks < 2:
        return even
    wall_ns = float(wall.mean(axis=1).sum())
    order = np.argsort(waiting.mean(axis=0), kind="stable")
    # Sort the ranks by waiting. For the first rank, the first two, and so on up to half of them: the distance between
    # the longest wait among these and the shortest wait among the others.
    sorted_waiting = waiting[:, order]
    longest_of_first = np.maximum.accumulate(sorted_waiting, axis=1)[:, : ranks // 2]
    shortest_of_others = np.minimum.accumulate(sorted_waiting[:, ::-1], axis=1)[:, ::-1][:, 1 : ranks // 2 + 1]
    margins = shortest_of_others - longest_of_first
    totals = np.where(margins >= floor[:, None], margins, 0).sum(axis=0)
    best = float(totals.max())
    late = order[: int(totals.argmax()) + 1]
    spread = float((waiting.max(axis=1) - waiting.min(axis=1)).sum())
    if best > FLOOR_SHARE * wall_ns and best >= EXPLAINED_SHARE * spread:
        is_late = np.isin(np.arange(ranks), late)[None, :] & (_shortfall(waiting, late) >= floor[:, None])
        delays = np.maximum(_shortfall(waiting + transfer, late), _shortfall(waiting, late))
        return Verdict("late", sorted(int(rank) for rank in late), np.where(is_late, delays, 0))
    ascending = np.sort(waiting, axis=1)
    delays = ascending[:, 1] - ascending[:, 0]
    is_latest = (np.arange(ranks) == waiting.argmin(axis=1)[:, None]) & (delays >= floor)[:, None]
    late_ns = np.where(is_latest, delays[:, None], 0)
    moving = np.flatnonzero(late_ns.sum(axis=0))
    if len(moving) > 1 and float(late_ns.sum()) >= MOVING_SHARE * wall_ns:
        return Verdict("moving", [int(rank) for rank in moving], late_ns)
    return even


def limit_to_hosts(verdict: Verdict, wall: Table, hosts: Sequence[Ints | None]) -> Verdict:
    """Limit delays to what the step would be shorter without them: the hosts of the other ranks take time as well.

    A host that launches ahead lets its GPU wait for a rank that is only a little slower, up to one step each time.

    Args:
        verdict: The late ranks.
        wall: The length of each step on each rank.
        hosts: How long the host of each rank works in each step; None where that is unknown.
    """
    is_late = np.isin(np.arange(len(hosts)), verdict.late_columns)
    other_hosts = [
        float(np.median(host)) for host, late in zip(hosts, is_late, strict=True)
        if host is not None and not (late and verdict.kind == "late")
    ]  # fmt: skip
    if not other_hosts:
        return verdict
    length = wall.mean(axis=1)
    excess = np.maximum(length - max(other_hosts), 0)
    late_ns = np.minimum(verdict.late_ns, excess[:, None]).astype(np.int64)
    late_ns[late_ns < np.maximum(FLOOR_NS, FLOOR_SHARE * length)[:, None]] = 0
    total = float(late_ns.max(axis=1).sum())
    full_total = float(verdict.late_ns.max(axis=1).sum())
    if total >= CUT_SHARE * full_total:
        return verdict
    is_moving = verdict.kind == "moving" and total >= MOVING_SHARE * float(length.sum())
    hosts_set_pace = max(other_hosts) >= HOST_SHARE * float(length.mean())
    if total < EXPLAINED_SHARE * full_total and hosts_set_pace and not is_moving:
        return Verdict("host", [], np.zeros_like(late_ns))
    if total < (MOVING_SHARE if verdict.kind == "moving" else FLOOR_SHARE) * float(length.sum()):
        return Verdict("even", [], np.zeros_like(late_ns))
    return Verdict(verdict.kind, [int(column) for column in np.flatnonzero(late_ns.any(axis=0))], late_ns)


def _shortfall(times: Table, late: Table) -> Table:
    """Return how much less each rank has than any rank that is not late; negative if it has more than one of them."""
    shortfall: Table = np.delete(times, late, axis=1).min(axis=1)[:, None] - times
    return shortfall


def explain_delay(busy: Table, idle: Table, verdict: Verdict, rank: int) -> Delay:
    """Compare a late rank with the ranks that are not late, in the steps in which it is late."""
    steps = np.flatnonzero(verdict.late_ns[:, rank])
    other_ranks = [other for other in range(busy.shape[1]) if other != rank]
    if verdict.kind == "late":
        other_ranks = [other for other in other_ranks if other not in verdict.late_columns]
    usual_busy, usual_idle = (np.median(times[steps][:, other_ranks].astype(float), axis=1) for times in (busy, idle))
    more_busy_ns = float((busy[steps, rank] - usual_busy).mean())
    more_idle_ns = float((idle[steps, rank] - usual_idle).mean())
    cause = find_cause(more_busy_ns, more_idle_ns, float(verdict.late_ns[steps, rank].mean()))
    usual_total = float(usual_busy.sum())
    ratio = float(busy[steps, rank].sum()) / usual_total if usual_total else None
    return Delay(more_busy_ns, more_idle_ns, ratio, cause)


def find_cause(more_busy_ns: float, more_idle_ns: float, delay_ns: float) -> str | None:
    """Return whether more GPU time, more idle time, or both explain a delay; None if they are shorter than it."""
    total = max(more_busy_ns, 0) + max(more_idle_ns, 0)
    if total < EXPLAINED_SHARE * delay_ns:
        return None
    return "gpu" if more_busy_ns >= MAIN_SHARE * total else "host" if more_idle_ns >= MAIN_SHARE * total else "both"
