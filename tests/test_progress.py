"""Progress is shown only on a terminal. Ctrl-C ends a command at once and leaves no files."""

from __future__ import annotations

import contextlib
import os
import re
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
from opening import only_rules

import nsys_insight
from nsys_insight import progress
from nsys_insight.cli import progress_line as progress_line_module
from nsys_insight.cli import terminal
from nsys_insight.cli.progress_line import ProgressLine
from nsys_insight.ingest.waiting import wait_for
from tests.conftest import REPOSITORY

pty = pytest.importorskip("pty", reason="a terminal for the tests")

_CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


def read_screen(output):
    """Return what a terminal shows after this output, line by line."""
    lines, row, column = [""], 0, 0
    for count, command, line_end, text in _CONTROL.findall(output):
        if command == "A":
            row = max(row - int(count or 1), 0)
        elif command == "K":
            lines[row] = "" if count == "2" else lines[row][:column]
        elif line_end == "\r":
            column = 0
        elif line_end:
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif text:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines][: next((i for i in range(len(lines), 0, -1) if lines[i - 1].strip()), 0)]


ENDLESS = "SELECT sum(a.start_ns) FROM kernels AS a, kernels AS b, kernels AS c, kernels AS d, kernels AS e"
# A slow machine may run tests in parallel. A single test takes 0.2 s.
AT_ONCE_S = 10


@pytest.fixture(autouse=True)
def stop_processes():
    """Kill the processes of a failed test: an endless query would take a core from all later tests."""
    yield
    while Terminal.running:
        Terminal.running.pop().kill()


class Terminal:
    """The command, started on a terminal of its own, with a folder for temporary files and one for the cache."""

    running: ClassVar = []

    def __init__(self, folder, *arguments, stdout_too=True, **variables):
        self.temporary, self.cache = folder / "tmp", folder / "cache"
        for path in (self.temporary, self.cache):
            path.mkdir(exist_ok=True)
        self._own_fd, terminal_fd = pty.openpty()
        settings = {"TMPDIR": str(self.temporary), "NSYS_INSIGHT_CACHE_DIR": str(self.cache), "TERM": "xterm"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nsys_insight", *map(str, arguments)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)} | settings | variables,
            stdin=subprocess.DEVNULL,
            stdout=terminal_fd if stdout_too else subprocess.DEVNULL,
            stderr=terminal_fd,
        )
        os.close(terminal_fd)
        self.running.append(self.process)
        self.output = ""

    def read_until(self, text):
        """Read the output up to this text. Raise AssertionError if the command ends before it."""
        while text not in self.output:
            assert self._read(), f"{text!r} never came: {self.output!r}"

    def end(self):
        """Wait for the end, and return the exit code."""
        while self._read():
            pass
        os.close(self._own_fd)
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
        """Return what stays on the screen, line by line."""
        return read_screen(self.output)

    @property
    def leftovers(self):
        """Return the files left behind, except the note of the last trace and the template of the model."""
        paths = [path for folder in (self.temporary, self.cache) for path in folder.rglob("*")]
        return [path.name for path in paths if path.suffix != ".last" and not path.name.startswith("model-")]

    def _read(self):
        try:
            text = os.read(self._own_fd, 1 << 16).decode()
        except OSError:  # Linux reports so that the other end is closed
            return False
        self.output += text
        return bool(text)


