"""Ending the process on Ctrl-C or SIGTERM, also while a query runs that cannot be interrupted.

DuckDB notices an interrupt only between rows, and Python runs signal handlers only when the main thread returns from C.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight.ingest.waiting import GRACE_S, heard, left_running

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_codes: dict[int, int] = {}
# The exit codes of the signals that came. DuckDB may turn a handler's exception into its own "Query interrupted".
_received: list[int] = []


def code_of_the_signal(default: int) -> int:
    """Return the exit code of the signal that came last, or the default where none came."""
    return _received[-1] if _received else default


def on(number: int, handler: Callable[[int, FrameType | None], object], code: int) -> None:
    """Handle a signal; where its handler does not get to run for a while, end with the exit code."""

    def handle(number: int, frame: FrameType | None) -> None:
        heard.set()
        _received.append(code)
        handler(number, frame)

    if not _codes:
        wakeup, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=[wakeup], daemon=True).start()
    _codes[number] = code
    signal.signal(number, handle)


def end_what_runs(code: object) -> None:
    """End the process now where work was left running, which the interpreter would wait for."""
    if left_running:
        _end(code if isinstance(code, int) else 1)


def _watch(wakeup: int) -> None:
    """Wait for signals, which are written down at once, and for their handlers."""
    while number := os.read(wakeup, 1):
        if number[0] in _codes and not heard.wait(GRACE_S):
            print("interrupted", file=sys.stderr)
            _end(_codes[number[0]])
        heard.clear()


def _end(code: int) -> None:
    """End the process without waiting for its threads; temporary files are removed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    clean = threading.Thread(target=atexit._run_exitfuncs, daemon=True)  # noqa: SLF001 - there is no other way to ask for it
    clean.start()
    clean.join(1.0)
    os._exit(code)
