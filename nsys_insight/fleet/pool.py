"""Who works the files of a fleet out: this process, one after the other, or the workers of a Dask cluster."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import ToolError
from nsys_insight.fleet.work import Outcome, work_out
from nsys_insight.ingest import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.fleet.work import Task

    Outcomes = Iterator[tuple[int, Outcome]]  # of which task, in the order in which they end

INSTALL = "pip install 'nsys-insight[fleet]'"
_ANSWERS_S = 30


def has_dask() -> bool:
    """Whether the extra is installed."""
    return find_spec("distributed") is not None


def here(tasks: Sequence[Task]) -> Outcomes:
    """Work files out one after the other, in this process."""
    for number, task in enumerate(tasks):
        yield number, work_out(task)


def by_dask(client: Any, tasks: Sequence[Task]) -> Outcomes:
    """Work files out on the cluster of a client. What a worker was at when it died, another one does.

    Dask gives a task up when its worker has died `distributed.scheduler.allowed-failures` times and once more.
    """
    futures = client.map(work_out, tasks, pure=False)
    numbers = {future.key: number for number, future in enumerate(futures)}
    for future in _dask().as_completed(futures):
        if future.status == "finished":
            outcome = future.result()
        else:
            error = future.exception()
            died = "its worker died each time: it may need more memory than a worker may take (--memory)"
            outcome = Outcome(
                "failed", why=died if isinstance(error, _dask().KilledWorker) else f"{type(error).__name__}: {error}"
            )
        yield numbers[future.key], outcome
        future.release()


@contextmanager
def local(workers: int, memory_bytes: int) -> Iterator[Any]:
    """Start a cluster of so many processes on this machine, and give a client of it.

    A process that takes more memory than it may is killed by Dask, and another one starts. They talk over TLS with keys
    made for this cluster: what a worker is told, it does, and a port of this machine is open to all of its users.

    Raises:
        ToolError: Dask is not installed.
    """
    dask = _dask()
    # No pages about the cluster, which any user of the machine could read.
    quiet: dict[str, list[str]] = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
    with (
        import_module("dask").config.set(quiet),
        dask.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=memory_bytes, host="127.0.0.1",
            security=True, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
            local_directory=str(cache_folder.temporary()),
        ) as cluster,
        dask.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@contextmanager
def connected(scheduler: str, note: Callable[[str], None]) -> Iterator[Any]:
    """Give a client of a cluster that somebody else started.

    Raises:
        ToolError: Dask is not installed, or nobody answers there.
    """
    dask = _dask()
    try:
        client = dask.Client(scheduler, timeout=_ANSWERS_S)
    except (OSError, ValueError) as error:
        raise ToolError(
            f"no scheduler of Dask answers at {scheduler}: {error}", "dask scheduler prints its address when it starts"
        ) from None
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            note(f"the scheduler at {scheduler} has no workers yet: waiting for the first one")
        yield client


def _dask() -> Any:
    """Import Dask's part for clusters.

    Raises:
        ToolError: It is not installed.
    """
    if not has_dask():
        hint = f"{INSTALL}; or leave it to one: --workers 1"
        raise ToolError("several workers need Dask, which is not installed", hint)
    return import_module("distributed")
