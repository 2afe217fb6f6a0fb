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

    from rich.progress import Progress

# Commands that take less time show no progress.
_DELAY_S = 1.0
_TICK_S = 0.1
# Cells of the line without the text of the task: bar, percentage, elapsed and remaining time.
_BAR_CELLS, _OTHER_CELLS = 20, 48


class ProgressLine:
    """Shows the innermost of `progress.tasks`, and the bar of the innermost one whose completed share is known.

    A background thread draws the line with rich. The line is erased when the last task ends and before a note is
    printed. Other code prints between tasks, so it needs no knowledge of the line.
    """

    def __init__(self) -> None:
        """Show nothing until `begin` is called."""
        self._lock = threading.RLock()
        self._bar: Progress | None = None
        self._measured_task: progress.Task | None = None
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
            if self._bar:
                self._bar.stop()
                self._bar = self._measured_task = None

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
                    self._draw(self._started_s)

    def _draw(self, started_s: float) -> None:
        tasks = list(progress.tasks)
        if not tasks:
            return
        from nsys_insight.text.cells import printable, start_of

        bar = self._bar or _make_bar()
        measured_task = next((task for task in reversed(tasks) if task.percent is not None), None)
        if self._bar is None:
            bar.add_task("", total=None, elapsed="")
        (task_id,) = bar.task_ids
        if measured_task is not self._measured_task:
            self._measured_task = measured_task
            bar.reset(task_id, total=100 if measured_task else None)
        bar.update(
            task_id,
            description=start_of(printable(tasks[-1].text), max(bar.console.width - _OTHER_CELLS, 16)),
            completed=min(measured_task.percent or 0, 100) if measured_task else None,
            elapsed=f"{time.monotonic() - started_s:.0f} s",
        )
        if self._bar is None:
            self._bar = bar
            bar.start()
            bar.console.show_cursor(show=True)  # a killed process would leave it hidden
        bar.refresh()


def _make_bar() -> Progress:
    """Make a bar that only this module draws, and that leaves stdout alone."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(_BAR_CELLS),
        TaskProgressColumn(),
        TextColumn("{task.fields[elapsed]}, left:", markup=False),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


progress_line = ProgressLine()
