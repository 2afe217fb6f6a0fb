"""The entry point of the command line: arguments, signals, error messages and exit codes."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, cast

import typer

from nsys_insight import outputs, own_files
from nsys_insight.cli import ending, synonyms, terminal
from nsys_insight.cli.commands import HELP_SETTINGS
from nsys_insight.cli.progress_line import progress_line
from nsys_insight.cli.registry import Commands
from nsys_insight.errors import Exit, InsightError, UsageError, describe_cause
from nsys_insight.packs.library import find_pack
from nsys_insight.paths import expand_home
from nsys_insight.text.suggestions import did_you_mean, format_suggestion
from nsys_insight.version import __version__

app = typer.Typer(
    name="nsys-insight",
    cls=Commands,
    help="SQL over NVIDIA Nsight Systems traces: where the GPU time went. Start with: nsys-insight diagnose TRACE",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings=HELP_SETTINGS,
)
# The system's errors for names that no file can have: too long, or links in a circle.
_IMPOSSIBLE_NAMES = (errno.ENAMETOOLONG, errno.ELOOP)
# Click's message about a number below the smallest one that an option takes.
_BELOW_RANGE = re.compile(r"Invalid value for '(--[\w-]+)'.*: (-?[\d.]+) is not in the range x>=([\d.]+)\.")
# Other messages of Click, and what stands in their place.
_CLICK_MESSAGES = (
    (r"Invalid value for '(--[\w-]+)'.*?: ('.*') is not a valid int\b.*", r"\1 takes a whole number, not \2"),
    (r"Invalid value for '(--[\w-]+)'.*?: ('.*') is not a valid float\b.*", r"\1 takes a number, not \2"),
    (r"Invalid value for '(--[\w-]+)'.*: (\S+) is not in the range (\S+)<=x<=(\S+)\.", r"\1 takes \3 to \4, not \2"),
    (r"Got unexpected extra argument\S* \((.*)\)", r"too many arguments: \1"),
    (r"Missing (option|argument) '(.*)'\.", r"the \1 \2 is missing"),
)
# Times of Ctrl-C, and the time after it during which another one is ignored.
_interrupt_times_s = [0.0]
_INTERRUPT_PAUSE_S = 1.0


def _print_version(is_requested: bool) -> None:  # noqa: FBT001 - Typer passes the flag's value
    if is_requested:
        print(f"nsys-insight {__version__}")
        raise typer.Exit


@app.callback()
def _greet_without_command(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001, FBT002 - a flag, and its callback acts on it
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    pack_dir: Annotated[  # noqa: ARG001 - `_use_pack_folder` has removed it
        Path | None, typer.Option("--pack-dir", help="Directory of your report packs (.sql files).")
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        from nsys_insight.cli.commands.diagnose import greet

        if not greet():
            print(context.get_help())


def _use_pack_folder(arguments: list[str]) -> None:
    """Move ``--pack-dir`` from the arguments to its variable. It must be read first: packs are commands."""
    for index, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--pack-dir":
            folder = value or "".join(arguments[index + 1 : index + 2])
            if not expand_home(folder).is_dir():
                raise UsageError(f"there is no folder {folder!r}", "--pack-dir is a folder of .sql files")
            os.environ["NSYS_INSIGHT_PACK_DIR"] = folder
            del arguments[index : index + (1 if equals else 2)]
            break


def _prefer_help(arguments: list[str]) -> None:
    """Remove the options that install completion if help is requested: they would install it before the help."""
    if {"--help", "-h"} & set(arguments) and arguments[1].startswith(("--install-completion", "--show-completion")):
        arguments[1:] = ["--help"]


def main() -> None:
    """Run the command line. An error becomes one sentence, a hint and an exit code."""
    terminal.reopen_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # Tables contain line-drawing characters and µ, which an ASCII locale cannot encode.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    # SystemExit unwinds the stack: temporary files are removed, and a running nsys is stopped.
    ending.handle_signal(signal.SIGTERM, lambda *_: sys.exit(Exit.TERMINATED), Exit.TERMINATED)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # a background job of a shell ignores SIGINT
        ending.handle_signal(signal.SIGINT, _interrupt, Exit.INTERRUPTED)
    progress_line.begin()
    try:
        code = _run()
    except SystemExit as error:
        ending.exit_if_work_remains(error.code)
        raise
    finally:
        progress_line.end()
        _note_foreign_files()
    if code == Exit.INTERRUPTED:
        print("interrupted", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the answer is complete
    ending.exit_if_work_remains(code or Exit.OK)
    sys.exit(code or Exit.OK)


def _note_foreign_files() -> None:
    """Name the folders of killed commands that stay, because somebody put other files into them."""
    while own_files.foreign_files:
        folder, name = own_files.foreign_files.popitem()
        terminal.note(f"{folder} is left by a command that was killed, and stays: {name} in it is not nsys-insight's")


def _run() -> int | None:
    """Run the command and return its exit code."""
    try:
        outputs.uses_cache.set(True)
        _use_pack_folder(sys.argv)
        _prefer_help(sys.argv)
        code = cast("int | None", app(standalone_mode=False, prog_name="nsys-insight"))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except RuntimeError as error:
        if str(error).startswith("Symlink loop"):  # pathlib, before Python 3.13
            terminal.complain(UsageError(f"{error}", "name a file"), as_json=_is_json_requested(sys.argv[1:]))
            return Exit.USAGE
        if str(error) != "Query interrupted":  # DuckDB raises this for a signal while the main thread waits for it
            raise
        return ending.get_signal_exit_code(Exit.INTERRUPTED)
    except Exception as error:
        user_error = _describe_error(error)
        if user_error is None:
            raise
        terminal.complain(user_error, as_json=_is_json_requested(sys.argv[1:]))
        return user_error.exit_code
    return code


def _is_working_folder_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _describe_error(error: Exception) -> InsightError | None:
    """Describe an error in a sentence and a hint. Return None for an unexpected error, which is a bug."""
    if _is_working_folder_gone():  # libraries fail for this reason with other words
        return UsageError("the folder in which the command was started was removed", "cd to a folder that exists: cd ~")
    if isinstance(error, InsightError):
        return error
    if isinstance(error, OSError):
        return _describe_system_error(error)
    # Typer's usage errors: their class is not public.
    if getattr(error, "exit_code", None) != Exit.USAGE or not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path if context else 'nsys-insight'} --help"
    message, first = error.format_message(), "".join(sys.argv[1:2])
    if not message and context:  # the help has been printed
        message, hint = f"{context.command_path} needs a subcommand", f"choose one of those above: {hint}"
    if message.startswith("No such command"):
        from nsys_insight.cli.commands.help import complete_commands

        # The name of a subcommand follows that of its command, and `help` explains the command after it.
        is_inner = bool(context and context.parent)
        name = "".join(sys.argv[2:3]) if is_inner or first == "help" else first
        message = f"there is no command {name!r}"
        if not is_inner:
            synonym = synonyms.COMMANDS.get(name.lower())
            suggestion = format_suggestion([synonym]) if synonym else did_you_mean(name, complete_commands(""))
            hint = " ".join(filter(None, (suggestion, "nsys-insight help --all lists them")))
        if os.path.exists(first):  # noqa: PTH110 - false for a name that no file can have
            message, hint = f"{first} is not a command", f"the command comes first: nsys-insight diagnose {first}"
    else:
        message, hint = _describe_option_error(error, message, hint)
    return UsageError(message, hint)


def _describe_option_error(error: Exception, message: str, hint: str) -> tuple[str, str]:
    """Return the message and hint for an option that is unknown, or whose value is missing or wrong; else Click's."""
    if too_small := _BELOW_RANGE.match(message):
        flag, value, minimum = too_small.groups()
        return f"{flag} is {value}, which is less than {minimum}", f"{flag} {minimum}"
    option = getattr(error, "option_name", None)
    if not option:
        return _rewrite_message(message), hint
    if not hasattr(error, "possibilities"):  # the option exists
        problem = "takes no value" if "does not take" in message else "needs a value"
        return f"{option} {problem}", f"nsys-insight {''.join(sys.argv[1:2])} --help"  # the error has no context
    command = "".join(sys.argv[1:2])
    pack = find_pack(command)
    replacement = synonyms.REPLACED_OPTIONS.get((pack.name if pack else command, option))
    other_hint = f"nsys-insight {replacement}" if replacement else synonyms.OTHER_HINTS.get(option)
    context = getattr(error, "ctx", None)
    own_options = {name for parameter in (context.command.params if context else ()) for name in parameter.opts}
    known_texts = [text for text in synonyms.OPTIONS.get(option, ()) if text.split()[0] in own_options]
    similar_options = format_suggestion(known_texts) or did_you_mean(
        option, getattr(error, "possibilities", None) or ()
    )
    return f"there is no option {option}", other_hint or " ".join(filter(None, (similar_options, hint)))


