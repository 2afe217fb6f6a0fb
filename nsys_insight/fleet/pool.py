"""Where tasks run: in this process, one after the other, or on the workers of a Dask cluster."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import ToolError
from nsys_insight.extras import install
from nsys_insight.fleet.task import Outcome, run_task
from nsys_insight.ingest import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.fleet.task import Task

    Outcomes = Iterator[tuple[int, Outcome]]  # of which task, in the order in which they end

_TIMEOUT_S = 30
_TLS_HINT = (
    "name the files that the scheduler has: export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=ca.pem"
    " DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT=cert.pem DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY=key.pem"
)


def has_dask() -> bool:
    """Whether the extra is installed."""
    return find_spec("distributed") is not None


def in_process(tasks: Sequence[Task]) -> Outcomes:
    """Run tasks one after the other in this process."""
    for number, task in enumerate(tasks):
        yield number, run_task(task)


def on_cluster(client: Any, tasks: Sequence[Task]) -> Outcomes:
    """Run tasks on a cluster. If a worker dies, another one repeats its task.

    Dask gives up a task when its worker has died `distributed.scheduler.allowed-failures` times and once more.

    Raises:
        ToolError: The scheduler no longer answers.
    """
    futures = client.map(run_task, tasks, pure=False)
    numbers = {future.key: number for number, future in enumerate(futures)}
    for future in _dask().as_completed(futures):
        if future.status == "finished":
            outcome = future.result()
        elif future.status == "error":
            outcome = Outcome("failed", why=_why(future.exception()))
        else:  # cancelled, as all are at once when the connection is lost
            raise ToolError(
                "the Dask scheduler no longer answers; finished files are kept",
                "when it is there again, the same command goes on with the rest",
            )
        yield numbers[future.key], outcome
        future.release()


def _why(error: BaseException) -> str:
    if isinstance(error, _dask().KilledWorker):
        return "its worker died each time: it may need more memory than a worker may take (--memory)"
    if isinstance(error, ImportError):
        return f"the worker has no nsys-insight, or not all of it: {error}"
    return f"{type(error).__name__}: {error}"


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
    # Errors are reported as one sentence, below.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = dask.Client(scheduler, timeout=_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise ToolError(
            f"no Dask scheduler answers at {scheduler}: {error}", "dask scheduler prints its address when it starts"
        ) from None
    except TypeError:  # which it raises where its configuration names no keys
        raise ToolError(f"there are no keys to talk over TLS with {scheduler}", _TLS_HINT) from None
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
        hint = f"{install('fleet')}; or use one worker: --workers 1"
        raise ToolError("several workers need Dask, which is not installed", hint)
    return import_module("distributed")
