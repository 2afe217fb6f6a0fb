"""What the program is at, for whoever shows it to a user who waits; `cli.progress_line` does."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(eq=False)
class Task:
    """Something that may take long: `text` says what, such as ``finding idle time``; `percent` is how much is done."""

    text: str
    percent: float | None = None

    def __str__(self) -> str:
        """Say what it is, and how far it is where that is known."""
        return self.text if self.percent is None else f"{self.text} {min(self.percent, 100):.0f} %"


# From the outermost to the innermost, which is the one to show.
tasks: list[Task] = []
# Called when nothing is under way any more; who shows tasks puts here what takes them off the screen.
on_idle: list[Callable[[], None]] = []


@contextmanager
def at(text: str) -> Iterator[Task]:
    """Say what the block is at. Nothing is printed within it, but by who erases the line that shows this."""
    task = Task(text)
    tasks.append(task)
    try:
        yield task
    finally:
        tasks.remove(task)
        if not tasks:
            for call in on_idle:
                call()
