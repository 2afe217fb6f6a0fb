"""The commands `cache`, which lists what the cache folder holds, and `cache clear`."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsys_insight import cache_folder, own_files
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import HELP_SETTINGS, Command
from nsys_insight.cli.flags import Flags, FormatOption, check_format
from nsys_insight.cli.run import describe_unused_cache, show
from nsys_insight.errors import UsageError
from nsys_insight.ingest import cache_entries
from nsys_insight.session.answer import build_answer, read_columns
from nsys_insight.text.units import count_noun, value

if TYPE_CHECKING:
    from collections.abc import Collection

_COLUMNS = read_columns("cli/cache")
_AGE = re.compile(r"(\d{1,6})\s*([hd])", re.ASCII)
_SECONDS = {"h": 60 * 60, "d": 24 * 60 * 60}

app = typer.Typer(
    help="Show or clear the cache. It is never needed for correctness.",
    invoke_without_command=True,
    context_settings=HELP_SETTINGS,
)


@app.callback()
def _list_entries(context: typer.Context, fmt: FormatOption = "table") -> None:
    if context.invoked_subcommand is not None:
        return
    folder = _find_folder()
    entries, max_bytes = cache_entries.list_entries(folder), cache_entries.read_size_limit(folder)
    total_bytes = sum(entry.size for entry in entries)
    count, limit = count_noun(len(entries), "entry", "entries"), _format_size(max_bytes)
    note = f"{count} in {folder}: {_format_size(total_bytes)} of at most {limit} (${cache_entries.SIZE_VARIABLE})"
    answer = build_answer(
        _COLUMNS,
        [_make_row(entry) for entry in entries],
        report="cache",
        title="What the cache contains, last used first",
        notes=(note,),
        empty="The cache is empty.",
        summary={"folder": _format_path(folder), "size_bytes": total_bytes, "most_bytes": max_bytes},
    )
    show(answer, check_format(fmt), Flags(limit=0))


@app.command()
def clear(
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TRACE]",
            help="A trace, or a folder for all traces in it; they need not exist any more. By default, all.",
        ),
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Only entries not used for this long: 7d, 12h.")
    ] = None,
    dry_run: Annotated[  # noqa: FBT002
        bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")
    ] = False,
) -> None:
    """Remove entries of the cache, except those that another process is using, or that an earlier version made."""
    folder, unused_s = _find_folder(), _parse_age(older_than) if older_than else 0
    selected_entries = [
        entry
        for entry in cache_entries.list_entries(folder)
        if (trace is None or (entry.manifest and entry.manifest.is_made_from(trace)))
        and time.time() - entry.last_used_s >= unused_s
    ]
    old_entries = [entry for entry in selected_entries if not own_files.is_own(entry.path)]
    own_entries = [entry for entry in selected_entries if entry not in old_entries]
    if old_entries:
        terminal.note(
            f"{_describe_entries(old_entries)}, kept: no list in {folder} shows that nsys-insight made them;"
            " remove them yourself if nothing else needs them"
        )
    if dry_run:
        for entry in own_entries:
            print(_format_path(entry.path))
        print(f"would remove {_describe_entries(own_entries)}, from {folder}")
        return
    removed_entries, remaining_entries = cache_entries.remove(own_entries, folder)
    if trace is None:
        cache_entries.remove_old_markers(folder, unused_s)
    if removed_entries:
        print(f"removed {_describe_entries(removed_entries)}, from {folder}")
    else:
        print(f"removed nothing from {folder}")
    if remaining_entries:
        terminal.note(f"{_describe_entries(remaining_entries)}, in use or not removable: kept")


def _find_folder() -> Path:
    if refusal := cache_folder.refusal_reason():
        raise UsageError(
            describe_unused_cache(refusal), f"name a folder of your own in ${cache_folder.FOLDER_VARIABLE}"
        )
    return cache_folder.location()


def _make_row(entry: cache_entries.Entry) -> tuple[object, ...]:
    origin = entry.manifest
    return (
        ", ".join(map(_format_path, origin.files)) if origin else None,
        origin.state if origin else None,
        origin.holds if origin else None,
        entry.size,
        datetime.fromtimestamp(entry.last_used_s).astimezone().strftime("%Y-%m-%d %H:%M")
        if entry.last_used_s
        else None,
        _format_path(entry.path.name),
    )


def _describe_entries(entries: Collection[cache_entries.Entry]) -> str:
    return f"{count_noun(len(entries), 'entry', 'entries')}, {_format_size(sum(entry.size for entry in entries))}"


def _format_size(size: int) -> str:
    return value("size_bytes", size)


def _parse_age(age: str) -> int:
    match = _AGE.fullmatch(age.strip())
    if not match:
        raise UsageError(f"--older-than takes an age, not {age!r}", "write a number of days or hours: 7d, 12h")
    return int(match[1]) * _SECONDS[match[2]]


def _format_path(path: Path | str) -> str:
    """Format a path as text. Bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


CACHE = Command(
    "cache",
    lambda: app,
    group="share",
    place=250,
    help="Show or clear the cache",
    examples=("cache", "cache clear --older-than 7d"),
    subcommands={"clear": ("cache clear", "cache clear --older-than 7d", "cache clear --dry-run")},
)
