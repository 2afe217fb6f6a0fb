"""The ranks of a run on one clock: their collectives, when each came to them, and who came last."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.ranks.clocks import WITHIN, Clock, aligned
from nsys_insight.facts.ranks.matching import groups
from nsys_insight.facts.ranks.rank import TOGETHER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from nsys_insight.facts.ranks.matching import Group
    from nsys_insight.facts.ranks.rank import Ints, Rank

    Times = np.ndarray[Any, np.dtype[np.int64]]
    Whole = np.ndarray[Any, np.dtype[np.bool_]]


# The main communicator has so many collectives, over this share of the time in which any has.
_LEAST, _SHARE = 8, 0.5


@dataclass(frozen=True)
class Collectives:
    """The collectives of a group: rows are collectives, columns its ranks, times on the run's clock.

    `waiting` is how long each waited for the last one; 0 where not all are known. `whole` says where they are.
    """

    group: Group
    start: Times
    end: Times
    waiting: Times
    whole: Whole


@dataclass(frozen=True)
class Run:
    """Ranks that communicate.

    `clocks` lead from the time of each trace to that of the first one of the main group. `main` is the group with most
    ranks, of those that communicate all along. `error` is how far the ends of collectives that all leave together are
    from each other: nobody knows of times that differ by less who was first.
    """

    ranks: Sequence[Rank]
    clocks: dict[int, Clock]
    collectives: list[Collectives]
    error: float

    @property
    def main(self) -> Collectives:
        """The collectives of the group that has most ranks, of those that communicate all along."""
        return self.collectives[0]


def run_of(ranks: Sequence[Rank], start_of: Sequence[int | None]) -> Run | None:
    """Match the collectives of ranks and lay them on one clock; None if no two of them share any."""
    found = groups(ranks, start_of)
    lasts = {group.name: _lasts(ranks, group) for group in found}
    longest = max(lasts.values(), default=0)

    def weight(group: Group) -> tuple[Any, ...]:
        # A communicator for a few calls at the start, such as barriers, tells nothing of the steps.
        is_used = len(group.whole) >= _LEAST and lasts[group.name] >= _SHARE * longest
        return not is_used, -len(group.ranks), -len(group.whole), group.name

    found.sort(key=weight)
    if not found or not len(found[0].whole):
        return None
    clocks = aligned(_Shared(ranks, found), ranks[found[0].ranks[0]].trace)
    # A group with a rank whose clock nobody knows is left out.
    found = [group for group in found if all(ranks[number].trace in clocks for number in group.ranks)]
    collectives = [_collectives(ranks, group, clocks) for group in found]
    return Run(ranks, clocks, collectives, _error(ranks, collectives[0])) if collectives else None


def _lasts(ranks: Sequence[Rank], group: Group) -> int:
    """From the first to the last collective that all ranks have."""
    if not len(group.whole):
        return 0
    rank, at = ranks[group.ranks[0]], group.at[group.whole, 0]
    return int(rank.end[at[-1]] - rank.start[at[0]])


class _Shared:
    """The collectives that pairs of traces share: of the group in which two have most."""

    def __init__(self, ranks: Sequence[Rank], groups: Sequence[Group]) -> None:
        self._ranks = ranks
        self._together = [_together(ranks, group) for group in groups]
        # Of each trace, the groups in which it is, by number, and the columns that are its ranks.
        self._columns: dict[int, dict[int, list[int]]] = {}
        for place, group in enumerate(groups):
            for column, number in enumerate(group.ranks):
                self._columns.setdefault(ranks[number].trace, {}).setdefault(place, []).append(column)
        self._groups = groups

    def of(self, trace: int) -> set[int]:
        """The traces that share any with this one."""
        numbers = (number for place in self._columns.get(trace, ()) for number in self._groups[place].ranks)
        return {self._ranks[number].trace for number in numbers} - {trace}

    def ends(self, one: int, other: int) -> tuple[Ints, Ints]:
        """The ends of those that two have both, in the group in which these are most."""
        import numpy as np

        best: tuple[Ints, Ints] = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        mine, its = self._columns[one], self._columns[other]
        for place in sorted(mine.keys() & its.keys()):
            group = self._groups[place]
            for column, other_column in product(mine[place], its[place]):
                both = np.flatnonzero((group.at[:, column] >= 0) & (group.at[:, other_column] >= 0))
                together = both[self._together[place][both]]
                rows = together if len(together) else both
                if len(rows) > len(best[0]):
                    of_one, of_other = (self._ranks[group.ranks[at]].end for at in (column, other_column))
                    best = of_one[group.at[rows, column]], of_other[group.at[rows, other_column]]
        return best


def _together(ranks: Sequence[Rank], group: Group) -> Whole:
    """Which of a group's collectives everybody leaves together."""
    import numpy as np

    seen = (group.at >= 0).argmax(axis=1)  # of a rank that has it
    rows = range(len(group.at))
    operations = (ranks[group.ranks[seen[row]]].operation[group.at[row, seen[row]]] for row in rows)
    return np.fromiter((operation in TOGETHER for operation in operations), dtype=bool, count=len(group.at))


def _collectives(ranks: Sequence[Rank], group: Group, clocks: dict[int, Clock]) -> Collectives:
    import numpy as np

    start, end = np.zeros_like(group.at), np.zeros_like(group.at)
    for column, number in enumerate(group.ranks):
        rank, at = ranks[number], group.at[:, column]
        clock, is_there = clocks[rank.trace], at >= 0
        start[is_there, column] = clock.apply(rank.start[at[is_there]])
        end[is_there, column] = clock.apply(rank.end[at[is_there]])
    whole: Whole = np.all(group.at >= 0, axis=1)
    waiting = np.clip(start.max(axis=1, keepdims=True) - start, 0, end - start)
    waiting[~whole] = 0
    return Collectives(group, start, end, waiting, whole)


def _error(ranks: Sequence[Rank], of: Collectives) -> float:
    """How far ends are apart that are the same."""
    import numpy as np

    rows = np.flatnonzero(of.whole)
    together = rows[_together(ranks, of.group)[rows]]
    ends = of.end[together if len(together) else rows]
    apart = np.abs(ends - np.median(ends, axis=1, keepdims=True)).max(axis=1)
    return float(np.quantile(apart, WITHIN))
