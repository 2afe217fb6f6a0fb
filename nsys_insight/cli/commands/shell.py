"""The command ``shell``: a prompt for SQL over one trace or several, and for the reports."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, argument, with_flags
from nsys_insight.cli.progress_line import progress_line
from nsys_insight.cli.run import open_traces
from nsys_insight.cli.shell_entries import Shell
from nsys_insight.errors import InsightError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

WELCOME = "SQL ends with a semicolon. .help lists the rest, Tab completes, Ctrl-D leaves."
_TEXT = """An SQL prompt with history, completion and the reports.

Tab completes views after FROM and JOIN, their columns, functions and, in quotes, names of kernels and ranges; .run
REPORT takes the flags of the report's command, .scope those of its scope.
With several traces, every view has a column trace. Entries may also come from a pipe."""


def shell_command() -> Callable[..., None]:
    """Make the command ``shell``."""

    def run(arguments: list[str] | None, flags: Flags) -> None:
        with open_traces([Path(each) for each in arguments or []], flags, folders=True) as opened:
            shell = Shell(opened, full_names=flags.full_names, no_color=flags.no_color)
            interact(shell, lasting=flags.cache is not False)

    traces = argument("arguments", list[str] | None, "[TRACE]...", "Traces; a folder stands for all traces in it.")
    return with_flags(run, _TEXT, argument=traces)


def interact(shell: Shell, *, lasting: bool = True) -> None:
    """Read entries from the terminal, or from a pipe, until there are no more; `lasting` is their history.

    Raises:
        InsightError: An entry that came from a pipe failed. In a terminal, the next one is asked for.
    """
    if not sys.stdin.isatty():
        for entry in entries(sys.stdin):
            with suppress(EOFError):
                shell.execute(entry)
                continue
            return
        return
    from nsys_insight.cli.prompt import prompt_session

    session = prompt_session(shell, lasting=lasting)
    print(WELCOME)
    while True:
        try:
            with progress_line.paused():
                entry = session.prompt()
            _execute(shell, entry)
        except EOFError:
            return
        except KeyboardInterrupt:
            continue


def _execute(shell: Shell, entry: str) -> None:
    """Execute what was typed; if it fails or is interrupted, say so."""
    try:
        shell.execute(entry)
    except InsightError as error:
        terminal.complain(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # what DuckDB makes of Ctrl-C
            raise
        print("interrupted", file=sys.stderr)


def entries(lines: Iterable[str]) -> Iterator[str]:
    """Put the lines of a script together to entries."""
    entry = ""
    for line in lines:
        entry += line
        if entry.strip() and (entry.lstrip().startswith(".") or entry.rstrip().endswith(";")):
            yield entry
            entry = ""
    if entry.strip():
        yield entry


SHELL = Command(
    "shell",
    shell_command,
    group="ask",
    place=110,
    help="An SQL prompt with history, completion and the reports",
    examples=("shell trace.nsys-rep", "shell trace.nsys-rep --nvtx decode_step"),
)
