"""The kind of a file, and the errors about files that are not traces."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsys_insight import own_files
from nsys_insight.errors import Exit, TraceError
from nsys_insight.ingest import cache_entries
from nsys_insight.ingest.files import Kind
from nsys_insight.ingest.identify import identify, is_export, make_scannable

REPORT = b"NVIDIA Tegra Profiler Report 2023@4@4@54-234433681190v0.\n"
EXPORT_TABLES = ("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "META_DATA_EXPORT")
# A name with all characters that are special in URIs, SQL and shells.
ODD_NAME = 'it\'s 100% "odd"; a#b?c=d&e [é] %20.sqlite'


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path):
    """Return the folder with the trace. Its content must not change."""
    return tmp_path


def make_sqlite(path, tables=EXPORT_TABLES):
    with closing(sqlite3.connect(path)) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (id INTEGER, value TEXT)")
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(i, "x" * 100) for i in range(100)])
        connection.commit()
    return path


def read_folder(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def catch_refusal(path):
    with pytest.raises(TraceError) as caught:
        identify(path)
    assert caught.value.exit_code == Exit.TRACE
    assert str(path) in caught.value.message
    assert caught.value.hint
    return f"{caught.value.message}\n{caught.value.hint}"


class TestReadable:
    def test_an_sqlite_export(self, folder):
        assert identify(make_sqlite(folder / "trace.sqlite")) is Kind.SQLITE

    def test_a_report(self, folder):
        (folder / "trace.nsys-rep").write_bytes(REPORT)
        assert identify(folder / "trace.nsys-rep") is Kind.REPORT

    def test_a_folder_of_a_parquetdir_export(self, folder):
        (folder / "StringIds.parquet").write_bytes(b"PAR1")
        assert identify(folder) is Kind.PARQUET

    def test_content_is_more_important_than_the_suffix(self, folder):
        (folder / "report.sqlite").write_bytes(REPORT)
        make_sqlite(folder / "export.nsys-rep")
        assert identify(folder / "report.sqlite") is Kind.REPORT
        assert identify(folder / "export.nsys-rep") is Kind.SQLITE

    @pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep"])
    def test_the_suffix_counts_where_the_content_is_unknown(self, folder, suffix):
        path = folder / f"trace{suffix}"
        path.write_bytes(b"\x01\x02 a format of the future")
        assert identify(path) is Kind.REPORT

    @pytest.mark.parametrize("tables", [("StringIds", "NVTX_EVENTS"), ("TARGET_INFO_GPU",), ("EXPORT_META_DATA",)])
    def test_an_export_with_any_of_the_event_tables(self, folder, tables):
        assert identify(make_sqlite(folder / "trace.sqlite", tables)) is Kind.SQLITE

    def test_a_file_with_an_odd_name_is_not_changed(self, folder):
        path = make_sqlite(folder / ODD_NAME)
        before = read_folder(folder)
        assert identify(path) is Kind.SQLITE
        assert read_folder(folder) == before

    def test_table_names_that_are_not_utf8(self, folder):
        path = make_sqlite(folder / "trace.sqlite", (*EXPORT_TABLES, "odd_name"))
        path.write_bytes(path.read_bytes().replace(b"odd_name", b"odd_nam\xff"))
        assert identify(path) is Kind.SQLITE


class TestRefused:
    def test_a_file_name_that_is_not_utf8(self, folder):
        path = make_sqlite(folder / "plain.sqlite").rename(folder / os.fsdecode(b"trace-\xff.sqlite"))
        with pytest.raises(TraceError) as refused:
            identify(path)
        assert "not UTF-8" in refused.value.message.encode(errors="replace").decode()

    @pytest.mark.parametrize(
        ("name", "head", "message"),
        [
            ("trace.nsys-rep", b"", "is empty"),
            ("trace.sqlite", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
            ("kernel.ncu-rep", b"NVR\0\x0c\0\0\0", "Nsight Compute"),
            ("trace.nsys-rep", b"NVR\0\x0c\0\0\0", "Nsight Compute"),
            ("trace.json", b'{"schemaVersion": 1, "traceEvents": []}', "Chrome trace"),
            ("trace.json", b'[{"name": "a", "ph": "X"}]', "Chrome trace"),
            ("trace.json", b'{"data": []}', "is a JSON file"),
            ("trace.nsys-rep.gz", gzip.compress(b"x", mtime=0), "gunzip --keep trace.nsys-rep.gz"),
            ("trace.zip", b"PK\x03\x04\x14\0", "unzip trace.zip"),
            ("trace.h5", b"\x89HDF\r\n\x1a\n", "HDF5"),
            ("StringIds.parquet", b"PAR1\x15\x04", "give the folder"),
            ("trace.qdstrm", b"\x01\x02\x03", "QdstrmImporter -i trace.qdstrm"),
            ("top.csv", b"Time (%),Total Time (ns)\n", "is a text file"),
            ("trace.sqlite", bytes(8192), "export the report again"),
            ("trace.nsys-rep", bytes(8192), "profile or copy again"),
            ("trace.sqlite", b"\x01\x02\x03", "is damaged"),
            ("trace.bin", b"\x01\x02\x03", "neither an nsys report nor"),
        ],
    )
    def test_the_error_names_the_kind_of_another_file(self, folder, name, head, message):
        (folder / name).write_bytes(head)
        assert message in catch_refusal(folder / name)

    def test_a_file_that_does_not_exist(self, folder):
        assert "does not exist" in catch_refusal(folder / "trace.nsys-rep")

    @pytest.mark.parametrize(
        "name", ["decode_eager", "decode_eagr.nsys-rep", "decode_eager.nsys-re", "decode_eager.sqlite"]
    )
    def test_a_mistyped_name_suggests_a_similar_one(self, folder, name):
        (folder / "decode_eager.nsys-rep").write_bytes(REPORT)
        assert f"did you mean {folder / 'decode_eager.nsys-rep'}?" in catch_refusal(folder / name)

    def test_a_link_to_a_missing_file(self, folder):
        (folder / "trace.sqlite").symlink_to("/scratch/purged.sqlite")
        assert "links to /scratch/purged.sqlite" in catch_refusal(folder / "trace.sqlite")

    def test_a_link_in_a_circle(self, folder):
        (folder / "trace.sqlite").symlink_to("trace.sqlite")
        assert "cannot be read" in catch_refusal(folder / "trace.sqlite")

    def test_a_name_too_long_for_the_file_system(self, folder):
        assert "cannot be read" in catch_refusal(folder / ("x" * 300))

    def test_a_folder(self, folder):
        assert "is a folder" in catch_refusal(folder)

    @pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs")
    def test_a_fifo_without_waiting_for_it(self, folder):
        os.mkfifo(folder / "pipe")
        assert "not a regular file" in catch_refusal(folder / "pipe")

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
    def test_a_file_that_may_not_be_read(self, folder):
        path = make_sqlite(folder / "trace.sqlite")
        path.chmod(0)
        assert "Permission denied" in catch_refusal(path)

    @pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
    def test_a_truncated_export_with_both_sizes(self, folder, part):
        path = make_sqlite(folder / "trace.sqlite")
        size = path.stat().st_size
        os.truncate(path, int(size * part))
        assert f"is truncated: {int(size * part):,} of {size:,} bytes" in catch_refusal(path)

    def test_a_database_of_another_program(self, folder):
        assert "not an export of nsys" in catch_refusal(make_sqlite(folder / "history.sqlite", ("bookmarks",)))

    def test_an_empty_database(self, folder):
        with closing(sqlite3.connect(folder / "empty.sqlite")) as connection:
            connection.execute("VACUUM")
        assert "not an export of nsys" in catch_refusal(folder / "empty.sqlite")

    def test_a_file_of_nvprof(self, folder):
        path = make_sqlite(folder / "old.nvprof", ("StringTable", "CUPTI_ACTIVITY_KIND_KERNEL"))
        assert "nvprof" in catch_refusal(path)

    def test_an_export_that_failed_on_its_first_event(self, folder):
        path = make_sqlite(folder / "trace.sqlite", ("StringIds", "ProcessStreams"))
        assert "incomplete export" in catch_refusal(path)

    def test_a_damaged_schema(self, folder):
        path = make_sqlite(folder / "trace.sqlite")
        path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE JUNK!"))
        assert "is a damaged SQLite file" in catch_refusal(path)

    @given(st.sampled_from([b"", b"SQLite format 3\0", REPORT, b"{"]), st.binary(max_size=200))
    @settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_content_raises_at_most_a_trace_error(self, folder, head, tail):
        path = folder / "trace.sqlite"
        path.write_bytes(head + tail)
        try:
            kind = identify(path)
        except TraceError as error:
            assert error.hint  # noqa: PT017 (most examples are refused, some are not)
        else:
            assert kind is Kind.REPORT


class TestPendingSqliteFiles:
    """SQLite writes files next to a database in WAL mode, or with a journal, even if it only reads."""

    @pytest.fixture
    def in_wal_mode(self, folder):
        path = make_sqlite(folder / "trace.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        assert list(read_folder(folder)) == ["trace.sqlite"]
        return path

    @pytest.fixture
    def with_pending_wal(self, folder, tmp_path_factory):
        """Copy a file while another program has it open: some rows are only in the -wal file."""
        path = make_sqlite(tmp_path_factory.mktemp("elsewhere") / "trace.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("INSERT INTO StringIds VALUES (100, 'late')")
            connection.commit()
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", folder / f"trace.sqlite{suffix}")
        return folder / "trace.sqlite"

    @pytest.fixture
    def with_hot_journal(self, folder):
        """Leave the file as a program does that died while it changed the file."""
        path = make_sqlite(folder / "trace.sqlite")
        code = (
            "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA cache_size = 1')\n"
            "c.execute('BEGIN IMMEDIATE'); c.execute('DELETE FROM StringIds'); c.execute('PRAGMA cache_spill = 1')\n"
            "c.executemany('INSERT INTO META_DATA_EXPORT VALUES (?, ?)', [(1, 'y' * 1000)] * 1000); os._exit(0)"
        )
        subprocess.run([sys.executable, "-c", code, path], check=True)
        assert (folder / "trace.sqlite-journal").stat().st_size
        assert self.count_strings(path) != 100
        return path

    def count_strings(self, path):
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM StringIds").fetchone()[0]

    def test_a_file_at_rest_is_used_in_place(self, folder, cache):
        path = make_sqlite(folder / "trace.sqlite")
        assert make_scannable(path, pytest.fail) == path
        assert not any(cache.iterdir())

    @pytest.mark.parametrize(
        ("state", "rows"), [("in_wal_mode", 100), ("with_pending_wal", 101), ("with_hot_journal", 100)]
    )
    def test_a_pending_file_is_copied_to_the_cache_and_finished_there(self, request, folder, cache, state, rows):
        path = request.getfixturevalue(state)
        before, notes = read_folder(folder), []
        assert identify(path) is Kind.SQLITE

        copy = make_scannable(path, notes.append)

        assert copy.parent == cache
        assert self.count_strings(copy) == rows
        assert [str(path) in note for note in notes] == [True]
        assert read_folder(folder) == before
        names = {path.name for path in cache.iterdir()} - {own_files.MARKER}
        assert names == {copy.name, cache_entries.manifest_path(copy).name}
        assert make_scannable(copy, pytest.fail) == copy

    def test_the_copy_is_made_once(self, in_wal_mode):
        before = make_scannable(in_wal_mode).stat().st_ino
        assert make_scannable(in_wal_mode).stat().st_ino == before

    def test_a_damaged_copy_is_made_again(self, in_wal_mode):
        make_scannable(in_wal_mode).write_bytes(b"SQLite format 3\0 and then nothing")
        assert self.count_strings(make_scannable(in_wal_mode)) == 100

    def test_a_change_of_the_journal_is_noticed(self, with_pending_wal):
        assert self.count_strings(make_scannable(with_pending_wal)) == 101
        Path(f"{with_pending_wal}-wal").unlink()
        assert self.count_strings(make_scannable(with_pending_wal)) == 100

    def test_an_export_that_is_only_in_its_wal_is_an_export(self, folder, tmp_path_factory):
        path = tmp_path_factory.mktemp("elsewhere") / "trace.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE StringIds (id, value)")
            connection.execute("CREATE TABLE NVTX_EVENTS (start)")
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", folder / f"trace.sqlite{suffix}")
        assert is_export(folder / "trace.sqlite")

    def test_without_a_cache_the_hint_says_how_to_get_one(self, in_wal_mode, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(in_wal_mode / "below"))
        with pytest.raises(TraceError) as caught:
            make_scannable(in_wal_mode)
        assert "NSYS_INSIGHT_CACHE_DIR" in caught.value.hint
