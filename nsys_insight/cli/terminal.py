"""What the commands say beside their data: notes, errors, progress; and what the terminal can show."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsys_insight.errors import InsightError


# A pipe has no width. Whole kernel names would push the numbers out of sight (--full-names does that).
PIPE_WIDTH = 160


def note(text: str) -> None:
    """Tell the user something about the data, on stderr; in a terminal in lines of whole words."""
    line = f"note: {_plain(text)}"
    if sys.stderr.isatty():
        import textwrap

        line = textwrap.fill(line, width(), subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
    print(line, file=sys.stderr)


def complain(error: InsightError) -> None:
    """Print an error's sentence and its hint, on stderr."""
    print(f"error: {_plain(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {_plain(error.hint)}", file=sys.stderr)


def color(*, wanted: bool) -> bool:
    """Tell whether to colour stdout: in a terminal, unless ``--no-color``, ``NO_COLOR`` or ``TERM=dumb`` says no."""
    return wanted and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns to write tables for: the terminal's, or `$COLUMNS`; in a pipe `PIPE_WIDTH`."""
    import shutil

    return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


@contextmanager
def export_progress(name: str) -> Iterator[Callable[[int], None] | None]:
    """Draw a bar on stderr while nsys exports; None, and no bar, where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    state: list[Callable[[int], None]] = []
    stop: list[Callable[[], None]] = []

    def update(percent: int) -> None:
        # The bar appears with the first report: most traces need no export, and rich takes a while to import.
        if not state:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            bar = Progress(
                TextColumn("exporting {task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            task = bar.add_task(name, total=100)
            bar.start()
            stop.append(bar.stop)
            state.append(lambda value: bar.update(task, completed=value))
        state[0](percent)

    try:
        yield update
    finally:
        for end in stop:
            end()


def _plain(text: str) -> str:
    """Keep control characters of file names and trace data away from the terminal; DuckDB's messages have lines."""
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)
