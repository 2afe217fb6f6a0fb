"""`launches`: from the launch call over the queue to the kernel, against loops in Python and the output of nsys."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import oracle
import printed as nsys
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace
from real_traces import SAMPLE_NAMES
from strategies import traces
from synthetic import Trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
CALL_COLUMNS = ("api_total_ns", "api_avg_ns", "api_med_ns", "queued_count", "total_avg_ns", "api_kernel_ratio")


def ask(path, **scope):
    with open_trace(path, **scope) as trace:
        answer = trace.answer("launches")
        return {(row["name"], row["api_name"]): row for row in answer.frame().to_dicts()}, answer.notes


def calculate_expected(tables):
    """Follow each kernel in a loop. Return the rows by kernel and launching function."""
    pairs = defaultdict(list)
    for launch in oracle.launches(tables):
        pairs[launch["name"], launch["api_name"]].append(launch)
    rows = {}
    for key, launches in pairs.items():
        kernels = oracle.statistics([launch["kernel_ns"] for launch in launches])
        row = {"calls": len(launches), "kernel_total_ns": kernels["total"], "kernel_med_ns": kernels["median"]}
        if key[1] is not None and oracle.LAUNCH.match(key[1]):
            api = oracle.statistics([launch["api_ns"] for launch in launches])
            queues = [launch["queue_ns"] for launch in launches if launch["queue_ns"] >= 0]
            queue = oracle.statistics(queues) if queues else defaultdict(lambda: None)
            row |= {"api_total_ns": api["total"], "api_med_ns": api["median"], "queued_count": len(queues)}
            row |= {"queue_avg_ns": queue["avg"], "queue_med_ns": queue["median"], "queue_max_ns": queue["max"]}
            ends = [max(launch["kernel"]["end"], launch["call"]["end"]) for launch in launches]
            starts = [launch["call"]["start"] for launch in launches]
            row["total_avg_ns"] = (sum(ends) - sum(starts)) / len(launches)
        else:
            row |= dict.fromkeys((*CALL_COLUMNS, "queue_avg_ns", "queue_med_ns", "queue_max_ns"))
        rows[key] = row
    return rows


def assert_equal(answer, expected):
    assert answer.keys() == expected.keys()
    for key, row in expected.items():
        assert {name: answer[key][name] for name in row} == pytest.approx(row)


@pytest.fixture
def trace():
    return Trace()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


@nsys.each_trace_with("cuda_kern_exec_sum")
def test_equals_what_nsys_stats_prints_for_kernels_with_a_call_of_their_own(trace, nsys_output):
    answer, _ = ask(trace)
    expected = {(row["Kernel Name"], oracle.plain_name(row["API Name"])): row for row in nsys.read_rows(nsys_output)}
    assert answer.keys() == expected.keys()
    for key, row in expected.items():
        own_row = answer[key]
        assert own_row["calls"] == int(row["Count"])
        assert nsys.equals_printed(own_row["kernel_avg_ns"], row["KAvg (ns)"])
        assert nsys.equals_printed(own_row["kernel_med_ns"], row["KMed (ns)"])
        if key[1] == "cudaGraphLaunch":  # nsys gives each kernel the full time of the shared call
            assert [own_row[name] for name in CALL_COLUMNS] == [None] * len(CALL_COLUMNS)
            continue
        assert own_row["queued_count"] == int(row["QCount"])
        assert nsys.equals_printed(own_row["total_avg_ns"], row["TAvg (ns)"])
        assert nsys.equals_printed(own_row["api_avg_ns"], row["AAvg (ns)"])
        assert nsys.equals_printed(own_row["api_med_ns"], row["AMed (ns)"])
        assert nsys.equals_printed(own_row["queue_avg_ns"], row["QAvg (ns)"])
        assert nsys.equals_printed(own_row["queue_med_ns"], row["QMed (ns)"])
        assert nsys.equals_printed(own_row["queue_max_ns"], row["QMax (ns)"])


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_equals_plain_loops(name):
    path = SAMPLES / f"{name}.sqlite"
    assert_equal(ask(path)[0], calculate_expected(oracle.read(path)))


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_equals_plain_loops(trace, tmp_path):
    tables = oracle.read(trace.write(tmp_path / "any.sqlite"))
    answer, _ = ask(tmp_path / "any.sqlite")
    assert_equal(answer, calculate_expected(tables))
    assert sum(row["calls"] for row in answer.values()) == len(tables[oracle.KERNEL])


def test_total_is_api_plus_queue_plus_kernel(trace, path):
    trace.thread().launch("k", api=5_000, queue=700, runs=40_000)
    (row,) = ask(trace.write(path))[0].values()
    assert (row["api_avg_ns"], row["queue_avg_ns"], row["kernel_avg_ns"]) == (5_000, 700, 40_000)
    assert row["total_avg_ns"] == 5_000 + 700 + 40_000
    assert row["api_kernel_ratio"] == 5_000 / 40_000


def test_a_kernel_that_starts_before_its_call_returns_has_no_queue_time(trace, path):
    host = trace.thread()
    host.launch("k", start=0, api=5_000, queue=-2_000, runs=500)
    host.launch("k", start=10_000, api=5_000, queue=300, runs=500)
    (row,) = ask(trace.write(path))[0].values()
    assert (row["calls"], row["queued_count"], row["queue_avg_ns"], row["queue_max_ns"]) == (2, 1, 300, 300)
    # The first was over when its call returned.
    assert row["total_avg_ns"] == (5_000 + 5_800) / 2


def test_correlation_ids_of_other_processes_do_not_join(trace, path):
    trace.thread(pid=100).launch("k", start=0, api=1_000, queue=0)
    trace.thread(pid=200).launch("k", start=0, api=3_000, queue=0)
    (row,) = ask(trace.write(path))[0].values()
    assert (row["calls"], row["api_avg_ns"], row["queue_avg_ns"]) == (2, 2_000, 0)


def test_a_driver_call_inside_the_launch_call_does_not_count_again(trace, path):
    trace.thread().launch("k", api=8_000, driver="cuLaunchKernel")
    answer, notes = ask(trace.write(path))
    assert [(key, row["calls"], row["api_avg_ns"]) for key, row in answer.items()] == [
        (("k", "cudaLaunchKernel"), 1, 8_000)
    ]
    assert notes == ()


def test_one_kernel_launched_by_two_functions_has_two_rows(trace, path):
    trace.thread().launch("k").launch("k", api_name="cuLaunchKernelEx")
    assert ask(trace.write(path))[0].keys() == {("k", "cudaLaunchKernel"), ("k", "cuLaunchKernelEx")}


def test_kernels_of_a_graph_share_a_call_whose_time_is_in_a_note(trace, path):
    host = trace.thread()
    host.launch("k", runs=10)
    for _ in range(2):
        host.graph_launch(kernels=[("k", 100), ("k", 300), ("l", 1_000)], api=12_000)
    answer, notes = ask(trace.write(path))
    graph = answer["k", "cudaGraphLaunch"]
    assert (graph["calls"], graph["kernel_total_ns"], graph["api_total_ns"]) == (4, 800, None)
    assert next(iter(answer)) == ("k", "cudaLaunchKernel")
    assert notes == ("6 kernels ran in 2 launches of CUDA graphs, 12 µs of host time each (4 µs a kernel)",)


def test_graphs_traced_as_a_unit_have_a_note(sample):
    _, (note,) = ask(sample("decode_graph_whole"))
    assert "32 times" in note


def test_missing_calls_have_a_note(trace, path):
    host = trace.thread()
    host.launch("k").kernel("k", start=50_000).kernel("l", start=60_000)
    answer, notes = ask(trace.write(path))
    assert (answer["k", None]["calls"], answer["k", None]["api_total_ns"]) == (1, None)
    assert notes == (
        "1 of 3 kernels have a known launch call in the trace; for the others, only the kernel is measured",
    )


def test_a_window_may_cut_a_kernel_off_its_call(trace, path):
    trace.thread().launch("k", start=0, api=1_000, queue=5_000).launch("k", start=8_000)
    answer, (note,) = ask(trace.write(path), from_ns=3_000)
    assert {key: row["calls"] for key, row in answer.items()} == {("k", None): 1, ("k", "cudaLaunchKernel"): 1}
    assert note.startswith("1 of 2 kernels have a known launch call in the scope")


def test_a_range_has_the_kernels_launched_in_it_even_if_they_run_later(trace, path):
    host = trace.thread()
    with host.nvtx("step"):
        host.launch("k", queue=90_000)
    host.launch("l", queue=0)
    assert ask(trace.write(path), nvtx="step")[0].keys() == {("k", "cudaLaunchKernel")}


def test_the_most_expensive_launches_come_first(sample):
    totals = [row["api_total_ns"] for row in ask(sample("decode_graph_node"))[0].values()]
    known_totals = [total for total in totals if total is not None]
    assert totals == sorted(known_totals, reverse=True) + [None] * (len(totals) - len(known_totals))


def test_an_empty_trace_has_an_empty_answer(trace, path):
    assert ask(trace.write(path)) == ({}, ())
