"""The commands that are no packs: a module is added here, and declares what it does.

A declaration is read from the module's text, so `--help` imports no command, and running one imports only its module.
What the help lists of it must be literals: name, group, place, help, examples.
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

# For every Typer application of the command line.
HELP = {"help_option_names": ["--help", "-h"]}
# A program and its arguments follow: flags behind the first word are the program's.
OF_PROGRAM = {"context_settings": {"allow_interspersed_args": False, **HELP}}
# The headings of the help: the questions that people come with. Those of reports are in queries/reports/topics.toml.
GROUPS = {
    "first": "Start here",
    "compare": "Is it better? (comparisons, CI)",
    "ask": "Any other question? (SQL)",
    "share": "How do I share it? (export, sharing, agents)",
}
_DECLARATION = re.compile(r"^\w+ = (Command\((?:[^\n]*|\n.*?^)\))$", re.MULTILINE | re.DOTALL)
_FIELDS = ("group", "place", "help", "examples", "inner")


@dataclass(frozen=True, kw_only=True)
class HelpEntry:
    """What the help says of a command.

    Attributes:
        group: One of `GROUPS`, or the topic of reports that it is listed with. Empty if it is a report with flags of
            its own, which is listed as a report.
        place: Its place in the help, among all commands.
        help: What it does, in a line.
        examples: What to type after the name of the program.
        inner: The same for each command in a group of commands.
    """

    group: str = ""
    place: int = 0
    help: str = ""
    examples: tuple[str, ...] = ()
    inner: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Command(HelpEntry):
    """A command.

    Attributes:
        name: What is typed.
        make: Makes the function or the group of commands that Typer runs; called when the command is typed.
        settings: Arguments for Typer.
    """

    name: str
    make: Callable[[], Any]
    settings: dict[str, Any] = field(default_factory=dict)


@cache
def help_entries() -> dict[str, HelpEntry]:
    """What the help says of each command, in the order of their places."""
    found: dict[str, HelpEntry] = {}
    for path in sorted(set(command_files().values())):
        for declaration in _DECLARATION.findall(path.read_text(encoding="utf-8")):
            call: Any = ast.parse(declaration, mode="eval").body
            words = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg in _FIELDS}
            found[ast.literal_eval(call.args[0])] = HelpEntry(**words)
    return dict(sorted(found.items(), key=lambda item: item[1].place))


def load_command(name: str) -> Command | None:
    """Import the command of this name; None if there is none."""
    if name not in command_files():
        return None
    module = import_module(f"{__name__}.{command_files()[name].stem}")
    return next(one for one in vars(module).values() if isinstance(one, Command) and one.name == name)
