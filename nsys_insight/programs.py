"""Run the user's programs and tools: record their output and time, and kill everything that they started."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError, UsageError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MAX_LAST_LINES = 3  # last lines of the output in an error message


@dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    Attributes:
        code: Exit code; None after a timeout.
        output: Text on stdout.
        errors: Text on stderr.
        seconds: Wall time.
    """

    code: int | None
    output: str
    errors: str
    seconds: float

    @property
    def last_lines(self) -> str:
        """Return the last lines of stderr, or of stdout if stderr is empty, joined to one line."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        return " / ".join(lines[-_MAX_LAST_LINES:])


def run(command: str | Sequence[str], timeout: float | None = None, cwd: Path | None = None) -> CommandResult:
    """Run a command. A text runs in a shell, a list of words without one.

    Raises:
        UsageError: The program does not exist or cannot be run.
    """
    import subprocess

    begin = time.perf_counter()
    try:
        # A session of its own, so that a timeout kills its child processes too.
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            command, shell=isinstance(command, str), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True, cwd=cwd,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(
            f"{format_command(command)} cannot be run: {error.strerror}",
            "options stand before the command: nsys-insight bench --max-runs 12 -- COMMAND",
        ) from None
    code: int | None
    try:
        output, errors = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        kill(process)
        output, errors = process.communicate()
        code = None
    except BaseException:
        kill(process)
        raise
    return CommandResult(code, output, errors, time.perf_counter() - begin)


def run_visibly(command: Sequence[str], variables: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command, with more environment variables. Return its exit code and its output, which also goes to stderr.

    Raises:
        OSError: The program does not exist or cannot be run.
    """
    import subprocess

    lines = []
    with subprocess.Popen(  # noqa: S603 - the user's own command
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env={**os.environ, **(variables or {})},
    ) as process:  # fmt: skip
        for line in process.stdout or ():
            sys.stderr.write(line)
            lines.append(line)
    return process.returncode, "".join(lines)


def make_command_error(command: str | Sequence[str], result: CommandResult) -> InsightError:
    """Make the error of a command that failed or did not end in time."""
    failure = "did not end in time" if result.code is None else f"ended with exit code {result.code}"
    last_lines_text = f": {result.last_lines}" if result.last_lines else ""
    return InsightError(f"{format_command(command)} {failure}{last_lines_text}", "run it by hand and check its output")


def format_command(command: str | Sequence[str]) -> str:
    """Return a command as the user would type it."""
    return command if isinstance(command, str) else shlex.join(command)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process that has a session of its own, with all that it started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
