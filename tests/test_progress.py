"""What a command is at, said on a terminal and nowhere else; and Ctrl-C, which ends it at once and leaves nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import duckdb
import pytest
from command_line import run

from nsys_insight import progress
from nsys_insight.cli import progress_line as of_line
from nsys_insight.cli import terminal
from nsys_insight.cli.progress_line import ProgressLine
from nsys_insight.ingest.waiting import wait_for
from tests.conftest import REPOSITORY

pty = pytest.importorskip("pty", reason="a terminal for the tests")

ERASE = "\r\x1b[K"
ENDLESS = "SELECT sum(a.start_ns) FROM kernels AS a, kernels AS b, kernels AS c, kernels AS d, kernels AS e"
# Slow machines run tests side by side; alone it takes a fifth of a second.
AT_ONCE_S = 10


@pytest.fixture(autouse=True)
def nothing_runs_on():
    """End what a failed test left: a query without an end would take a core from all that follow."""
    yield
    while Terminal.running:
        Terminal.running.pop().kill()


class Terminal:
    """The command, started on a terminal of its own, with a folder for temporary files and one for the cache."""

    running: ClassVar = []

    def __init__(self, folder, *arguments, stdout_too=True, **variables):
        self.temporary, self.cache = folder / "tmp", folder / "cache"
        for each in (self.temporary, self.cache):
            each.mkdir(exist_ok=True)
        self._ours, theirs = pty.openpty()
        settings = {"TMPDIR": str(self.temporary), "NSYS_INSIGHT_CACHE_DIR": str(self.cache), "TERM": "xterm"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nsys_insight", *map(str, arguments)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)} | settings | variables,
            stdin=subprocess.DEVNULL,
            stdout=theirs if stdout_too else subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        self.running.append(self.process)
        self.said = ""

    def read_until(self, text):
        """Read what is shown until this comes; AssertionError if the command ends before."""
        while text not in self.said:
            assert self._read(), f"{text!r} never came: {self.said!r}"

    def end(self):
        """Wait for the end, and return the exit code."""
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait()

    def interrupt(self, times=1):
        """Type Ctrl-C; return the exit code and how long it took."""
        started = time.perf_counter()
        for _ in range(times):
            self.process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        return self.end(), time.perf_counter() - started

    @property
    def screen(self):
        """What stays on the screen, line by line."""
        return [line.rpartition(ERASE)[2] for line in self.said.removesuffix("\r\n").split("\r\n")]

    @property
    def left(self):
        """What is left behind, but for the note of the trace used last and the template of the model."""
        found = [path for folder in (self.temporary, self.cache) for path in folder.rglob("*")]
        return [path.name for path in found if path.suffix != ".last" and not path.name.startswith("model-")]

    def _read(self):
        try:
            piece = os.read(self._ours, 1 << 16).decode()
        except OSError:  # so Linux says that nobody writes any more
            return False
        self.said += piece
        return bool(piece)


@pytest.fixture
def long_trace(sample, tmp_path):
    """A trace with a table that takes seconds to copy."""
    path = tmp_path / "long.sqlite"
    shutil.copyfile(sample("churn"), path)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute(
            """INSERT INTO OSRT_API (start, "end", eventClass, globalTid, nameId, returnValue, callchainId)
               WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000000)
               SELECT i, i + 1, 27, 1, 1, 0, 0 FROM n"""
        )
    return path


class TestProgress:
    @pytest.mark.slow
    def test_a_long_command_says_what_it_is_at_and_leaves_no_trace(self, sample, tmp_path):
        shown = Terminal(tmp_path, "sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "3")
        assert shown.end() == 1
        assert "running the query" in shown.said
        assert shown.screen == [
            "error: the query was stopped after 3 s",
            "hint: allow more time with --timeout 600s",
        ]

    @pytest.mark.slow
    def test_stdout_need_be_no_terminal(self, sample, tmp_path):
        shown = Terminal(
            tmp_path, "sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "3", stdout_too=False
        )
        shown.end()
        assert "running the query" in shown.said

    def test_in_a_pipe_nothing_is_said(self, sample):
        ran = run("sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "1")
        assert ran.returncode == 1
        assert ran.stderr.startswith("error: the query was stopped")
        assert "\x1b" not in ran.stderr + ran.stdout
        assert "running" not in ran.stderr + ran.stdout

    @pytest.mark.slow
    def test_a_terminal_that_cannot_erase_shows_nothing(self, sample, tmp_path):
        shown = Terminal(tmp_path, "sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "3", TERM="dumb")
        shown.end()
        assert "\x1b" not in shown.said
        assert "running" not in shown.said

    def test_a_short_command_shows_nothing(self, line):
        line.begin(delay_s=0.5)
        with progress.at("finding steps"):
            time.sleep(0.3)
        line.end()
        assert line.said() == ""

    def test_the_innermost_is_shown_and_how_far_it_is(self, line):
        line.begin()
        with progress.at("diagnosing"):
            line.read_until("diagnosing")
            with progress.at("reading API calls") as task:
                task.percent = 41.7
                line.read_until(f"{ERASE}reading API calls 42 %")
        assert line.said().endswith(ERASE), "nothing is under way any more"
        line.end()

    def test_a_note_takes_the_lines_place(self, line, monkeypatch):
        monkeypatch.setattr(terminal, "progress_line", line)
        line.begin()
        with progress.at("opening trace.nsys-rep"):
            line.read_until("opening")
            terminal.note("exported with nsys 2025.3")
            line.read_until(f"{ERASE}note: exported with nsys 2025.3\r\n")
        line.end()

    def test_nothing_is_shown_while_an_answer_is_written(self, line):
        line.begin()
        with progress.at("running the query"):
            with line.paused():
                time.sleep(0.3)
                assert line.said() == ""
            line.read_until("running the query")

    def test_a_line_never_wraps_and_a_file_name_cannot_steer_the_terminal(self, line):
        line.begin()
        with progress.at("opening \x1b[2J" + "x" * 500):
            line.read_until("opening")
        line.end()
        (shown,) = [part for part in line.said().split(ERASE) if part]
        assert shown.startswith(r"opening \x1b[2Jxxx")
        assert len(shown) == 79


class TestInterrupt:
    @pytest.mark.slow
    @pytest.mark.parametrize("times", [1, 3])
    def test_a_query_ends_at_once(self, sample, tmp_path, times):
        """Also if Ctrl-C is typed again while it cleans up."""
        shown = Terminal(tmp_path, "sql", sample("churn"), ENDLESS)
        shown.read_until("running the query")
        code, seconds = shown.interrupt(times)
        assert code == 130
        assert seconds < AT_ONCE_S
        assert shown.screen == ["interrupted"]
        assert shown.left == []

    @pytest.mark.slow
    def test_a_copy_into_the_cache_ends_at_once(self, long_trace, tmp_path):
        shown = Terminal(tmp_path, "top", "--cache", "--threads", "1", long_trace)
        shown.read_until("reading operating system calls")
        assert any("nsys-insight" in name for name in shown.left), "it is building"
        code, seconds = shown.interrupt()
        assert code == 130
        assert seconds < AT_ONCE_S
        assert shown.screen == ["interrupted"]
        assert shown.left == []

    @pytest.mark.slow
    def test_what_spills_is_removed(self, sample, tmp_path):
        query = (
            "SELECT a.name, hash(a.start_ns, b.start_ns, c.start_ns) AS h FROM kernels AS a, kernels AS b, kernels AS c"
        )
        shown = Terminal(tmp_path, "sql", sample("churn"), f"{query} ORDER BY h", "--memory", "100MB")
        shown.read_until("running the query")
        until = time.monotonic() + 30
        while not shown.left and time.monotonic() < until:
            time.sleep(0.05)
        assert shown.left, "it spills"
        code, _ = shown.interrupt()
        assert (code, shown.left) == (130, [])

    @pytest.mark.slow
    def test_half_an_answer_is_no_answer(self, sample, tmp_path):
        query = "SELECT a.name FROM kernels AS a, kernels AS b, kernels AS c, kernels AS d"
        shown = Terminal(tmp_path, "sql", sample("churn"), query, "-o", "answer.csv")
        shown.read_until("writing answer.csv")
        assert list(tmp_path.glob(".nsys-insight-answer-*.csv")), "what is written has another name until it is whole"
        code, _ = shown.interrupt()
        assert code == 130
        assert not list(tmp_path.glob("*answer*"))

    @pytest.mark.slow
    def test_it_is_said_in_a_pipe_too(self, sample):
        command = [sys.executable, "-m", "nsys_insight", "sql", sample("churn"), ENDLESS]
        running = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
        assert (running.returncode, said) == (130, "interrupted\n")

    def test_between_two_statements_there_is_nothing_to_interrupt_so_it_is_tried_again(self):
        connection = duckdb.connect()

        def many():
            until = time.monotonic() + 60
            while time.monotonic() < until:
                time.sleep(0.02)
                connection.execute("SELECT sum(range) FROM range(1000000)").fetchall()

        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.perf_counter()
        with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
            wait_for([pool.submit(many)], [connection])
        assert time.perf_counter() - started < AT_ONCE_S


class _Line(ProgressLine):
    """The line, shown on a terminal that the test reads, and without waiting for a second."""

    def __init__(self, monkeypatch):
        super().__init__()
        self._said = ""
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self._stderr = os.fdopen(theirs, "w", encoding="utf-8")
        self._patch = monkeypatch
        monkeypatch.setenv("TERM", "xterm")

    def begin(self, delay_s=0.0):
        self._patch.setattr(of_line, "_DELAY_S", delay_s)
        self._patch.setattr(sys, "stderr", self._stderr)  # pytest sets its own before each test
        super().begin()

    def read_until(self, text):
        until = time.monotonic() + 30
        while text not in self.said():
            assert time.monotonic() < until, f"{text!r} never came: {self._said!r}"
            time.sleep(0.02)

    def said(self):
        with contextlib.suppress(BlockingIOError):
            self._said += os.read(self._ours, 1 << 16).decode()
        return self._said

    def close(self):
        self.end()
        self._stderr.close()
        os.close(self._ours)


@pytest.fixture
def line(monkeypatch):
    """Give a line on a terminal of its own."""
    made = _Line(monkeypatch)
    yield made
    made.close()
