"""Text in terminal cells: measure, cut, wrap and color it, and escape characters that a terminal must not receive."""

from __future__ import annotations

import re

ELLIPSIS = "…"
NO_NAME = "(no name)"
# Styles of rich for words of severity, in the sixteen colors of a terminal's theme.
SEVERITY_STYLES = {
    **dict.fromkeys(("critical", "broken", "regressed", "revert"), "bold red"),
    **dict.fromkeys(("warning", "unknown", "refused"), "yellow"),
    **dict.fromkeys(("ok", "improved", "accept"), "green"),
    "info": "cyan",
}
# The columns whose cells are words of severity.
SEVERITY_COLUMNS = frozenset({"severity", "verdict"})
_ESCAPES = {"bold red": "1;31", "yellow": "33", "green": "32", "cyan": "36"}
_ONE_CELL_BELOW = "\u0300"  # every printable character before the combining marks takes one cell


def width_of(text: str) -> int:
    """Return the number of cells of `text`: most characters take one, East Asian ones and emoji two, marks none."""
    if text.isascii() or max(text.replace(ELLIPSIS, ""), default="") < _ONE_CELL_BELOW:
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def printable(text: str | None) -> str:
    """Escape control characters, line breaks and invisible marks, so that data cannot control a terminal.

    A name that the trace does not have is `NO_NAME`.
    """
    if text is None:
        return NO_NAME
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def start_of(text: str, width: int) -> str:
    """Return the longest start of `text` that fits into `width` cells."""
    width = max(width, 0)
    end = min(len(text), width)
    while width_of(text[:end]) > width:
        end -= 1
    return text[:end]


def end_of(text: str, width: int) -> str:
    """Return the longest end of `text` that fits into `width` cells."""
    width = max(width, 0)
    begin = max(len(text) - width, 0)
    while width_of(text[begin:]) > width:
        begin += 1
    return text[begin:]


def wrap(text: str, width: int) -> list[str]:
    """Wrap `text` at spaces into lines of `width` cells; a word longer than a line is broken at the line's end."""
    lines, line = [], ""
    for word in text.split(" "):
        remaining = word
        if line and width_of(line) + 1 + width_of(remaining) <= width:
            line += " " + remaining
            continue
        if line:
            lines.append(line)
        while width_of(remaining) > width and (piece := start_of(remaining, width)):
            lines.append(piece)
            remaining = remaining[len(piece) :]
        line = remaining
    return [*lines, line]


def color_severities(text: str) -> str:
    """Color the severity in front of each finding of a diagnosis."""
    return re.sub(
        r"^(\d+\. )(CRITICAL|WARNING|INFO)\b",
        lambda match: f"{match[1]}\x1b[{_ESCAPES[SEVERITY_STYLES[match[2].lower()]]}m{match[2]}\x1b[0m",
        text,
        flags=re.MULTILINE,
    )
