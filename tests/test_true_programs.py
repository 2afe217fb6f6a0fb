"""What `diagnose` says of programs as people publish them: small, first runs, with failing calls or managed memory."""

from __future__ import annotations

import re

import pytest
from opening import open_trace
from synthetic import Trace

MS = 1_000_000


def said(trace, folder):
    """Give the diagnosis in one line."""
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        return " ".join(opened.diagnose().text(None).split())


# Calls that fail ------------------------------------------------------------------------------------------------------


def calling(*calls):
    """A copy, four of each of these calls, which return that, and a copy back."""
    trace = Trace()
    host = trace.thread()
    host.copy("H2D", 4 << 20, runs=MS)
    for returns, name in calls:
        for _ in range(4):
            host.call(name, returns=returns)
    host.copy("D2H", 4 << 20, runs=MS, blocking=True)
    return trace


@pytest.mark.slow
def test_launches_that_fail_come_before_all_else(tmp_path):
    text = said(calling((222, "cudaLaunchKernel_v7000")), tmp_path)
    assert "1. CRITICAL CUDA calls fail" in text
    assert "cudaLaunchKernel: 4 of 4 calls, error 222 (the driver is older than the PTX compiler)" in text


@pytest.mark.slow
def test_an_error_without_a_name_here_is_given_by_its_number(tmp_path):
    assert "cudaLaunchKernel: 4 of 4 calls, error 333" in said(calling((333, "cudaLaunchKernel_v7000")), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cudaDeviceSynchronize_v3020", "cudaMalloc_v3020", "cudaMemcpyAsync_v3020"])
def test_whatever_waits_allocates_or_copies_tells_of_a_kernel_that_failed(name, tmp_path):
    assert "error 700 (illegal address)" in said(calling((700, name)), tmp_path)


@pytest.mark.slow
def test_an_answer_is_no_failure(tmp_path):
    answers = (
        (0, "cudaLaunchKernel_v7000"),
        (600, "cudaStreamQuery_v3020"),  # not ready yet
        (600, "cudaEventQuery_v3020"),
        (704, "cudaDeviceEnablePeerAccess_v4000"),  # enabled already
        (709, "cuCtxSynchronize"),  # the context is gone when the program ends
        (201, "cuCtxGetDevice"),  # whether there is a context
        (4, "cudaFree_v3020"),
    )
    assert "CUDA calls fail" not in said(calling(*answers), tmp_path)


# The profiler's time --------------------------------------------------------------------------------------------------


def first_launch(*overheads):
    """Two kernels; the second one's launch takes 100 ms, for nearly all of which these are listed as overhead."""
    trace = Trace()
    host = trace.thread()
    host.launch("warm(float *)", runs=50 * MS)
    host.sync("device")
    each = 98 * MS // len(overheads)
    for number, overhead in enumerate(overheads):
        trace.overhead(overhead, host.now + number * each + 1_000, host.now + (number + 1) * each, host)
    host.launch("work(float *)", api=100 * MS, runs=50 * MS)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("overhead", ["CUPTI: Buffer flush", "CUPTI Instrumentation", "CUDA profiling data flush"])
def test_what_the_profiler_does_is_the_profilers_time(overhead, tmp_path):
    assert "The profiler itself takes time" in said(first_launch(overhead), tmp_path)


@pytest.mark.slow
def test_what_the_driver_and_the_program_do_is_not(tmp_path):
    overheads = ("Unknown", "dlopen(libnvrtc.so.12)", "dlclose", "Lazy Function Loading", "Command Buffer Full")
    text = said(first_launch(*overheads), tmp_path)
    assert "profiler itself" not in text
    assert "profiler 4" not in text
    assert "A few slow launches keep the GPU waiting" in text
    assert "CUDA_MODULE_LOADING" in text


# Launches -------------------------------------------------------------------------------------------------------------


def stalling(launches, wait):
    """Kernels that each start so long after their launch call is over."""
    trace = Trace()
    host = trace.thread()
    for number in range(launches):
        host.launch(f"kernel{'abcdefghijklmnopqrstuvwxyz'[number % 26]}{number}(float *)", queue=wait, runs=20_000)
        host.now += wait + 20_000
    return trace


@pytest.mark.slow
@pytest.mark.parametrize(("wait", "slow"), [(400_000, True), (20_000, False)])
def test_few_slow_launches_are_not_too_many_of_them(wait, slow, tmp_path):
    text = said(stalling(12, wait), tmp_path)
    assert ("A few slow launches keep the GPU waiting" in text) is slow
    assert ("Launch fewer, larger kernels" in text) is not slow


@pytest.mark.slow
def test_one_dear_launch_a_step_is_still_launching(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(30):
        with host.nvtx("step"):
            host.idle(60_000).launch("work(float *)", api=11_000, runs=1_500)
    text = said(trace, tmp_path)
    assert "steady steps" in text
    assert "Launch fewer, larger kernels" in text or "The GPU waits while the CPU works" in text


@pytest.mark.slow
def test_other_calls_before_a_launch_are_named(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(4):
        host.launch(f"kernel{'abcd'[number]}(float *)", runs=50_000).sync("device")
        host.call("cudaEventCreate_v3020", takes=2 * MS)
    host.launch("last(float *)", runs=50_000)
    text = said(trace, tmp_path)
    assert "The GPU waits while the host is in CUDA calls" in text
    assert "the calls with the most time in total: cudaEventCreate, 8 ms" in text


def benchmark(pause):
    """Five kernels, each 100 times; between them the host works for so long."""
    trace = Trace()
    host = trace.thread()
    for number in range(5):
        for _ in range(100 + number):
            host.launch(f"transpose{'abcde'[number]}(float *)", api=4_000, runs=3_000).idle(1_000)
        host.copy("D2H", 4 << 20, runs=500_000, blocking=True).idle(pause).memset(4 << 20, runs=9_000)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize(("pause", "waits"), [(3 * MS, True), (60_000, False)])
def test_what_the_host_does_between_runs_is_no_launching_however_many_launches_there_are(pause, waits, tmp_path):
    text = said(benchmark(pause), tmp_path)
    assert ("The GPU waits while the CPU works" in text) is waits
    assert ("Launch fewer, larger kernels" in text) is not waits


# Start and end --------------------------------------------------------------------------------------------------------


def edges(before, outside, after):
    """One kernel; before it a call, then nothing for a while; after it a call."""
    trace = Trace()
    host = trace.thread()
    host.call("cudaMalloc_v3020", takes=before).idle(outside)
    host.launch("work(float *)", runs=MS).sync("device")
    host.call("cuModuleUnload", takes=after)
    return trace


@pytest.mark.slow
def test_time_before_the_first_operation_that_no_call_takes_is_said(tmp_path):
    assert "cudaMalloc, 2 ms; cudaLaunchKernel, 5 µs; 90 ms outside of CUDA calls" in said(
        edges(2 * MS, 90 * MS, 1_000), tmp_path
    )
    assert "outside of CUDA calls" not in said(edges(90 * MS, 2 * MS, 1_000), tmp_path)


@pytest.mark.slow
def test_a_long_end_is_told_with_the_calls_that_ran_then(tmp_path):
    text = said(edges(1_000, 1_000, 90 * MS), tmp_path)
    assert "start-up and end" in text
    assert "The GPU is idle at the end" in text
    assert "from then on: cuModuleUnload, 90 ms" in text
    assert "No single cause" not in text


@pytest.mark.slow
def test_a_short_end_is_not_told(tmp_path):
    assert "at the end" not in said(edges(90 * MS, 1_000, 1_000), tmp_path)


@pytest.mark.slow
def test_a_little_work_is_not_none(tmp_path):
    assert "GPU busy less than 0.1 %, idle more than 99.9 %" in said(edges(5_000 * MS, 1_000, 1_000), tmp_path)
    assert "GPU busy 1.1 %" in said(edges(90 * MS, 1_000, 1_000), tmp_path)


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_steps_memory_is_not_allocated_in_a_loop(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.launch("first(float *)", runs=MS).sync("device")
    host.call("cudaHostAlloc_v3020", takes=20 * MS)
    host.launch("second(float *)", runs=MS)
    text = said(trace, tmp_path)
    assert "The GPU waits while memory is allocated: up to 20 ms" in text
    assert "1 call in total takes the host 20 ms, and the GPU is idle for 20 ms because of it" in text
    assert "inside the loop" not in text
    # The stall is told where its time is.
    assert text.index("also: the GPU stalls") < text.index("do: Allocate ahead")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "said_of_it"),
    [
        ("cudaMallocAsync_v11020", "cudaMemPoolAttrReleaseThreshold"),
        ("cudaMalloc_v3020", "use a pool: cudaMallocAsync"),
    ],
)
def test_who_uses_a_pool_is_not_told_to_use_one(api, said_of_it, tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(20):
        for name in ("load", "solve", "store"):
            host.call(api, takes=100_000)
            host.launch(f"{name}(float *)", runs=50_000)
        host.copy("D2H", 8, blocking=True)
    text = said(trace, tmp_path)
    assert "Memory is allocated inside the loop" in text
    assert said_of_it in text


@pytest.mark.slow
def test_what_the_host_does_with_managed_memory_is_not_logging(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("add(float *)", runs=5 * MS, grid=(4096, 1, 1)).sync("device")
    for _ in range(40):
        host.migrate("UM D2H", 64 << 10, at=host.now, runs=10_000, cause="Page fault").idle(500_000)
    text = said(trace, tmp_path)
    assert "The GPU waits while the host works on managed memory" in text
    assert "logging" not in text


@pytest.mark.slow
def test_what_the_host_does_besides_managed_memory_is_not_called_that(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("add(float *)", runs=5 * MS, grid=(4096, 1, 1)).sync("device")
    for _ in range(40):
        host.migrate("UM D2H", 64 << 10, at=host.now, runs=10_000, cause="Page fault").idle(500_000)
    # A launch call is no work of the CPU, however long.
    host.launch("add(float *)", api=12 * MS, runs=5 * MS, grid=(4096, 1, 1)).sync("device").idle(10 * MS)
    host.launch("add(float *)", runs=5 * MS, grid=(4096, 1, 1))
    text = said(trace, tmp_path)
    assert re.search(r"outside of CUDA calls, 19\.\d ms of it touching managed memory", text)
    assert "the longest gap, 10 ms, is between add and add" in text


@pytest.mark.slow
def test_pages_that_move_at_first_are_not_those_of_the_steps(tmp_path):
    """At first one kernel has all of its pages moved; then steps of another one that few are moved for."""
    trace = Trace().gpu()
    host = trace.thread()
    with host.nvtx("load"):
        host.launch("fill(float *)", runs=50 * MS, grid=(4096, 1, 1))
        for number in range(40):
            host.migrate("UM H2D", 2 << 20, at=host.now + MS * (number + 1), runs=MS)
        host.sync("device")
    for _ in range(12):
        with host.nvtx("step"):
            host.launch("solve(float *)", runs=MS, grid=(4096, 1, 1))
            host.migrate("UM H2D", 64 << 10, at=host.now + 200_000, runs=100_000).sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        found = {one.name: one for one in opened.diagnose(step_range="step").findings}["unified-memory"]
    assert found.place == "solve in step"
    assert found.evidence == "1 migration to the GPU (64.0 KiB) a step take 100 µs; 100 µs of it while kernels run"


# Stalls ---------------------------------------------------------------------------------------------------------------


def stalls(*lengths):
    """A kernel that comes again after each of these."""
    trace = Trace()
    host = trace.thread()
    host.launch("work(float *)", runs=MS).sync("device")
    for length in lengths:
        host.idle(length).launch("work(float *)", runs=MS).sync("device")
    return trace


@pytest.mark.slow
def test_one_long_stall_among_short_ones_is_not_told_by_the_median(tmp_path):
    trace = stalls(*[300_000] * 5, 2_000 * MS)
    text = said(trace, tmp_path)
    assert "stalls 6 times, in total 2" in text
    assert "6 times for" not in text


# Kernels --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"), [("ampere_sgemm_128x64_nn", True), ("matmul_kernel(float *, float *)", False)]
)
def test_only_of_a_librarys_matrix_product_is_it_known_that_it_computes(name, told, tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch(name, runs=5 * MS, grid=(4096, 1, 1), block=(256, 1, 1))
    text = said(trace, tmp_path)
    assert ("compute-bound by its name" in text) is told
    assert ("A library's matrix product (cuBLAS, CUTLASS)" in text) is not told


@pytest.mark.slow
def test_one_kernel_that_holds_the_time_is_not_called_a_few_and_brings_no_others_along(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch("solve(float *)", runs=5 * MS, grid=(4096, 1, 1), block=(256, 1, 1))
        host.launch("count(int *)", runs=3_000)
    text = said(trace, tmp_path)
    assert "One kernel is hot" in text
    assert "The distance from its roof was not measured" in text
    assert "count: " not in text


# Copies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_copies_of_the_start_are_not_those_of_the_steps(tmp_path):
    """Weights from pageable memory at first; then steps that copy little from pinned memory."""
    trace = Trace()
    host = trace.thread()
    for _ in range(3):
        host.copy("H2D", 500 << 20, runs=10 * MS, blocking=True, source="pageable", api_name="cudaMemcpy_v3020")
    for _ in range(20):
        host.copy("H2D", 1 << 20, runs=300_000, source="pinned", api_name="cudaMemcpyAsync_v3020")
        for name in ("load", "solve", "store"):
            host.launch(f"{name}(float *)", runs=2 * MS)
        host.copy("D2H", 8, blocking=True)
    text = said(trace, tmp_path)
    assert "steady steps" in text
    assert "most time: H2D from pinned to device memory, 1.0 MiB each" in text
    assert "500" not in text.split("Copies to or from the GPU take time")[1]


@pytest.mark.slow
def test_the_wait_that_is_named_is_one_of_the_steps(tmp_path):
    trace = Trace()
    host = trace.thread()
    with host.nvtx("load"):
        for _ in range(3):
            host.copy("D2H", 500 << 20, runs=100_000, blocking=True).idle(50 * MS)
    for _ in range(20):
        with host.nvtx("step"):
            for name in ("load", "solve", "store"):
                host.launch(f"{name}(float *)", runs=30_000)
            host.copy("D2H", 8, blocking=True)
    text = said(trace, tmp_path)
    read_back = text.split("The host waits to read data back")[1].split("do:")[0]
    assert "in step" in read_back
    assert "in load" not in read_back


@pytest.mark.slow
def test_how_much_is_read_back_is_told_of_the_steps(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.copy("D2H", 500 << 20, runs=MS, blocking=True)
    for _ in range(20):
        for name in ("load", "solve", "store"):
            host.launch(f"{name}(float *)", runs=30_000)
        host.copy("D2H", 8, blocking=True)
    assert "; 8 bytes each" in said(trace, tmp_path).split("The host waits to read data back")[1].split("do:")[0]


@pytest.mark.parametrize("recorded_device", [2, 0])
def test_a_wait_is_for_the_device_of_its_context_whatever_device_nsys_says(recorded_device, tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        host.launch("work(float *)", runs=MS, device=2, stream=13)
        host.copy("D2H", 8, device=2, stream=13).sync("stream", device=2, stream=13)
    for row in trace.rows["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"]:
        row["deviceId"] = recorded_device
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        assert [row["copy_kind"] for row in opened.answer("syncs").dicts()] == ["D2H"]


# Steps ----------------------------------------------------------------------------------------------------------------


def test_a_step_that_outlasts_the_last_cuda_event_is_as_long_in_every_report(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        with host.nvtx("step"):
            host.idle(40_000).launch("work(float *)", runs=100_000).sync("device").idle(50_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        opened.answer("classify")
        ((steps, budget),) = (
            opened.sql("""SELECT (SELECT sum(duration_ns)::BIGINT FROM steps WHERE phase = 'steady') AS steps,
            (SELECT sum(time_ns)::BIGINT FROM step_budget) AS budget""").rows()
        )
        assert steps == budget


@pytest.mark.slow
def test_steps_are_no_more_than_the_trace(tmp_path):
    """Their ranges begin before the first CUDA call and end after the last."""
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        with host.nvtx("step"):
            host.idle(90_000).launch("work(float *)", runs=100_000).sync("device").idle(90_000)
    assert re.search(
        r"8 steady steps \(NVTX ranges step, confidence high\), 100\.0 % of the trace", said(trace, tmp_path)
    )
