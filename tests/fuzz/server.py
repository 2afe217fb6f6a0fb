"""Runs commands, each in a process of its own that need not import anything first: a line of JSON in, one out.

In:  {"arguments": ["top", "x.sqlite"], "folder": where stdout and stderr go}
Out: {"code": its exit code, or minus the signal; "seconds", "megabytes": at most in memory}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import duckdb  # noqa: F401 - what takes long to import, so that each command need not
import jinja2  # noqa: F401
import numpy as np  # noqa: F401

from nsys_insight.__main__ import main
from nsys_insight.cli import run  # noqa: F401
from nsys_insight.cli.commands import compare, diagnose, report, sql  # noqa: F401

LIMIT_S = 20.0


def serve() -> None:
    """Answer line after line."""
    for line in sys.stdin:
        asked = json.loads(line)
        started = time.monotonic()
        child = os.fork()
        if not child:
            _become(asked["arguments"], Path(asked["folder"]))
        code, memory = _ended(child, started + 10 * LIMIT_S)
        seconds = time.monotonic() - started
        print(json.dumps({"code": code, "seconds": seconds, "megabytes": memory}), flush=True)


def _become(arguments: list[str], folder: Path) -> None:
    for number, name in ((1, "out"), (2, "err")):
        target = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["nsys-insight", *arguments]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - it is what is looked for
        import traceback

        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _worked(child: int) -> float:
    """The seconds that a process worked: on a machine that does other things too, it runs for longer."""
    with suppress(OSError):
        words = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _ended(child: int, until: float) -> tuple[int, float]:
    while True:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024
        if time.monotonic() > until or _worked(child) > LIMIT_S:
            os.kill(child, signal.SIGKILL)
            os.wait4(child, 0)
            return -signal.SIGKILL, 0.0
        time.sleep(0.005)


if __name__ == "__main__":
    serve()
