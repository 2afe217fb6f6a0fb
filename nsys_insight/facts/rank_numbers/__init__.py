"""The rank of each process: from NCCL, MPI, the launcher or the names of the files, or else numbered in order.

The ranks of each trace are read here, before any are compared across traces.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.ranks.rank import Rank, build_ranks
from nsys_insight.ingest.catalogs import use_catalog
from nsys_insight.sql.rows import fetch_rows, insert_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nsys_insight.facts.context import Context

_RANK_IN_NAME = re.compile(r"(?:rank|proc|pe)[-_.]?(\d{1,6})", re.IGNORECASE)
_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
# More than the largest machines have GPUs.
_MAX_RANKS = 1 << 17
_WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE")


class RankNumbering(NamedTuple):
    """The numbers of the ranks, and where they come from.

    Args:
        numbers: The number of each rank.
        source: NCCL, MPI, the launcher, the files' names, or order.
        world_size: The number of ranks in the run; None if it is unknown.
        ranks_without_nccl: The numbers of ranks that ran no NCCL kernels, by trace.
        duplicate: A number that several traces claim, with the labels of these. Then all ranks are numbered in order.
    """

    numbers: list[int]
    source: str
    world_size: int | None = None
    ranks_without_nccl: Mapping[int, int] = MappingProxyType({})
    duplicate: tuple[int, list[str]] | None = None

    @property
    def missing(self) -> list[int]:
        """Return the ranks without a trace, as far as is known. If the world size is unknown, only lower numbers.

        A trace may state any number of ranks. If it is more than a run can have, nothing is known.
        """
        present = {*self.numbers, *self.ranks_without_nccl.values()}
        world_size = self.world_size if self.world_size is not None else max(present, default=-1) + 1
        is_known = self.source != "order" and world_size <= _MAX_RANKS
        return [number for number in range(world_size) if number not in present] if is_known else []


class RanksOfTraces(NamedTuple):
    """The ranks of all traces.

    Args:
        ranks: The ranks.
        trace_starts: When each trace began by its host's clock; None if it is unknown.
        numbering: The numbers of the ranks.
        copies: Labels of traces that are copies, each with the label of the original.
    """

    ranks: list[Rank]
    trace_starts: list[int | None]
    numbering: RankNumbering
    copies: list[tuple[str, str]]


def fill(context: Context) -> None:
    """Fill `facts.rank_numbers`."""
    ranks, _, numbering, _ = read_ranks(context)
    labels = context.labels
    rows: list[dict[str, Any]] = [
        {"trace": labels[rank.trace], "process_id": rank.process_id, "device_id": rank.device_id, "rank": number}
        for rank, number in zip(ranks, numbering.numbers, strict=True)
    ]
    rows += [
        {"trace": labels[trace], "process_id": None, "device_id": None, "rank": number}
        for trace, number in numbering.ranks_without_nccl.items()
    ]
    insert_rows(context.connection, "facts.rank_numbers", [{**row, "source": numbering.source} for row in rows])


def read_ranks(context: Context) -> RanksOfTraces:
    """Read the ranks of all traces, except traces that are copies of another one."""
    connection, labels = context.connection, context.labels
    statements = context.statements("rank_numbers", "kernels", "began", "numbers", "environment")
    ranks: list[Rank] = []
    trace_starts: list[int | None] = []
    by_library: dict[tuple[int, int], tuple[int, int, str]] = {}
    environments = []
    for trace, catalog in enumerate(context.catalogs):
        with use_catalog(connection, catalog):
            ranks += build_ranks(trace, fetch_rows(connection, statements["kernels"]))
            trace_starts.append(connection.execute(statements["began"]).fetchall()[0][0])
            for row in fetch_rows(connection, statements["numbers"]):
                by_library[trace, row.process_id] = row.rank, row.ranks, row.source
            environments.append(dict(connection.execute(statements["environment"]).fetchall()))
    originals = _find_copies(ranks)
    ranks = [rank for rank in ranks if rank.trace not in originals]
    copies = [(labels[copy], labels[original]) for copy, original in originals.items()]
    numbering = number_ranks(ranks, labels, by_library, environments, set(originals))
    return RanksOfTraces(ranks, trace_starts, numbering, copies)


def _find_copies(ranks: Sequence[Rank]) -> dict[int, int]:
    """Return the traces that are copies, each with its original.

    A copy has a rank whose collectives have, to the nanosecond, the times of a rank of an earlier trace.
    """
    first_ranks: dict[tuple[bytes, bytes], Rank] = {}
    originals: dict[int, int] = {}
    for rank in ranks:
        earlier_trace = first_ranks.setdefault(rank.kernel_times, rank).trace
        if earlier_trace != rank.trace:
            originals[rank.trace] = min(originals.get(rank.trace, earlier_trace), earlier_trace)
    return originals


def number_ranks(
    ranks: Sequence[Rank],
    labels: Sequence[str],
    by_library: Mapping[tuple[int, int], tuple[int, int, str]],
    environments: Sequence[Mapping[str, int]],
    ignored_traces: AbstractSet[int] = frozenset(),
) -> RankNumbering:
    """Assign a number to each rank.

    Args:
        ranks: The ranks, trace by trace.
        labels: The labels of the traces.
        by_library: Rank, number of ranks, and the library that states them, by trace and process.
        environments: The launcher's environment variables in each trace.
        ignored_traces: Traces that do not count.
    """
    traces = [trace for trace in range(len(labels)) if trace not in ignored_traces]
    with_ranks = {rank.trace for rank in ranks}
    by_launcher = {trace: number for trace in traces for number in _launcher_rank(environments[trace])}
    by_file_name = {trace: number for trace in traces for number in _rank_in_name(labels[trace])}

    def number_traces_without_nccl(by_trace: Mapping[int, int], used_numbers: Sequence[int]) -> dict[int, int]:
        other_traces = {trace: number for trace, number in by_trace.items() if trace not in with_ranks}
        return other_traces if _is_distinct([*used_numbers, *other_traces.values()]) else {}

    # A number for a trace identifies a rank only if each trace has one rank. The name of a single trace does not count.
    has_single_ranks = len(labels) > 1 and _is_distinct([rank.trace for rank in ranks])
    sources = (("the launcher", by_launcher), ("the files' names", by_file_name)) if has_single_ranks else ()
    stated_ranks = [by_library.get((rank.trace, rank.process_id)) for rank in ranks]
    if ranks and all(stated_ranks) and _is_distinct(numbers := [entry[0] for entry in stated_ranks if entry]):
        without_nccl = (number_traces_without_nccl(by_trace, numbers) for _, by_trace in sources)
        world_size = max(entry[1] for entry in stated_ranks if entry)
        source = min(entry[2] for entry in stated_ranks if entry)
        return RankNumbering(numbers, source, world_size, next(filter(None, without_nccl), {}))
    for source, by_trace in sources:
        if by_trace.keys() >= with_ranks and (ranks or by_trace.keys() == set(traces)):
            numbers = [by_trace[rank.trace] for rank in ranks]
            if _is_distinct([*numbers, *(by_trace[trace] for trace in by_trace.keys() - with_ranks)]):
                is_launcher = source == "the launcher"
                known_size = _world_size(environments, [*by_trace.values()]) if is_launcher else None
                return RankNumbering(numbers, source, known_size, number_traces_without_nccl(by_trace, numbers))
    # Launchers number ranks in the order of their GPUs.
    has_own_gpus = _is_distinct([(rank.trace, rank.gpu_id) for rank in ranks])
    order = sorted(
        (rank.trace, rank.gpu_id if has_own_gpus else 0, rank.process_id, rank.device_id, index)
        for index, rank in enumerate(ranks)
    )
    number_by_index = {index: number for number, (*_, index) in enumerate(order)}
    duplicates = (_find_duplicate(by_trace, labels) for _, by_trace in sources)
    duplicate = next(filter(None, duplicates), None)
    return RankNumbering([number_by_index[index] for index in range(len(ranks))], "order", duplicate=duplicate)


def _launcher_rank(environment: Mapping[str, int]) -> list[int]:
    """Return the rank that the launcher set, if it did."""
    return [environment[name] for name in _RANK_VARIABLES if name in environment][:1]


def _world_size(environments: Sequence[Mapping[str, int]], numbers: Sequence[int]) -> int | None:
    """Return the number of ranks that the launcher set; None if it did not."""
    sizes = {environment[name] for environment in environments for name in _WORLD_SIZE_VARIABLES if name in environment}
    return max(*sizes, max(numbers) + 1) if sizes else None


def _rank_in_name(label: str) -> list[int]:
    """Return the number after the last word for a rank in a file's name, if there is one."""
    return [int(number) for number in _RANK_IN_NAME.findall(label)[-1:]]


def _find_duplicate(by_trace: Mapping[int, int], labels: Sequence[str]) -> tuple[int, list[str]] | None:
    """Return the lowest rank that several traces claim, and the labels of these."""
    for number in sorted(set(by_trace.values())):
        traces = [labels[trace] for trace, rank in by_trace.items() if rank == number]
        if len(traces) > 1:
            return number, traces
    return None


def _is_distinct(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)