def _rewrite_message(message: str) -> str:
    """Return a message of Click in this program's words, or the message if it is another one."""
    matches = ((re.fullmatch(pattern, message, re.DOTALL), text) for pattern, text in _CLICK_MESSAGES)
    return next((match.expand(text) for match, text in matches if match), message)


def _describe_system_error(error: OSError) -> InsightError:
    """Describe an error of the operating system: about a file, or about stdout."""
    if error.errno in _IMPOSSIBLE_NAMES:
        return UsageError(f"{str(error.filename)[:80]}: {error.strerror}", "name another file")
    if error.filename is not None:
        return InsightError(f"{error.filename}: {describe_cause(error)}", f"ls -ld {error.filename}; df")
    terminal.discard_stdout()
    return InsightError(f"the answer cannot be written: {describe_cause(error)}", "make room for it")


def _is_json_requested(arguments: list[str]) -> bool:
    """Return whether the arguments request JSON. They are read here because parsing them may have failed."""
    format_name = ""
    for flag, next_argument in zip(arguments, [*arguments[1:], ""], strict=True):
        if flag == "--":
            break
        if flag in ("-f", "--format"):
            format_name = next_argument
        elif flag.startswith(("--format=", "-f")):
            format_name = flag.removeprefix("--format=").removeprefix("-f").removeprefix("=")
    return format_name in ("json", "jsonl")


def _interrupt(*_: object) -> None:
    """End the command as Ctrl-C does. A second Ctrl-C soon after is ignored: it would interrupt the clean-up."""
    now = time.monotonic()
    if now - _interrupt_times_s[-1] > _INTERRUPT_PAUSE_S:
        _interrupt_times_s.append(now)
        raise KeyboardInterrupt
