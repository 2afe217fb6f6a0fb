"""Run commands in forked processes that need not import anything first: a line of JSON in, one out.

In:  {"arguments": ["top", "x.sqlite"], "folder": where stdout and stderr go, "work": the working folder}
Out: {"code": its exit code, or minus the signal; "seconds": of CPU time; "peak_mb": peak memory}
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import duckdb  # noqa: F401 - slow imports that the forked commands share
import jinja2  # noqa: F401
import numpy as np  # noqa: F401

from nsys_insight.__main__ import main
from nsys_insight.cli import run  # noqa: F401
from nsys_insight.cli.commands import diagnose, diff, report, sql  # noqa: F401

LIMIT_S = 20.0


def serve() -> None:
    """Answer one line after another."""
    for line in sys.stdin:
        request = json.loads(line)
        started = time.monotonic()
        child = os.fork()
        if not child:
            os.chdir(request["work"])
            _run_as_child(request["arguments"], Path(request["folder"]))
        code, seconds, memory = _wait_for_end(child, started + 10 * LIMIT_S)
        try:
            print(json.dumps({"code": code, "seconds": seconds, "peak_mb": memory}), flush=True)
        except BrokenPipeError:  # the run is over
            os._exit(0)


def _run_as_child(arguments: list[str], folder: Path) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        target = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["nsys-insight", *arguments]
    code = 0
    try:
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - the fuzz run looks for these
        import traceback

        traceback.print_exc()
        code = 99
    # What a process does at its end: it removes its temporary files.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _cpu_seconds(child: int) -> float:
    """Return the CPU seconds of a process. Its wall time is longer on a busy machine."""
    with suppress(OSError):
        words = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _wait_for_end(child: int, deadline: float) -> tuple[int, float, float]:
    while True:
        ended_pid, status, usage = os.wait4(child, os.WNOHANG)
        if ended_pid:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        if time.monotonic() > deadline or _cpu_seconds(child) > LIMIT_S:
            os.kill(child, signal.SIGKILL)
            os.wait4(child, 0)
            return -signal.SIGKILL, LIMIT_S, 0.0
        time.sleep(0.005)


if __name__ == "__main__":
    serve()
