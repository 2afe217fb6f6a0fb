"""The diagnosis of typical published programs: small, first runs, with failing calls or managed memory."""

from __future__ import annotations

import re

import pytest
from opening import open_trace
from synthetic import Trace

MS = 1_000_000


def diagnose_text(trace, folder):
    """Return the diagnosis in one line."""
    with open_trace(trace.write(folder / "trace.sqlite")) as opened_trace:
        return " ".join(opened_trace.diagnose().text(None).split())


# Calls that fail ------------------------------------------------------------------------------------------------------


def make_calls(*calls):
    """Make a trace with a copy, four of each of these calls with their return values, and a copy back."""
    trace = Trace()
    host = trace.thread()
    host.copy("H2D", 4 << 20, runs=MS)
    for returns, name in calls:
        for _ in range(4):
            host.call(name, returns=returns)
    host.copy("D2H", 4 << 20, runs=MS, blocking=True)
    return trace


@pytest.mark.slow
def test_failing_launches_are_the_first_finding(tmp_path):
    text = diagnose_text(make_calls((222, "cudaLaunchKernel_v7000")), tmp_path)
    assert "1. CRITICAL NSI903 CUDA API calls failed" in text
    assert "cudaLaunchKernel: 4 of 4 calls, error 222 (the driver is older than the PTX compiler)" in text


