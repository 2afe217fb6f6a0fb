"""The commands that are not packs. Each module in this folder declares one or more commands.

Declarations are read from a module's text: `--help` imports no command, and a command imports only its own module.
Therefore the fields that the help needs must be literals: name, group, place, in_help, help, examples, subcommands.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.library import command_files

if TYPE_CHECKING:
    from collections.abc import Callable

# Context settings of every Typer application.
HELP_SETTINGS = {"help_option_names": ["--help", "-h"]}
# Settings of commands that run a program: flags after its name belong to the program.
PROGRAM_SETTINGS = {"context_settings": {"allow_interspersed_args": False, **HELP_SETTINGS}}
# Headings of the help: questions of users. The headings of reports are in queries/reports/topics.toml.
GROUPS = {
    "first": "Start here",
    "compare": "Is it better? (comparisons, CI)",
    "ask": "Any other question? (SQL)",
    "share": "How do I share it? (export, sharing, agents)",
}
_DECLARATION = re.compile(r"^\w+ = (Command\((?:[^\n]*|\n.*?^)\))$", re.MULTILINE | re.DOTALL)
_FIELDS = ("group", "place", "in_help", "help", "examples", "subcommands")


@dataclass(frozen=True, kw_only=True)
class HelpEntry:
    """The entry of a command in the help.

    Attributes:
        group: A key of `GROUPS`, or the topic of reports that lists the command. Empty for a report with its own
            flags, which is listed as a report.
        place: Position in the help, among all commands.
        in_help: Whether `--help` lists the command; `help --all` lists all of them.
        help: One line about what the command does.
        examples: Arguments of the program.
        subcommands: Examples of each subcommand.
    """

    group: str = ""
    place: int = 0
    in_help: bool = False
    help: str = ""
    examples: tuple[str, ...] = ()
    subcommands: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Command(HelpEntry):
    """A command.

    Attributes:
        name: Name on the command line.
        make: Makes the function or the group of commands that Typer runs. Called only when the command runs.
        settings: Arguments for Typer.
    """

    name: str
    make: Callable[[], Any]
    settings: dict[str, Any] = field(default_factory=dict)


@cache
def read_help_entries() -> dict[str, HelpEntry]:
    """Read the help entry of each command, in the order of the help."""
    entries: dict[str, HelpEntry] = {}
    for path in sorted(set(command_files().values())):
        for declaration in _DECLARATION.findall(path.read_text(encoding="utf-8")):
            declaration_call: Any = ast.parse(declaration, mode="eval").body
            field_values = {
                keyword.arg: ast.literal_eval(keyword.value)
                for keyword in declaration_call.keywords
                if keyword.arg in _FIELDS
            }
            entries[ast.literal_eval(declaration_call.args[0])] = HelpEntry(**field_values)
    return dict(sorted(entries.items(), key=lambda item: item[1].place))


def load_command(name: str) -> Command | None:
    """Import the command of this name; return None if the name is unknown."""
    if name not in command_files():
        return None
    module = import_module(f"{__name__}.{command_files()[name].stem}")
    return next(value for value in vars(module).values() if isinstance(value, Command) and value.name == name)
