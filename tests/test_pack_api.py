"""`api`: CUDA API calls by host time, against loops in Python and against what nsys itself printed."""

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
# What the oracle calls a number, and what the report does.
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


@nsys.traces_with("cuda_api_sum")
def test_equals_what_nsys_stats_prints(trace, printed):
    answer, _ = ask(trace)
    # nsys leaves the version on the names of the functions that came with CUDA 10 or later.
    expected = {oracle.plain_name(row["Name"]): row for row in nsys.rows(printed)}
    assert answer.keys() == expected.keys()
    for name, row in expected.items():
        ours = answer[name]
        assert (ours["total_ns"], ours["calls"]) == (int(row["Total Time (ns)"]), int(row["Num Calls"]))
        assert (ours["min_ns"], ours["max_ns"]) == (int(row["Min (ns)"]), int(row["Max (ns)"]))
        assert nsys.same(ours["avg_ns"], row["Avg (ns)"])
        assert nsys.same(ours["med_ns"], row["Med (ns)"])
        assert nsys.same(ours["stddev_ns"], row["StdDev (ns)"])
        assert nsys.same(ours["api_time_pct"], row["Time (%)"])


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_equals_plain_loops(trace, tmp_path):
    tables = oracle.read(trace.write(tmp_path / "any.sqlite"))
    answer, _ = ask(tmp_path / "any.sqlite")
    expected = oracle.api_totals(oracle.outer_api_calls(tables))
    assert answer.keys() == expected.keys()
    for name, ours in answer.items():
        for theirs, mine in COLUMNS.items():
            assert ours[mine] == pytest.approx(expected[name][theirs])


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
    host.call("cudaMalloc_v3020", at=0, takes=1_000).call("cuMemAlloc_v2", at=100, takes=800)
    host.call("cudaFree_v3020", at=2_000, takes=1_000)
    host.call("cudaDeviceSynchronize_v3020", at=2_100, takes=300).call("cuMemFree_v2", at=2_500, takes=300)
    host.call("cuMemFree_v2", at=4_000, takes=10)
    answer, _ = ask(trace.write(path))
    assert {name: (row["calls"], row["total_ns"]) for name, row in answer.items()} == {
        "cudaMalloc": (1, 1_000),
        "cudaFree": (1, 1_000),
        "cuMemFree": (1, 10),
    }


def test_of_two_calls_at_the_same_time_the_driver_call_is_the_inner_one(trace, path):
    host = trace.thread()
    host.call("cuLaunchKernel", at=0, takes=1_000).call("cudaLaunchKernel_v7000", at=0, takes=1_000)
    assert calls(trace.write(path)) == {"cudaLaunchKernel": 1}


def test_calls_of_other_threads_at_the_same_time_are_not_inside(trace, path):
    for tid in (1, 2, 3):
        trace.thread(tid=tid).call("cudaStreamSynchronize_v3020", at=tid * 100, takes=10_000 - tid * 1_000)
    trace.thread(pid=200, tid=1).call("cuCtxSynchronize", at=5_000, takes=100)
    assert calls(trace.write(path)) == {"cudaStreamSynchronize": 3, "cuCtxSynchronize": 1}


def test_versions_of_a_function_are_one_function(trace, path):
    host = trace.thread()
    for name in ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"):
        host.call(name)
    assert calls(trace.write(path)) == {"cudaMemcpyAsync": 3}


def test_the_backtraces_of_nsys_2022_are_no_calls(trace, path):
    trace.thread().call("cudaMalloc_v3020").call("cudaFree_v3020")
    assert calls(trace.write(path, version="2022.2")) == {"cudaMalloc": 1, "cudaFree": 1}


def test_errors_are_counted_but_an_unfinished_query_is_none(trace, path):
    host = trace.thread()
    for returns in (0, 600, 600):
        host.call("cudaEventQuery_v3020", returns=returns)
    for returns in (0, 2, 700):
        host.call("cudaMalloc_v3020", returns=returns)
    answer, _ = ask(trace.write(path))
    assert (answer["cudaEventQuery"]["failed_count"], answer["cudaMalloc"]["failed_count"]) == (0, 2)


def test_what_the_export_does_not_say_is_unknown(trace, path):
    trace.thread().call("cudaMalloc_v3020", takes=1_000)
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    answer, _ = ask(trace.write(path, without_columns=(f"{table}.returnValue", f"{table}.eventClass")))
    assert (answer["cudaMalloc"]["calls"], answer["cudaMalloc"]["failed_count"]) == (1, None)
    assert answer["cudaMalloc"]["stddev_ns"] is None


def test_a_range_narrows_to_the_calls_on_its_thread_inside_it(trace, path):
    host, other = trace.thread(), trace.thread(tid=7)
    other.call("cudaEventQuery_v3020", at=150)
    host.call("cudaMalloc_v3020")
    with host.nvtx("step"):
        host.launch("k")
    host.call("cudaFree_v3020")
    assert calls(trace.write(path), nvtx="step") == {"cudaLaunchKernel": 1}


def test_a_device_does_not_narrow_calls_and_a_note_says_so(sample):
    whole, notes = ask(sample("churn"))
    assert notes == ()
    narrowed, notes = ask(sample("churn"), device=0)
    assert {name: row["calls"] for name, row in narrowed.items()} == {name: row["calls"] for name, row in whole.items()}
    assert notes == ("API calls belong to no device or stream: all calls of the scope are counted",)


def test_an_empty_trace_has_an_empty_answer(trace, path):
    assert ask(trace.write(path), device=0) == ({}, ())
