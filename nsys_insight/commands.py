"""The commands by name: what ``--help`` lists of each, and each made only when it is the one that was typed."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from nsys_insight import packs
from nsys_insight.errors import Exit
from nsys_insight.sides_command import SidesCommand

if TYPE_CHECKING:
    from nsys_insight.packs import Pack

HELP = {"help_option_names": ["--help", "-h"]}


@dataclass(frozen=True)
class Entry:
    """A command that is no pack.

    Attributes:
        panel: Under which heading it is listed.
        about: What it does, in a line.
        source: ``module:name`` of its function or group, or ``module:name()`` of what makes that.
        settings: What Typer is told of it.
    """

    panel: str
    about: str
    source: str
    settings: dict[str, Any] = field(default_factory=dict)


_OTHER_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

_FIRST = "Start here"
COMMANDS = {
    "diagnose": Entry(
        _FIRST, "What bounds the run, what it costs, and what to do first", "diagnose_command:diagnose_command()"
    ),
    "report": Entry(
        _FIRST, "The diagnosis and all reports in one HTML or Markdown file", "report_command:report_command()"
    ),
    "capture": Entry(
        _FIRST,
        "Profile a program with your nsys as the reports need it, and diagnose it",
        "capture_command:capture",
        {"context_settings": {"allow_interspersed_args": False, **HELP}},
    ),
    "diff": Entry(
        "Compare",
        "What a change moved, and whether to keep it",
        "compare_commands:diff_command()",
        {"cls": SidesCommand},
    ),
    "check": Entry(
        "Compare", "Hold a run to a budget or a baseline; exit 1 if it is broken", "compare_commands:check_command()"
    ),
    "baseline": Entry(
        "Compare", "Save what a run measured, to compare later runs with it", "compare_commands:baseline_app()"
    ),
    "sql": Entry("Explore", "Ask any question in DuckDB's SQL over the model's views", "sql_command:sql_command()"),
    "shell": Entry(
        "Explore",
        "Ask in SQL at a prompt, with history, completion and the reports at hand",
        "sql_command:shell_command()",
    ),
    "explore": Entry("Explore", "Open the model in Harlequin, where it is installed", "explore:explore"),
    "run": Entry(
        "Explore",
        "Answer the report of a file: run ./mine.sql TRACE",
        "pack_commands:run",
        {"context_settings": _OTHER_ARGUMENTS},
    ),
    "packs": Entry(
        "Explore", "List the packs: reports that are .sql files, built in and your own", "pack_commands:app"
    ),
    "schema": Entry("Explore", "Describe the views that sql can query, and their columns", "small_commands:schema"),
    "demo": Entry("Explore", "Run the main reports on a sample trace", "small_commands:demo"),
    "ncu": Entry(
        "Nsight Compute", "Which launch to profile, what ncu measured, and what to change", "ncu.commands:app"
    ),
    "convert": Entry(
        "Traces",
        "Hand a trace over: a DuckDB file, a Parquet folder, a timeline for Perfetto",
        "convert_command:convert_command()",
    ),
    "export": Entry("Traces", "Export a report to SQLite with your nsys", "small_commands:export"),
    "cache": Entry("Traces", "Show the folder of exports and DuckDB copies, or empty it", "small_commands:cache"),
}

# Packs whose command has a flag of its own.
_SPECIAL = {
    "classify": "kernel_commands:classify_command()",
    "fusion": "kernel_commands:fusion_command()",
    "roofline": "kernel_commands:roofline_command()",
}


class Commands(TyperGroup):
    """The commands of the package and the user's packs.

    What is listed are commands without flags: to make those of all takes longer than to answer most questions.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Click passes it
        """Name them in the order of the help."""
        from nsys_insight import user_packs

        first = [name for name, entry in COMMANDS.items() if entry.panel == _FIRST]
        others = [name for name in COMMANDS if name not in first]
        return [*first, *packs.built_in(), *others, *user_packs.load().packs]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Click passes it
        """Give what the help and completion list."""
        from nsys_insight import user_packs

        if entry := COMMANDS.get(cmd_name):
            return _listed(cmd_name, entry.about, entry.panel)
        if pack := packs.built_in().get(cmd_name):
            return _listed(cmd_name, pack.title, "Reports")
        pack = user_packs.load().packs.get(cmd_name)
        return pack and _listed(cmd_name, pack.title, "Your reports")

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed. Whoever reads the output may have enough of it, such as head."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Typer would end with 1; and Python must not try to flush the rest at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.OK

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Make the command that was typed."""
        name = args[0]
        if command := _command(name):
            return name, command, args[1:]
        self.commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return super().resolve_command(ctx, args)  # complains, and names what is near


def _listed(name: str, about: str, panel: str) -> Any:
    return TyperCommand(name, short_help=about, rich_help_panel=panel)


def _command(name: str) -> Any:
    """Make a command, or give None if there is none of this name."""
    if entry := COMMANDS.get(name):
        return _made(name, _named(entry.source), entry.settings)
    pack = packs.named(name)
    if pack is None:
        return None
    if source := _SPECIAL.get(pack.name):
        return _made(name, _named(source), {})
    return _made(name, _of(pack), {})


def _named(source: str) -> Any:
    module, _, name = source.partition(":")
    found = getattr(import_module(f"nsys_insight.{module}"), name.removesuffix("()"))
    return found() if name.endswith("()") else found


def _of(pack: Pack) -> Any:
    from nsys_insight.command import pack_command

    return pack_command(pack)


def _made(name: str, what: Any, settings: dict[str, Any]) -> Any:
    holder = typer.Typer(add_completion=False, context_settings=HELP)
    if isinstance(what, typer.Typer):
        holder.add_typer(what, name=name)
        return typer.main.get_group(holder).commands[name]
    holder.command(name=name, **settings)(what)
    return typer.main.get_command(holder)
