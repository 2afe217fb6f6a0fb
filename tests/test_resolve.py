"""Which trace is meant when none is named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsys_insight.cli.trace_argument import candidates, remember, resolve
from nsys_insight.errors import Exit, TraceError, UsageError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty current folder, an empty cache, and no variable."""
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("NSYS_INSIGHT_TRACE", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def report(name):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"NVIDIA Tegra Profiler Report 36398880.\n")
    return path


def sqlite(name, table="StringIds"):
    with closing(sqlite3.connect(name)) as connection:
        connection.execute(f"CREATE TABLE {table} (id)")
        connection.execute("CREATE TABLE META (value)")
    return Path(name)


def parquet_folder(name):
    Path(name).mkdir(parents=True)
    (Path(name) / "StringIds.parquet").write_bytes(b"PAR1")
    return Path(name)


def refusal(argument=None):
    with pytest.raises(UsageError) as caught:
        resolve(argument)
    assert caught.value.exit_code == Exit.USAGE
    assert caught.value.hint
    return caught.value


class TestTheOrder:
    def test_the_argument_comes_first_and_needs_no_note(self, monkeypatch):
        report("a.nsys-rep")
        monkeypatch.setenv("NSYS_INSIGHT_TRACE", "b.nsys-rep")
        assert resolve(Path("c.nsys-rep")) == (Path("c.nsys-rep"), "")

    def test_then_the_variable(self, monkeypatch):
        report("a.nsys-rep")
        monkeypatch.setenv("NSYS_INSIGHT_TRACE", "b.nsys-rep")
        assert resolve(None) == (Path("b.nsys-rep"), "using b.nsys-rep ($NSYS_INSIGHT_TRACE)")

    def test_then_the_only_trace_in_the_folder_whatever_was_used_last(self):
        remember(report("elsewhere/b.nsys-rep"))
        report("a.nsys-rep")
        assert resolve(None) == (Path("a.nsys-rep"), "using a.nsys-rep (the only trace in this folder)")

    def test_then_the_one_used_last_here(self):
        report("a.nsys-rep")
        remember(report("b.nsys-rep"))
        assert resolve(None) == (Path("b.nsys-rep"), "using b.nsys-rep (the trace used last in this folder)")

    def test_which_may_lie_elsewhere(self, tmp_path):
        remember(report(tmp_path / "elsewhere" / "b.nsys-rep"))
        assert resolve(None)[0] == tmp_path / "elsewhere" / "b.nsys-rep"

    def test_but_not_one_used_in_another_folder(self, tmp_path, monkeypatch):
        remember(report(tmp_path / "elsewhere" / "b.nsys-rep"))
        monkeypatch.chdir(tmp_path / "elsewhere" / "..")
        refusal()

    def test_nor_one_that_is_gone(self):
        remember(report("a.nsys-rep"))
        Path("a.nsys-rep").unlink()
        refusal()

    def test_the_last_is_the_last(self):
        remember(report("a.nsys-rep"))
        remember(report("b.nsys-rep"))
        remember(Path("a.nsys-rep"))
        assert resolve(None)[0] == Path("a.nsys-rep")


class TestWhatCountsAsATrace:
    def test_a_report_and_its_exports_are_one_trace(self):
        report("a.nsys-rep")
        sqlite("a.sqlite")
        parquet_folder("a_pqtdir")
        assert candidates(Path()) == [Path("a.nsys-rep")]

    def test_a_name_may_hold_dots(self):
        report("a.25.nsys-rep")
        sqlite("a.25.sqlite")
        sqlite("a.23.sqlite")
        assert candidates(Path()) == [Path("a.23.sqlite"), Path("a.25.nsys-rep")]

    def test_reports_of_both_suffixes_exports_and_folders_of_parquet_files(self):
        traces = [report("a.nsys-rep"), report("b.qdrep"), sqlite("c.sqlite"), parquet_folder("d_pqtdir")]
        assert candidates(Path()) == traces

    def test_databases_of_other_programs_and_broken_files_do_not(self):
        sqlite("bookmarks.sqlite", table="bookmarks")
        Path("empty.sqlite").touch()
        Path("notes.txt").write_text("notes")
        Path("results").mkdir()
        assert candidates(Path()) == []

    def test_a_folder_that_cannot_be_listed_is_an_error(self):
        with pytest.raises(TraceError, match="gone cannot be listed"):
            candidates(Path("gone"))


class TestWhenItIsNotClear:
    def test_several_are_listed(self):
        report("a.nsys-rep")
        sqlite("b.sqlite")
        assert refusal().message == "2 traces are in this folder: a.nsys-rep, b.sqlite"

    def test_of_very_many_the_rest_is_counted(self):
        for number in range(25):
            report(f"{number:02}.nsys-rep")
        message = refusal().message
        assert message.startswith("25 traces")
        assert "09.nsys-rep and 15 more" in message

    def test_none_brings_a_hint_how_to_make_one(self):
        error = refusal()
        assert error.message == "no trace was named, and there is none in this folder"
        assert "nsys profile" in error.hint


class TestAFolderAsTheArgument:
    def test_with_one_trace_stands_for_it(self):
        report("run/a.nsys-rep")
        sqlite("run/a.sqlite")
        assert resolve(Path("run")) == (Path("run/a.nsys-rep"), "using run/a.nsys-rep (the only trace in run)")

    def test_of_parquet_files_is_a_trace_itself(self):
        assert resolve(parquet_folder("run")) == (Path("run"), "")

    @pytest.mark.parametrize("names", [(), ("a", "b")])
    def test_with_none_or_several_is_an_error(self, names):
        Path("run").mkdir()
        for name in names:
            report(f"run/{name}.nsys-rep")
        assert "run" in refusal(Path("run")).message

    def test_in_the_variable_does_the_same(self, monkeypatch):
        report("run/a.nsys-rep")
        monkeypatch.setenv("NSYS_INSIGHT_TRACE", "run")
        assert resolve(None) == (Path("run/a.nsys-rep"), "using run/a.nsys-rep ($NSYS_INSIGHT_TRACE)")


def test_a_cache_that_cannot_be_written_is_no_matter(here, monkeypatch):
    Path("file").touch()
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(here / "file" / "below"))
    remember(report("a.nsys-rep"))
    assert resolve(None)[0] == Path("a.nsys-rep")


def test_a_damaged_memory_is_no_matter(tmp_path):
    remember(report("a.nsys-rep"))
    for memory in (tmp_path / "cache").iterdir():
        memory.write_bytes(b"\xff\0\n")
    report("b.nsys-rep")
    refusal()
