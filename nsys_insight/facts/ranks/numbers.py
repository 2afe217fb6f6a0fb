"""Which rank is which: as NCCL was told, as the launcher said, as the files are called, or else in order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.facts.ranks.rank import Rank

_NAMED = re.compile(r"(?:rank|proc|pe)[-_.]?(\d{1,6})", re.IGNORECASE)
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE")


class Numbered(NamedTuple):
    """The number of each rank, who says so, and how many ranks there are in the run, where that is known."""

    numbers: list[int]
    by: str
    world: int | None = None

    @property
    def missing(self) -> list[int]:
        """The ranks that are not among them, as far as is known: of those that are numbered by name, the lower ones."""
        known = self.world if self.world is not None else max(self.numbers) + 1
        return [] if self.by == "order" else sorted(set(range(known)) - set(self.numbers))


def numbered(
    ranks: Sequence[Rank],
    labels: Sequence[str],
    by_nccl: Mapping[tuple[int, int], tuple[int, int]],
    environments: Sequence[Mapping[str, int]],
) -> Numbered:
    """Number ranks.

    Args:
        ranks: The ranks, trace by trace.
        labels: What the traces are called.
        by_nccl: Rank and number of ranks by trace and process.
        environments: What the launcher said in each trace.
    """
    said = [by_nccl.get((rank.trace, rank.process_id)) for rank in ranks]
    if all(said) and _distinct(found := [one[0] for one in said if one]):
        return Numbered(found, "NCCL", max(one[1] for one in said if one))
    # A single trace is no less known under another name.
    if len(labels) > 1 and _distinct([rank.trace for rank in ranks]):
        environment = [environments[rank.trace] for rank in ranks]
        told = [next((of[name] for name in _RANK if name in of), None) for of in environment]
        if _distinct(found := [number for number in told if number is not None], len(ranks)):
            worlds = {of[name] for of in environment for name in _WORLD if name in of}
            return Numbered(found, "the launcher", max(*worlds, max(found) + 1) if worlds else None)
        if _distinct(found := [number for rank in ranks for number in _in_name(labels[rank.trace])], len(ranks)):
            return Numbered(found, "the files' names")
    by_gpu = _distinct([(rank.trace, rank.gpu_id) for rank in ranks])  # which launchers number as they do ranks
    order = sorted(
        (rank.trace, rank.gpu_id if by_gpu else 0, rank.process_id, rank.device_id, at) for at, rank in enumerate(ranks)
    )
    places = {at: place for place, (*_, at) in enumerate(order)}
    return Numbered([places[at] for at in range(len(ranks))], "order")


def _in_name(label: str) -> list[int]:
    """The number behind the last word for a rank in a file's name."""
    return [int(number) for number in _NAMED.findall(label)[-1:]]


def _distinct(values: Sequence[object], count: int | None = None) -> bool:
    return len(set(values)) == len(values) == (len(values) if count is None else count)
