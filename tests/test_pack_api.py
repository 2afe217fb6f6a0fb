"""`api`: CUDA API calls by host time, against loops in Python and against the output of nsys."""

from __future__ import annotations

from pathlib import Path

import oracle
import printed as nsys
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace
from strategies import traces
from synthetic import Trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
# The names of a statistic in the oracle and in the report.
COLUMNS = {"count": "calls", "total": "total_ns", "avg": "avg_ns", "median": "med_ns", "min": "min_ns", "max": "max_ns"}
COLUMNS |= {"stddev": "stddev_ns"}


def ask(path, **scope):
    with open_trace(path, **scope) as trace:
        answer = trace.answer("api")
        return {row["name"]: row for row in answer.frame().to_dicts()}, answer.notes


def calls(path, **scope):
    return {name: row["calls"] for name, row in ask(path, **scope)[0].items()}


@pytest.fixture
def trace():
    return Trace()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


@nsys.each_trace_with("cuda_api_sum")
def test_equals_what_nsys_stats_prints(trace, nsys_output):
    answer, _ = ask(trace)
    # nsys leaves the version on the names of the functions that came with CUDA 10 or later.
    expected = {oracle.plain_name(nsys_row["Name"]): nsys_row for nsys_row in nsys.read_rows(nsys_output)}
    assert answer.keys() == expected.keys()
    for name, nsys_row in expected.items():
        row = answer[name]
        assert (row["total_ns"], row["calls"]) == (int(nsys_row["Total Time (ns)"]), int(nsys_row["Num Calls"]))
        assert (row["min_ns"], row["max_ns"]) == (int(nsys_row["Min (ns)"]), int(nsys_row["Max (ns)"]))
        assert nsys.equals_printed(row["avg_ns"], nsys_row["Avg (ns)"])
        assert nsys.equals_printed(row["med_ns"], nsys_row["Med (ns)"])
        assert nsys.equals_printed(row["stddev_ns"], nsys_row["StdDev (ns)"])
        assert nsys.equals_printed(row["api_time_pct"], nsys_row["Time (%)"])


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_equals_plain_loops(trace, tmp_path):
    tables = oracle.read(trace.write(tmp_path / "any.sqlite"))
    answer, _ = ask(tmp_path / "any.sqlite")
    expected = oracle.api_totals(oracle.outer_api_calls(tables))
    assert answer.keys() == expected.keys()
    for name, row in answer.items():
        for statistic, column in COLUMNS.items():
            assert row[column] == pytest.approx(expected[name][statistic])


def test_shares_are_of_all_api_time_and_of_the_wall(sample):
    answer, _ = ask(sample("decode_eager"))
    first, last = oracle.wall(oracle.read(sample("decode_eager")))
    assert sum(row["api_time_pct"] for row in answer.values()) == pytest.approx(100)
    for row in answer.values():
        assert row["wall_pct"] == pytest.approx(100 * row["total_ns"] / (last - first))


def test_rows_are_sorted_by_total_time(sample):
    totals = [row["total_ns"] for row in ask(sample("decode_eager"))[0].values()]
    assert totals == sorted(totals, reverse=True)


def test_a_call_inside_another_is_not_counted(trace, path):
    host = trace.thread()
    host.call("cudaMalloc_v3020", start=0, takes=1_000).call("cuMemAlloc_v2", start=100, takes=800)
    host.call("cudaFree_v3020", start=2_000, takes=1_000)
    host.call("cudaDeviceSynchronize_v3020", start=2_100, takes=300).call("cuMemFree_v2", start=2_500, takes=300)
    host.call("cuMemFree_v2", start=4_000, takes=10)
    answer, _ = ask(trace.write(path))
    assert {name: (row["calls"], row["total_ns"]) for name, row in answer.items()} == {
        "cudaMalloc": (1, 1_000),
        "cudaFree": (1, 1_000),
        "cuMemFree": (1, 10),
    }


