"""What can be typed: commands, reports and the user's packs; listed without their flags, and made when typed."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import GROUPS, HELP, HelpEntry, help_entries, load_command
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
        ours = {name: one.group for name, one in help_entries().items() if one.group}
        first = [name for name, group in ours.items() if group == "first"]
        others = [name for name in ours if name not in first]
        return [*first, *(pack.name for packs in by_topic().values() for pack in packs), *others, *user_packs().packs]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Click passes it
        """Give what the help and completion list."""
        one = help_entries().get(cmd_name, HelpEntry())
        if one.group:
            return _help_line(cmd_name, one.help, GROUPS.get(one.group) or topics()[one.group].title)
        if pack := built_in().get(cmd_name):
            return _help_line(cmd_name, pack.title, topics()[pack.topic].title)
        own = user_packs().packs.get(cmd_name)
        return own and _help_line(cmd_name, own.title, "Your reports")

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed. Whoever reads the output may have enough of it, such as head."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            terminal.forget_stdout()  # Typer would end with 1
            return Exit.OK

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Make the command that was typed."""
        name, *rest = replace_old_flags(args)
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


def replace_old_flags(words: Sequence[str]) -> list[str]:
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

    special = load_command(pack.name) if pack.topic else None
    command = click_command(name or pack.name, special.make() if special else pack_command(pack), {})
    command.epilog = _epilog(examples_of(pack))
    return escape_help(command)


def click_command(name: str, what: Any, settings: dict[str, Any]) -> Any:
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
        f"{pack.name} {each}" if _names_input(each) else f"{pack.name} {_TRACE} {each}".strip() for each in given
    )


def escape_markup(text: str) -> str:
    """Keep rich from taking what stands in brackets, [max] or [a|b], for its markup: texts have none."""
    return _MARKUP.sub(r"\1\1\\\2", text)


def escape_help(command: Any) -> Any:
    """Keep rich from changing the help of a command: paragraphs flow, and brackets are printed."""
    for part in (command, *command.params, *map(escape_help, getattr(command, "commands", {}).values())):
        for name in ("help", "epilog"):
            if text := getattr(part, name, None):
                setattr(part, name, escape_markup(_join_lines(text)))
        kind: Any = getattr(part, "type", None)
        if (getattr(kind, "max", None) or 0) >= _NO_BOUND:  # hide the range if it is only the type's limits
            kind._describe_range = lambda: "x>=0"  # noqa: SLF001 - Click has no other way to say it
    return command


def _help_line(name: str, about: str, panel: str) -> Any:
    return TyperCommand(name, short_help=escape_markup(about), rich_help_panel=panel)


def _print_help(ctx: Any, commands: dict[str, Any]) -> None:
    """Print the help of a group, then that of each of its commands."""
    print(ctx.get_help())
    for name, command in commands.items():
        _print_help(type(ctx)(command, info_name=name, parent=ctx), getattr(command, "commands", {}))


def _command(name: str) -> Any:
    """Make a command, or give None if there is none of this name."""
    one = load_command(name)
    if one is None or not one.group:
        pack = named(name)
        return pack and report_command(pack, name)
    command = click_command(name, one.make(), one.settings)
    command.epilog = _epilog(one.examples)
    for inner, command_in in getattr(command, "commands", {}).items():
        command_in.epilog = _epilog(one.inner.get(inner, ()))
    return escape_help(command)


def _epilog(examples: Sequence[str]) -> str:
    """The end of a command's help."""
    return "\n\n".join(["Examples:", *(f"$ nsys-insight {each}" for each in examples)]) if examples else ""


def _names_input(arguments: str) -> bool:
    """Whether an example names its traces itself, or asks without one: of an architecture of the catalog."""
    return arguments.startswith(("'", "run/")) or "--arch" in arguments


def _join_lines(text: str) -> str:
    """Put the lines of each paragraph into one, which is wrapped where the terminal ends."""
    paragraphs = re.split(r"\n[ \t]*\n", inspect.cleandoc(text))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
