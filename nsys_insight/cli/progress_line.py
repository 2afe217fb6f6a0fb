"""The line on stderr that says what a command is at, in a terminal, when it has run for a second."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsys_insight import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

# A shorter command shows nothing.
_DELAY_S = 1.0
_TICK_S = 0.1
_ERASE = "\r\x1b[K"


class ProgressLine:
    """Shows the innermost of `progress.tasks`, by a thread of its own, and leaves no trace.

    The line is erased when nothing is under way any more, and before a note is printed. So nothing else needs to know
    of it: what prints does so between tasks.
    """

    def __init__(self) -> None:
        """Nothing is shown before `begin`."""
        self._lock = threading.RLock()
        self._shown = ""
        self._since: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the clock: a command, or an entry of the shell, begins now."""
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            return
        self._since = time.monotonic()
        if self._thread is None:
            progress.on_idle.append(self.erase)
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Show nothing while an answer is written to stdout, for a pager may show that on the same screen."""
        with self._lock:
            self.erase()
            self._since = None
        yield
        self.begin()

    def end(self) -> None:
        """Show nothing any more; the thread must not write while the interpreter closes stderr."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            progress.on_idle.remove(self.erase)
            self._thread = None
        self.erase()

    def erase(self) -> None:
        """Take the line off the screen; it is drawn again if something is still under way."""
        with self._lock:
            if self._shown:
                self._write(_ERASE)
                self._shown = ""

    @contextmanager
    def erased(self) -> Iterator[None]:
        """Keep the line off the screen while the block prints something."""
        with self._lock:
            self.erase()
            yield

    def _watch(self) -> None:
        while not self._ended.wait(_TICK_S):
            with self._lock:
                if self._since is not None and time.monotonic() - self._since > _DELAY_S:
                    self._draw()

    def _draw(self) -> None:
        task = progress.tasks[-1:]
        text = str(task[0]) if task else ""
        if not text or text == self._shown:
            return
        from nsys_insight.text.cells import printable, start_of

        # A line that wraps could not be erased. Some terminals do not say how wide they are.
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        self._write(_ERASE + start_of(printable(text), columns - 1))
        self._shown = text

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


progress_line = ProgressLine()
