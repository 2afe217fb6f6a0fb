"""Waiting for what databases do in other threads, so that Ctrl-C is answered at once.

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

_AWAKE_S = 0.1
# How long work may take to stop. DuckDB looks for an interrupt between pieces of work, and one may be of any length.
GRACE_S = 5.0
# Set by whatever handles a signal: where nothing does for a while, `cli.ending` ends the process.
heard = threading.Event()


class Interruptible(Protocol):
    """What may be told to stop, such as a connection."""

    def interrupt(self) -> None:
        """Stop what is under way."""


# The work that went on when the time to stop was over. Only the end of the process ends it.
left_running: list[Future[Any]] = []


def wait_for(
    work: Collection[Future[Any]], connections: Collection[Interruptible], seconds: float | None = None
) -> None:
    """Wait until all the work is done, which uses the connections; what ends the wait stops the work first.

    Work that does not stop in `GRACE_S` is left running.

    Raises:
        TimeoutError: The seconds are over.
        KeyboardInterrupt: Ctrl-C was typed.
    """
    from concurrent.futures import wait

    end = None if seconds is None else time.monotonic() + seconds
    try:
        # Awake now and then: a signal may have reached another thread, and is handled in this one.
        while wait(work, _AWAKE_S).not_done:
            if end is not None and time.monotonic() > end:
                raise TimeoutError  # noqa: TRY301 - it stops the work as a signal does
    except BaseException:
        for one in work:
            one.cancel()
        patience = time.monotonic() + GRACE_S
        # Again and again: between two statements there is nothing to interrupt.
        while True:
            for connection in list(connections):
                with suppress(Exception):  # it may be closed by now
                    connection.interrupt()
            running = wait(work, _AWAKE_S / 10).not_done
            if running and time.monotonic() > patience:
                left_running.extend(running)
            if not running or left_running:
                raise
