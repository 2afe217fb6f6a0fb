"""The progress line on stderr: in a terminal, it shows the current task of a command that runs longer than a second."""

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

# Commands that take less time show no progress.
_DELAY_S = 1.0
_TICK_S = 0.1
_ERASE = "\r\x1b[K"


class ProgressLine:
    """Shows the innermost of `progress.tasks`. A background thread draws the line.

    The line is erased when the last task ends and before a note is printed. Other code prints between tasks, so it
    needs no knowledge of the line.
    """

    def __init__(self) -> None:
        """Show nothing until `begin` is called."""
        self._lock = threading.RLock()
        self._shown_text = ""
        self._started_s: float | None = None
        self._stop_event = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the clock: a command or an entry of the shell begins now."""
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            return
        self._started_s = time.monotonic()
        if self._thread is None:
            progress.on_idle.append(self.erase)
            self._thread = threading.Thread(target=self._redraw_until_stopped, daemon=True)
            self._thread.start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Show nothing while an answer is written to stdout: a pager may use the same screen."""
        with self._lock:
            self.erase()
            self._started_s = None
        yield
        self.begin()

    def end(self) -> None:
        """Stop the thread and erase the line: the thread must not write while the interpreter closes stderr."""
        self._stop_event.set()
        if self._thread is not None:
            self._thread.join()
            progress.on_idle.remove(self.erase)
            self._thread = None
        self.erase()

    def erase(self) -> None:
        """Erase the line. It is drawn again if a task is still running."""
        with self._lock:
            if self._shown_text:
                self._write(_ERASE)
                self._shown_text = ""

    @contextmanager
    def hide(self) -> Iterator[None]:
        """Erase the line, and do not draw it while the block prints."""
        with self._lock:
            self.erase()
            yield

    def _redraw_until_stopped(self) -> None:
        while not self._stop_event.wait(_TICK_S):
            with self._lock:
                if self._started_s is not None and time.monotonic() - self._started_s > _DELAY_S:
                    self._draw()

    def _draw(self) -> None:
        task = progress.tasks[-1:]
        text = str(task[0]) if task else ""
        if not text or text == self._shown_text:
            return
        from nsys_insight.text.cells import printable, start_of

        # A line that wraps cannot be erased. Some terminals report a width of 0.
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        self._write(_ERASE + start_of(printable(text), columns - 1))
        self._shown_text = text

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


progress_line = ProgressLine()
