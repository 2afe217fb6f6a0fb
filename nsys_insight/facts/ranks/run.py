"""The ranks of a run on one clock: their collectives, and when each rank arrived."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import Flags, Ints, np
from nsys_insight.facts.ranks.clocks import ERROR_QUANTILE, Clock, align_clocks
from nsys_insight.facts.ranks.matching import Group, match_groups
from nsys_insight.facts.ranks.parallel_groups import merge_parallel_groups
from nsys_insight.facts.ranks.rank import SYNCHRONIZING, Rank

if TYPE_CHECKING:
    from collections.abc import Sequence


# The main communicator has at least this number of collectives. They span at least this share of the longest span of
# any communicator.
_MIN_COLLECTIVES, _MIN_SPAN_SHARE = 8, 0.5


@dataclass(frozen=True)
class Collectives:
    """The collectives of a group: a row for each collective, a column for each rank, times on the run's clock.

    `waiting` is how long each rank waited for the last one; 0 where a rank is missing. `is_complete` is true for the
    rows that all ranks have.
    """

    group: Group
    start: Ints
    end: Ints
    waiting: Ints
    is_complete: Flags


@dataclass(frozen=True)
class Run:
    """Ranks that communicate.

    `main` has the collectives that divide the run into steps: those of the largest group that communicates throughout
    the run, merged with groups that do the same side by side. `main_rows` has for each of these groups, by name, the
    row of `main` that is each of its collectives, or -1. `divisions` are the ways in which the ranks are divided into
    groups that do the same side by side. `clocks` convert the time of each trace to that of the first
    trace of the main group. `error` is how far apart the ends of a collective are that all ranks leave together, in ns:
    the order of closer times is unknown.
    """

    ranks: Sequence[Rank]
    clocks: dict[int, Clock]
    collectives: list[Collectives]
    main: Collectives
    main_rows: dict[str, Ints]
    divisions: list[list[Group]]
    error: float


def align_run(ranks: Sequence[Rank], trace_starts: Sequence[int | None]) -> Run | None:
    """Match the collectives of ranks and put them on one clock; None if no two ranks share a collective."""
    groups = match_groups(ranks, trace_starts)
    spans = {group.name: _measure_span(ranks, group) for group in groups}
    longest = max(spans.values(), default=0)

    def is_used(group: Group) -> bool:
        # A communicator with a few calls at the start, such as barriers, does not divide the run into steps.
        return len(group.complete_rows) >= _MIN_COLLECTIVES and spans[group.name] >= _MIN_SPAN_SHARE * longest

    def sort_key(group: Group) -> tuple[Any, ...]:
        return not is_used(group), -len(group.ranks), -len(group.complete_rows), group.name

    groups.sort(key=sort_key)
    if not groups or not len(groups[0].complete_rows):
        return None
    clocks = align_clocks(_SharedCollectives(ranks, groups), ranks[groups[0].ranks[0]].trace)
    # Leave out a group if the clock of one of its ranks is not aligned.
    groups = [group for group in groups if all(ranks[number].trace in clocks for number in group.ranks)]
    collectives = [_apply_clocks(ranks, group, clocks) for group in groups]
    if not collectives:
        return None
    merged = merge_parallel_groups(ranks, [groups[0], *filter(is_used, groups[1:])])
    main = _apply_clocks(ranks, merged.group, clocks) if merged else collectives[0]
    rows = merged.rows if merged else {groups[0].name: np.arange(len(groups[0].kernels))}
    divisions = merged.divisions if merged else []
    return Run(ranks, clocks, collectives, main, rows, divisions, _measure_error(ranks, collectives[0]))


def _measure_span(ranks: Sequence[Rank], group: Group) -> int:
    """Return the time that eight tenths of the collectives take that all ranks have, without those at both ends.

    A first step can take longer than all others together, as some communicators are set up in the middle of it.
    """
    if not len(group.complete_rows):
        return 0
    rank, kernels = ranks[group.ranks[0]], group.kernels[group.complete_rows, 0]
    at_end = len(kernels) // 10
    return int(rank.end[kernels[-1 - at_end]] - rank.start[kernels[at_end]])


class _SharedCollectives:
    """The collectives that pairs of traces share, each pair in the group in which it shares most."""

    def __init__(self, ranks: Sequence[Rank], groups: Sequence[Group]) -> None:
        self._ranks = ranks
        self._is_synchronizing = [_find_synchronizing(ranks, group) for group in groups]
        # By trace, and by index of a group: the columns of the trace's ranks.
        self._columns: dict[int, dict[int, list[int]]] = {}
        for index, group in enumerate(groups):
            for column, number in enumerate(group.ranks):
                self._columns.setdefault(ranks[number].trace, {}).setdefault(index, []).append(column)
        self._groups = groups

    def linked_traces(self, trace: int) -> set[int]:
        """Return the traces that share collectives with this trace."""
        numbers = (number for index in self._columns.get(trace, ()) for number in self._groups[index].ranks)
        return {self._ranks[number].trace for number in numbers} - {trace}

    def common_ends(self, reference: int, other: int) -> tuple[Ints, Ints]:
        """Return the ends that two traces both have, from the pair of ranks with the most."""
        best: tuple[Ints, Ints] = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        reference_columns, other_columns = self._columns[reference], self._columns[other]
        for index in sorted(reference_columns.keys() & other_columns.keys()):
            group = self._groups[index]
            for column, other_column in product(reference_columns[index], other_columns[index]):
                common = np.flatnonzero((group.kernels[:, column] >= 0) & (group.kernels[:, other_column] >= 0))
                synchronizing = common[self._is_synchronizing[index][common]]
                rows = synchronizing if len(synchronizing) else common
                if len(rows) > len(best[0]):
                    ends, other_ends = (self._ranks[group.ranks[number]].end for number in (column, other_column))
                    best = ends[group.kernels[rows, column]], other_ends[group.kernels[rows, other_column]]
        return best


def _find_synchronizing(ranks: Sequence[Rank], group: Group) -> Flags:
    """Return which collectives of a group all ranks leave together."""
    columns = (group.kernels >= 0).argmax(axis=1)  # a rank that has the collective
    rows = range(len(group.kernels))
    operations = (ranks[group.ranks[columns[row]]].operation[group.kernels[row, columns[row]]] for row in rows)
    return np.fromiter((operation in SYNCHRONIZING for operation in operations), dtype=bool, count=len(group.kernels))


def _apply_clocks(ranks: Sequence[Rank], group: Group, clocks: dict[int, Clock]) -> Collectives:
    start, end = np.zeros_like(group.kernels), np.zeros_like(group.kernels)
    for column, number in enumerate(group.ranks):
        rank, kernels = ranks[number], group.kernels[:, column]
        clock, has_kernel = clocks[rank.trace], kernels >= 0
        start[has_kernel, column] = clock.apply(rank.start[kernels[has_kernel]])
        end[has_kernel, column] = clock.apply(rank.end[kernels[has_kernel]])
    is_complete: Flags = np.all(group.kernels >= 0, axis=1)
    waiting = np.clip(start.max(axis=1, keepdims=True) - start, 0, end - start)
    waiting[~is_complete] = 0
    return Collectives(group, start, end, waiting, is_complete)


def _measure_error(ranks: Sequence[Rank], collectives: Collectives) -> float:
    """Return how far apart the ends of a collective are on the aligned clocks, in ns."""
    rows = np.flatnonzero(collectives.is_complete)
    synchronizing = rows[_find_synchronizing(ranks, collectives.group)[rows]]
    ends = collectives.end[synchronizing if len(synchronizing) else rows]
    distances = np.abs(ends - np.median(ends, axis=1, keepdims=True)).max(axis=1)
    return float(np.quantile(distances, ERROR_QUANTILE))
