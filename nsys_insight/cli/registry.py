"""The commands by name: what ``--help`` lists of each, and each made only when it is the one that was typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from nsys_insight.cli.examples import EXAMPLES, epilog
from nsys_insight.cli.made import as_written, made, report_command, unmarked
from nsys_insight.cli.settings import HELP
from nsys_insight.cli.sides import SidesCommand
from nsys_insight.cli.streams import forget_stdout
from nsys_insight.errors import Exit
from nsys_insight.packs import library
from nsys_insight.packs.built_in import built_in
from nsys_insight.packs.topics import by_topic, topics
from nsys_insight.packs.user_packs import user_packs

if TYPE_CHECKING:
    from collections.abc import Callable


# What Typer makes a command of: a function with a signature, or a group of commands.
Command = Any


def _diagnose() -> Command:
    from nsys_insight.cli.diagnose import diagnose_command

    return diagnose_command()


def _report() -> Command:
    from nsys_insight.cli.page import page_command

    return page_command()


def _capture() -> Command:
    from nsys_insight.cli.capture import capture

    return capture


def _diff() -> Command:
    from nsys_insight.cli.compare import diff_command

    return diff_command()


def _check() -> Command:
    from nsys_insight.cli.compare import check_command

    return check_command()


def _baseline() -> Command:
    from nsys_insight.cli.baselines import baseline_app

    return baseline_app()


def _bench() -> Command:
    from nsys_insight.cli.bench import bench

    return bench


def _experiment() -> Command:
    from nsys_insight.cli.experiment import app

    return app


def _sql() -> Command:
    from nsys_insight.cli.sql import sql_command

    return sql_command()


def _shell() -> Command:
    from nsys_insight.cli.shell import shell_command

    return shell_command()


def _explore() -> Command:
    from nsys_insight.cli.explore import explore

    return explore


def _run() -> Command:
    from nsys_insight.cli.packs import run

    return run


def _packs() -> Command:
    from nsys_insight.cli.packs import app

    return app


def _schema() -> Command:
    from nsys_insight.cli.small import schema

    return schema


def _demo() -> Command:
    from nsys_insight.cli.small import demo

    return demo


def _ncu() -> Command:
    from nsys_insight.cli.ncu import app

    return app


def _skill() -> Command:
    from nsys_insight.cli.skill import app

    return app


def _mcp() -> Command:
    from nsys_insight.cli.mcp import mcp

    return mcp


def _sass() -> Command:
    from nsys_insight.cli.kernel_code import sass

    return sass


def _ptxas() -> Command:
    from nsys_insight.cli.kernel_code import ptxas

    return ptxas


def _convert() -> Command:
    from nsys_insight.cli.convert import convert_command

    return convert_command()


def _fleet() -> Command:
    from nsys_insight.cli.fleet import fleet

    return fleet


def _scrub() -> Command:
    from nsys_insight.cli.scrub import scrub

    return scrub


def _export() -> Command:
    from nsys_insight.cli.small import export

    return export


def _cache() -> Command:
    from nsys_insight.cli.cache import app

    return app


@dataclass(frozen=True)
class Entry:
    """A command that is no pack.

    Attributes:
        panel: Under which heading it is listed, or the topic of reports that it is listed with.
        about: What it does, in a line.
        make: Makes it; what it needs is imported then.
        settings: Arguments for Typer.
    """

    panel: str
    about: str
    make: Callable[[], Command]
    settings: dict[str, Any] = field(default_factory=dict)


# The headings are the questions that people come with; those of reports are in queries/reports/topics.toml.
_FIRST, _COMPARE, _ASK = "Start here", "Is it better? (comparisons, CI)", "Any other question? (SQL)"
_GIVE = "How do I share it? (export, sharing, agents)"
_KERNELS, _RANKS = "kernels", "ranks"
_NO_FLAGS_BEHIND = {"context_settings": {"allow_interspersed_args": False, **HELP}}
_OTHER_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
COMMANDS = {
    "diagnose": Entry(_FIRST, "What bounds the run, what it costs, and what to do first", _diagnose),
    "report": Entry(_FIRST, "The diagnosis and all reports in one HTML or Markdown file", _report),
    "capture": Entry(
        _FIRST,
        "Profile a program with the nsys flags that the reports need, and diagnose it",
        _capture,
        _NO_FLAGS_BEHIND,
    ),
    "diff": Entry(_COMPARE, "What a change affected, and whether to keep it", _diff, {"cls": SidesCommand}),
    "check": Entry(_COMPARE, "Hold a run to a budget or a baseline; exit 1 if it is broken", _check),
    "baseline": Entry(_COMPARE, "Save the measurements of a run, to compare later runs with it", _baseline),
    "bench": Entry(
        _COMPARE, "Measure without the profiler: a command, or two that take turns", _bench, _NO_FLAGS_BEHIND
    ),
    "experiment": Entry(
        _COMPARE, "Change one thing at a time: test, measure, decide by rule, and keep a log", _experiment
    ),
    "demo": Entry(_FIRST, "Run the main reports on a sample trace", _demo),
    "sql": Entry(_ASK, "Query the model's views in DuckDB's SQL", _sql),
    "shell": Entry(_ASK, "An SQL prompt with history, completion and the reports", _shell),
    "explore": Entry(_ASK, "Open the model in Harlequin, if it is installed", _explore),
    "run": Entry(_ASK, "Run a report from a file: run ./mine.sql TRACE", _run, {"context_settings": _OTHER_ARGUMENTS}),
    "packs": Entry(_ASK, "List the packs: reports that are .sql files, built in and your own", _packs),
    "schema": Entry(_ASK, "Describe the views that sql can query, and their columns", _schema),
    "ncu": Entry(_KERNELS, "Which launch to profile, what ncu measured, and what to change", _ncu),
    "sass": Entry(_KERNELS, "Read machine code: loops, instructions, loads per multiply-add, spills", _sass),
    "ptxas": Entry(
        _KERNELS, "Read registers, spills and shared memory from the compiler, and what fits on an SM", _ptxas
    ),
    "skill": Entry(_GIVE, "Install the Agent Skill, which tells a coding agent how to use this tool", _skill),
    "mcp": Entry(_GIVE, "Answer a coding agent over the Model Context Protocol, about the given traces", _mcp),
    "convert": Entry(_GIVE, "Convert a trace to a DuckDB file, a Parquet folder, or a timeline for Perfetto", _convert),
    "fleet": Entry(_RANKS, "Process hundreds of traces once, with many workers, for all later reports", _fleet),
    "scrub": Entry(_GIVE, "Write a copy to share: no environment, secrets or paths; the same numbers", _scrub),
    "export": Entry(_GIVE, "Export a report to SQLite with your nsys", _export),
    "cache": Entry(_GIVE, "List what the cache folder has for which trace, or empty it", _cache),
}


class Commands(TyperGroup):
    """The commands of the package and the user's packs.

    What is listed are commands without flags: to make those of all takes longer than to answer most questions.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Click passes it
        """Name them in the order of the help."""
        first = [name for name, entry in COMMANDS.items() if entry.panel == _FIRST]
        others = [name for name in COMMANDS if name not in first]
        return [*first, *(pack.name for packs in by_topic().values() for pack in packs), *others, *user_packs().packs]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Click passes it
        """Give what the help and completion list."""
        if entry := COMMANDS.get(cmd_name):
            topic = topics().get(entry.panel)
            return _listed(cmd_name, entry.about, topic.title if topic else entry.panel)
        if pack := built_in().get(cmd_name):
            return _listed(cmd_name, pack.title, topics()[pack.topic].title)
        own = user_packs().packs.get(cmd_name)
        return own and _listed(cmd_name, own.title, "Your reports")

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed. Whoever reads the output may have enough of it, such as head."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            forget_stdout()  # Typer would end with 1
            return Exit.OK

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Make the command that was typed."""
        name = args[0]
        if name == "help":
            if len(args) == 1:
                print(ctx.get_help())
                raise typer.Exit
            if args[1:] == ["--all"]:
                _print_help(ctx, {each: _command(each) for each in self.list_commands(ctx)})
                raise typer.Exit
            return self.resolve_command(ctx, [args[1], "--help"])
        if command := _command(name):
            return name, command, args[1:]
        self.commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return super().resolve_command(ctx, args)  # complains, and names what is near


def _listed(name: str, about: str, panel: str) -> Any:
    return TyperCommand(name, short_help=unmarked(about), rich_help_panel=panel)


def _print_help(ctx: Any, commands: dict[str, Any]) -> None:
    """Print the help of a group, then that of each of its commands."""
    print(ctx.get_help())
    for name, command in commands.items():
        _print_help(type(ctx)(command, info_name=name, parent=ctx), getattr(command, "commands", {}))


def _command(name: str) -> Any:
    """Make a command, or give None if there is none of this name."""
    if entry := COMMANDS.get(name):
        return _with_examples(name, made(name, entry.make(), entry.settings))
    pack = library.named(name)
    if pack is None:
        return None
    return report_command(pack, name)


def _with_examples(path: str, command: Any) -> Any:
    """Put examples at the end of a command's help, and of those of the commands in it."""
    command.epilog = epilog(EXAMPLES.get(path, ()))
    for name, inner in getattr(command, "commands", {}).items():
        _with_examples(f"{path} {name}", inner)
    return command if " " in path else as_written(command)
