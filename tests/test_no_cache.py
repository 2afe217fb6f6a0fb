"""`--no-cache` leaves no files anywhere, for every command and every kind of input file."""

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

from nsys_insight.cli.commands import load_command, read_help_entries
from nsys_insight.packs.library import built_in_packs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for nsys is a shell script")

# More arguments of the commands for which the trace alone is not enough; {out} is a folder.
EXTRA_ARGUMENTS = {
    "check": ["--max", "launches_per_token=100000"],
    "convert": ["-o", "{out}/trace.duckdb"],
    "diff": ["{trace}"],
    "report": ["-o", "{out}/report.html"],
    "roofline": ["--gemm", "64,64,64"],
    "sql": ["SELECT count(*) FROM raw.StringIds"],
}
# These commands read no trace, or write the requested files.
WITHOUT_THE_FLAG = {
    "baseline",
    "bench",
    "cache",
    "capture",
    "demo",
    "experiment",
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
# Reports are one command with many queries. These derive facts by SQL, by Python and by a look-up of rows, or none.
REPORT_SUBSET = ("top", "steps", "critical-path", "gaps")
# Run all commands in one process, where every file counts as big. Print what a command left in the cache folder.
RUN_COMMANDS = """
import contextlib, io, json, os, sys
from nsys_insight.cli.main import app
from nsys_insight.errors import InsightError
from nsys_insight import cache_folder
from nsys_insight.session import open_strategies

open_strategies._BIG_BYTES = 0
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
        copy_command = f'cp {sample("churn")} "$7"'
        nsys.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || {copy_command}\n')
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


def list_commands(trace, out, *, all_reports):
    """List the command lines of all commands that have --no-cache, with all reports or with a subset of them."""
    names = {*(built_in_packs() if all_reports else REPORT_SUBSET), *read_help_entries()} - WITHOUT_THE_FLAG
    command_lines = [
        [name, str(trace), *(word.format(trace=trace, out=out) for word in EXTRA_ARGUMENTS.get(name, [])), "--no-cache"]
        for name in sorted(names)
    ]
    return [*command_lines, ["baseline", "save", str(trace), "--no-cache", "-o", f"{out}/baseline.json"]]


@pytest.mark.slow
def test_no_cache_leaves_no_files(trace, tmp_path, request):
    folders = {name: tmp_path / name for name in ("tmp", "home", "out", "work")}
    for folder in folders.values():
        folder.mkdir()
    before = sorted(trace.parent.iterdir())
    environment = {
        **os.environ,
        "TMPDIR": str(folders["tmp"]),
        "HOME": str(folders["home"]),
        "NSYS_INSIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    all_reports = request.config.getoption("--all")
    command_lines = list_commands(trace, folders.pop("out"), all_reports=all_reports)
    if in_wal_mode(trace) or trace.suffix == ".nsys-rep":  # copying or exporting comes before every command
        names = ("top", "diff", "sql", *(("diagnose", "report") if all_reports else ()))
        command_lines = [words for words in command_lines if words[0] in names]
    result = subprocess.run(
        [sys.executable, "-c", RUN_COMMANDS, json.dumps(command_lines)],
        cwd=folders["work"], env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    assert result.stdout + result.stderr == ""
    assert [path for folder in folders.values() for path in folder.iterdir()] == []
    assert sorted(trace.parent.iterdir()) == before
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", sorted(WITHOUT_THE_FLAG))
def test_the_other_commands_have_no_cache_flag(name):
    command_app = load_command(name).make()
    functions = [command.callback for command in getattr(command_app, "registered_commands", [])] or [command_app]
    flagged = [function.__name__ for function in functions if "cache" in inspect.signature(function).parameters]
    assert flagged == (["command"] if name == "baseline" else [])
