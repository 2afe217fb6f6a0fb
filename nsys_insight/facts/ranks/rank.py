"""A rank: a process on a GPU, with the kernels of NCCL that it ran; and on which host it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.ingest import several
from nsys_insight.sql.rows import named_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from nsys_insight.facts.context import Context

    Ints = np.ndarray[Any, np.dtype[np.int64]]

# Collectives that everybody leaves together: nobody has the result before all have sent their part.
TOGETHER = frozenset({"AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "AllToAll"})
# What two ranks do, or some: the others do not take part, so nobody can be matched by order.
NOT_OF_ALL = frozenset({"SendRecv", "Send", "Recv"})


@dataclass(frozen=True)
class Rank:
    """The kernels of NCCL of a process on a GPU, in order of start; times are in ns of the trace.

    `trace` is the number of the trace. `group` says which kernels belong to a communicator, as far as is known: its
    id, or the number of the stream among those that ran collectives. `size` is -1 where it is not known.
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
    def moments(self) -> tuple[bytes, bytes]:
        """When its kernels ran, to the ns: of two ranks that have the same, one was captured once and is here twice."""
        return self.start.tobytes(), self.end.tobytes()

    def of_group(self, group: str) -> Ints:
        """Which of the kernels are collectives of a communicator."""
        import numpy as np

        chosen = [
            at for at, (one, what) in enumerate(zip(self.group, self.operation, strict=True))
            if one == group and what not in NOT_OF_ALL
        ]  # fmt: skip
        return np.array(chosen, dtype=np.int64)


def of_rows(trace: int, rows: list[Any]) -> list[Rank]:
    """Make the ranks of a trace of rows of `facts.nccl_kernels`."""
    import numpy as np

    of: dict[tuple[int, int, int], list[Any]] = {}
    for row in rows:
        of.setdefault((row.process_id, row.device_id, row.gpu_id), []).append(row)
    found = []
    for (process, device, gpu), kernels in sorted(of.items()):
        kernels.sort(key=lambda row: (row.start_ns, row.end_ns))
        groups = _groups(kernels)
        found.append(
            Rank(
                trace, process, device, gpu,
                [kernel.operation or "" for kernel in kernels],
                [kernel.communicator or groups[kernel.stream_id] for kernel in kernels],
                np.array([-1 if kernel.bytes is None else kernel.bytes for kernel in kernels], dtype=np.int64),
                np.array([kernel.start_ns for kernel in kernels], dtype=np.int64),
                np.array([kernel.end_ns for kernel in kernels], dtype=np.int64),
            )
        )  # fmt: skip
    return found


def _groups(kernels: list[Any]) -> dict[int, str]:
    """Name the communicator of a stream whose kernels do not all say it: the only one that is known, or its number."""
    said: dict[int, set[str]] = {}
    for kernel in kernels:
        if (kernel.operation or "") not in NOT_OF_ALL:
            said.setdefault(kernel.stream_id, set()).update({kernel.communicator} - {None})
    unknown = [stream for stream, found in said.items() if not found]
    numbers = {stream: f"stream {number}" for number, stream in enumerate(unknown)}
    return {
        kernel.stream_id: next(iter(found))
        if len(found := said.get(kernel.stream_id, set())) == 1
        else numbers.get(kernel.stream_id, "")
        for kernel in kernels
    }


class Place(NamedTuple):
    """The number of a rank's host and the name of its GPU; None where the trace does not say."""

    host: int | None
    gpu: str | None


def places(context: Context, ranks: Sequence[Rank]) -> list[Place]:
    """Tell where each rank is: ranks whose traces list a GPU in common are on one host."""
    (statement,) = context.statements("ranks", "gpus").values()
    hosts: list[set[str]] = []
    names: list[dict[int, str]] = []
    for catalog in context.catalogs:
        with several.inside(context.connection, catalog):
            rows = named_rows(context.connection, statement)
        names.append({row.gpu_id: row.name for row in rows})
        hosts.append({row.uuid for row in rows if row.uuid})
    number = _numbered(hosts) if len(hosts) > 1 else [0]
    return [Place(number[one.trace], names[one.trace].get(one.gpu_id)) for one in ranks]


def _numbered(hosts: Sequence[set[str]]) -> list[int | None]:
    """Number the hosts by the GPUs that traces list: sets that have one in common, or are linked by others, are one."""
    apart: list[set[str]] = []
    for gpus in hosts:
        linked = [one for one in apart if one & gpus]
        apart = [one for one in apart if not one & gpus] + ([gpus.union(*linked)] if gpus else [])
    of = {gpu: number for number, gpus in enumerate(apart) for gpu in gpus}
    return [of[min(gpus)] if gpus else None for gpus in hosts]
