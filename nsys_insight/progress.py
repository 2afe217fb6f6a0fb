"""The tasks that are running, so that a waiting user can see them; `cli.progress_line` shows them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(eq=False)
class Task:
    """A task that may take long. `text` names it, such as ``finding idle time``; `percent` is the completed share."""

    text: str
    percent: float | None = None


# From the outermost to the innermost task; the innermost is shown.
tasks: list[Task] = []
# Called when the last task ends. A module that shows tasks registers here a function that clears the screen.
on_idle: list[Callable[[], None]] = []


@contextmanager
def show_task(text: str) -> Iterator[Task]:
    """Show a task while the block runs. Erase the progress line before printing in the block (`cli.progress_line`)."""
    task = Task(text)
    tasks.append(task)
    try:
        yield task
    finally:
        tasks.remove(task)
        if not tasks:
            for call in on_idle:
                call()
