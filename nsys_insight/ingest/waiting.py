"""Wait for databases that work in other threads, so that Ctrl-C takes effect at once.

Ctrl-C during `execute` on the main thread leaves a connection that hangs on the next query (DuckDB 1.5.5).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Future
    from pathlib import Path

T = TypeVar("T")

_POLL_S = 0.1
# How long work may take to stop. DuckDB checks for an interrupt between tasks, and a task may be of any length.
GRACE_S = 5.0
# Set by the handlers of signals. If the program does not react for a while, `cli.ending` ends the process.
signal_received = threading.Event()


# Set when the work of this context has to stop, by `StopSignal`.
_stop: ContextVar[threading.Event | None] = ContextVar("_stop", default=None)
_COPY_BYTES = 1 << 24


class StoppedError(Exception):
    """The work has to stop."""


class StopSignal:
    """Tells work in Python to stop: copies of files, and queries of SQLite."""

    def __init__(self) -> None:
        """Start without a signal."""
        self._event = threading.Event()

    def run(self, work: Callable[[], T]) -> T:
        """Run work that checks for this signal (`is_stopped`)."""
        _stop.set(self._event)
        return work()

    def interrupt(self) -> None:
        """Give the signal."""
        self._event.set()


def is_stopped() -> bool:
    """Return whether the work of this context has to stop."""
    event = _stop.get()
    return event is not None and event.is_set()


def copy_file(source: str | Path, target: str | Path) -> None:
    """Copy the content of a file, unless the work of this context has to stop.

    Raises:
        OSError: A file cannot be read or written.
        StoppedError: The work has to stop.
    """
    with open(source, "rb") as reader, open(target, "wb") as writer:  # noqa: PTH123 - also text
        while block := reader.read(_COPY_BYTES):
            writer.write(block)
            if is_stopped():
                raise StoppedError


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
        StoppedError: The work of this context has to stop.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    from concurrent.futures import wait

    deadline_s = None if seconds is None else time.monotonic() + seconds
    try:
        # Wake up regularly: another thread may have received a signal, and this one handles it.
        while wait(work, _POLL_S).not_done:
            if deadline_s is not None and time.monotonic() > deadline_s:
                raise TimeoutError  # noqa: TRY301 - it stops the work like a signal
            if is_stopped():
                raise StoppedError  # noqa: TRY301 - the same
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
