"""An answer about the roofline as a drawing: with characters on the terminal, or as a picture in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight import outputs
from nsys_insight.cli import terminal

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.session.answer import Answer


def picture_of(output: Path | None) -> str | None:
    """The suffix of a file that is to be a picture."""
    from nsys_insight.render import roofline

    suffix = output.suffix.lower() if output else ""
    return suffix if suffix in roofline.PICTURES else None


def show(answer: Answer, output: Path | None, limit: int | None) -> None:
    """Draw an answer, and say its notes.

    Raises:
        UsageError: There is nothing to draw, or the file cannot be written.
    """
    from nsys_insight.render import roofline

    drawn = roofline.draw(answer, picture_of(output), limit=limit, width=terminal.width())
    if output is None:
        print(drawn)
    else:
        outputs.save(output, drawn)
    for text in answer.notes:
        terminal.note(text)
