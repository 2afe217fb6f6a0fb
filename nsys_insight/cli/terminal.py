"""Notes and errors on stderr, the standard streams, and the width and colors of the terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nsys_insight.cli.progress_line import progress_line

if TYPE_CHECKING:
    from nsys_insight.errors import InsightError


# Width of tables in a pipe, which has none. Complete kernel names would push the numbers out of view (--full-names).
PIPE_WIDTH = 160
_STREAMS = ("stdin", "stdout", "stderr")


def note(text: str) -> None:
    """Print a note about the data on stderr; in a terminal, wrapped at words."""
    line = f"note: {_escape_control_characters(text)}"
    if sys.stderr.isatty():
        import textwrap

        line = textwrap.fill(
            line, get_width(), subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
        )
    with progress_line.hide():
        print(line, file=sys.stderr)


def complain(error: InsightError, *, as_json: bool = False) -> None:
    """Print an error's sentence and hint on stderr; with `as_json`, as one line of JSON."""
    if as_json:
        import json

        from nsys_insight.render import json_

        print(json.dumps(json_.describe_error(error)), file=sys.stderr)
        return
    print(f"error: {_escape_control_characters(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {_escape_control_characters(error.hint)}", file=sys.stderr)


def can_color(*, is_allowed: bool) -> bool:
    """Return whether stdout can have colors: it is a terminal, without ``--no-color``, ``NO_COLOR``, ``TERM=dumb``."""
    return is_allowed and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def get_width() -> int:
    """Return the width of tables in columns: the terminal's, or `$COLUMNS`; in a pipe `PIPE_WIDTH`."""
    import shutil

    return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


def reopen_closed_streams() -> None:
    """Open closed standard streams on the null device. Otherwise the next opened file would take their number."""
    for number, name in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def discard_stdout() -> None:
    """Redirect stdout to the null device: Python would try to write the buffered output at its end, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escape_control_characters(text: str) -> str:
    """Escape control characters of file names and trace data. Newlines stay: DuckDB's messages have several lines."""
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)
