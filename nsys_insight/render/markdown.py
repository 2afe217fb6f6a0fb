"""Markdown: a table to paste into an issue or a report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TextIO

from nsys_insight.render.fields import Field, build_fields, drop_unknown_details, write_footer
from nsys_insight.text.cells import printable
from nsys_insight.text.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_insight.session.answer import Answer

_MARKUP = re.compile(r"([\\`*_<>\[\]&~#|])")
_BACKTICKS = re.compile(r"`+")


def write(answer: Answer, stream: TextIO, limit: int | None, *, full_names: bool) -> None:
    """Write the title, the table and the number of rows. Names are never shortened, because a page can scroll."""
    if answer.heading:
        stream.write(f"## {escape_prose(printable(answer.heading))}\n\n")
    if answer.row_count:
        stream.writelines(
            format_table(drop_unknown_details(build_fields(answer, answer.rows(limit), full_names=full_names)))
        )
        stream.write("\n")
    stream.write(escape_prose(write_footer(answer, limit)) + "\n")
    stream.writelines(f"\n- {escape_prose(printable(text))}\n" for text in (*answer.file_checks, *answer.left_out))


def format_table(fields: Sequence[Field]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield _format_row(escape_prose(" ".join(field.heading)) for field in fields)
    yield _format_row("---:" if field.is_right_aligned else ":---" for field in fields)
    columns = [map(format_code if field.kind == "name" else escape_prose, field.cells) for field in fields]
    yield from (_format_row(row) for row in zip(*columns, strict=True))


def _format_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def escape_prose(text: str) -> str:
    """Escape the characters that are markup in Markdown."""
    return _MARKUP.sub(r"\\\1", text)


def format_code(text: str) -> str:
    """Format a name as code. Only the character that ends a table cell is escaped in it."""
    if text == UNKNOWN:
        return text
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|")
