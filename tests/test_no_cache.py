"""`--no-cache` leaves nothing anywhere, whatever is asked of whichever kind of file."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from nsys_insight.cli.commands import help_entries, load_command
from nsys_insight.packs.library import built_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for nsys is a shell script")

# What each command that reads a trace is asked, where the trace alone is not enough; {out} is a folder.
MORE = {
    "check": ["--max", "launches_per_token=100000"],
    "convert": ["-o", "{out}/trace.duckdb"],
    "diff": ["{trace}"],
    "report": ["-o", "{out}/report.html"],
    "roofline": ["--gemm", "64,64,64"],
    "sql": ["SELECT count(*) FROM raw.StringIds"],
}
# These read no trace, or write what they are asked for; `explore` says that it keeps its file.
WITHOUT_THE_FLAG = {
    "baseline",
    "bench",
    "cache",
    "capture",
    "demo",
    "experiment",
    "explore",
    "export",
    "fleet",
    "mcp",
    "ncu",
    "packs",
    "ptxas",
    "run",
    "sass",
    "schema",
    "scrub",
    "skill",
}
# Reports are one command with many queries. These find facts by SQL, by Python and by a look-up of rows, or none.
FEW = ("top", "steps", "critical-path", "gaps")
# All in one process, with big being anything. It prints what a command left in the cache folder.
ASK = """
import contextlib, io, json, os, sys
from nsys_insight.cli.main import app
from nsys_insight.errors import InsightError
from nsys_insight.ingest import cache_folder
from nsys_insight.session import open_strategies

open_strategies._BIG = 0
for arguments in json.loads(sys.argv[1]):
    sys.stdin = io.StringIO("SELECT 1;")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            app(arguments, standalone_mode=False)
        except InsightError as error:
            sys.__stdout__.write(f"{arguments}: {error}\\n")
    if cache_folder.location().exists():
        sys.__stdout__.write(f"{arguments}: {os.listdir(cache_folder.location())}\\n")
        break
"""


@pytest.fixture(params=["report", "export", "in WAL mode"])
def trace(request, sample, tmp_path, monkeypatch):
    folder = tmp_path / "traces"
    folder.mkdir()
    path = folder / "run.sqlite"
    if request.param == "report":
        path = folder / "run.nsys-rep"
        path.write_bytes(b"NVIDIA Tegra Profiler Report 33681190.\n")
        nsys = tmp_path / "nsys"
        version = "NVIDIA Nsight Systems version 2024.1.1-241133681190v0"
        does = f'cp {sample("churn")} "$7"'
        nsys.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || {does}\n')
        nsys.chmod(0o755)
        monkeypatch.setenv("NSYS_INSIGHT_NSYS", str(nsys))
        return path
    shutil.copy(sample("churn"), path)
    if request.param == "in WAL mode":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
    return path


def in_wal_mode(trace):
    return trace.read_bytes()[18:20] == b"\x02\x02"


def commands(trace, out, *, every):
    """Every command that can be told not to use the cache, as it is typed; of the reports a few or, by --all, all."""
    names = {*(built_in() if every else FEW), *help_entries()} - WITHOUT_THE_FLAG
    typed = [
        [name, str(trace), *(word.format(trace=trace, out=out) for word in MORE.get(name, [])), "--no-cache"]
        for name in sorted(names)
    ]
    return [*typed, ["baseline", "save", str(trace), "--no-cache", "-o", f"{out}/baseline.json"]]


@pytest.mark.slow
def test_nothing_is_left(trace, tmp_path, request):
    places = {name: tmp_path / name for name in ("tmp", "home", "out", "work")}
    for place in places.values():
        place.mkdir()
    before = sorted(trace.parent.iterdir())
    environment = {
        **os.environ,
        "TMPDIR": str(places["tmp"]),
        "HOME": str(places["home"]),
        "NSYS_INSIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    every = request.config.getoption("--all")
    asked = commands(trace, places.pop("out"), every=every)
    if in_wal_mode(trace) or trace.suffix == ".nsys-rep":  # it is copied, or exported, before anything is asked
        few = ("top", "diff", "sql", *(("diagnose", "report") if every else ()))
        asked = [words for words in asked if words[0] in few]
    result = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(asked)],
        cwd=places["work"], env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    assert result.stdout + result.stderr == ""
    assert [path for place in places.values() for path in place.iterdir()] == []
    assert sorted(trace.parent.iterdir()) == before
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", sorted(WITHOUT_THE_FLAG))
def test_the_other_commands_do_not_promise_it(name):
    made = load_command(name).make()
    functions = [command.callback for command in getattr(made, "registered_commands", [])] or [made]
    flagged = [function.__name__ for function in functions if "cache" in inspect.signature(function).parameters]
    assert flagged == (["command"] if name == "baseline" else [])
