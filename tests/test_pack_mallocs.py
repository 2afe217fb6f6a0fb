"""`mallocs`: the calls that allocate and free memory, against loops in Python and traces with known calls."""

from __future__ import annotations

import re
from pathlib import Path

import oracle
import planted
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace
from strategies import traces
from sweeps import sweep
from synthetic import Trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.sqlite"))


def ask(path, **scope):
    with open_trace(path, **scope) as trace:
        answer = trace.answer("mallocs")
        return {row["name"]: row for row in answer.frame().to_dicts()}, answer.notes


def select(row, *columns):
    return tuple(row[column] for column in columns)


def assert_equal(answer, tables):
    expected = oracle.allocations(tables)
    totals = oracle.api_totals(oracle.outer_api_calls(tables))
    assert {name: row["calls"] for name, row in answer.items()} == expected["calls"] | expected["free_calls"]
    for name, row in answer.items():
        assert row["call_group"] == ("alloc" if name in expected["calls"] else "free")
        assert (row["total_ns"], row["max_ns"]) == (totals[name]["total"], totals[name]["max"])
        assert row["avg_ns"] == pytest.approx(totals[name]["avg"])
    idle = dict.fromkeys(answer, 0)
    names = {(call["globalTid"], call["start"]): call["name"] for call in oracle.outer_api_calls(tables)}
    for (cost_kind, thread, start), ns in oracle.idle_costs(tables).items():
        if cost_kind == "allocation":
            idle[names[thread, start]] += ns
    assert {name: row["gpu_idle_ns"] for name, row in answer.items()} == idle


@pytest.fixture
def trace():
    return Trace()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


@pytest.mark.parametrize("name", ["churn", "decode_eager", *sweep(NAMES[2:])])
def test_equals_plain_loops(name):
    assert_equal(ask(SAMPLES / f"{name}.sqlite")[0], oracle.read(SAMPLES / f"{name}.sqlite"))


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_equals_plain_loops(trace, tmp_path):
    tables = oracle.read(trace.write(tmp_path / "any.sqlite"))
    assert_equal(ask(tmp_path / "any.sqlite")[0], tables)


def test_the_churning_sample_allocates_and_frees_the_same_bytes(sample):
    # 20 steps, each allocating and freeing three buffers.
    answer, _ = ask(sample("churn"))
    sizes = oracle.allocations(oracle.read(sample("churn")))["bytes"]
    assert select(answer["cudaMalloc"], "calls", "size_bytes") == (60, sizes["Allocation", "Device"])
    assert select(answer["cudaFree"], "calls", "size_bytes") == (60, sizes["Deallocation", "Device"])
    assert answer["cudaHostAlloc"]["size_bytes"] == sizes["Allocation", "Pinned"]
    # The first step and the last one, which has no recorded end, are not steady.
    assert select(answer["cudaMalloc"], "startup_count", "steady_count") == (6, 54)


@pytest.mark.slow
def test_a_steady_call_began_in_a_steady_step_and_a_start_up_call_before_the_first(path):
    answer, _ = ask(planted.allocating(12, warm_up=3).write(path))
    assert select(answer["cudaMalloc"], "calls", "startup_count", "steady_count", "steady_idle_ns") == (3, 3, 0, 0)
    answer, _ = ask(planted.allocating(8).write(path))
    steady_count = answer["cudaMalloc"]["steady_count"]
    assert select(answer["cudaMalloc"], "calls", "startup_count", "steady_idle_ns") == (8, 0, 30_000 * steady_count)


@pytest.mark.slow
def test_without_steps_the_phase_of_calls_is_unknown_with_a_note(trace, path):
    trace.thread().malloc(1).launch("k").free()
    answer, notes = ask(trace.write(path))
    assert select(answer["cudaMalloc"], "startup_count", "steady_count", "steady_idle_ns") == (None, None, None)
    assert any("no steady steps were found" in note for note in notes)


@pytest.mark.slow
def test_in_ranges_calls_are_counted_per_range(trace, path):
    host = trace.thread()
    host.malloc(1_000)
    for _ in range(4):
        with host.nvtx("step"):
            host.malloc(10).malloc(30).launch("k").free()
    answer, notes = ask(trace.write(path), nvtx="step")
    assert select(answer["cudaMalloc"], "calls", "calls_per_range", "size_bytes", "max_size_bytes") == (8, 2, 160, 30)
    assert select(answer["cudaFree"], "calls", "calls_per_range", "size_bytes") == (4, 1, 120)
    # The ranges are the steps. Calls before them are out of scope.
    assert select(answer["cudaMalloc"], "startup_count", "steady_count") == (0, 8)
    assert notes == ()
    assert ask(path)[0]["cudaMalloc"]["calls_per_range"] is None


@pytest.mark.slow
def test_with_from_ns_startup_calls_are_unknown(trace, path):
    host = trace.thread()
    host.malloc(1, start=0).launch("k", start=5_000).malloc(1, start=10_000)
    answer, _ = ask(trace.write(path), from_ns=4_000)
    assert select(answer["cudaMalloc"], "calls", "startup_count", "steady_count") == (1, None, None)


def test_sizes_that_were_not_captured_are_unknown_and_a_note_says_how_to_get_them(trace, path):
    trace.thread().malloc(1_000).free()
    answer, notes = ask(trace.write(path, without_tables=("CUDA_GPU_MEMORY_USAGE_EVENTS",)))
    assert select(answer["cudaMalloc"], "size_bytes", "max_size_bytes") == (None, None)
    assert notes[:1] == ("sizes are unknown; capture with --cuda-memory-usage=true",)


