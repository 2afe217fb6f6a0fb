"""Running the user's commands: what they print, how long they take, and that nothing of them is left."""

from __future__ import annotations

import os
import shlex
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError, UsageError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

_SHOWN = 3  # lines of what a program said last


@dataclass(frozen=True)
class Ran:
    """What became of a command.

    Attributes:
        code: Its exit code; None if its time was over.
        output: What it printed.
        errors: What it wrote to stderr.
        seconds: How long it took.
    """

    code: int | None
    output: str
    errors: str
    seconds: float

    @property
    def last_words(self) -> str:
        """The last lines of what it said, in one."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        return " / ".join(lines[-_SHOWN:])


def run(command: str | Sequence[str], timeout: float | None = None, cwd: Path | None = None) -> Ran:
    """Run a command: a text in a shell, as the user would type it; words as they are.

    Raises:
        UsageError: There is no such program.
    """
    import subprocess

    begin = time.perf_counter()
    try:
        # A group of its own: what it started ends with it, too.
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            command, shell=isinstance(command, str), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True, cwd=cwd,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"{shown(command)} cannot be run: {error.strerror}", "nsys-insight bench -- COMMAND") from None
    code: int | None
    try:
        output, errors = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        _end(process)
        output, errors = process.communicate()
        code = None
    except BaseException:
        _end(process)
        raise
    return Ran(code, output, errors, time.perf_counter() - begin)


def failed(command: str | Sequence[str], ran: Ran) -> InsightError:
    """The error of a command that did not do its work."""
    how = "did not end in time" if ran.code is None else f"ended with exit code {ran.code}"
    said = f": {ran.last_words}" if ran.last_words else ""
    return InsightError(f"{shown(command)} {how}{said}", "run it by hand and check its output")


def shown(command: str | Sequence[str]) -> str:
    """A command as it is typed."""
    return command if isinstance(command, str) else shlex.join(command)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
