"""Wait for databases that work in other threads, so that Ctrl-C takes effect at once.

Ctrl-C during `execute` on the main thread leaves a connection that hangs on the next query (DuckDB 1.5.5).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection
    from concurrent.futures import Future

_POLL_S = 0.1
# How long work may take to stop. DuckDB checks for an interrupt between tasks, and a task may be of any length.
GRACE_S = 5.0
# Set by the handlers of signals. If the program does not react for a while, `cli.ending` ends the process.
signal_received = threading.Event()


class Interruptible(Protocol):
    """An object that can be interrupted, such as a connection."""

    def interrupt(self) -> None:
        """Stop the running query."""


# The work that did not stop within `GRACE_S`. Only the end of the process ends it.
left_running: list[Future[Any]] = []


def wait_for(
    work: Collection[Future[Any]], connections: Collection[Interruptible], seconds: float | None = None
) -> None:
    """Wait until all the work is done. If a signal or the timeout ends the wait, interrupt the work first.

    Work that does not stop within `GRACE_S` is left running.

    Raises:
        TimeoutError: The seconds are over.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    from concurrent.futures import wait

    deadline_s = None if seconds is None else time.monotonic() + seconds
    try:
        # Wake up regularly: another thread may have received a signal, and this one handles it.
        while wait(work, _POLL_S).not_done:
            if deadline_s is not None and time.monotonic() > deadline_s:
                raise TimeoutError  # noqa: TRY301 - it stops the work like a signal
    except BaseException:
        for future in work:
            future.cancel()
        grace_end_s = time.monotonic() + GRACE_S
        # Repeat the interrupt: between two statements there is nothing to interrupt.
        while True:
            for connection in list(connections):
                with suppress(Exception):  # it may be closed by now
                    connection.interrupt()
            running = wait(work, _POLL_S / 10).not_done
            if running and time.monotonic() > grace_end_s:
                left_running.extend(running)
            if not running or left_running:
                raise
