"""Which rank is which: by NCCL, by the launcher, by the names of the files, or else in order.

This is what is known of the ranks in each trace before any are compared.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.ranks import rank
from nsys_insight.ingest import several
from nsys_insight.sql.rows import insert, named_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.rank import Rank

_NAMED = re.compile(r"(?:rank|proc|pe)[-_.]?(\d{1,6})", re.IGNORECASE)
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE")


class Numbered(NamedTuple):
    """The number of each rank, who says so, and how many ranks there are in the run, where that is known.

    `silent` has, by trace, the numbers of ranks that ran nothing of NCCL. `doubled` are traces that say that they are
    the same rank, with the number: then all are numbered in order.
    """

    numbers: list[int]
    by: str
    world: int | None = None
    silent: Mapping[int, int] = MappingProxyType({})
    doubled: tuple[int, list[str]] | None = None

    @property
    def missing(self) -> list[int]:
        """The ranks that are not among them, as far as is known: of those that are numbered by name, the lower ones."""
        there = {*self.numbers, *self.silent.values()}
        known = self.world if self.world is not None else max(there, default=-1) + 1
        return [] if self.by == "order" else sorted(set(range(known)) - there)


class Known(NamedTuple):
    """The ranks, when each trace began by its host's clock, which rank is which, and traces that are another's copy."""

    ranks: list[Rank]
    began: list[int | None]
    told: Numbered
    alike: list[tuple[str, str]]


def fill(context: Context) -> None:
    """Fill `facts.rank_numbers`."""
    ranks, _, told, _ = known(context)
    labels = context.labels
    rows: list[dict[str, Any]] = [
        {"trace": labels[one.trace], "process_id": one.process_id, "device_id": one.device_id, "rank": number}
        for one, number in zip(ranks, told.numbers, strict=True)
    ]
    rows += [
        {"trace": labels[trace], "process_id": None, "device_id": None, "rank": number}
        for trace, number in told.silent.items()
    ]
    insert(context.connection, "facts.rank_numbers", [{**row, "told_by": told.by} for row in rows])


def known(context: Context) -> Known:
    """Read the ranks of all traces; a trace that holds what another one does is left out."""
    connection, labels = context.connection, context.labels
    statements = context.statements("rank_numbers", "kernels", "began", "numbers", "environment")
    ranks: list[Rank] = []
    began: list[int | None] = []
    by_nccl: dict[tuple[int, int], tuple[int, int]] = {}
    environments = []
    for number, catalog in enumerate(context.catalogs):
        with several.inside(connection, catalog):
            ranks += rank.of_rows(number, named_rows(connection, statements["kernels"]))
            began.append(connection.execute(statements["began"]).fetchall()[0][0])
            for said in named_rows(connection, statements["numbers"]):
                by_nccl[number, said.process_id] = said.rank, said.ranks
            environments.append(dict(connection.execute(statements["environment"]).fetchall()))
    copies = _copies(ranks)
    ranks = [one for one in ranks if one.trace not in copies]
    alike = [(labels[copy], labels[of]) for copy, of in copies.items()]
    return Known(ranks, began, numbered(ranks, labels, by_nccl, environments, set(copies)), alike)


def _copies(ranks: Sequence[Rank]) -> dict[int, int]:
    """Which traces have a rank whose collectives are, to the ns, those of a rank of an earlier trace."""
    first: dict[tuple[bytes, bytes], Rank] = {}
    found: dict[int, int] = {}
    for one in ranks:
        before = first.setdefault(one.moments, one).trace
        if before != one.trace:
            found[one.trace] = min(found.get(one.trace, before), before)
    return found


def numbered(
    ranks: Sequence[Rank],
    labels: Sequence[str],
    by_nccl: Mapping[tuple[int, int], tuple[int, int]],
    environments: Sequence[Mapping[str, int]],
    left_out: AbstractSet[int] = frozenset(),
) -> Numbered:
    """Number ranks.

    Args:
        ranks: The ranks, trace by trace.
        labels: What the traces are called.
        by_nccl: Rank and number of ranks by trace and process.
        environments: What the launcher said in each trace.
        left_out: The numbers of traces that count for nothing.
    """
    traces = [trace for trace in range(len(labels)) if trace not in left_out]
    with_ranks = {rank.trace for rank in ranks}
    launched = {trace: number for trace in traces for number in _of_launcher(environments[trace])}
    in_names = {trace: number for trace in traces for number in _in_name(labels[trace])}

    def silent(told: Mapping[int, int], taken: Sequence[int]) -> dict[int, int]:
        others = {trace: number for trace, number in told.items() if trace not in with_ranks}
        return others if _distinct([*taken, *others.values()]) else {}

    # A single trace is no less known under another name; and what is said of a trace is said of one rank.
    is_one_each = len(labels) > 1 and _distinct([rank.trace for rank in ranks])
    by_trace = (("the launcher", launched), ("the files' names", in_names)) if is_one_each else ()
    said = [by_nccl.get((rank.trace, rank.process_id)) for rank in ranks]
    if ranks and all(said) and _distinct(found := [one[0] for one in said if one]):
        either = next((silent(told, found) for _, told in by_trace if silent(told, found)), {})
        return Numbered(found, "NCCL", max(one[1] for one in said if one), either)
    for by, told in by_trace:
        if told.keys() >= with_ranks and (ranks or told.keys() == set(traces)):
            found = [told[rank.trace] for rank in ranks]
            if _distinct([*found, *(told[trace] for trace in told.keys() - with_ranks)]):
                world = _world(environments, [*told.values()]) if by == "the launcher" else None
                return Numbered(found, by, world, silent(told, found))
    by_gpu = _distinct([(rank.trace, rank.gpu_id) for rank in ranks])  # which launchers number as they do ranks
    order = sorted(
        (rank.trace, rank.gpu_id if by_gpu else 0, rank.process_id, rank.device_id, at) for at, rank in enumerate(ranks)
    )
    places = {at: place for place, (*_, at) in enumerate(order)}
    doubled = next((twice for _, told in by_trace if (twice := _doubled(told, labels))), None)
    return Numbered([places[at] for at in range(len(ranks))], "order", doubled=doubled)


def _of_launcher(environment: Mapping[str, int]) -> list[int]:
    """The rank that the launcher said."""
    return [environment[name] for name in _RANK if name in environment][:1]


def _world(environments: Sequence[Mapping[str, int]], numbers: Sequence[int]) -> int | None:
    """How many ranks the launcher said that there are."""
    worlds = {of[name] for of in environments for name in _WORLD if name in of}
    return max(*worlds, max(numbers) + 1) if worlds else None


def _in_name(label: str) -> list[int]:
    """The number behind the last word for a rank in a file's name."""
    return [int(number) for number in _NAMED.findall(label)[-1:]]


def _doubled(told: Mapping[int, int], labels: Sequence[str]) -> tuple[int, list[str]] | None:
    """The lowest rank that several traces say they are, with these."""
    for number in sorted(set(told.values())):
        whose = [labels[trace] for trace, of in told.items() if of == number]
        if len(whose) > 1:
            return number, whose
    return None


def _distinct(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)