def test_the_peak_counts_memory_allocated_at_the_same_time(trace, path):
    host = trace.thread()
    host.malloc(4_096).malloc(8_192).free().malloc(2_048).free().free()
    # A pinned buffer is no device memory.
    host.malloc(1 << 30, memory="pinned", api_name="cudaHostAlloc_v3020")
    _, notes = ask(trace.write(path))
    assert notes[:1] == ("peak device memory that nsys saw allocated: 12.0 KiB on device 0",)


def test_the_peak_is_rounded_and_not_cut(trace, path):
    trace.thread().malloc(1_690_304_512)
    assert ask(trace.write(path))[1][0].endswith("allocated: 1.57 GiB on device 0")


def test_the_peak_counts_memory_allocated_before_the_capture(trace, path):
    host = trace.thread(now=10_000)
    host.malloc(1 << 20).malloc(1 << 20).free()
    for event in trace.rows["CUDA_GPU_MEMORY_USAGE_EVENTS"]:
        event["start"] = 0
    trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"].clear()
    host.malloc(512)
    answer, notes = ask(trace.write(path))
    assert answer["cudaMalloc"]["size_bytes"] == 512
    assert notes[:1] == ("peak device memory that nsys saw allocated: 1.00 MiB on device 0",)


def test_each_device_of_each_process_has_its_own_peak(trace, path):
    trace.thread(pid=100).malloc(1_024).malloc(2_048, device=1)
    trace.thread(pid=200).malloc(4_096)
    _, (note, *_) = ask(trace.write(path))
    assert note.endswith(
        "1.00 KiB on device 0 of process 100, 2.00 KiB on device 1 of process 100, 4.00 KiB on device 0 of process 200"
    )


def test_a_call_inside_another_is_not_counted(trace, path):
    host = trace.thread()
    host.call("cudaMalloc_v3020", start=0, takes=1_000).call("cuMemAlloc_v2", start=100, takes=800)
    host.call("cuMemAlloc_v2", start=2_000, takes=800)
    trace.thread(tid=2).call("cuMemAlloc_v2", start=100, takes=800)
    answer, _ = ask(trace.write(path))
    assert {name: row["calls"] for name, row in answer.items()} == {"cudaMalloc": 1, "cuMemAlloc": 2}


def test_failed_calls_are_counted(trace, path):
    trace.thread().call("cudaMalloc_v3020", returns=2).call("cudaMalloc_v3020")
    answer, _ = ask(trace.write(path))
    assert answer["cudaMalloc"]["failed_count"] == 1


FUNCTIONS = {
    (
        "alloc",
        "device",
        "may",
    ): "cudaMalloc_v3020 cudaMalloc3D_v3020 cudaMallocPitch_v3020 cuMemAlloc_v2 cuMemAllocPitch",
    ("free", "device", "yes"): "cudaFree_v3020 cuMemFree_v2",
    ("alloc", "stream-ordered", "no"): "cudaMallocAsync_v11020 cudaMallocFromPoolAsync_ptsz_v11020 cuMemAllocAsync",
    ("free", "stream-ordered", "no"): "cudaFreeAsync_v11020 cuMemFreeAsync_ptsz cudaMemPoolTrimTo_v11020",
    ("alloc", "pinned host", "yes"): "cudaHostAlloc_v3020 cudaMallocHost_v3020 cudaHostRegister_v4000 cuMemHostAlloc",
    ("free", "pinned host", "yes"): "cudaFreeHost_v3020 cudaHostUnregister_v4000 cuMemFreeHost cuMemHostUnregister",
    ("alloc", "managed", "may"): "cudaMallocManaged_v6000 cuMemAllocManaged",
    ("alloc", "array", "may"): "cudaMallocArray_v3020 cudaMallocMipmappedArray_v5000 cuArray3DCreate_v2",
    ("free", "array", "may"): "cudaFreeArray_v3020 cuArrayDestroy cuMipmappedArrayDestroy",
    ("alloc", "virtual", None): "cuMemCreate",
    ("free", "virtual", None): "cuMemRelease",
}


def test_memory_and_wait_are_derived_from_the_function_name(trace, path):
    expected = {function: kind for kind, functions in FUNCTIONS.items() for function in functions.split()}
    host = trace.thread()
    for function in expected:
        host.call(function)
    answer, _ = ask(trace.write(path))
    kinds = {name: select(row, "call_group", "memory", "synchronizes") for name, row in answer.items()}
    assert kinds == {re.sub(r"(_ptsz)?_v\d+$|_ptsz$", "", function): kind for function, kind in expected.items()}


def test_shares_are_of_the_wall_and_the_longest_comes_first(sample):
    answer, _ = ask(sample("churn"))
    first, last = oracle.wall(oracle.read(sample("churn")))
    for row in answer.values():
        assert row["wall_pct"] == pytest.approx(100 * row["total_ns"] / (last - first))
    assert list(answer) == sorted(answer, key=lambda name: -answer[name]["total_ns"])


@pytest.mark.slow
def test_a_device_does_not_narrow_calls_and_a_note_says_so(sample):
    answer, notes = ask(sample("churn"), device=0)
    assert answer["cudaMalloc"]["calls"] == 60
    assert "API calls belong to no device or stream: all calls of the scope are counted" in notes


def test_a_trace_without_allocations_has_an_empty_answer(sample, trace, path):
    assert ask(sample("decode_eager")) == ({}, ())
    assert ask(trace.write(path)) == ({}, ())
