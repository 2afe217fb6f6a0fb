"""A trace gives the same answers with every open strategy."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep

import nsys_insight
from nsys_insight.errors import ToolError
from nsys_insight.ingest import extension, nsys, store
from nsys_insight.session import open_strategies
from nsys_insight.session.connection import Connection

SAMPLES = Path(__file__).parents[1] / "sample_traces"


def read_answers(path, **options) -> dict[str, pl.DataFrame]:
    with nsys_insight.open(path, **options) as trace:
        return {"top": trace.top(), "nvtx": trace.nvtx(), "api": trace.api(), "copies": trace.copies()}


def assert_same_answers(left, right):
    for report, frame in left.items():
        # Sums of floats depend on the order in which threads add them, in the last digit.
        assert_frame_equal(frame, right[report], check_exact=False, rel_tol=1e-12)


@pytest.fixture(scope="module")
def expected():
    return read_answers(SAMPLES / "decode_eager.sqlite", use_cache=False)


@pytest.mark.slow
def test_from_a_duckdb_file_in_the_cache(expected):
    assert_same_answers(expected, read_answers(SAMPLES / "decode_eager.sqlite", use_cache=True))
    assert_same_answers(expected, read_answers(SAMPLES / "decode_eager.sqlite"))


@pytest.mark.slow
def test_cell_by_cell_where_the_extension_cannot_be_loaded(expected, monkeypatch):
    monkeypatch.setattr(extension, "find_scanner", lambda: None)
    assert_same_answers(expected, read_answers(SAMPLES / "decode_eager.sqlite"))


@pytest.mark.slow
def test_cell_by_cell_without_a_cache_folder(expected, monkeypatch):
    monkeypatch.setattr(extension, "find_scanner", lambda: None)
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", "/dev/null/nowhere")
    assert_same_answers(expected, read_answers(SAMPLES / "decode_eager.sqlite"))


@pytest.mark.slow
@pytest.mark.parametrize("has_valid_rows", [True, False], ids=["all rows are true", "one cannot be"])
def test_from_a_copy_without_strings(has_valid_rows, monkeypatch, tmp_path):
    export = tmp_path / "trace.sqlite"
    shutil.copy(SAMPLES / "decode_graph_node.sqlite", export)
    if not has_valid_rows:
        with closing(sqlite3.connect(export)) as database, database:
            database.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = 1 << 62 WHERE rowid = 7')

    def read_rows_and_notes():
        notes = []
        with nsys_insight.open(export, note=notes.append) as trace:
            reports = ("steps", "top", "occupancy", "launch-configs", "launches", "idle", "nvtx", "info")
            rows = {name: trace.answer(name).rows() for name in reports}
            for view in ("kernel_events", "kernels", "gpu_ops", "launches", "launch_shapes", "strings", "wall"):
                rows[view] = trace.query(f"FROM {view} ORDER BY ALL").rows()
            rows["mangled"] = trace.answer("top", group_by="mangled").rows()
            # This query needs the export itself.
            rows["exported"] = trace.query(
                "SELECT count(*), sum(registersPerThread) FROM raw.CUPTI_ACTIVITY_KIND_KERNEL"
            ).rows()
        part = nsys_insight.open(export).scope(from_ns=rows["wall"][0][0] + 10**7, stream=rows["gpu_ops"][0][8])
        with part:
            rows["part"] = [part.answer(name).rows() for name in ("steps", "top", "launch-configs")]
        return rows, notes

    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))
    in_place = read_rows_and_notes()
    assert store.find_entry(export) is None
    monkeypatch.setattr(open_strategies, "_BIG_BYTES", 0)
    from_copy = read_rows_and_notes()
    assert store.find_entry(export) == store.entry_path(export)
    with duckdb.connect(store.find_entry(export), read_only=True) as copy:
        tables = {name for (name,) in copy.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    assert "NVTX_EVENTS" in tables
    assert "StringIds" not in tables
    assert from_copy == in_place
    assert bool(in_place[1]) != has_valid_rows


@pytest.mark.slow
def test_a_cached_file_that_is_damaged_is_dropped(expected, tmp_path, monkeypatch):
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path))
    read_answers(SAMPLES / "decode_eager.sqlite", use_cache=True)
    (cached,) = tmp_path.glob("*.duckdb")
    cached.write_bytes(b"not a database" * 1000)
    assert_same_answers(expected, read_answers(SAMPLES / "decode_eager.sqlite"))
    assert not cached.exists()


@pytest.mark.slow
def test_a_cached_file_that_is_damaged_inside_is_dropped(expected, tmp_path, monkeypatch):
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path))
    read_answers(SAMPLES / "decode_eager.sqlite", use_cache=True)
    (cached,) = tmp_path.glob("*.duckdb")
    content = bytearray(cached.read_bytes())
    content[20_000:-20_000] = bytes(len(content) - 40_000)
    cached.write_bytes(content)
    assert_same_answers(expected, read_answers(SAMPLES / "decode_eager.sqlite"))


def test_a_cell_of_another_type_than_its_column(tmp_path):
    path = shutil.copy(SAMPLES / "churn.sqlite", tmp_path / "odd.sqlite")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridId = 'seven' WHERE rowid = 1")
    with nsys_insight.open(path) as trace:
        # The unknown cell is NULL. The row and its other cells are read.
        assert trace.sql("SELECT count(*) AS n FROM kernels WHERE grid_id IS NULL")["n"].item() == 1
        assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500


@pytest.mark.slow
@pytest.mark.parametrize("use_cache", [False, True])
def test_views_stand_in_for_tables(expected, use_cache, tmp_path):
    path = shutil.copy(SAMPLES / "decode_eager.sqlite", tmp_path / "views.sqlite")
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "StringIds", "NVTX_EVENTS"):
            database.execute(f"ALTER TABLE {table} RENAME TO kept_{table}")
            database.execute(f"CREATE VIEW {table} AS SELECT * FROM kept_{table}")
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_GRAPH_TRACE AS SELECT * FROM nowhere")
    assert_same_answers(expected, read_answers(path, use_cache=use_cache))


@pytest.mark.slow
def test_from_a_report_and_from_a_folder_of_parquet_files_by_the_real_nsys(expected, tmp_path):
    try:
        tool = nsys.find_newest_nsys()
    except ToolError:
        pytest.skip("needs nsys")
    report = tmp_path / "decode_eager.nsys-rep"
    report.write_bytes((SAMPLES / "decode_eager.nsys-rep").read_bytes())
    assert_same_answers(expected, read_answers(report))

    folder = tmp_path / "folder"
    subprocess.run(
        [tool.path, "export", "-q", "true", "-t", "parquetdir", "-o", folder, report],
        check=True, capture_output=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert_same_answers(expected, read_answers(folder))


@pytest.mark.slow
def test_sessions_of_one_trace_do_not_share_state():
    with nsys_insight.open(SAMPLES / "decode_eager.sqlite") as full_trace, full_trace.scope(nvtx="prefill") as part:
        assert part.top()["calls"].sum() == 196
        assert full_trace.top()["calls"].sum() == 6469
        assert isinstance(full_trace._connection, Connection)


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", "end", ""),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "start", "TEXT"),
        *sweep(
            ("CUPTI_ACTIVITY_KIND_KERNEL", column, kind)
            for column in ("start", "streamId")
            for kind in ("", "BLOB", "DATE", "TIMESTAMP", "BOOLEAN", "DECIMAL(5,2)")
        ),
        *sweep([("StringIds", "value", ""), ("StringIds", "id", "BLOB")]),
    ],
)
def test_a_column_is_read_by_its_cells_not_by_its_declaration(sample, tmp_path, table, column, kind):
    """In place, DuckDB's extension read a number of a column without a type as bytes: all kernels were left out."""
    path, messages = tmp_path / "trace.sqlite", []
    shutil.copyfile(sample("churn"), path)
    with closing(sqlite3.connect(path)) as database, database:
        types = {name: kind_ for _, name, kind_, *_ in database.execute(f"PRAGMA table_info({table})")} | {column: kind}
        database.execute(f"ALTER TABLE {table} RENAME TO old")
        columns = ", ".join(f'"{name}" {declaration}' for name, declaration in types.items())
        database.execute(f"CREATE TABLE {table} ({columns})")
        database.execute(f"INSERT INTO {table} SELECT * FROM old")
        database.execute("DROP TABLE old")
    sums = "SELECT count(*), sum(start_ns), sum(end_ns), sum(stream_id), count(name), min(name) FROM kernels"
    with nsys_insight.open(sample("churn")) as trace, nsys_insight.open(path, note=messages.append) as changed_trace:
        assert changed_trace.sql(sums).rows() == trace.sql(sums).rows()
    assert messages == []
