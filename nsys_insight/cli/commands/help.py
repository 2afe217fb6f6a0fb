"""The command ``help``: the help of the program, or of a command."""

from __future__ import annotations

from typing import Annotated

import typer

from nsys_insight.cli.commands import Command, read_help_entries
from nsys_insight.packs.library import all_packs


def complete_commands(incomplete: str) -> list[str]:
    """Complete the names of commands and reports."""
    names = [*(name for name, entry in read_help_entries().items() if entry.group), *all_packs()]
    return [name for name in names if name.startswith(incomplete)]


def show_help(
    command: Annotated[
        str | None, typer.Argument(help="A command or report.", autocompletion=complete_commands)
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="List all commands.")] = False,  # noqa: FBT002
    show_full: Annotated[bool, typer.Option("--full", help="Print the help of all commands.")] = False,  # noqa: FBT002
) -> None:
    """Show the help of a command; without one, the main commands; --all lists every command."""


HELP = Command(
    "help",
    lambda: show_help,
    group="first",
    place=95,
    help="Explain a command or report; help --all lists every one",
    examples=("help top", "help --all"),
)
