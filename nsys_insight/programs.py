"""Find and run the user's programs and tools: record their output and time, and kill everything that they started."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError, ToolError, UsageError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Mapping, Sequence

# Where the tools of CUDA are, in addition to the PATH.
CUDA_FOLDERS = ("/usr/local/cuda*/bin", "/opt/cuda/bin", "/opt/nvidia/hpc_sdk/Linux_*/*/cuda/*/bin")
_EXECUTABLE_SUFFIX = ".exe" if sys.platform == "win32" else ""
_COMPILERS = ("cc", "gcc", "clang")
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


def find_tool(name: str, patterns: Iterable[str] = CUDA_FOLDERS) -> Path | None:
    """Find a tool: on the PATH, else in the folders of the first pattern that has it, the newest version first."""
    import glob
    import shutil

    if on_path := shutil.which(name):
        return Path(on_path)
    folders = (folder for pattern in patterns for folder in sorted(glob.glob(pattern), key=_split_numbers)[::-1])  # noqa: PTH207 (absolute)
    return next(filter(None, (find_in_folder(name, Path(folder)) for folder in folders)), None)


def find_in_folder(name: str, *folders: Path) -> Path | None:
    """Return the first executable of this name in some folders."""
    paths = (folder / f"{name}{_EXECUTABLE_SUFFIX}" for folder in folders)
    return next((path for path in paths if path.is_file() and os.access(path, os.X_OK)), None)


def _split_numbers(text: str) -> list[str | int]:
    """Split a text into its numbers and what is between them, to sort cuda-12.10 after cuda-12.9."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]


def compile_c(source: Path, output: Path, *flags: str, purpose: str, hint: str) -> Path:
    """Compile a C source of the package with the user's compiler, and return the output.

    Raises:
        ToolError: There is no C compiler, or it failed. The text begins with the purpose, the hint is the caller's.
    """
    import shutil
    import subprocess

    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if sys.platform != "linux" or not compiler:
        raise ToolError(f"{purpose} needs Linux and a C compiler, and there is none here", hint)
    command = [compiler, "-O2", *flags, "-o", str(output), str(source), "-ldl"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the user's compiler
    if process.returncode:
        raise ToolError(f"{shlex.join(command)} failed: {process.stderr.strip()[:200]}", hint)
    return output
