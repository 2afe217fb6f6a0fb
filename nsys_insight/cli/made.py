"""Making commands: of a function or a group what Click runs, with the help as it was written; and those of reports."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import typer

from nsys_insight.cli.examples import epilog, examples_of
from nsys_insight.cli.settings import HELP

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.packs.pack import Pack

# What Typer makes a command of: a function with a signature, or a group of commands.
Command = Any

_MARKUP = re.compile(r"(\\*)(\[[a-z#/@][^\[]*?\])")  # what rich takes for a tag, and backslashes before it
_NO_BOUND = 10**15


def _classify() -> Command:
    from nsys_insight.cli.kernels import classify_command

    return classify_command()


def _fusion() -> Command:
    from nsys_insight.cli.kernels import fusion_command

    return fusion_command()


def _occupancy() -> Command:
    from nsys_insight.cli.kernels import occupancy_command

    return occupancy_command()


def _peaks() -> Command:
    from nsys_insight.cli.kernels import peaks_command

    return peaks_command()


def _roofline() -> Command:
    from nsys_insight.cli.kernels import roofline_command

    return roofline_command()


def _per_token() -> Command:
    from nsys_insight.cli.phases import per_token_command

    return per_token_command()


# Packs whose command has a flag of its own.
_SPECIAL: dict[str, Callable[[], Command]] = {
    "classify": _classify, "fusion": _fusion, "occupancy": _occupancy, "peaks": _peaks, "per-token": _per_token,
    "roofline": _roofline,
}  # fmt: skip


def report_command(pack: Pack, name: str = "") -> Any:
    """Make the command of a report, under its name or another."""
    make = _SPECIAL.get(pack.name)
    command = made(name or pack.name, make() if make else _of(pack), {})
    command.epilog = epilog(examples_of(pack))
    return as_written(command)


def _of(pack: Pack) -> Command:
    from nsys_insight.cli.run import pack_command

    return pack_command(pack)


def made(name: str, what: Command, settings: dict[str, Any]) -> Any:
    """Make of a function or a group what Click runs; `settings` are arguments for Typer."""
    holder = typer.Typer(add_completion=False, context_settings=HELP)
    if isinstance(what, typer.Typer):
        holder.add_typer(what, name=name)
        return typer.main.get_group(holder).commands[name]
    holder.command(name=name, **settings)(what)
    return typer.main.get_command(holder)


def unmarked(text: str) -> str:
    """Keep rich from taking what stands in brackets, [max] or [a|b], for its markup: texts have none."""
    return _MARKUP.sub(r"\1\1\\\2", text)


def _flowing(text: str) -> str:
    """Put the lines of each paragraph into one, which is wrapped where the terminal ends."""
    paragraphs = re.split(r"\n[ \t]*\n", inspect.cleandoc(text))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def as_written(command: Any) -> Any:
    """Make what is printed of a command's help what was written."""
    for part in (command, *command.params, *map(as_written, getattr(command, "commands", {}).values())):
        for name in ("help", "epilog"):
            if text := getattr(part, name, None):
                setattr(part, name, unmarked(_flowing(text)))
        kind: Any = getattr(part, "type", None)
        if (getattr(kind, "max", None) or 0) >= _NO_BOUND:  # what only keeps a number within its type is no news
            kind._describe_range = lambda: "x>=0"  # noqa: SLF001 - Click has no other way to say it
    return command
