"""The settings of a capture as they may be shown: not whose machine it was, nor the keys in a command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsys_insight.ingest.private import is_private
from nsys_insight.sql.quoting import literal
from nsys_insight.text.secrets import masked, masked_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context

    Setting = tuple[str, str | None, str | None]  # the raw table, the name, the value

_ARGUMENT = re.compile(r"(PROCESS_\d+):(?:COMMAND|ARGUMENT_(\d+))")


def fill(context: Context) -> None:
    """Fill `facts.captured`."""
    (find,) = context.statements("captured", "find").values()
    rows = shown(context.connection.execute(find).fetchall())
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    if values:
        context.connection.execute(f"INSERT INTO facts.captured VALUES {values}")


def shown(settings: Sequence[Setting]) -> list[Setting]:
    """Leave out what is private of settings, and mask what looks like a secret."""
    kept = [setting for setting in settings if setting[1] is None or not is_private(setting[1])]
    values = [None if value is None else masked(value) for _, _, value in kept]
    for places in command_lines([(name, value) for _, name, value in kept]).values():
        words = masked_words([kept[at][2] or "" for at in places])
        for at, word in zip(places, words, strict=True):
            values[at] = word
    return [(origin, name, value) for (origin, name, _), value in zip(kept, values, strict=True)]


def command_lines(settings: Sequence[tuple[str | None, str | None]]) -> dict[str, list[int]]:
    """Tell where among settings (name, value) the command line of each process is: the program, then its arguments."""
    lines: dict[str, list[tuple[int, int]]] = {}
    for at, (name, value) in enumerate(settings):
        if value is not None and (argument := _ARGUMENT.fullmatch(name or "")):
            lines.setdefault(argument[1], []).append((int(argument[2] or -1), at))
    return {process: [at for _, at in sorted(line)] for process, line in lines.items()}


def _literal(cell: str | None) -> str:
    return literal(cell) if cell is not None else "NULL"
