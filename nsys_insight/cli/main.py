"""The command line: what it is called with, and how it ends."""

from __future__ import annotations

import io
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, cast

import typer

from nsys_insight.cli import ending, terminal
from nsys_insight.cli.commands import HELP
from nsys_insight.cli.progress_line import progress_line
from nsys_insight.cli.registry import Commands
from nsys_insight.errors import Exit, InsightError, UsageError
from nsys_insight.packs.library import use_folder
from nsys_insight.paths import expanded
from nsys_insight.version import __version__

app = typer.Typer(
    name="nsys-insight",
    cls=Commands,
    help="SQL over NVIDIA Nsight Systems traces: where the GPU time went. Start with: nsys-insight diagnose TRACE",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)
# When Ctrl-C was typed, and for how long after that it is not heard.
_interrupted = [0.0]
_PATIENCE_S = 1.0


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer passes the flag's value
    if wanted:
        print(f"nsys-insight {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001, FBT002 - a flag, and its callback acts on it
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    pack_dir: Annotated[  # noqa: ARG001 - `_take_pack_folder` has taken it, because it brings commands
        Path | None,
        typer.Option("--pack-dir", help="The folder of your packs: .sql files, each a command.", show_default=False),
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        from nsys_insight.cli.commands.diagnose import greet

        if not greet():
            print(context.get_help())


def _take_pack_folder(arguments: list[str]) -> None:
    """Take ``--pack-dir`` out of the arguments, wherever it stands: it says which commands there are."""
    for at, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--pack-dir":
            count = 1 if equals else 2
            folder = value or "".join(arguments[at + 1 : at + 2])
            if not expanded(folder).is_dir():
                raise UsageError(f"there is no folder {folder!r}", "--pack-dir is a folder of .sql files")
            use_folder(expanded(folder))
            del arguments[at : at + count]
            break


def main() -> None:
    """Run the command line, and turn what went wrong into one sentence, a hint and an exit code."""
    terminal.open_closed()
    for stream in (sys.stdout, sys.stderr):
        # Tables have lines and µ in them, also in a pipe whose locale says ASCII.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    # Before the process ends, temporary files are removed, and an nsys that it started is stopped.
    ending.on(signal.SIGTERM, lambda *_: sys.exit(Exit.TERMINATED), Exit.TERMINATED)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # a shell's background job ignores it
        ending.on(signal.SIGINT, _interrupt, Exit.INTERRUPTED)
    progress_line.begin()
    try:
        code = _run()
    except SystemExit as error:
        ending.end_what_runs(error.code)
        raise
    finally:
        progress_line.end()
    if code == Exit.INTERRUPTED:
        print("interrupted", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and done
    ending.end_what_runs(code or Exit.OK)
    sys.exit(code or Exit.OK)


def _run() -> int | None:
    """Run the command, and return its exit code."""
    try:
        _take_pack_folder(sys.argv)
        code = cast("int | None", app(standalone_mode=False, prog_name="nsys-insight"))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # what DuckDB makes of a signal while the main thread waits for it
            raise
        return ending.code_of_the_signal(Exit.INTERRUPTED)
    except Exception as error:
        said = _said_of(error)
        if said is None:
            raise
        terminal.complain(said, as_json=_is_for_machines(sys.argv[1:]))
        return said.exit_code
    return code


def _said_of(error: Exception) -> InsightError | None:
    """Say in a sentence and a hint what went wrong; None of what should not have."""
    if isinstance(error, InsightError):
        return error
    if isinstance(error, OSError):
        if error.filename is not None:
            return InsightError(f"{error.filename}: {error.strerror or error}", f"ls -ld {error.filename}; df")
        terminal.forget_stdout()
        return InsightError(f"the answer cannot be written: {error.strerror or error}", "make room for it")
    # Typer's own complaints about the command line; their class is not public.
    if getattr(error, "exit_code", None) != Exit.USAGE or not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path if context else 'nsys-insight'} --help"
    message, first = error.format_message(), "".join(sys.argv[1:2])
    if message.startswith("No such command") and Path(first).exists():
        message, hint = f"{first} is not a command", f"the command comes first: nsys-insight diagnose {first}"
    return UsageError(message, hint)


def _is_for_machines(arguments: list[str]) -> bool:
    """Tell whether JSON is asked for, from what was typed: what is wrong may be the command line itself."""
    fmt = ""
    for flag, behind in zip(arguments, [*arguments[1:], ""], strict=True):
        if flag == "--":
            break
        if flag in ("-f", "--format"):
            fmt = behind
        elif flag.startswith(("--format=", "-f")):
            fmt = flag.removeprefix("--format=").removeprefix("-f").removeprefix("=")
    return fmt in ("json", "jsonl")


def _interrupt(*_: object) -> None:
    """End the command as Ctrl-C does; an impatient second one must not end what is then cleaning up."""
    now = time.monotonic()
    if now - _interrupted[-1] > _PATIENCE_S:
        _interrupted.append(now)
        raise KeyboardInterrupt
