"""Where a trace begins and ends, told from the edges of big tables, is where every row together says it does."""

from __future__ import annotations

from pathlib import Path

import oracle
import pytest
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest import extents, row_search, sqlite_file

SAMPLES = Path(__file__).parents[1] / "sample_traces"


@pytest.fixture
def everything_is_big(monkeypatch):
    monkeypatch.setattr(extents, "BIG", 100)
    monkeypatch.setattr(row_search, "PROBES", 50)
    monkeypatch.setattr(extents, "FIRST", 40)
    monkeypatch.setattr(extents, "LAST", 40)


def wall(path, **scope):
    with nsys_insight.open(path, use_cache=False) as whole, whole.scope(**scope) as trace:
        return trace.sql("SELECT start_ns, end_ns FROM wall").rows()


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.sqlite")))
def test_the_edges_agree_with_all_rows_of_a_real_trace(everything_is_big, name):
    path = SAMPLES / f"{name}.sqlite"
    assert "CUPTI_ACTIVITY_KIND_RUNTIME" in extents.known(path, sqlite_file.sqlite_columns(path))
    assert wall(path) == [oracle.wall(oracle.read(path))]


def test_rows_out_of_order_are_all_read(everything_is_big, tmp_path):
    trace = Trace()
    host = trace.thread(pid=1, tid=1)
    for _ in range(300):
        host.launch("k", runs=100)
    path = trace.write(tmp_path / "t.sqlite", shuffle=1)
    assert extents.known(path, sqlite_file.sqlite_columns(path)) == {}
    assert wall(path) == [oracle.wall(oracle.read(path))]


def test_a_scope_reads_the_rows_that_are_in_it(everything_is_big):
    path = SAMPLES / "decode_eager.sqlite"
    ((start, end),) = wall(path, nvtx="prefill")
    prefill = next(row for row in oracle.nvtx_ranges(oracle.read(path)) if row["name"] == "prefill")
    assert (start, end) == (prefill["start"], prefill["end"])


def test_small_tables_are_read_whole():
    path = SAMPLES / "decode_eager.sqlite"
    assert extents.known(path, sqlite_file.sqlite_columns(path)) == {}
