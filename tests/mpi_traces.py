"""Synthetic MPI calls, as nsys records them with -t mpi. `times` are the start and the end of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synthetic import Host

WORLD = 1_140_850_688  # MPICH's handle of MPI_COMM_WORLD
Times = tuple[int, int]


def join_mpi(host: Host, rank: int, ranks: int) -> None:
    """Make a process a rank of MPI_COMM_WORLD."""
    host.trace.row("MPI_RANKS", globalTid=host.global_tid, rank=rank)
    host.trace.row(
        "MPI_COMMUNICATORS", rank=rank, timestamp=0, commHandle=WORLD, parentHandle=0, localRank=rank, size=ranks
    )


def collective(
    host: Host, name: str, times: Times, size: int | None = None, *, root: int | None = None, handle: int = WORLD
) -> None:
    host.trace.row(
        "MPI_COLLECTIVES_EVENTS", start=times[0], end=times[1], globalTid=host.global_tid, textId=name,
        rootRank=root, size=size, recvSize=size, commHandle=handle,
    )  # fmt: skip


def message(
    host: Host, name: str, times: Times, *, peer: int, size: int, tag: int = 0, request: int | None = None
) -> None:
    host.trace.row(
        "MPI_P2P_EVENTS", start=times[0], end=times[1], globalTid=host.global_tid, textId=name, commHandle=WORLD,
        tag=tag, remoteRank=peer, size=size, requestHandle=request,
    )  # fmt: skip


def wait(host: Host, name: str, times: Times, *requests: int) -> None:
    """Add a wait for requests: nsys writes a row for each of them."""
    for request in requests:
        host.trace.row(
            "MPI_START_WAIT_EVENTS", start=times[0], end=times[1], globalTid=host.global_tid, textId=name,
            requestHandle=request,
        )  # fmt: skip
