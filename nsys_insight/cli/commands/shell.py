"""The command ``shell``: a prompt for SQL over one trace or several, and for the reports."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, make_argument, make_command
from nsys_insight.cli.progress_line import progress_line
from nsys_insight.cli.run import open_traces
from nsys_insight.cli.shell_entries import Shell, is_command
from nsys_insight.errors import InsightError
from nsys_insight.text.cells import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

WELCOME = "End SQL with a semicolon. .help lists commands, Tab completes, Ctrl-D exits."
_SHELL_HELP = """An SQL prompt with history, completion and the reports.

Tab completes views after FROM and JOIN, their columns, functions and, in quotes, names of kernels and ranges; .run
REPORT takes the flags of the report's command, .scope those of its scope.
With several traces, every view has a column trace. Entries may also come from a pipe."""


def make_shell_command() -> Callable[..., None]:
    """Make the command ``shell``."""

    def run(arguments: list[str] | None, flags: Flags) -> None:
        with open_traces([Path(argument) for argument in arguments or []], flags, can_expand_folders=True) as trace:
            shell = Shell(trace, full_names=flags.full_names, no_color=flags.no_color)
            interact(shell, is_history_saved=flags.cache is not False)

    traces_argument = make_argument(
        "arguments", list[str] | None, "[TRACE]...", "Traces; a folder stands for all traces in it."
    )
    return make_command(run, _SHELL_HELP, argument=traces_argument)


def interact(shell: Shell, *, is_history_saved: bool = True) -> None:
    """Read and execute entries from the terminal or a pipe until the end of the input.

    `is_history_saved`: save the history of the terminal to a file.

    Raises:
        InsightError: An entry from a pipe failed. In a terminal, the error is printed and the prompt continues.
    """
    if not sys.stdin.isatty():
        for entry in split_entries(sys.stdin):
            with suppress(EOFError):
                shell.execute(entry)
                continue
            return
        return
    from nsys_insight.cli.prompt import make_prompt_session

    session = make_prompt_session(shell, is_history_saved=is_history_saved)
    print(printable(shell.trace.path.name), WELCOME, sep="\n")
    while True:
        try:
            with progress_line.pause():
                entry = session.prompt()
            _execute_or_report(shell, entry)
        except EOFError:
            return
        except KeyboardInterrupt:
            continue


def _execute_or_report(shell: Shell, entry: str) -> None:
    """Execute an entry from the terminal. Errors and interrupts are printed."""
    try:
        shell.execute(entry)
    except InsightError as error:
        terminal.complain(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # DuckDB's error after Ctrl-C
            raise
        print("interrupted", file=sys.stderr)


def split_entries(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines of a script into entries."""
    entry = ""
    for line in lines:
        entry += line
        if entry.strip() and (is_command(entry) or entry.rstrip().endswith(";")):
            yield entry
            entry = ""
    if entry.strip():
        yield entry


SHELL = Command(
    "shell",
    make_shell_command,
    group="ask",
    place=110,
    in_help=True,
    help="An SQL prompt with history, completion and the reports",
    examples=("shell trace.nsys-rep", "shell trace.nsys-rep --nvtx decode_step"),
)
