"""What the commands say next to their data: notes and errors; the standard streams, and what the terminal can show."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nsys_insight.cli.progress_line import progress_line

if TYPE_CHECKING:
    from nsys_insight.errors import InsightError


# A pipe has no width. Whole kernel names would push the numbers out of sight (--full-names does that).
PIPE_WIDTH = 160
_STREAMS = ("stdin", "stdout", "stderr")


def note(text: str) -> None:
    """Tell the user something about the data, on stderr; in a terminal in lines of whole words."""
    said = f"note: {_plain(text)}"
    if sys.stderr.isatty():
        import textwrap

        said = textwrap.fill(said, width(), subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
    with progress_line.erased():
        print(said, file=sys.stderr)


def complain(error: InsightError, *, as_json: bool = False) -> None:
    """Print an error's sentence and its hint, on stderr; as one line of JSON where that is the format of the answer."""
    if as_json:
        import json

        from nsys_insight.render import json_

        print(json.dumps(json_.error(error)), file=sys.stderr)
        return
    print(f"error: {_plain(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {_plain(error.hint)}", file=sys.stderr)


def color(*, wanted: bool) -> bool:
    """Tell whether to color stdout: in a terminal, unless ``--no-color``, ``NO_COLOR`` or ``TERM=dumb`` says no."""
    return wanted and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns to write tables for: the terminal's, or `$COLUMNS`; in a pipe `PIPE_WIDTH`."""
    import shutil

    return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


def open_closed() -> None:
    """Let streams that are closed be empty: else the next file that is opened would be in their place."""
    for number, name in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def forget_stdout() -> None:
    """Throw away what is still to be written, which Python would try at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(text: str) -> str:
    """Keep control characters of file names and trace data away from the terminal; DuckDB's messages have lines."""
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)
