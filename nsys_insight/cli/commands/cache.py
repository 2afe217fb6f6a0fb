"""The commands `cache`, which lists what the cache folder holds, and `cache clear`."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import HELP, Command
from nsys_insight.cli.flags import Flags, FormatOption, checked_format
from nsys_insight.cli.run import not_used, show
from nsys_insight.errors import UsageError
from nsys_insight.ingest import cache_entries, cache_folder
from nsys_insight.session.answer import Column, of_rows
from nsys_insight.text.units import value

_COLUMNS = (
    Column("trace", "VARCHAR", "The trace, or the ncu files, that it was made from; unknown for old entries"),
    Column("state", "VARCHAR", "Whether that file is unchanged; entries of a changed file are not used"),
    Column("holds", "VARCHAR", "What it is"),
    Column("size_bytes", "BIGINT", "Its size"),
    Column("last_used", "VARCHAR", "When it was made or last used, in local time"),
    Column("file", "VARCHAR", "Its file name in the folder", detail=True),
)
_AGE = re.compile(r"(\d{1,6})\s*([hd])", re.ASCII)
_SECONDS = {"h": 60 * 60, "d": 24 * 60 * 60}

app = typer.Typer(
    help="List what the cache folder has for which trace, or empty it. It is never needed for correctness.",
    invoke_without_command=True,
    context_settings=HELP,
)


@app.callback()
def _list(
    context: typer.Context,
    fmt: FormatOption = "table",
) -> None:
    if context.invoked_subcommand is not None:
        return
    folder = _folder()
    found, most = cache_entries.entries(folder), cache_entries.most_bytes(folder)
    total = sum(entry.size for entry in found)
    note = (
        f"{_entries(len(found))} in {folder}: {_size(total)} of at most {_size(most)} (${cache_entries.SIZE_VARIABLE})"
    )
    answer = of_rows(
        _COLUMNS,
        [_row(entry) for entry in found],
        report="cache",
        title="What the cache contains, last used first",
        notes=(note,),
        empty="The cache is empty.",
        summary={"folder": _printable(folder), "size_bytes": total, "most_bytes": most},
    )
    show(answer, checked_format(fmt), Flags(limit=0))


@app.command()
def clear(
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TRACE]",
            help="A trace, or a folder for all traces in it; they need not exist any more. By default, all.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Only entries not used for this long: 7d, 12h."),
    ] = None,
) -> None:
    """Remove entries of the cache, except those that another process is using."""
    folder, unused_s = _folder(), _seconds(older_than) if older_than else 0
    chosen = [
        entry
        for entry in cache_entries.entries(folder)
        if (trace is None or (entry.about and entry.about.is_of(trace))) and time.time() - entry.used >= unused_s
    ]
    gone, kept = cache_entries.remove(chosen, folder)
    if trace is None:
        cache_entries.forget(folder, unused_s)
    if gone:
        print(f"removed {_entries(len(gone))}, {_size(sum(entry.size for entry in gone))}, from {folder}")
    else:
        print(f"removed nothing from {folder}")
    if kept:
        terminal.note(
            f"{_entries(len(kept))}, {_size(sum(entry.size for entry in kept))}, in use or not removable: kept"
        )


def _folder() -> Path:
    """Where the cache folder is.

    Raises:
        UsageError: It is there, and is not the user's alone.
    """
    if why := cache_folder.refusal():
        raise UsageError(not_used(why), f"name a folder of your own in ${cache_folder.FOLDER_VARIABLE}")
    return cache_folder.location()


def _row(entry: cache_entries.Entry) -> tuple[object, ...]:
    about = entry.about
    return (
        ", ".join(map(_printable, about.files)) if about else None,
        about.state if about else None,
        about.holds if about else None,
        entry.size,
        datetime.fromtimestamp(entry.used).astimezone().strftime("%Y-%m-%d %H:%M") if entry.used else None,
        _printable(entry.path.name),
    )


def _entries(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def _size(size: int) -> str:
    return value("size_bytes", size)


def _seconds(age: str) -> int:
    match = _AGE.fullmatch(age.strip())
    if not match:
        raise UsageError(f"--older-than takes an age, not {age!r}", "write a number of days or hours: 7d, 12h")
    return int(match[1]) * _SECONDS[match[2]]


def _printable(path: Path | str) -> str:
    """A path as text, whatever bytes are in it."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


CACHE = Command(
    "cache",
    lambda: app,
    group="share",
    place=250,
    help="List what the cache folder has for which trace, or empty it",
    examples=("cache", "cache clear --older-than 7d"),
    inner={
        "clear": ("cache clear", "cache clear --older-than 7d"),
    },
)
