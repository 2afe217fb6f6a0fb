"""Markdown: a table to paste into an issue or a report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TextIO

from nsys_insight.render.fields import fields_of, footer, known
from nsys_insight.text.cells import printable
from nsys_insight.text.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_insight.render.fields import Field
    from nsys_insight.session.answer import Answer

_MARKUP = re.compile(r"([\\`*_<>\[\]&~#|])")
_BACKTICKS = re.compile(r"`+")


def write(answer: Answer, stream: TextIO, limit: int | None, *, full_names: bool) -> None:
    """Write the title, the table and how many rows there are. Names are never shortened: a page scrolls."""
    if answer.heading:
        stream.write(f"## {prose(printable(answer.heading))}\n\n")
    if answer.row_count:
        stream.writelines(table(known(fields_of(answer, answer.rows(limit), full_names=full_names))))
        stream.write("\n")
    stream.write(prose(footer(answer, limit)) + "\n")
    stream.writelines(f"\n- {prose(printable(text))}\n" for text in answer.left_out)


def table(fields: Sequence[Field]) -> Iterator[str]:
    """The lines of a table."""
    yield _line(prose(" ".join(field.heading)) for field in fields)
    yield _line("---:" if field.right else ":---" for field in fields)
    columns = [map(code if field.kind == "name" else prose, field.cells) for field in fields]
    yield from (_line(row) for row in zip(*columns, strict=True))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def prose(text: str) -> str:
    """Escape what Markdown would take for markup."""
    return _MARKUP.sub(r"\\\1", text)


def code(text: str) -> str:
    """Set a name as code, in which only what ends a cell needs an escape."""
    if text == UNKNOWN:
        return text
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|")
