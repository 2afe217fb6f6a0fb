"""Which trace a command uses when none is named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsys_insight.cli.trace_argument import list_traces, remember_trace, resolve_trace_path
from nsys_insight.errors import Exit, TraceError, UsageError


@pytest.fixture(autouse=True)
def current_folder(tmp_path, monkeypatch):
    """Use an empty current folder and an empty cache, without the environment variable."""
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("NSYS_INSIGHT_TRACE", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write_report(name):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"NVIDIA Tegra Profiler Report 36398880.\n")
    return path


def write_sqlite(name, table="StringIds"):
    with closing(sqlite3.connect(name)) as connection:
        connection.execute(f"CREATE TABLE {table} (id)")
        connection.execute("CREATE TABLE META (value)")
    return Path(name)


def write_parquet_folder(name):
    Path(name).mkdir(parents=True)
    (Path(name) / "StringIds.parquet").write_bytes(b"PAR1")
    return Path(name)


def catch_refusal(argument=None):
    with pytest.raises(UsageError) as caught:
        resolve_trace_path(argument)
    assert caught.value.exit_code == Exit.USAGE
    assert caught.value.hint
    return caught.value


class TestOrder:
    def test_the_argument_comes_first_and_needs_no_note(self, monkeypatch):
        write_report("a.nsys-rep")
        monkeypatch.setenv("NSYS_INSIGHT_TRACE", "b.nsys-rep")
        assert resolve_trace_path(Path("c.nsys-rep")) == (Path("c.nsys-rep"), "")

    def test_then_the_variable(self, monkeypatch):
        write_report("a.nsys-rep")
        monkeypatch.setenv("NSYS_INSIGHT_TRACE", "b.nsys-rep")
        assert resolve_trace_path(None) == (Path("b.nsys-rep"), "using b.nsys-rep ($NSYS_INSIGHT_TRACE)")

    def test_then_the_only_trace_in_the_folder_even_if_another_was_used_last(self):
        remember_trace(write_report("elsewhere/b.nsys-rep"))
        write_report("a.nsys-rep")
        assert resolve_trace_path(None) == (Path("a.nsys-rep"), "using a.nsys-rep (the only trace in this folder)")

    def test_then_the_trace_used_last_in_this_folder(self):
        write_report("a.nsys-rep")
        remember_trace(write_report("b.nsys-rep"))
        assert resolve_trace_path(None) == (Path("b.nsys-rep"), "using b.nsys-rep (the trace used last in this folder)")

    def test_the_trace_used_last_may_be_in_another_folder(self, tmp_path):
        remember_trace(write_report(tmp_path / "elsewhere" / "b.nsys-rep"))
        assert resolve_trace_path(None)[0] == tmp_path / "elsewhere" / "b.nsys-rep"

    def test_a_trace_used_from_another_folder_does_not_count(self, tmp_path, monkeypatch):
        remember_trace(write_report(tmp_path / "elsewhere" / "b.nsys-rep"))
        monkeypatch.chdir(tmp_path / "elsewhere" / "..")
        catch_refusal()

    def test_a_deleted_trace_does_not_count(self):
        remember_trace(write_report("a.nsys-rep"))
        Path("a.nsys-rep").unlink()
        catch_refusal()

    def test_the_most_recent_use_counts(self):
        remember_trace(write_report("a.nsys-rep"))
        remember_trace(write_report("b.nsys-rep"))
        remember_trace(Path("a.nsys-rep"))
        assert resolve_trace_path(None)[0] == Path("a.nsys-rep")


class TestListTraces:
    def test_a_report_and_its_exports_are_one_trace(self):
        write_report("a.nsys-rep")
        write_sqlite("a.sqlite")
        write_parquet_folder("a_pqtdir")
        assert list_traces(Path()) == [Path("a.nsys-rep")]

    def test_a_name_may_hold_dots(self):
        write_report("a.25.nsys-rep")
        write_sqlite("a.25.sqlite")
        write_sqlite("a.23.sqlite")
        assert list_traces(Path()) == [Path("a.23.sqlite"), Path("a.25.nsys-rep")]

    def test_reports_of_both_suffixes_exports_and_folders_of_parquet_files(self):
        traces = [
            write_report("a.nsys-rep"),
            write_report("b.qdrep"),
            write_sqlite("c.sqlite"),
            write_parquet_folder("d_pqtdir"),
        ]
        assert list_traces(Path()) == traces

    def test_databases_of_other_programs_and_broken_files_do_not_count(self):
        write_sqlite("bookmarks.sqlite", table="bookmarks")
        Path("empty.sqlite").touch()
        Path("notes.txt").write_text("notes")
        Path("results").mkdir()
        assert list_traces(Path()) == []

    def test_a_folder_that_cannot_be_listed_is_an_error(self):
        with pytest.raises(TraceError, match="gone cannot be listed"):
            list_traces(Path("gone"))


class TestAmbiguous:
    def test_several_are_listed(self):
        write_report("a.nsys-rep")
        write_sqlite("b.sqlite")
        assert catch_refusal().message == "2 traces are in this folder: a.nsys-rep, b.sqlite"

    def test_a_long_list_ends_with_a_count(self):
        for number in range(25):
            write_report(f"{number:02}.nsys-rep")
        message = catch_refusal().message
        assert message.startswith("25 traces")
        assert "09.nsys-rep and 15 more" in message

    def test_no_trace_gives_a_hint_how_to_make_one(self):
        error = catch_refusal()
        assert error.message == "no trace was named, and there is none in this folder"
        assert "nsys profile" in error.hint


class TestFolderArgument:
    def test_a_folder_with_one_trace_stands_for_it(self):
        write_report("run/a.nsys-rep")
        write_sqlite("run/a.sqlite")
        assert resolve_trace_path(Path("run")) == (
            Path("run/a.nsys-rep"),
            "using run/a.nsys-rep (the only trace in run)",
        )

    def test_a_folder_of_arrow_files_is_an_error_that_names_the_export_to_read(self):
        Path("arrows").mkdir()
        Path("arrows/StringIds.arrow").write_bytes(b"ARROW1")
        with pytest.raises(UsageError) as caught:
            resolve_trace_path(Path("arrows"))
        assert "arrowdir, which is not read" in caught.value.message
        assert "nsys export --type parquetdir" in caught.value.hint

    def test_a_folder_of_parquet_files_is_a_trace(self):
        assert resolve_trace_path(write_parquet_folder("run")) == (Path("run"), "")

    @pytest.mark.parametrize("names", [(), ("a", "b")])
    def test_a_folder_with_none_or_several_traces_is_an_error(self, names):
        Path("run").mkdir()
        for name in names:
            write_report(f"run/{name}.nsys-rep")
        message = catch_refusal(Path("run")).message
        assert (
            message.startswith("2 traces are in run: run/a.nsys-rep")
            if names
            else message == "there is no trace in run"
        )

    def test_a_folder_in_the_variable_is_resolved_too(self, monkeypatch):
        write_report("run/a.nsys-rep")
        monkeypatch.setenv("NSYS_INSIGHT_TRACE", "run")
        assert resolve_trace_path(None) == (Path("run/a.nsys-rep"), "using run/a.nsys-rep ($NSYS_INSIGHT_TRACE)")


def test_a_cache_that_cannot_be_written_is_ignored(current_folder, monkeypatch):
    Path("file").touch()
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(current_folder / "file" / "below"))
    remember_trace(write_report("a.nsys-rep"))
    assert resolve_trace_path(None)[0] == Path("a.nsys-rep")


def test_a_damaged_record_of_the_last_trace_is_ignored(tmp_path):
    remember_trace(write_report("a.nsys-rep"))
    for memory in (tmp_path / "cache").iterdir():
        memory.write_bytes(b"\xff\0\n")
    write_report("b.nsys-rep")
    catch_refusal()