@pytest.fixture
def long_trace(sample, tmp_path):
    """Return a trace with a table that takes seconds to copy."""
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
    def test_a_long_command_shows_its_progress_and_erases_it(self, sample, tmp_path):
        command_terminal = Terminal(tmp_path, "sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "3")
        assert command_terminal.end() == 1
        assert "running the query" in command_terminal.output
        assert command_terminal.screen == [
            "error: the query was stopped after 3 s",
            "hint: allow more time with --timeout 600s",
        ]

    @pytest.mark.slow
    def test_progress_is_shown_if_stdout_is_not_a_terminal(self, sample, tmp_path):
        command_terminal = Terminal(
            tmp_path, "sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "3", stdout_too=False
        )
        command_terminal.end()
        assert "running the query" in command_terminal.output

    def test_in_a_pipe_no_progress_is_shown(self, sample):
        result = run("sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "1")
        assert result.returncode == 1
        assert result.stderr.startswith("error: the query was stopped")
        assert "\x1b" not in result.stderr + result.stdout
        assert "running" not in result.stderr + result.stdout

    @pytest.mark.slow
    def test_a_terminal_that_cannot_erase_shows_nothing(self, sample, tmp_path):
        command_terminal = Terminal(
            tmp_path, "sql", sample("churn"), ENDLESS, "--threads", "1", "--timeout", "3", TERM="dumb"
        )
        command_terminal.end()
        assert "\x1b" not in command_terminal.output
        assert "running" not in command_terminal.output

    def test_a_short_command_shows_nothing(self, line):
        line.begin(delay_s=0.5)
        with progress.show_task("finding steps"):
            time.sleep(0.3)
        line.end()
        assert line.read_output() == ""

    def test_the_innermost_task_is_shown_with_its_percentage(self, line):
        line.begin()
        with progress.show_task("diagnosing"):
            line.read_until("diagnosing")
            with progress.show_task("reading API calls") as task:
                task.percent = 41.7
                line.read_until("42%")
                assert line.screen[0].startswith("reading API calls ━━")
                with progress.show_task("finding steps"):  # its share is unknown: the bar is that of the task around it
                    line.read_until("finding steps")
                    assert "42%" in line.screen[0]
        assert line.screen == [], "no task is running"
        line.end()

    def test_elapsed_time_and_an_estimate_are_shown(self, line):
        line.begin()
        with progress.show_task("reading API calls") as task:
            deadline = time.monotonic() + 30
            task.percent = 0.0
            while not re.search(r" [1-9]\d* s, left: 0:\d\d:\d\d", "".join(line.screen)):
                assert time.monotonic() < deadline, line.screen
                task.percent = min(task.percent + 1, 99)
                time.sleep(0.1)
        line.end()

    def test_the_questions_of_a_diagnosis_are_counted(self, sample, monkeypatch):
        shares = []

        @contextlib.contextmanager
        def show_task(text):
            task = progress.Task(text)
            yield task
            shares.append((text, task.percent))

        monkeypatch.setattr(progress, "show_task", show_task)
        with nsys_insight.open(sample("churn"), use_cache=False) as trace, only_rules():
            trace.diagnose()
        assert ("answering questions", 100) in shares

    def test_a_note_replaces_the_line(self, line, monkeypatch):
        monkeypatch.setattr(terminal, "progress_line", line)
        line.begin()
        with progress.show_task("opening trace.nsys-rep"):
            line.read_until("opening")
            terminal.note("exported with nsys 2025.3")
            line.read_until("note: exported with nsys 2025.3\r\n")
            assert line.screen[0] == "note: exported with nsys 2025.3"
        line.end()

    def test_nothing_is_shown_while_an_answer_is_written(self, line):
        line.begin()
        with progress.show_task("running the query"):
            with line.pause():
                time.sleep(0.3)
                assert line.read_output() == ""
            line.read_until("running the query")

    def test_a_line_never_wraps_and_a_file_name_cannot_steer_the_terminal(self, line):
        line.begin()
        with progress.show_task("opening \x1b[2J" + "x" * 500):
            line.read_until("opening")
            (shown_text,) = line.screen
            assert shown_text.startswith(r"opening \x1b[2Jxxx")
            assert len(shown_text) <= 80
        line.end()


class TestInterrupt:
    @pytest.mark.slow
    @pytest.mark.parametrize("times", [1, 3])
    def test_a_query_ends_at_once(self, sample, tmp_path, times):
        """A second Ctrl-C during the clean-up does not matter."""
        command_terminal = Terminal(tmp_path, "sql", sample("churn"), ENDLESS)
        command_terminal.read_until("running the query")
        code, seconds = command_terminal.interrupt(times)
        assert code == 130
        assert seconds < AT_ONCE_S
        assert command_terminal.screen == ["interrupted"]
        assert command_terminal.leftovers == []

    @pytest.mark.slow
    def test_a_copy_into_the_cache_ends_at_once(self, long_trace, tmp_path):
        command_terminal = Terminal(tmp_path, "top", "--cache", "--threads", "1", long_trace)
        command_terminal.read_until("reading operating system calls")
        assert any("nsys-insight" in name for name in command_terminal.leftovers), "it is building"
        code, seconds = command_terminal.interrupt()
        assert code == 130
        assert seconds < AT_ONCE_S
        assert command_terminal.screen == ["interrupted"]
        assert command_terminal.leftovers == []

    @pytest.mark.slow
    def test_spilled_files_are_removed(self, sample, tmp_path):
        query = (
            "SELECT a.name, hash(a.start_ns, b.start_ns, c.start_ns) AS h FROM kernels AS a, kernels AS b, kernels AS c"
        )
        command_terminal = Terminal(tmp_path, "sql", sample("churn"), f"{query} ORDER BY h", "--memory", "100MB")
        command_terminal.read_until("running the query")
        deadline = time.monotonic() + 30
        while not command_terminal.leftovers and time.monotonic() < deadline:
            time.sleep(0.05)
        assert command_terminal.leftovers, "it spills"
        code, _ = command_terminal.interrupt()
        assert (code, command_terminal.leftovers) == (130, [])

    @pytest.mark.slow
    def test_an_interrupted_output_leaves_no_file(self, sample, tmp_path):
        query = "SELECT a.name FROM kernels AS a, kernels AS b, kernels AS c, kernels AS d"
        command_terminal = Terminal(tmp_path, "sql", sample("churn"), query, "-o", "answer.csv")
        command_terminal.read_until("writing answer.csv")
        assert list(tmp_path.glob(".nsys-insight-answer-*.csv")), "an incomplete file has a temporary name"
        code, _ = command_terminal.interrupt()
        assert code == 130
        assert not list(tmp_path.glob("*answer*"))

    @pytest.mark.slow
    def test_in_a_pipe_the_interrupt_is_reported_too(self, sample):
        command = [sys.executable, "-m", "nsys_insight", "sql", sample("churn"), ENDLESS]
        running = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=120)
        assert (running.returncode, stderr) == (130, "interrupted\n")

    def test_the_interrupt_is_repeated_until_it_hits_a_running_statement(self):
        connection = duckdb.connect()

        def run_short_queries():
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                time.sleep(0.02)
                connection.execute("SELECT sum(range) FROM range(1000000)").fetchall()

        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.perf_counter()
        with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
            wait_for([pool.submit(run_short_queries)], [connection])
        assert time.perf_counter() - started < AT_ONCE_S


class _Line(ProgressLine):
    """The progress line on a terminal that the test reads, without the delay of a second."""

    def __init__(self, monkeypatch):
        super().__init__()
        self._output = ""
        self._own_fd, terminal_fd = pty.openpty()
        os.set_blocking(self._own_fd, False)
        self._stderr = os.fdopen(terminal_fd, "w", encoding="utf-8")
        self._patch = monkeypatch
        monkeypatch.setenv("TERM", "xterm")

    def begin(self, delay_s=0.0):
        self._patch.setattr(progress_line_module, "_DELAY_S", delay_s)
        self._patch.setattr(sys, "stderr", self._stderr)  # pytest sets its own before each test
        super().begin()

    def read_until(self, text):
        deadline = time.monotonic() + 30
        while text not in self.read_output():
            assert time.monotonic() < deadline, f"{text!r} never came: {self._output!r}"
            time.sleep(0.02)

    def read_output(self):
        with contextlib.suppress(BlockingIOError):
            self._output += os.read(self._own_fd, 1 << 16).decode()
        return self._output

    @property
    def screen(self):
        return read_screen(self.read_output())

    def close(self):
        self.end()
        self._stderr.close()
        os.close(self._own_fd)


@pytest.fixture
def line(monkeypatch):
    """Return a line on its own terminal."""
    terminal_line = _Line(monkeypatch)
    yield terminal_line
    terminal_line.close()
