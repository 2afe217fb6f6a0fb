"""The start and end of a trace, read from the edges of big tables, are those of all its rows."""

from __future__ import annotations

from pathlib import Path

import oracle
import pytest
from real_traces import SAMPLE_NAMES
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest import row_search, sqlite_file, time_bounds

SAMPLES = Path(__file__).parents[1] / "sample_traces"


@pytest.fixture
def treat_tables_as_big(monkeypatch):
    monkeypatch.setattr(time_bounds, "MIN_ROWS", 100)
    monkeypatch.setattr(row_search, "PROBE_COUNT", 50)
    monkeypatch.setattr(time_bounds, "FIRST_ROWS", 40)
    monkeypatch.setattr(time_bounds, "LAST_ROWS", 40)


def read_wall(path, **scope):
    with nsys_insight.open(path, use_cache=False) as full_trace, full_trace.scope(**scope) as trace:
        return trace.sql("SELECT start_ns, end_ns FROM wall").rows()


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_the_edges_agree_with_all_rows_of_a_real_trace(treat_tables_as_big, name):
    path = SAMPLES / f"{name}.sqlite"
    assert "CUPTI_ACTIVITY_KIND_RUNTIME" in time_bounds.read_time_bounds(path, sqlite_file.read_sqlite_columns(path))
    assert read_wall(path) == [oracle.wall(oracle.read(path))]


def test_rows_out_of_order_are_all_read(treat_tables_as_big, tmp_path):
    trace = Trace()
    host = trace.thread(pid=1, tid=1)
    for _ in range(300):
        host.launch("k", runs=100)
    path = trace.write(tmp_path / "t.sqlite", shuffle=1)
    assert time_bounds.read_time_bounds(path, sqlite_file.read_sqlite_columns(path)) == {}
    assert read_wall(path) == [oracle.wall(oracle.read(path))]


def test_a_scope_reads_the_rows_inside_it(treat_tables_as_big):
    path = SAMPLES / "decode_eager.sqlite"
    ((start, end),) = read_wall(path, nvtx="prefill")
    prefill = next(row for row in oracle.nvtx_ranges(oracle.read(path)) if row["name"] == "prefill")
    assert (start, end) == (prefill["start"], prefill["end"])


def test_all_rows_of_small_tables_are_read():
    path = SAMPLES / "decode_eager.sqlite"
    assert time_bounds.read_time_bounds(path, sqlite_file.read_sqlite_columns(path)) == {}


def test_a_synchronization_without_a_call_is_of_the_profiler(tmp_path):
    trace = Trace()
    host = trace.thread().launch("k", runs=1_000).sync("device")
    end = host.now
    # nsys synchronizes a context itself when cudaProfilerStop ends the capture.
    sync = dict(trace.rows["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"][-1])
    trace.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **sync | {"start": end + 10**6, "end": end + 10**6 + 500})
    assert read_wall(trace.write(tmp_path / "t.sqlite"))[0][1] == end