def test_of_two_calls_at_the_same_time_the_driver_call_is_the_inner_one(trace, path):
    host = trace.thread()
    host.call("cuLaunchKernel", start=0, takes=1_000).call("cudaLaunchKernel_v7000", start=0, takes=1_000)
    assert calls(trace.write(path)) == {"cudaLaunchKernel": 1}


def test_calls_of_other_threads_at_the_same_time_are_not_inside(trace, path):
    for tid in (1, 2, 3):
        trace.thread(tid=tid).call("cudaStreamSynchronize_v3020", start=tid * 100, takes=10_000 - tid * 1_000)
    trace.thread(pid=200, tid=1).call("cuCtxSynchronize", start=5_000, takes=100)
    assert calls(trace.write(path)) == {"cudaStreamSynchronize": 3, "cuCtxSynchronize": 1}


def test_versions_of_a_function_are_one_function(trace, path):
    host = trace.thread()
    for name in ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"):
        host.call(name)
    host.call("cudaLaunchHostFunc_v2_ptsz_v13020")
    assert calls(trace.write(path)) == {"cudaMemcpyAsync": 3, "cudaLaunchHostFunc": 1}


def test_a_wait_for_a_part_of_the_gpu_is_a_synchronization(trace, path):
    trace.thread().call("cudaExecutionCtxSynchronize_v13010").call("cudaExecutionCtxGetId_v13010")
    with open_trace(trace.write(path)) as session:
        groups = dict(session.sql("SELECT name, call_group FROM api_calls").rows())
    assert groups == {"cudaExecutionCtxSynchronize": "sync", "cudaExecutionCtxGetId": "other"}


def test_the_backtraces_of_nsys_2022_are_no_calls(trace, path):
    trace.thread().call("cudaMalloc_v3020").call("cudaFree_v3020")
    assert calls(trace.write(path, version="2022.2")) == {"cudaMalloc": 1, "cudaFree": 1}


def test_errors_are_counted_but_an_unfinished_query_is_not_an_error(trace, path):
    host = trace.thread()
    for returns in (0, 600, 600):
        host.call("cudaEventQuery_v3020", returns=returns)
    for returns in (0, 2, 700):
        host.call("cudaMalloc_v3020", returns=returns)
    answer, _ = ask(trace.write(path))
    assert (answer["cudaEventQuery"]["failed_count"], answer["cudaMalloc"]["failed_count"]) == (0, 2)


def test_columns_missing_in_the_export_are_unknown(trace, path):
    trace.thread().call("cudaMalloc_v3020", takes=1_000)
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    answer, _ = ask(trace.write(path, without_columns=(f"{table}.returnValue", f"{table}.eventClass")))
    assert (answer["cudaMalloc"]["calls"], answer["cudaMalloc"]["failed_count"]) == (1, None)
    assert answer["cudaMalloc"]["stddev_ns"] is None


def test_a_range_narrows_to_the_calls_on_its_thread_inside_it(trace, path):
    host, other = trace.thread(), trace.thread(tid=7)
    other.call("cudaEventQuery_v3020", start=150)
    host.call("cudaMalloc_v3020")
    with host.nvtx("step"):
        host.launch("k")
    host.call("cudaFree_v3020")
    assert calls(trace.write(path), nvtx="step") == {"cudaLaunchKernel": 1}


def test_a_device_does_not_narrow_calls_and_a_note_says_so(sample):
    unscoped_rows, notes = ask(sample("churn"))
    assert notes == ()
    scoped_rows, notes = ask(sample("churn"), device=0)
    assert {name: row["calls"] for name, row in scoped_rows.items()} == {
        name: row["calls"] for name, row in unscoped_rows.items()
    }
    assert notes == ("API calls belong to no device or stream: all calls of the scope are counted",)


def test_an_empty_trace_has_an_empty_answer(trace, path):
    assert ask(trace.write(path), device=0) == ({}, ())
