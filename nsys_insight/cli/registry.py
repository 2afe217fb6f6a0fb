"""All commands: built-in commands, reports and the user's packs. The flags of a command are made only when it runs."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import GROUPS, HELP_SETTINGS, HelpEntry, load_command, read_help_entries
from nsys_insight.cli.completion import plain_summary
from nsys_insight.cli.flags import SHARED_PANELS, make_shared_command
from nsys_insight.cli.synonyms import explain_report
from nsys_insight.errors import Exit
from nsys_insight.packs.library import built_in_packs, find_pack, packs_by_topic, topics, user_packs
from nsys_insight.text.cells import printable, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.packs.pack import Pack

_EXAMPLE_TRACE = "trace.nsys-rep"
_MARKUP = re.compile(r"(\\*)(\[[a-z#/@][^\[]*?\])")  # a tag of rich markup, and the backslashes before it
_NO_BOUND = 10**15
_RULE_CODE = re.compile(r"NSI\d+", re.IGNORECASE)
# What explains the flags that every report has: `nsys-insight help scope`.
_SHARED_TOPIC = "scope"
# A paragraph that begins with this line keeps its lines, as in Click.
_VERBATIM = "\b"


class Commands(TyperGroup):
    """The commands of the package and the user's packs.

    Listed commands have no flags: making the flags of all commands takes longer than most queries.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Click passes it
        """List the names of the commands in the order of the help."""
        groups = {name: entry.group for name, entry in read_help_entries().items() if entry.group}
        first_commands = [name for name, group in groups.items() if group == "first"]
        other_commands = [name for name in groups if name not in first_commands]
        return [
            *first_commands,
            *(pack.name for packs in packs_by_topic().values() for pack in packs),
            *other_commands,
            *user_packs().packs,
        ]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Click passes it
        """Return a command without flags, for the help and completion."""
        entry = read_help_entries().get(cmd_name, HelpEntry())
        if entry.group:
            return _make_help_line(cmd_name, entry.help, GROUPS.get(entry.group) or topics()[entry.group].title)
        if pack := built_in_packs().get(cmd_name):
            return _make_help_line(cmd_name, pack.title, topics()[pack.topic].title)
        user_pack = user_packs().packs.get(cmd_name)
        return user_pack and _make_help_line(cmd_name, plain_summary(user_pack.title), "Your reports")

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Click passes it
        """Write the help of the program: the main commands by group, a line each."""
        formatter.write(_write_overview(self._group_entries(all_commands=False)))

    def _group_entries(self, *, all_commands: bool) -> dict[str, list[tuple[str, str]]]:
        """Return names and summaries of commands by the title of their group, in the order of the help."""
        groups: dict[str, list[tuple[str, str]]] = {GROUPS["first"]: []}
        entries = read_help_entries()
        for name in self.list_commands(None):
            entry, pack = entries.get(name, HelpEntry()), built_in_packs().get(name)
            is_of_user = not entry.group and pack is None
            if all_commands or is_of_user or entry.in_help or (pack and pack.in_help and not entry.group):
                command = self.get_command(None, name)
                groups.setdefault(command.rich_help_panel, []).append((name, plain_summary(_summarize(name))))
        return groups

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A reader such as head may close the pipe early; this is not an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            terminal.discard_stdout()  # Typer would end with 1
            return Exit.OK

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Make the command that was typed, with its flags."""
        name, *arguments = args
        if name == "help" and not ctx.resilient_parsing:  # completion needs the command itself
            return self._resolve_help(ctx, arguments)
        if command := _make_command(name):
            return name, command, arguments
        if error := explain_report(name):
            raise error
        if _is_trace(name):  # nsys-insight TRACE
            return "brief", _make_command("brief"), args
        self.commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return super().resolve_command(ctx, args)  # raises an error that suggests similar names

    def _resolve_help(self, ctx: Any, arguments: list[str]) -> Any:
        """Print the help that the arguments of `help` select, or return the command that prints it."""
        name, *options = arguments or [""]
        if arguments == ["--full"]:
            commands = {name: _make_command(name, has_full_help=True) for name in self.list_commands(ctx)}
            _print_help(ctx, commands)
            raise typer.Exit
        if name in ("", "--all"):
            print((_write_overview(self._group_entries(all_commands=True)) if name else ctx.get_help()).rstrip("\n"))
            raise typer.Exit
        if name == _SHARED_TOPIC:
            command = escape_help(make_click_command(name, make_shared_command(), {}))
        else:
            command = _make_command(name, has_full_help=True) if options == ["--all"] else None
        if command:
            return name, command, ["--help"]
        return self.resolve_command(ctx, ["rule", *arguments] if _RULE_CODE.fullmatch(name) else [name, "--help"])


def _is_trace(name: str) -> bool:
    """Return whether an argument in the place of a command is the file of a trace, or the folder of an export."""
    from nsys_insight.ingest.identify import REPORT_SUFFIXES, is_export, is_parquet_folder

    path = Path(name)
    with suppress(OSError, ValueError):
        return (path.is_file() and (path.suffix in REPORT_SUFFIXES or is_export(path))) or is_parquet_folder(path)
    return False


def _summarize(name: str) -> str:
    """Return the line of a command in the help."""
    entry = read_help_entries().get(name, HelpEntry())
    if entry.group:
        return entry.help
    pack = built_in_packs().get(name) or user_packs().packs[name]
    return pack.title


def _write_overview(groups: dict[str, list[tuple[str, str]]]) -> str:
    """Write the help of the program, a line for each command of these groups."""
    width = terminal.get_width() or 10_000
    bold, plain = ("\x1b[1m", "\x1b[0m") if terminal.can_color(is_allowed=True) else ("", "")
    name_width = max(len(name) for entries in groups.values() for name, _ in entries) + 2
    lines = ["Usage: nsys-insight COMMAND [TRACE] [OPTIONS] (first: diagnose)"]
    for title, entries in groups.items():
        lines.append(f"{bold}{title}{plain}")
        for name, summary in entries:
            first_line, *other_lines = wrap(printable(summary), max(width - name_width - 2, 20))
            lines += [f"  {name:{name_width}}{first_line}", *(" " * (name_width + 2) + line for line in other_lines)]
    lines += ["", "help COMMAND explains one, and with --all in full; help --all lists all; help scope"]
    lines.append("has the flags of every report. TRACE may be left out if the folder has one.")
    lines.append("Options: --version, --pack-dir FOLDER, --install-completion")
    return "\n".join(lines) + "\n"


def make_report_command(pack: Pack, name: str = "", *, has_full_help: bool = True) -> Any:
    """Make the command of a report, under its own name or `name`. A module may declare a version with more flags.

    The short help has no columns, and not how to read the answer.
    """
    from nsys_insight.cli.run import make_pack_command

    module_command = load_command(pack.name) if pack.topic else None
    command = make_click_command(
        name or pack.name, module_command.make() if module_command else make_pack_command(pack), {}
    )
    examples = _format_examples(list_examples(pack))
    if not has_full_help:
        return escape_help(_shorten_help(command, examples))
    columns = "\n".join(f"{column}: {' '.join(text.split())}" for column, text in pack.columns.items())
    command.epilog = f"{_VERBATIM}\nColumns:\n{columns}\n\n{examples}"
    return escape_help(command)


def make_click_command(name: str, target: Any, settings: dict[str, Any]) -> Any:
    """Make a Click command from a function or a Typer group; `settings` are arguments for Typer."""
    app = typer.Typer(add_completion=False, context_settings=HELP_SETTINGS)
    if isinstance(target, typer.Typer):
        app.add_typer(target, name=name)
        return typer.main.get_group(app).commands[name]
    app.command(name=name, **settings)(target)
    return typer.main.get_command(app)


def list_examples(pack: Pack) -> tuple[str, ...]:
    """List the examples of a report as complete commands: name, trace, and the arguments from the header.

    The trace is omitted if the arguments name their input, or need none.
    """
    examples = pack.examples or ("",)
    return tuple(
        f"{pack.name} {example}" if _has_own_input(example) else f"{pack.name} {_EXAMPLE_TRACE} {example}".strip()
        for example in examples
    )


def escape_markup(text: str) -> str:
    """Escape text in brackets, such as [max] or [a|b], which rich would read as markup."""
    return _MARKUP.sub(r"\1\1\\\2", text)


def escape_help(command: Any) -> Any:
    """Prepare the help of a command for rich: join the lines of paragraphs, and escape brackets."""
    for part in (command, *command.params, *map(escape_help, getattr(command, "commands", {}).values())):
        for name in ("help", "epilog"):
            if text := getattr(part, name, None):
                setattr(part, name, escape_markup(_join_lines(text)))
        kind: Any = getattr(part, "type", None)
        if (getattr(kind, "max", None) or 0) >= _NO_BOUND:  # hide the range if it is only the type's limits
            kind._describe_range = lambda: "x>=0"  # noqa: SLF001 - Click has no public way
    return command


def _make_help_line(name: str, summary: str, panel: str) -> Any:
    return TyperCommand(name, short_help=escape_markup(summary), rich_help_panel=panel)


def _print_help(ctx: Any, commands: dict[str, Any]) -> None:
    """Print the help of a group, then that of each of its commands."""
    print(ctx.get_help())
    for name, command in commands.items():
        _print_help(type(ctx)(command, info_name=name, parent=ctx), getattr(command, "commands", {}))


def _make_command(name: str, *, has_full_help: bool = False) -> Any:
    """Make the command of this name; return None if the name is unknown."""
    declaration = load_command(name)
    if declaration is None or not declaration.group:
        pack = find_pack(name)
        return pack and make_report_command(pack, name, has_full_help=has_full_help)
    command = make_click_command(name, declaration.make(), declaration.settings)
    examples = _format_examples(declaration.examples)
    has_subcommands = bool(getattr(command, "commands", None))
    if not has_full_help and not has_subcommands:
        return escape_help(_shorten_help(command, examples))
    command.epilog = examples
    for subcommand_name, subcommand in getattr(command, "commands", {}).items():
        subcommand.epilog = _format_examples(declaration.subcommands.get(subcommand_name, ()))
    return escape_help(command)


def _shorten_help(command: Any, examples: str) -> Any:
    """Make the help short: the first paragraphs, examples, own flags, and where the rest is.

    The flags that every report has stay out of it; those of the output that a report has are named.
    """
    summary, *paragraphs = re.split(r"\n[ \t]*\n", inspect.cleandoc(command.help or ""))
    command.help = "\n\n".join(filter(None, (summary, examples)))
    shared_flags = [param for param in command.params if getattr(param, "rich_help_panel", None) in SHARED_PANELS]
    full_help = f"nsys-insight help {command.name} --all"
    links = [f"{full_help} explains all of it." if paragraphs or shared_flags else ""]
    if shared_flags:
        links.append(f"Flags of every report, such as --nvtx, --sort and -o: nsys-insight help {_SHARED_TOPIC}.")
    command.epilog = "\n\n".join(filter(None, (*paragraphs[:1], f"{_VERBATIM}\n" + "\n".join(filter(None, links)))))
    format_help = command.format_help

    def format_short_help(context: Any, formatter: Any) -> None:
        for flag in shared_flags:
            flag.hidden = True
        format_help(context, formatter)

    command.format_help = format_short_help
    return command


def _format_examples(examples: Sequence[str]) -> str:
    """Format the examples of a command's help."""
    lines = "\n".join(f"$ nsys-insight {example}" for example in examples)
    return f"{_VERBATIM}\nExamples:\n{lines}" if examples else ""


def _has_own_input(arguments: str) -> bool:
    """Return whether an example names its traces, or needs none (--arch reads the catalog)."""
    return arguments.startswith(("'", "run/")) or "--arch" in arguments


def _join_lines(text: str) -> str:
    """Join the lines of each paragraph, except of verbatim ones. The help wraps them to the width of the terminal."""
    paragraphs = re.split(r"\n[ \t]*\n", inspect.cleandoc(text))
    return "\n\n".join(
        paragraph if paragraph.startswith(_VERBATIM) else " ".join(paragraph.split()) for paragraph in paragraphs
    )
