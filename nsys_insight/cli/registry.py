"""What can be typed: commands, reports and the user's packs; listed without flags, and made when typed."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import GROUPS, HELP, Listed, command_of, listed
from nsys_insight.errors import Exit
from nsys_insight.packs.library import built_in, by_topic, named, topics, user_packs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.pack import Pack

_TRACE = "trace.nsys-rep"
_MARKUP = re.compile(r"(\\*)(\[[a-z#/@][^\[]*?\])")  # what rich takes for a tag, and backslashes before it
_NO_BOUND = 10**15
# Flags that became commands, for one release: the report, its flag, and the words in their place.
_REPLACED = {
    ("classify", "--kernels"): ["classify-kernels"],
    ("per-token", "--by-phase"): ["per-phase"],
    ("fusion", "--explain-candidate"): ["fusion-candidate", "--candidate"],
}


class Commands(TyperGroup):
    """The commands of the package and the user's packs.

    What is listed are commands without flags: to make those of all takes longer than to answer most questions.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Click passes it
        """Name them in the order of the help."""
        ours = {name: one.group for name, one in listed().items() if one.group}
        first = [name for name, group in ours.items() if group == "first"]
        others = [name for name in ours if name not in first]
        return [*first, *(pack.name for packs in by_topic().values() for pack in packs), *others, *user_packs().packs]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Click passes it
        """Give what the help and completion list."""
        one = listed().get(cmd_name, Listed())
        if one.group:
            return _listed(cmd_name, one.help, GROUPS.get(one.group) or topics()[one.group].title)
        if pack := built_in().get(cmd_name):
            return _listed(cmd_name, pack.title, topics()[pack.topic].title)
        own = user_packs().packs.get(cmd_name)
        return own and _listed(cmd_name, own.title, "Your reports")

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed. Whoever reads the output may have enough of it, such as head."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            terminal.forget_stdout()  # Typer would end with 1
            return Exit.OK

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Make the command that was typed."""
        name, *rest = current(args)
        if name == "help":
            if not rest:
                print(ctx.get_help())
                raise typer.Exit
            if rest == ["--all"]:
                _print_help(ctx, {each: _command(each) for each in self.list_commands(ctx)})
                raise typer.Exit
            return self.resolve_command(ctx, [rest[0], "--help"])
        if command := _command(name):
            return name, command, rest
        self.commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return super().resolve_command(ctx, args)  # complains, and names what is near


def current(words: Sequence[str]) -> list[str]:
    """Replace a flag that became a command in what was typed, and print a note that names the command."""
    for (name, flag), (command, *parameter) in _REPLACED.items():
        at = next((at for at, word in enumerate(words) if word.partition("=")[0] == flag), 0)
        if words[0] == name and at:
            _, equals, value = words[at].partition("=")
            new = " ".join([command, *parameter])
            terminal.note(f"{name} {flag} is now {new}; the next release does not have the flag")
            return [command, *words[1:at], *parameter, *([value] if equals else []), *words[at + 1 :]]
    return list(words)


def report_command(pack: Pack, name: str = "") -> Any:
    """Make the command of a report, under its name or another; a module may have one with more flags."""
    from nsys_insight.cli.run import pack_command

    special = command_of(pack.name) if pack.topic else None
    command = made(name or pack.name, special.make() if special else pack_command(pack), {})
    command.epilog = _epilog(examples_of(pack))
    return as_written(command)


def made(name: str, what: Any, settings: dict[str, Any]) -> Any:
    """Make of a function or a group what Click runs; `settings` are arguments for Typer."""
    holder = typer.Typer(add_completion=False, context_settings=HELP)
    if isinstance(what, typer.Typer):
        holder.add_typer(what, name=name)
        return typer.main.get_group(holder).commands[name]
    holder.command(name=name, **settings)(what)
    return typer.main.get_command(holder)


def examples_of(pack: Pack) -> tuple[str, ...]:
    """The examples of a report, whole: its name, a trace, and what its header gives; flags that need no trace alone."""
    given = pack.examples or ("",)
    return tuple(
        f"{pack.name} {each}" if _has_input(each) else f"{pack.name} {_TRACE} {each}".strip() for each in given
    )


def unmarked(text: str) -> str:
    """Keep rich from taking what stands in brackets, [max] or [a|b], for its markup: texts have none."""
    return _MARKUP.sub(r"\1\1\\\2", text)


def as_written(command: Any) -> Any:
    """Make what is printed of a command's help what was written."""
    for part in (command, *command.params, *map(as_written, getattr(command, "commands", {}).values())):
        for name in ("help", "epilog"):
            if text := getattr(part, name, None):
                setattr(part, name, unmarked(_flowing(text)))
        kind: Any = getattr(part, "type", None)
        if (getattr(kind, "max", None) or 0) >= _NO_BOUND:  # hide the range if it is only the type's limits
            kind._describe_range = lambda: "x>=0"  # noqa: SLF001 - Click has no other way to say it
    return command


def _listed(name: str, about: str, panel: str) -> Any:
    return TyperCommand(name, short_help=unmarked(about), rich_help_panel=panel)


def _print_help(ctx: Any, commands: dict[str, Any]) -> None:
    """Print the help of a group, then that of each of its commands."""
    print(ctx.get_help())
    for name, command in commands.items():
        _print_help(type(ctx)(command, info_name=name, parent=ctx), getattr(command, "commands", {}))


def _command(name: str) -> Any:
    """Make a command, or give None if there is none of this name."""
    one = command_of(name)
    if one is None or not one.group:
        pack = named(name)
        return pack and report_command(pack, name)
    command = made(name, one.make(), one.settings)
    command.epilog = _epilog(one.examples)
    for inner, command_in in getattr(command, "commands", {}).items():
        command_in.epilog = _epilog(one.inner.get(inner, ()))
    return as_written(command)


def _epilog(examples: Sequence[str]) -> str:
    """The end of a command's help."""
    return "\n\n".join(["Examples:", *(f"$ nsys-insight {each}" for each in examples)]) if examples else ""


def _has_input(arguments: str) -> bool:
    """Whether an example names its traces itself, or asks without one: of an architecture of the catalog."""
    return arguments.startswith(("'", "run/")) or "--arch" in arguments


def _flowing(text: str) -> str:
    """Put the lines of each paragraph into one, which is wrapped where the terminal ends."""
    paragraphs = re.split(r"\n[ \t]*\n", inspect.cleandoc(text))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
