"""What must hold of a command whatever the trace is: how it ends, what it says, and that its sums are those of the file.

The sums are asked of SQLite itself: how many kernels there are, and how long they took.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

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
        if self.code == -9:
            return f"still running after {LIMIT_S:g} s"
        if self.code not in CODES:
            return f"exit code {self.code}: {self.err[-600:]}"
        if spoken := SPOKEN.search(self.err):
            return f"says {spoken[0]!r}: {self.err[-600:]}"
        if self.megabytes > LIMIT_MB:
            return f"held {self.megabytes:.0f} MB"
        if self.code and not self.err.startswith(("error: ", "note: ")):
            return f"ends with {self.code} and says {self.err[:300]!r}"
        if self.code:
            return ""
        return _wrong_sum(self, trace)


class Commands:
    """Runs commands by a server, in a folder of their own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env={**__import__("os").environ, **environment},
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
