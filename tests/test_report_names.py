"""Where `report` writes without -o: in a terminal into a file that is named after the trace, in a pipe to stdout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from command_line import run

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "churn.sqlite"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder; the trace is in a folder next to it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "traces").mkdir()
    shutil.copy(SAMPLE, tmp_path / "traces" / "run.one.sqlite")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def report_on_a_terminal(*flags):
    master, slave = os.openpty()
    with os.fdopen(slave, "wb", buffering=0) as terminal, os.fdopen(master, "rb", buffering=0):
        return run("report", "../traces/run.one.sqlite", *flags, stdout=terminal)


@pytest.mark.slow
def test_on_a_terminal_the_page_is_named_after_the_trace_and_replaced_by_the_next_one(folder):
    for _ in range(2):
        result = report_on_a_terminal()
        assert result.returncode == 0, result.stderr
        assert "note: run.one.html written" in result.stderr
    assert [path.name for path in folder.iterdir()] == ["run.one.html"]
    assert (folder / "run.one.html").read_text().startswith("<!DOCTYPE html>")


def test_a_file_of_somebody_else_is_not_replaced(folder):
    (folder / "run.one.html").write_text("mine")
    result = report_on_a_terminal()
    assert result.returncode == 2
    assert "run.one.html exists already" in result.stderr
    assert (folder / "run.one.html").read_text() == "mine"


@pytest.mark.slow
def test_a_pipe_gets_markdown(folder):
    result = run("report", "../traces/run.one.sqlite")
    assert result.stdout.startswith("# ")
    assert list(folder.iterdir()) == []
