"""Conditions for a command on any trace: its exit code, its messages, and sums that are those of the file.

The expected sums come from SQLite: the number of kernels and their total time.
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
import folders
import surroundings
from bases import other_ranks
from server import LIMIT_S

CODES = (0, 3)
OF_SEVERAL_TRACES = ("ranks", "collectives", "diagnose", "idle", "top")
# The views with a row for each row of a table, the column of sizes in both.
_TABLES = {
    "kernels": ("CUPTI_ACTIVITY_KIND_KERNEL", "", ""),
    "memcpys": ("CUPTI_ACTIVITY_KIND_MEMCPY", "size_bytes", "bytes"),
    "memsets": ("CUPTI_ACTIVITY_KIND_MEMSET", "size_bytes", "bytes"),
    "api_calls": ("CUPTI_ACTIVITY_KIND_RUNTIME", "", ""),
}
# Counts and sums of each table.
SUMS_QUERY = " UNION ALL ".join(
    f"SELECT '{view}' AS view, count(*) AS rows, coalesce(sum(duration_ns), 0)::BIGINT AS total_ns,"
    f" coalesce(sum({size or 0}), 0)::BIGINT AS bytes FROM {view}"
    for view, (_, size, _) in _TABLES.items()
)
LIMIT_MB = 1600
# Words of the package's own SQL, of Python errors and of DuckDB's internal errors.
INTERNAL_WORDS = re.compile(
    r"Traceback|LINE \d|\bSELECT\b|INTERNAL|\braw\.|\bunscoped\.|internal\.|File \"", re.IGNORECASE
)


@dataclass(frozen=True)
class Outcome:
    """Exit code, resources and output of a command."""

    arguments: tuple[str, ...]
    code: int
    seconds: float
    peak_mb: float
    out: str
    err: str
    change: str = ""

    def fault(self, trace: Path) -> str:
        """Describe what is wrong with it, compared with a SQLite file; an empty text if nothing is."""
        # A sentence about a settings file names its line, or its entries.
        own_words = "\n".join(line for line in self.err.splitlines() if "nsys-insight.toml is not valid" not in line)
        internal_word = INTERNAL_WORDS.search(own_words)
        has_no_message = self.code and not self.err.startswith(
            ("error: ", "note: ", '{"schema": "nsys-insight/1", "error": ')
        )
        faults = {
            f"still running after {LIMIT_S:g} s of work": self.code == -9,
            f"exit code {self.code}: {self.err[-600:]}": self.code not in CODES and not self._rejects_settings,
            self.change: bool(self.change),
            f"says {internal_word and internal_word[0]!r}: {self.err[-600:]}": internal_word,
            f"held {self.peak_mb:.0f} MB": self.peak_mb > LIMIT_MB,
            f"ends with {self.code} and says {self.err[:300]!r}": has_no_message,
        }
        return next((text for text, is_fault in faults.items() if is_fault), "") or (
            "" if self.code else _compare_sums(self, trace)
        )

    @property
    def _rejects_settings(self) -> bool:
        """Return whether it is a usage error that names the file with the settings of the user."""
        return self.code == 2 and self.err.startswith("error: ") and surroundings.SETTINGS_FILE in self.err


class Commands:
    """Run commands by a server, with a home, a working folder, a cache and a folder for temporary files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        surroundings.write(folder, [])
        self.work = folder / "project" / "work"
        environment = {
            "HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"),
            "XDG_DATA_HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home"),
            "NSYS_INSIGHT_CACHE_DIR": str(folder / "cache"),
        }  # fmt: skip
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.work,
            env={**os.environ, **environment},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    def run(self, *arguments: str) -> Outcome:
        """Run a command; its outcome has what it changed in the folders of the user."""
        stdin, stdout = self._server.stdin, self._server.stdout
        assert stdin
        assert stdout
        before = surroundings.read(self.folder)
        # The server may have to make the folder again.
        stdin.write(json.dumps({"arguments": arguments, "folder": str(self.folder), "work": str(self.work)}) + "\n")
        stdin.flush()
        result: dict[str, Any] = json.loads(stdout.readline())
        output = arguments[arguments.index("-o") + 1] if "-o" in arguments else ""
        output = os.path.relpath(self.work / output, self.folder) if output else ""
        change = surroundings.find_change(before, surroundings.read(self.folder), output)
        out, err = ((self.folder / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr"))
        return Outcome(arguments, **result, out=out, err=err, change=change)


def judge_edits(
    commands: Commands,
    base: Path,
    edit_list: list[edits.Edit],
    command: tuple[str, ...],
    user_files: list[list[Any]] | None = None,
) -> tuple[str, Outcome]:
    """Break a trace and run a command on it among the files of a user; return the fault and the outcome."""
    surroundings.write(commands.folder, user_files or [])
    path = commands.work / "broken.sqlite"
    shutil.copyfile(base, path)
    edits.apply(path, edit_list)
    words = 2 if command[0] == "ncu" else 1
    other_traces = other_ranks(base) if command[0] in OF_SEVERAL_TRACES and "--format" not in command else []
    outcome = commands.run(*command[:words], str(path), *map(str, other_traces), *command[words:])
    return outcome.fault(path), outcome


def judge_folder(  # noqa: PLR0917 - what a case is made of
    commands: Commands,
    base: Path,
    folder: Path,
    edit_list: list[list[Any]],
    command: tuple[str, ...],
    user_files: list[list[Any]] | None = None,
) -> tuple[str, Outcome]:
    """Break a folder of Parquet files and run a command on it; the sums are those of its trace."""
    surroundings.write(commands.folder, user_files or [])
    path = folders.write_broken_folder(folder, commands.work / "place", edit_list)
    outcome = commands.run(command[0], str(path), *command[1:])
    return outcome.fault(base), outcome


def minimize_edits(
    commands: Commands,
    base: Path,
    edit_list: list[edits.Edit],
    command: tuple[str, ...],
    user_files: list[list[Any]],
) -> tuple[list[edits.Edit], list[list[Any]]]:
    """Leave out edits, and files around the command, as long as a fault remains."""
    for edit in list(edit_list):
        fewer = [one_edit for one_edit in edit_list if one_edit is not edit]
        if judge_edits(commands, base, fewer, command, user_files)[0]:
            edit_list = fewer
    for edit in list(user_files):
        fewer = [one_edit for one_edit in user_files if one_edit is not edit]
        if judge_edits(commands, base, edit_list, command, fewer)[0]:
            user_files = fewer
    return edit_list, user_files


def _compare_sums(outcome: Outcome, trace: Path) -> str:
    """Compare the kernels of `top`, or the tables of `SUMS_QUERY`, with those of the file."""
    if SUMS_QUERY in outcome.arguments:
        return _compare_tables(outcome, trace)
    if outcome.arguments[0] != "top" or "--format" not in outcome.arguments:
        return ""
    answer = json.loads(outcome.out)
    if "left_out" in answer["trace"]:
        return "" if "note: " in outcome.err else "leaves something out and does not say it on stderr"
    sums = [(sum(row["calls"] for row in answer["rows"])), sum(row["total_ns"] or 0 for row in answer["rows"])]
    try:
        with closing(sqlite3.connect(f"{trace.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            (count, total) = database.execute(
                'SELECT count(*), total(max("end" - start, 0)) FROM CUPTI_ACTIVITY_KIND_KERNEL'
            ).fetchone()
    except sqlite3.Error:
        return "" if not any(sums) else "reads what SQLite does not"
    return "" if sums == [count, int(total)] else f"finds {sums}, SQLite [{count}, {int(total)}]"


def _compare_tables(outcome: Outcome, trace: Path) -> str:
    answer = json.loads(outcome.out)
    if "left_out" in answer["trace"]:
        return "" if "note: " in outcome.err else "leaves something out and does not say it on stderr"
    sums = {row["view"]: [row["rows"], row["total_ns"], row["bytes"]] for row in answer["rows"]}
    for view, (table, _, size) in _TABLES.items():
        expected = _read_sums(trace, table, size)
        if expected is None and any(sums[view]):
            return f"reads {table}, which SQLite does not"
        if expected is not None and sums[view] != expected:
            return f"finds {sums[view]} in {table}, SQLite {expected}"
    return ""


def _read_sums(trace: Path, table: str, size: str) -> list[int] | None:
    """Read the count and sums of a table with SQLite; zeros without the table, None if SQLite cannot read it."""
    with closing(sqlite3.connect(f"{trace.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        try:
            if not database.execute(f"PRAGMA table_info('{table}')").fetchall():
                return [0, 0, 0]
            columns = {name for _, name, *_ in database.execute(f"PRAGMA table_info('{table}')")}
            time = 'max("end" - start, 0)' if {"start", "end"} <= columns else "0"
            size = size if size in columns else "0"
            rows = database.execute(f'SELECT count(*), total({time}), total({size}) FROM "{table}"').fetchone()
        except sqlite3.Error:
            return None
    return [int(number) for number in rows]
