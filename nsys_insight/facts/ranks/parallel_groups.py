"""Groups of ranks that do the same side by side, such as the tensor-parallel groups of several replicas.

Each group has its own communicator. Another communicator, such as that of the gradients, has ranks of several groups.
The groups' collectives are matched by the order of calls around these shared ones: all groups run the same program.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.arrays import Ints, np
from nsys_insight.facts.ranks.matching import Group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.ranks.rank import Rank

# This share of the shared collectives has to show the same distance between two groups, and this share of the matched
# collectives has to have the same operation.
_MIN_AGREEMENT = 0.9


class MergedGroups(NamedTuple):
    """The collectives that all ranks of several groups have, in order: the ranks begin and end a step with them.

    `rows` has for each merged group, by name, the row of each of its collectives; -1 where a rank lacks it. `divisions`
    are the ways in which the ranks are divided into groups, each a list of groups.
    """

    group: Group
    rows: dict[str, Ints]
    divisions: list[list[Group]]


def merge_parallel_groups(ranks: Sequence[Rank], groups: Sequence[Group]) -> MergedGroups | None:
    """Merge the first of several groups with those that do the same at the same place of the program.

    If other groups divide the same ranks in another way, such as the data-parallel groups, they are merged as well:
    only with their collectives are all ranks together again.

    Args:
        ranks: All ranks.
        groups: Groups that communicate throughout the run.

    Returns:
        The merged groups; None if no other group does the same as the first one.
    """
    first_rows = _find_parallel(ranks, groups, groups[0])
    if len(first_rows) == 1:
        return None
    tables = [_merge(groups, first_rows)]
    names = [first_rows]
    for group in groups:
        if not any(group.name in merged for merged in names):
            first_rows = _find_parallel(ranks, groups, group)
            table = _merge(groups, first_rows)
            if table.ranks == tables[0].ranks:
                tables.append(table)
                names.append(first_rows)
    kernels = np.concatenate([table.kernels[table.complete_rows] for table in tables])
    order = np.argsort(kernels[:, 0], kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    rows, begin = {}, 0
    for table, first_rows in zip(tables, names, strict=True):
        row_of = np.full(len(table.kernels), -1)
        row_of[table.complete_rows] = position[begin : begin + len(table.complete_rows)]
        begin += len(table.complete_rows)
        for group in groups:
            if group.name in first_rows:
                first = first_rows[group.name]
                rows[group.name] = row_of[first : first + len(group.kernels)]
    divisions = [[group for group in groups if group.name in first_rows] for first_rows in names]
    return MergedGroups(Group(groups[0].name, tables[0].ranks, kernels[order]), rows, divisions)


def _find_parallel(ranks: Sequence[Rank], groups: Sequence[Group], first: Group) -> dict[str, int]:
    """Return the groups that do the same as one of them, by name, each with the common row at which it begins."""
    first_rows = {first.name: 0}
    members = set(first.ranks)
    todo = deque([first])
    while todo:
        group = todo.popleft()
        for other in groups:
            if len(other.ranks) != len(first.ranks) or not members.isdisjoint(other.ranks):
                continue
            distance = _find_distance(groups, group, other)
            if distance is not None and _does_the_same(ranks, group, other, distance):
                first_rows[other.name] = first_rows[group.name] + distance
                members.update(other.ranks)
                todo.append(other)
    lowest = min(first_rows.values())
    return {name: row - lowest for name, row in first_rows.items()}


def _find_distance(groups: Sequence[Group], group: Group, other: Group) -> int | None:
    """Return the row of a group at which another one begins, by the collectives that ranks of both share.

    Between two of these, each rank has run all its collectives of the earlier part of the program. None if no group has
    ranks of both, or the distance differs from one shared collective to the next.
    """
    for link in groups:
        if link in (group, other):
            continue
        rows = [_find_rows_after(link, side) for side in (group, other)]
        if rows[0] is None or rows[1] is None:
            continue
        distances = Counter((rows[0] - rows[1]).tolist())
        distance, count = distances.most_common(1)[0] if distances else (0, 0)
        if count and count >= _MIN_AGREEMENT * distances.total():
            return int(distance)
    return None


def _find_rows_after(link: Group, group: Group) -> Ints | None:
    """Return the row of a group after each collective of a link on a rank that is in both; None without such a rank."""
    number = next((number for number in link.ranks if number in group.ranks), None)
    if number is None:
        return None
    kernels = group.kernels[:, group.ranks.index(number)]
    shared = link.kernels[link.complete_rows][:, link.ranks.index(number)]
    rows: Ints = np.searchsorted(kernels[kernels >= 0], shared) + int(np.argmax(kernels >= 0))
    return rows


def _does_the_same(ranks: Sequence[Rank], group: Group, other: Group, distance: int) -> bool:
    """Return whether the collectives of two groups have the same operations, row by row.

    The sizes may differ: one group can have a larger batch.
    """
    rows = range(max(distance, 0), min(len(group.kernels), len(other.kernels) + distance))
    calls = [
        (_read_operation(ranks, group, row), _read_operation(ranks, other, row - distance))
        for row in rows
        if group.kernels[row, 0] >= 0 and other.kernels[row - distance, 0] >= 0
    ]
    return bool(calls) and sum(first == second for first, second in calls) >= _MIN_AGREEMENT * len(calls)


def _read_operation(ranks: Sequence[Rank], group: Group, row: int) -> str:
    return str(ranks[group.ranks[0]].operation[group.kernels[row, 0]])


def _merge(groups: Sequence[Group], first_rows: dict[str, int]) -> Group:
    """Put the tables of some groups next to each other, each beginning at its row."""
    merged = [group for group in groups if group.name in first_rows]
    length = max(first_rows[group.name] + len(group.kernels) for group in merged)
    columns = []
    for group in merged:
        begin = first_rows[group.name]
        table = np.full((length, len(group.ranks)), -1, dtype=np.int64)
        table[begin : begin + len(group.kernels)] = group.kernels
        columns.append(table)
    members = [number for group in merged for number in group.ranks]
    order = np.argsort(members)
    return Group(merged[0].name, sorted(members), np.concatenate(columns, axis=1)[:, order])
