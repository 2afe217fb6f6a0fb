"""End the process on Ctrl-C or SIGTERM, even while a query runs that cannot be interrupted.

DuckDB checks for an interrupt only between rows. Python runs signal handlers only when the main thread returns from C.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight.ingest.waiting import GRACE_S, left_running, signal_received

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_exit_codes: dict[int, int] = {}
# Exit codes of the received signals. DuckDB may replace a handler's exception by its own "Query interrupted".
_received_codes: list[int] = []


def get_signal_exit_code(default: int) -> int:
    """Return the exit code of the last received signal, or the default if there was no signal."""
    return _received_codes[-1] if _received_codes else default


def handle_signal(number: int, handler: Callable[[int, FrameType | None], object], code: int) -> None:
    """Install a signal handler. If Python cannot run it within `GRACE_S`, the process ends with the exit code."""

    def handle(number: int, frame: FrameType | None) -> None:
        signal_received.set()
        _received_codes.append(code)
        handler(number, frame)

    if not _exit_codes:
        read_fd, write_fd = os.pipe()
        os.set_blocking(write_fd, False)
        signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        threading.Thread(target=_watch_signals, args=[read_fd], daemon=True).start()
    _exit_codes[number] = code
    signal.signal(number, handle)


def exit_if_work_remains(code: object) -> None:
    """End the process at once if work is still running: the interpreter would wait for it."""
    if left_running:
        _exit_now(code if isinstance(code, int) else 1)


def _watch_signals(read_fd: int) -> None:
    """Read signal numbers from the wake-up pipe, and end the process if a handler does not run in time."""
    while number := os.read(read_fd, 1):
        if number[0] in _exit_codes and not signal_received.wait(GRACE_S):
            print("interrupted", file=sys.stderr)
            _exit_now(_exit_codes[number[0]])
        signal_received.clear()


def _exit_now(code: int) -> None:
    """End the process without waiting for its threads. Exit functions still run: they remove temporary files."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    cleanup = threading.Thread(target=atexit._run_exitfuncs, daemon=True)  # noqa: SLF001 - no public way to call it
    cleanup.start()
    cleanup.join(1.0)
    os._exit(code)