@pytest.mark.slow
def test_an_error_without_a_known_name_is_reported_by_number(tmp_path):
    assert "cudaLaunchKernel: 4 of 4 calls, error 333" in diagnose_text(
        make_calls((333, "cudaLaunchKernel_v7000")), tmp_path
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cudaDeviceSynchronize_v3020", "cudaMalloc_v3020", "cudaMemcpyAsync_v3020"])
def test_a_later_call_reports_the_error_of_a_failed_kernel(name, tmp_path):
    assert "error 700 (illegal address)" in diagnose_text(make_calls((700, name)), tmp_path)


@pytest.mark.slow
def test_status_codes_that_are_answers_are_not_failures(tmp_path):
    answers = (
        (0, "cudaLaunchKernel_v7000"),
        (600, "cudaStreamQuery_v3020"),  # not ready yet
        (600, "cudaEventQuery_v3020"),
        (704, "cudaDeviceEnablePeerAccess_v4000"),  # enabled already
        (709, "cuCtxSynchronize"),  # the context is gone when the program ends
        (201, "cuCtxGetDevice"),  # whether there is a context
        (4, "cudaFree_v3020"),
    )
    assert "CUDA API calls failed" not in diagnose_text(make_calls(*answers), tmp_path)


# The profiler's time --------------------------------------------------------------------------------------------------


def make_slow_launch(*overheads):
    """Make two kernels. The launch of the second one takes 100 ms, and these overheads cover nearly all of it."""
    trace = Trace()
    host = trace.thread()
    host.launch("warm(float *)", runs=50 * MS)
    host.sync("device")
    duration_ns = 98 * MS // len(overheads)
    for number, overhead in enumerate(overheads):
        trace.overhead(overhead, host.now + number * duration_ns + 1_000, host.now + (number + 1) * duration_ns, host)
    host.launch("work(float *)", api=100 * MS, runs=50 * MS)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("overhead", ["CUPTI: Buffer flush", "CUPTI Instrumentation", "CUDA profiling data flush"])
def test_profiler_overheads_count_as_profiler_time(overhead, tmp_path):
    assert "Profiler overhead" in diagnose_text(make_slow_launch(overhead), tmp_path)


@pytest.mark.slow
def test_overheads_of_driver_and_program_do_not_count_as_profiler_time(tmp_path):
    overheads = ("Unknown", "dlopen(libnvrtc.so.12)", "dlclose", "Lazy Function Loading", "Command Buffer Full")
    text = diagnose_text(make_slow_launch(*overheads), tmp_path)
    assert "profiler itself" not in text
    assert "profiler 4" not in text
    assert "The GPU waits long for launches" in text
    assert "CUDA_MODULE_LOADING" in text


# Launches -------------------------------------------------------------------------------------------------------------


def make_late_kernels(launches, wait):
    """Make kernels that start this long after the end of their launch call."""
    trace = Trace()
    host = trace.thread()
    for number in range(launches):
        host.launch(f"kernel{'abcdefghijklmnopqrstuvwxyz'[number % 26]}{number}(float *)", queue=wait, runs=20_000)
        host.now += wait + 20_000
    return trace


@pytest.mark.slow
@pytest.mark.parametrize(("wait", "slow"), [(400_000, True), (20_000, False)])
def test_a_few_slow_launches_are_not_reported_as_too_many(wait, slow, tmp_path):
    text = diagnose_text(make_late_kernels(12, wait), tmp_path)
    assert ("The GPU waits long for launches" in text) is slow
    assert ("Launch fewer, larger kernels" in text) is not slow


@pytest.mark.slow
def test_one_expensive_launch_a_step_counts_as_launching(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(30):
        with host.nvtx("step"):
            host.idle(60_000).launch("work(float *)", api=11_000, runs=1_500)
    text = diagnose_text(trace, tmp_path)
    assert "steady steps" in text
    assert "Launch fewer, larger kernels" in text or "GPU idle during CPU work" in text


@pytest.mark.slow
def test_other_calls_before_a_launch_are_named(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(4):
        host.launch(f"kernel{'abcd'[number]}(float *)", runs=50_000).sync("device")
        host.call("cudaEventCreate_v3020", takes=2 * MS)
    host.launch("last(float *)", runs=50_000)
    text = diagnose_text(trace, tmp_path)
    assert "The GPU waits long for launches" in text
    assert (
        "most of the idle time passes in other CUDA calls; those with the most time in total: cudaEventCreate 8 ms"
        in " ".join(text.split())
    )


def make_benchmark(pause):
    """Make five kernels that each run 100 times. The host works for `pause` ns between them."""
    trace = Trace()
    host = trace.thread()
    for number in range(5):
        for _ in range(100 + number):
            host.launch(f"transpose{'abcde'[number]}(float *)", api=4_000, runs=3_000).idle(1_000)
        host.copy("D2H", 4 << 20, runs=500_000, blocking=True).idle(pause).memset(4 << 20, runs=9_000)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize(("pause", "waits"), [(3 * MS, True), (60_000, False)])
def test_host_work_between_runs_does_not_count_as_launching(pause, waits, tmp_path):
    text = diagnose_text(make_benchmark(pause), tmp_path)
    assert ("GPU idle during CPU work" in text) is waits
    assert ("Launch fewer, larger kernels" in text) is not waits


# Start and end --------------------------------------------------------------------------------------------------------


def make_edges(before, outside, after):
    """Make one kernel: before it a call and idle time, after it a call."""
    trace = Trace()
    host = trace.thread()
    host.call("cudaMalloc_v3020", takes=before).idle(outside)
    host.launch("work(float *)", runs=MS).sync("device")
    host.call("cuModuleUnload", takes=after)
    return trace


@pytest.mark.slow
def test_time_outside_of_calls_before_the_first_operation_is_reported(tmp_path):
    assert "until then: 2 ms in cudaMalloc; 90 ms outside of CUDA calls" in diagnose_text(
        make_edges(2 * MS, 90 * MS, 1_000), tmp_path
    )
    assert "outside of CUDA calls" not in diagnose_text(make_edges(90 * MS, 2 * MS, 1_000), tmp_path)


@pytest.mark.slow
def test_a_long_end_is_reported_with_its_calls(tmp_path):
    text = diagnose_text(make_edges(1_000, 1_000, 90 * MS), tmp_path)
    assert "start-up and end" in text
    assert "The GPU is idle at the end" in text
    assert "from then on: 90 ms in cuModuleUnload" in text
    assert "No single cause" not in text


@pytest.mark.slow
def test_a_short_end_is_not_reported(tmp_path):
    assert "at the end" not in diagnose_text(make_edges(90 * MS, 1_000, 1_000), tmp_path)


@pytest.mark.slow
def test_a_little_work_is_not_shown_as_zero(tmp_path):
    assert "GPU busy less than 0.1%, idle more than 99.9%" in diagnose_text(
        make_edges(5_000 * MS, 1_000, 1_000), tmp_path
    )
    assert "GPU busy 1.1%" in diagnose_text(make_edges(90 * MS, 1_000, 1_000), tmp_path)


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_steps_memory_is_not_allocated_in_a_loop(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.launch("first(float *)", runs=MS).sync("device")
    host.call("cudaHostAlloc_v3020", takes=20 * MS)
    host.launch("second(float *)", runs=MS)
    text = diagnose_text(trace, tmp_path)
    assert "The GPU waits while memory is allocated or freed: 7 ms to 20 ms" in text
    assert "the CPU spends 20 ms in 1 call in total; the GPU is idle for 20 ms during these calls" in text
    assert "before the loop" not in text
    # The stall is reported in the finding that has its time.
    assert text.index("Also the GPU stalls") < text.index("Fix Pin host memory once")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "free_api", "expected"),
    [
        ("cudaMallocAsync_v11020", "cudaFreeAsync_v11020", "cudaMemPoolAttrReleaseThreshold"),
        ("cudaMalloc_v3020", "cudaFree_v3020", "use cudaMallocAsync and cudaFreeAsync"),
    ],
)
def test_a_pool_is_not_advised_where_one_is_used(api, free_api, expected, tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(20):
        for name in ("load", "solve", "store"):
            host.call(api, takes=100_000)
            host.launch(f"{name}(float *)", runs=50_000)
            host.call(free_api, takes=10_000)
        host.copy("D2H", 8, blocking=True)
    text = diagnose_text(trace, tmp_path)
    assert "The GPU waits while memory is allocated or freed" in text
    assert expected in text


@pytest.mark.slow
def test_host_work_on_managed_memory_is_not_reported_as_logging(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("add(float *)", runs=5 * MS, grid=(4096, 1, 1)).sync("device")
    for _ in range(40):
        host.migrate("UM D2H", 64 << 10, start=host.now, runs=10_000, cause="Page fault").idle(500_000)
    text = diagnose_text(trace, tmp_path)
    assert re.search(r"idle for 19\.\d ms while the CPU is outside CUDA calls; 19\.\d ms of it .* managed memory", text)
    assert "Let a kernel set up what the GPU works on" in text
    assert "logging" not in text
    assert "another thread" not in text


@pytest.mark.slow
def test_other_host_work_is_not_reported_as_managed_memory(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("add(float *)", runs=5 * MS, grid=(4096, 1, 1)).sync("device")
    for _ in range(40):
        host.migrate("UM D2H", 64 << 10, start=host.now, runs=10_000, cause="Page fault").idle(500_000)
    # A launch call is not CPU work, even if it is long.
    host.launch("add(float *)", api=12 * MS, runs=5 * MS, grid=(4096, 1, 1)).sync("device").idle(10 * MS)
    host.launch("add(float *)", runs=5 * MS, grid=(4096, 1, 1))
    text = diagnose_text(trace, tmp_path)
    assert re.search(r"outside CUDA calls; 19\.\d ms of it while the host touches managed memory", text)
    assert "the longest gap, 10 ms, is between add and add" in text


@pytest.mark.slow
def test_migrations_before_the_steps_are_not_counted_for_the_steps(tmp_path):
    """At first, one kernel migrates all of its pages. Then the steps of another kernel migrate few pages."""
    trace = Trace().gpu()
    host = trace.thread()
    with host.nvtx("load"):
        host.launch("fill(float *)", runs=50 * MS, grid=(4096, 1, 1))
        for number in range(40):
            host.migrate("UM H2D", 2 << 20, start=host.now + MS * (number + 1), runs=MS)
        host.sync("device")
    for _ in range(12):
        with host.nvtx("step"):
            host.launch("solve(float *)", runs=MS, grid=(4096, 1, 1))
            host.migrate("UM H2D", 64 << 10, start=host.now + 200_000, runs=100_000).sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        finding = {candidate.name: candidate for candidate in opened_trace.diagnose(step_range="step").findings}[
            "unified-memory"
        ]
    assert finding.place == "solve in step"
    assert finding.evidence == (
        "1 migration to the GPU (64.0 KiB) per step; moving the pages takes 100 µs per step; "
        "100 µs of it while kernels run"
    )


# Stalls ---------------------------------------------------------------------------------------------------------------


def make_stalls(*lengths):
    """Make kernels, each after one of these idle times."""
    trace = Trace()
    host = trace.thread()
    host.launch("work(float *)", runs=MS).sync("device")
    for number, length in enumerate(lengths):
        host.idle(length).launch("work(float *)", runs=MS).launch(f"other{number}(float *)", runs=MS).sync("device")
    return trace


@pytest.mark.slow
def test_stalls_of_very_different_length_are_reported_by_their_total(tmp_path):
    trace = make_stalls(*[300_000] * 5, 2_000 * MS)
    text = diagnose_text(trace, tmp_path)
    assert "6 stalls, 2 s in total" in text
    assert "6 stalls of" not in text


# Kernels --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_library"), [("ampere_sgemm_128x64_nn", True), ("matmul_kernel(float *, float *)", False)]
)
def test_only_a_library_matrix_product_is_compute_bound_by_its_name(name, is_library, tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch(name, runs=5 * MS, grid=(4096, 1, 1), block=(256, 1, 1))
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        findings = opened_trace.diagnose().findings
    # A library's FP32 product is a finding of its own, with the kernel below it.
    assert (findings[0].name == "fp32-gemm") is is_library
    (kernels,) = (finding for main in findings for finding in (main, *main.also) if finding.name == "hot-kernels")
    assert ("compute-bound by name" in kernels.evidence) is is_library
    assert f"{name.partition('(')[0]}: 100.0% of the wall time" in kernels.evidence


@pytest.mark.slow
def test_one_hot_kernel_is_reported_alone(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch("solve(float *)", runs=5 * MS, grid=(4096, 1, 1), block=(256, 1, 1))
        host.launch("count(int *)", runs=3_000)
    text = diagnose_text(trace, tmp_path)
    assert "The kernels with the most GPU time" in text
    assert "solve: " in text
    assert "distance from the roofline not measured" in text
    assert "count: " not in text


# Copies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_copies_before_the_steps_are_not_counted_for_the_steps(tmp_path):
    """Copy weights from pageable memory at first. Then each step copies little from pinned memory."""
    trace = Trace()
    host = trace.thread()
    for _ in range(3):
        host.copy("H2D", 500 << 20, runs=10 * MS, blocking=True, source="pageable", api_name="cudaMemcpy_v3020")
    for _ in range(20):
        host.copy("H2D", 1 << 20, runs=300_000, source="pinned", api_name="cudaMemcpyAsync_v3020")
        for name in ("load", "solve", "store"):
            host.launch(f"{name}(float *)", runs=2 * MS)
        host.copy("D2H", 8, blocking=True)
    text = diagnose_text(trace, tmp_path)
    assert "steady steps" in text
    assert "most time: H2D from pinned to device memory, 1.00 MiB each" in text
    assert "500" not in text.split("The GPU only copies, or waits for a copy")[1]


@pytest.mark.slow
def test_the_reported_wait_is_one_of_the_steps(tmp_path):
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
    text = diagnose_text(trace, tmp_path)
    read_back = text.split("Blocking device-to-host copies")[1].split("Fix ")[0]
    assert "in step" in read_back
    assert "in load" not in read_back


@pytest.mark.slow
def test_the_size_of_a_read_back_is_that_of_the_steps(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.copy("D2H", 500 << 20, runs=MS, blocking=True)
    for _ in range(20):
        for name in ("load", "solve", "store"):
            host.launch(f"{name}(float *)", runs=30_000)
        host.copy("D2H", 8, blocking=True)
    assert "1 copy of 8 B to the host per step; " in diagnose_text(trace, tmp_path)


@pytest.mark.parametrize("recorded_device", [2, 0])
def test_a_wait_is_for_the_device_of_its_context_even_if_nsys_records_another(recorded_device, tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        host.launch("work(float *)", runs=MS, device=2, stream=13)
        host.copy("D2H", 8, device=2, stream=13).sync("stream", device=2, stream=13)
    for row in trace.rows["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"]:
        row["deviceId"] = recorded_device
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        assert [row["copy_kind"] for row in opened_trace.answer("syncs").dicts()] == ["D2H"]


# Steps ----------------------------------------------------------------------------------------------------------------


def test_a_step_that_ends_after_the_last_cuda_event_has_one_duration_in_all_reports(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        with host.nvtx("step"):
            host.idle(40_000).launch("work(float *)", runs=100_000).sync("device").idle(50_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        opened_trace.answer("classify")
        ((steps, budget),) = (
            opened_trace.sql("""SELECT (SELECT sum(duration_ns)::BIGINT FROM steps WHERE phase = 'steady') AS steps,
            (SELECT sum(time_ns)::BIGINT FROM step_budget) AS budget""").rows()
        )
        assert steps == budget


@pytest.mark.slow
def test_steps_are_at_most_100_percent_of_the_trace(tmp_path):
    """Their ranges begin before the first CUDA call and end after the last."""
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        with host.nvtx("step"):
            host.idle(90_000).launch("work(float *)", runs=100_000).sync("device").idle(90_000)
    assert re.search(
        r"8 steady steps \(NVTX ranges step, high confidence\), 100\.0% of the trace", diagnose_text(trace, tmp_path)
    )
