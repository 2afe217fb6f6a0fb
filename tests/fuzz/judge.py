"""What must hold of a command whatever the trace is: how it ends, what it says, and that its sums are the file's own.

The sums are asked of SQLite itself: how many kernels there are, and how long they took.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import edits
from server import LIMIT_S

CODES = (0, 1, 3)
LIMIT_MB = 1600
# Words of our own SQL, of Python and of DuckDB's troubles with itself.
SPOKEN = re.compile(r"Traceback|LINE \d|\bSELECT\b|INTERNAL|\braw\.|\bwhole\.|internal\.|File \"", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it wrote."""

    arguments: tuple[str, ...]
    code: int
    seconds: float
    megabytes: float
    out: str
    err: str

    def fault(self, trace: Path) -> str:
        """Say what is wrong with it; empty if nothing is."""
        spoken = SPOKEN.search(self.err)
        says_nothing = self.code and not self.err.startswith(
            ("error: ", "note: ", '{"schema": "nsys-insight/1", "error": ')
        )
        faults = {
            f"still running after {LIMIT_S:g} s of work": self.code == -9,
            f"exit code {self.code}: {self.err[-600:]}": self.code not in CODES,
            f"says {spoken and spoken[0]!r}: {self.err[-600:]}": spoken,
            f"held {self.megabytes:.0f} MB": self.megabytes > LIMIT_MB,
            f"ends with {self.code} and says {self.err[:300]!r}": says_nothing,
        }
        return next((said for said, is_so in faults.items() if is_so), "") or (
            "" if self.code else _wrong_sum(self, trace)
        )


class Commands:
    """Runs commands by a server, in a folder of their own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env={**os.environ, **environment},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    def run(self, *arguments: str) -> Outcome:
        stdin, stdout = self._server.stdin, self._server.stdout
        assert stdin
        assert stdout
        stdin.write(json.dumps({"arguments": arguments, "folder": str(self.folder)}) + "\n")
        stdin.flush()
        ended: dict[str, Any] = json.loads(stdout.readline())
        out, err = ((self.folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
        return Outcome(arguments, **ended, out=out, err=err)


def judged(commands: Commands, base: Path, made: list[edits.Edit], command: tuple[str, ...]) -> tuple[str, int]:
    """Break a trace and ask it; what is wrong with the outcome, and its exit code."""
    path = commands.folder / "broken.sqlite"
    shutil.copyfile(base, path)
    edits.apply(path, made)
    words = 2 if command[0] == "ncu" else 1
    outcome = commands.run(*command[:words], str(path), *command[words:])
    return outcome.fault(path), outcome.code


def smallest(commands: Commands, base: Path, made: list[edits.Edit], command: tuple[str, ...]) -> list[edits.Edit]:
    """Leave out edits as long as something is wrong."""
    for edit in list(made) if len(made) > 1 else ():
        fewer = [other for other in made if other is not edit]
        if judged(commands, base, fewer, command)[0]:
            made = fewer
    return made


def _wrong_sum(outcome: Outcome, trace: Path) -> str:
    """Compare the kernels of `top` with those of the file."""
    if outcome.arguments[0] != "top" or "--format" not in outcome.arguments:
        return ""
    answer = json.loads(outcome.out)
    if "left_out" in answer["trace"]:
        return "" if "note: " in outcome.err else "leaves something out and does not say it on stderr"
    found = [(sum(row["calls"] for row in answer["rows"])), sum(row["total_ns"] or 0 for row in answer["rows"])]
    try:
        with closing(sqlite3.connect(f"{trace.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            (count, total) = database.execute(
                'SELECT count(*), total(max("end" - start, 0)) FROM CUPTI_ACTIVITY_KIND_KERNEL'
            ).fetchone()
    except sqlite3.Error:
        return "" if not any(found) else "reads what SQLite does not"
    return "" if found == [count, int(total)] else f"finds {found}, SQLite [{count}, {int(total)}]"
