"""How commands end on an error: with one sentence and an exit code, and soon."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import command_line
import pytest
from command_line import PROCESS
from opening import only_rules
from sweeps import sweep

LONG = "SELECT levenshtein(repeat('a', 300000), repeat('b', 299999)) AS d"
# The command, which waits less long for what cannot be interrupted.
IMPATIENT = [
    sys.executable, "-c",
    "from nsys_insight.ingest import waiting; waiting.GRACE_S = 0.3; from nsys_insight.cli import main; main.main()",
]  # fmt: skip


def run(*arguments, **options):
    process = command_line.run(*arguments, **options)
    assert "Traceback" not in process.stderr
    return process


@pytest.fixture
def trace(sample):
    return sample("decode_eager")


@pytest.fixture
def trace_copy(trace, tmp_path):
    return shutil.copy(trace, tmp_path / "t.sqlite")


def cpu_seconds(process):
    words = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class TestLongQueries:
    def test_a_timeout_ends_it(self, trace):
        start_s = time.monotonic()
        command = [*IMPATIENT, "sql", trace, LONG, "--timeout", "1s"]
        process = subprocess.run(command, timeout=60, check=False, stderr=subprocess.PIPE)
        assert process.returncode == 1
        assert b"Traceback" not in process.stderr
        assert b"stopped after 1 s" in process.stderr
        assert time.monotonic() - start_s < 30

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_ends_it(self, trace, number, code):
        process = subprocess.Popen(
            [*IMPATIENT, "sql", str(trace), LONG], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while cpu_seconds(process) < 1.2:  # the query runs
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(30) == code

    @pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
    def test_a_signal_that_duckdb_turns_into_its_own_error(self, name, code):
        script = f"""
            import os, signal, time
            from nsys_insight.cli import main
            def app(**_):
                try:
                    os.kill(os.getpid(), signal.{name})
                    time.sleep(10)
                except BaseException:
                    raise RuntimeError("Query interrupted") from None
            main.app = app
            main.main()
        """
        process = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, check=False)
        assert process.returncode == code

    def test_a_pipe_instead_of_a_journal(self, trace_copy):
        os.mkfifo(f"{trace_copy}-journal")
        process = run("top", trace_copy)
        assert process.returncode == 3
        assert "is no regular file" in process.stderr or "is not a regular file" in process.stderr


class TestStreams:
    @pytest.mark.parametrize("arguments", [["top"], ["top", "--format", "csv"], ["diagnose"]])
    def test_the_disk_is_full(self, trace, arguments):
        with only_rules("launch-bound"), open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
            process = run(arguments[0], trace, *arguments[1:], stdout=full)
        assert process.returncode == 1
        assert "the answer cannot be written" in process.stderr

    @pytest.mark.parametrize("redirections", [*sweep([">&-", "<&-", "2>&-"]), ">&- <&- 2>&-"])
    def test_closed_streams(self, trace, redirections):
        process = subprocess.run(
            f"{sys.executable} -m nsys_insight top {trace} {redirections}", shell=True, check=False
        )
        assert process.returncode == 0


class TestFiles:
    def test_a_damaged_trace_is_an_error_of_the_trace(self, trace_copy):
        content = bytearray(trace_copy.read_bytes())
        third = len(content) // 3
        for position in range(third, third + 200_000, 4096):
            content[position : position + 64] = b"\xff" * 64
        trace_copy.write_bytes(content)
        assert run("launches", trace_copy).returncode == 3

    def test_a_name_that_is_not_utf_8(self, trace, tmp_path):
        path = os.fsencode(tmp_path) + b"/bad\xff.sqlite"
        shutil.copy(trace, path)
        process = subprocess.run([*map(os.fsencode, PROCESS), b"top", path], capture_output=True, check=False)
        assert process.returncode == 3
        assert b"not UTF-8" in process.stderr

    def test_a_long_name(self, trace, tmp_path):
        assert run("top", shutil.copy(trace, tmp_path / f"{'n' * 241}.sqlite")).returncode == 0

    def test_a_nul_in_kernel_names(self, trace_copy):
        with closing(sqlite3.connect(trace_copy)) as database, database:
            database.execute("UPDATE StringIds SET value = value || char(0) || 'x' WHERE id > 5")
        assert run("diff", trace_copy, trace_copy).returncode == 0

    @pytest.mark.parametrize("sql", ["DELETE FROM StringIds", "DROP TABLE StringIds"])
    def test_no_strings(self, trace_copy, sql):
        with closing(sqlite3.connect(trace_copy)) as database, database:
            database.execute(sql)
        assert run("ncu", "plan", trace_copy).returncode == 3


class TestSql:
    @pytest.mark.parametrize("sql", ["SELECT to_timestamp(0) AS t", "SELECT [to_timestamp(0)] AS t", "SELECT now()"])
    @pytest.mark.parametrize("fmt", [*sweep(["table"]), "csv"])
    def test_times_with_a_zone(self, trace, sql, fmt):
        assert run("sql", trace, sql, "--format", fmt).returncode == 0

    @pytest.mark.parametrize("sql", ["DESCRIBE kernels", "SUMMARIZE SELECT start_ns FROM kernels", "SHOW TABLES"])
    @pytest.mark.parametrize("fmt", [*sweep(["csv", "jsonl"]), "parquet"])
    def test_statements_other_than_select(self, trace, tmp_path, sql, fmt):
        assert run("sql", trace, sql, "-o", tmp_path / f"x.{fmt}").returncode == 0

    def test_a_file_that_is_not_utf_8(self, trace, tmp_path):
        (tmp_path / "x.sql").write_bytes(b"SELECT '\xff'")
        process = run("sql", trace, "--file", tmp_path / "x.sql")
        assert process.returncode == 1
        assert "not valid UTF-8" in process.stderr


class TestFlags:
    @pytest.mark.parametrize(
        "flags",
        [["top", "--memory=-1GB"], ["top", "--limit", "9" * 20], ["check", "--max", "launches_per_token=nan"]],
        ids=str,
    )
    def test_invalid_numbers(self, trace, flags):
        process = run(flags[0], trace, *flags[1:])
        assert process.returncode == 2
        assert process.stderr.startswith("error: ")

    def test_a_flag_is_declared_once(self):
        assert run("help", "convert", "--all").stdout.count("--to ") == 1

    @pytest.mark.parametrize("columns", ["1", *sweep(["4"])])
    def test_narrow_terminals(self, trace, columns):
        with only_rules("launch-bound", "graph-candidate"):
            assert run("diagnose", trace, env={"COLUMNS": columns}).returncode == 0


def test_duckdb_s_own_progress_bar_is_off():
    """In Python without a script, DuckDB draws a progress bar to stdout after two seconds."""
    code = (
        "from nsys_insight.ingest import database; c = database.connect()\n"
        "print(c.execute(\"SELECT current_setting('enable_progress_bar')\").fetchall())"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "[(False,)]\n"
