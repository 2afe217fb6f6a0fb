"""Text in terminal cells: how wide it is, how it is cut and padded, and what of it may reach a terminal."""

from __future__ import annotations

ELLIPSIS = "…"
_ONE_CELL_BELOW = "\u0300"  # every printable character before the combining marks takes one cell


def width_of(text: str) -> int:
    """Return how many cells `text` takes: most characters one, East Asian ones and emoji two, combining marks none."""
    if text.isascii() or max(text.replace(ELLIPSIS, ""), default="") < _ONE_CELL_BELOW:
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def printable(text: str) -> str:
    """Write control characters, line breaks and invisible marks as escapes, so that data cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def start_of(text: str, width: int) -> str:
    """Return the longest beginning of `text` that fits into `width` cells."""
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
    """Break `text` at spaces into lines of `width` cells; a word longer than a line is broken where the line ends."""
    lines, line = [], ""
    for word in text.split(" "):
        rest = word
        if line and width_of(line) + 1 + width_of(rest) <= width:
            line += " " + rest
            continue
        if line:
            lines.append(line)
        while width_of(rest) > width and (piece := start_of(rest, width)):
            lines.append(piece)
            rest = rest[len(piece) :]
        line = rest
    return [*lines, line]
