"""The command line as tests call it: in this process, because starting one takes most of a test's time.

With NSYS_INSIGHT_COMMAND set, as CI does for the wheel, that command is run as a process.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from unittest.mock import patch

from kept_connections import keep_connections

from nsys_insight.cli import ending, main
from nsys_insight.ingest import cache_entries
from nsys_insight.packs import library

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPOSITORY = Path(__file__).parents[1]
INSTALLED = os.environ.get("NSYS_INSIGHT_COMMAND")
# Words that start a process of the command, for tests of signals, pipes, locks and concurrent processes.
PROCESS = [INSTALLED] if INSTALLED else [sys.executable, "-m", "nsys_insight"]
# Commands that run the user's SQL.
_OWN_CONNECTION = {"sql", "shell", "mcp"}
_TERMINAL_VARIABLES = {"COLUMNS", "NO_COLOR", "TERM"}


def run(
    *arguments: object,
    stdin: str | bytes = "",
    cwd: Path | str | None = None,
    env: Mapping[str, str | None] | None = None,
    text: bool = True,
    stdout: IO[Any] | None = None,
) -> subprocess.CompletedProcess[Any]:
    """Run a command and return the result of a process of it. `env` is added to the environment.

    A variable with the value None is unset. Stdout goes to a file if one is given. A Python error is printed to stderr
    with exit code 1.
    """
    words = list(map(os.fsdecode, (word if isinstance(word, str | bytes) else str(word) for word in arguments)))
    if INSTALLED:
        with _environment(None, env or {}):
            return subprocess.run(
                [*PROCESS, *words], input=stdin if text else os.fsencode(stdin), cwd=cwd, text=text, check=False,
                timeout=120, stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
    with ExitStack() as stack:
        stdin_file, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stdin_file.write(stdin.encode() if isinstance(stdin, str) else stdin)
        stdin_file.seek(0)
        with _environment(cwd, env or {}), _streams(stdin_file, stdout or out, err), _process_state():
            # The user's SQL changes a connection, and other variables select files and settings.
            can_keep = (env or {}).keys() <= _TERMINAL_VARIABLES and not _OWN_CONNECTION & set(words)
            with keep_connections() if can_keep else nullcontext():
                code = _call(words)
        output_texts = []
        for stream in (out, err):
            stream.seek(0)
            output_texts.append(stream.read().decode() if text else stream.read())
    return subprocess.CompletedProcess(["nsys-insight", *words], code, *output_texts)


def _call(words: list[str]) -> int:
    """Run `main` and return its exit code."""
    with patch.object(sys, "argv", ["nsys-insight", *words]):
        try:
            main.main()
        except SystemExit as error:
            if error.code is None or isinstance(error.code, int):
                return int(error.code or 0)
            print(error.code, file=sys.stderr)
            return 1
        except Exception:  # noqa: BLE001 - a process would print it as well
            traceback.print_exc()
            return 1
    return 0


@contextmanager
def _environment(cwd: Path | str | None, env: Mapping[str, str | None]) -> Iterator[None]:
    """Change the folder and the environment; clear the caches of values from the environment before and after."""
    before = Path.cwd()
    _forget()
    with patch.dict(os.environ, {name: value for name, value in env.items() if value is not None}):
        for name, value in env.items():
            if value is None:
                os.environ.pop(name, None)
        if cwd is not None:
            os.chdir(cwd)
        try:
            yield
        finally:
            os.chdir(before)
            _forget()


def _forget() -> None:
    tempfile.tempdir = None
    library.user_packs.cache_clear()


@contextmanager
def _streams(*files: IO[bytes]) -> Iterator[None]:
    """Let stdin, stdout and stderr be these files: the three of Python and, for child processes, the numbers 0 to 2."""
    before = [getattr(sys, name) for name in ("stdin", "stdout", "stderr")]
    for stream in before[1:]:
        stream.flush()
    numbers = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - closed below
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
        yield
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.close()
        sys.stdin, sys.stdout, sys.stderr = before
        for number, saved_number in enumerate(numbers):
            os.dup2(saved_number, number)
            os.close(saved_number)


@contextmanager
def _process_state() -> Iterator[None]:
    """Restore signals, locks of cache entries and the garbage collector.

    Code that would end this process fails the test instead.
    """
    entries = set(cache_entries._lock_descriptors)
    handlers = {signal_number: signal.getsignal(signal_number) for signal_number in (signal.SIGINT, signal.SIGTERM)}
    thresholds = gc.get_threshold()

    def refuse(code: int) -> None:
        raise AssertionError(f"the command left work running and ends its process with {code}: start one for it")

    with patch.object(ending, "handle_signal", lambda *_: None), patch.object(ending, "_exit_now", refuse):
        try:
            yield
        finally:
            for entry in set(cache_entries._lock_descriptors) - entries:
                cache_entries._unlock_entry(entry)
            gc.set_threshold(*thresholds)
            for signal_number, handler in handlers.items():
                signal.signal(signal_number, handler)
