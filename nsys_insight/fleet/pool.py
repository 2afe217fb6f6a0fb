"""Task execution: in this process, one task at a time, or on the workers of a Dask cluster."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nsys_insight import cache_folder
from nsys_insight.errors import ToolError
from nsys_insight.extras import write_install_command
from nsys_insight.fleet.task import Outcome, Task, run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Outcomes = Iterator[tuple[int, Outcome]]  # task number and outcome, in the order in which the tasks end

_TIMEOUT_S = 30
_TLS_HINT = (
    "name the files that the scheduler has: export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=ca.pem"
    " DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT=cert.pem DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY=key.pem"
)


def has_dask() -> bool:
    """Return whether the extra is installed."""
    return find_spec("distributed") is not None


def run_in_process(tasks: Sequence[Task]) -> Outcomes:
    """Run tasks one at a time in this process."""
    for number, task in enumerate(tasks):
        yield number, run_task(task)


def run_on_cluster(client: Any, tasks: Sequence[Task]) -> Outcomes:
    """Run tasks on a cluster. If a worker dies, another one repeats its task.

    Dask tolerates `distributed.scheduler.allowed-failures` deaths of a task's worker, and then gives up the task.

    Raises:
        ToolError: The scheduler no longer answers.
    """
    futures = client.map(run_task, tasks, pure=False)
    numbers = {future.key: number for number, future in enumerate(futures)}
    for future in _import_dask().as_completed(futures):
        if future.status == "finished":
            outcome = future.result()
        elif future.status == "error":
            outcome = Outcome("failed", reason=_describe_error(future.exception()))
        else:  # cancelled: a lost connection cancels all futures at once
            raise ToolError(
                "the Dask scheduler no longer answers; finished files are kept",
                "when it is there again, the same command goes on with the rest",
            )
        yield numbers[future.key], outcome
        future.release()


def _describe_error(error: BaseException) -> str:
    if isinstance(error, _import_dask().KilledWorker):
        return "its worker died each time: it may need more memory than a worker may take (--memory)"
    if isinstance(error, ImportError):
        return f"the worker has no nsys-insight, or not all of it: {error}"
    return f"{type(error).__name__}: {error}"


@contextmanager
def start_local_cluster(workers: int, memory_bytes: int) -> Iterator[Any]:
    """Start a cluster of worker processes on this machine, and yield a client of it.

    Dask kills a process that exceeds its memory limit, and starts another one. The processes communicate over TLS with
    keys made for this cluster: a worker runs any code that it receives, and every user of this machine can reach its
    port.

    Raises:
        ToolError: Dask is not installed.
    """
    dask = _import_dask()
    # No status pages of the cluster: any user of the machine could read them.
    disabled_routes: dict[str, list[str]] = {f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker")}
    cache_folder.claim_temporary_tree("dask-scratch-space")
    with (
        import_module("dask").config.set(disabled_routes),
        dask.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=memory_bytes, host="127.0.0.1",
            security=True, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
            local_directory=str(cache_folder.temporary_folder()),
        ) as cluster,
        dask.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@contextmanager
def connect_cluster(scheduler: str, note: Callable[[str], None]) -> Iterator[Any]:
    """Connect to a running cluster, and yield a client of it.

    Raises:
        ToolError: Dask is not installed, or no scheduler answers.
    """
    dask = _import_dask()
    # Errors are reported as one sentence, below.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = dask.Client(scheduler, timeout=_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise ToolError(
            f"no Dask scheduler answers at {scheduler}: {error}", "dask scheduler prints its address when it starts"
        ) from None
    except TypeError:  # Dask raises it if its configuration has no keys
        raise ToolError(f"there are no keys to talk over TLS with {scheduler}", _TLS_HINT) from None
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            note(f"the scheduler at {scheduler} has no workers yet: waiting for the first one")
        yield client


def _import_dask() -> Any:
    """Import Dask's package for clusters."""
    if not has_dask():
        hint = f"{write_install_command('fleet')}; or use one worker: --workers 1"
        raise ToolError("several workers need Dask, which is not installed", hint)
    return import_module("distributed")
