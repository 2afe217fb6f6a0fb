"""The settings of a capture without private data: no host, no user, and no secrets in command lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsys_insight.ingest.private import is_private
from nsys_insight.sql.quoting import literal
from nsys_insight.text.secrets import mask_arguments, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context

    Setting = tuple[str, str | None, str | None]  # the raw table, the name, the value

_ARGUMENT = re.compile(r"(PROCESS_\d+):(?:COMMAND|ARGUMENT_(\d+))")


def fill(context: Context) -> None:
    """Fill `facts.captured`."""
    (find,) = context.statements("captured", "find").values()
    rows = redact_settings(context.connection.execute(find).fetchall())
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    if values:
        context.connection.execute(f"INSERT INTO facts.captured VALUES {values}")


def redact_settings(settings: Sequence[Setting]) -> list[Setting]:
    """Remove private settings, and mask values that look like secrets."""
    public = [setting for setting in settings if setting[1] is None or not is_private(setting[1])]
    values = [None if value is None else mask_secrets(value) for _, _, value in public]
    for indices in find_command_lines([(name, value) for _, name, value in public]).values():
        words = mask_arguments([public[index][2] or "" for index in indices])
        for index, word in zip(indices, words, strict=True):
            values[index] = word
    return [(origin, name, value) for (origin, name, _), value in zip(public, values, strict=True)]


def find_command_lines(settings: Sequence[tuple[str | None, str | None]]) -> dict[str, list[int]]:
    """Return, by process, the indices of the settings (name, value) that form its command line.

    The index of the program comes first, then those of its arguments.
    """
    lines: dict[str, list[tuple[int, int]]] = {}
    for index, (name, value) in enumerate(settings):
        if value is not None and (argument := _ARGUMENT.fullmatch(name or "")):
            lines.setdefault(argument[1], []).append((int(argument[2] or -1), index))
    return {process: [index for _, index in sorted(line)] for process, line in lines.items()}
