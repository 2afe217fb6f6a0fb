"""A rank: a process on a GPU, with the NCCL kernels that it ran, or the MPI collectives of its host."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.arrays import Ints, np
from nsys_insight.ingest.catalogs import use_catalog
from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import fetch_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.facts.context import Context


# Collectives that all ranks leave together: no rank has the result before every rank has sent its share.
SYNCHRONIZING = frozenset({"AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "AllToAll", "MPI_Barrier"})
# Operations of two or of some ranks. The others do not take part, so ranks cannot be matched by order.
POINT_TO_POINT = frozenset({"SendRecv", "Send", "Recv"})


@dataclass(frozen=True)
class Rank:
    """The NCCL kernels of a process on a GPU, or its MPI collectives, in order of start. Times are in ns of the trace.

    `trace` is the number of the trace. `group` names the communicator of each kernel, if it is known: its id, or
    the number of the stream among those that ran collectives. `size` is -1 where it is unknown.
    """

    trace: int
    process_id: int
    device_id: int
    gpu_id: int
    operation: list[str]
    group: list[str]
    size: Ints
    start: Ints
    end: Ints

    @property
    def kernel_times(self) -> tuple[bytes, bytes]:
        """Return the times of its kernels. Two ranks with equal times, to the ns, are the same capture twice."""
        return self.start.tobytes(), self.end.tobytes()

    def find_collectives(self, group: str) -> Ints:
        """Return the indices of the kernels that are collectives of a communicator."""
        indices = [
            index for index, (name, operation) in enumerate(zip(self.group, self.operation, strict=True))
            if name == group and operation not in POINT_TO_POINT
        ]  # fmt: skip
        return np.array(indices, dtype=np.int64)


@contextmanager
def use_rank(context: Context, rank: Rank, *names: str) -> Iterator[list[str]]:
    """Make the trace of a rank the default in a block. Yield statements of this folder, for its process and GPU."""
    values = {"process": rank.process_id, "gpu": rank.gpu_id}
    statements = [bind(read_query(f"facts/ranks/{name}"), values) for name in names]
    catalog = context.catalogs[rank.trace]
    context.for_trace(catalog).prepare(*statements)
    with use_catalog(context.connection, catalog):
        yield statements


def build_ranks(trace: int, rows: list[Any]) -> list[Rank]:
    """Build the ranks of a trace from rows of `_rank_collectives`."""
    kernels_by_gpu: dict[tuple[int, int, int], list[Any]] = {}
    for row in rows:
        kernels_by_gpu.setdefault((row.process_id, row.device_id, row.gpu_id), []).append(row)
    ranks = []
    for (process, device, gpu), kernels in sorted(kernels_by_gpu.items()):
        kernels.sort(key=lambda row: (row.start_ns, row.end_ns))
        groups = _name_groups(kernels)
        ranks.append(
            Rank(
                trace, process, device, gpu,
                [kernel.operation or "" for kernel in kernels],
                [kernel.communicator or groups[kernel.stream_id] for kernel in kernels],
                np.array([-1 if kernel.bytes is None else kernel.bytes for kernel in kernels], dtype=np.int64),
                np.array([kernel.start_ns for kernel in kernels], dtype=np.int64),
                np.array([kernel.end_ns for kernel in kernels], dtype=np.int64),
            )
        )  # fmt: skip
    return ranks


def _name_groups(kernels: list[Any]) -> dict[int, str]:
    """Name the communicator of each stream, for kernels without one: the stream's only known id, or a number."""
    ids_by_stream: dict[int, set[str]] = {}
    for kernel in kernels:
        if (kernel.operation or "") not in POINT_TO_POINT:
            ids_by_stream.setdefault(kernel.stream_id, set()).update({kernel.communicator} - {None})
    unknown = [stream for stream, ids in ids_by_stream.items() if not ids]
    numbers = {stream: f"stream {number}" for number, stream in enumerate(unknown)}
    return {
        kernel.stream_id: next(iter(ids))
        if len(ids := ids_by_stream.get(kernel.stream_id, set())) == 1
        else numbers.get(kernel.stream_id, "")
        for kernel in kernels
    }


class Location(NamedTuple):
    """The number of a rank's host and the name of its GPU; None where the trace lacks it."""

    host: int | None
    gpu: str | None


def locate_ranks(context: Context, ranks: Sequence[Rank]) -> list[Location]:
    """Return host and GPU of each rank. Ranks whose traces list a common GPU are on one host."""
    (statement,) = context.statements("ranks", "gpus").values()
    gpus_by_trace: list[set[str]] = []
    names_by_trace: list[dict[int, str]] = []
    for catalog in context.catalogs:
        with use_catalog(context.connection, catalog):
            rows = fetch_rows(context.connection, statement)
        names_by_trace.append({row.gpu_id: row.name for row in rows})
        gpus_by_trace.append({row.uuid for row in rows if row.uuid})
    hosts = _number_hosts(gpus_by_trace) if len(gpus_by_trace) > 1 else [0]
    return [Location(hosts[rank.trace], names_by_trace[rank.trace].get(rank.gpu_id)) for rank in ranks]


def _number_hosts(gpus_by_trace: Sequence[set[str]]) -> list[int | None]:
    """Assign a host number to each trace. Traces share a host if their GPU sets overlap, directly or indirectly."""
    hosts: list[set[str]] = []
    for gpus in gpus_by_trace:
        linked = [host for host in hosts if host & gpus]
        hosts = [host for host in hosts if not host & gpus] + ([gpus.union(*linked)] if gpus else [])
    host_of_gpu = {gpu: number for number, gpus in enumerate(hosts) for gpu in gpus}
    return [host_of_gpu[min(gpus)] if gpus else None for gpus in gpus_by_trace]
