"""What `diagnose` says of programs that are no decoding loop: what must be said, and what must not."""

from __future__ import annotations

import pytest
from opening import open_trace
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, Metric

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def diagnosed(trace, folder, measured=None):
    """Diagnose, beside what ncu says of launches of 512 blocks of 128 threads: their names, and their metrics."""
    path = trace.write(folder / "trace.sqlite")
    launches = [
        Launch("r", number, 1, "app", name, 1, 7, 0, "9.0", (512, 1, 1), (128, 1, 1),
               {metric: Metric(value, "%") for metric, value in metrics.items()})
        for number, (name, metrics) in enumerate((measured or {}).items())
    ]  # fmt: skip
    ncu = store.write(launches, folder / "trace.ncu.duckdb") if launches else None
    with nsys_insight.open(path, ncu=ncu) as opened:
        return opened.diagnose()


def said(trace, folder, measured=None):
    """Give the diagnosis in one line."""
    return " ".join(diagnosed(trace, folder, measured).text(None).split())


# The host -------------------------------------------------------------------------------------------------------------


def few_launches(each):
    """Four launches of 70 µs a step; after each of them the host works for so long."""
    trace = Trace()
    host = trace.thread()
    for _ in range(6):
        for name in ("load", "solve", "reduce", "store"):
            host.launch(f"{name}(float *)", api=70_000, runs=50_000).idle(each)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("each", [10_000_000, 400_000])
def test_few_launches_with_cpu_work_before_each_are_host_bound_and_no_graph_saves_that(each, tmp_path):
    text = said(few_launches(each), tmp_path)
    assert "host-bound" in text
    assert "The GPU waits while the CPU works" in text
    assert "CUDA graph" not in text
    assert "launch-bound" not in text


@pytest.mark.slow
def test_many_dear_launches_are_launch_bound(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(6):
        for name in range(20):
            host.launch(f"kernel{'abcdefghijklmnopqrst'[name]}(float *)", api=10_000, runs=3_000).idle(8_000)
    text = said(trace, tmp_path)
    assert "launch-bound" in text
    assert "a CUDA graph saves" in text
    assert "host-bound" not in text


@pytest.mark.slow
def test_without_steps_no_graph_is_advised(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(200):
        host.launch(f"kernel{number}(float *)", runs=2_000).idle(5_000)
    text = said(trace, tmp_path)
    assert "Launch fewer, larger kernels" in text
    assert "CUDA graph" not in text


def reading_back(launches):
    """Steps of so many small kernels, whose result of a few bytes the host reads back."""
    trace = Trace()
    host = trace.thread()
    for _ in range(30):
        for name in range(launches):
            host.launch(f"kernel{'abcdefghijklmnopqrst'[name]}(float *)", runs=8_000, api=4_000)
        host.copy("D2H", 8, runs=1_000, blocking=True).idle(40_000)
    return trace


@pytest.mark.slow
def test_one_launch_a_step_is_no_cuda_graph(tmp_path):
    text = said(reading_back(1), tmp_path)
    assert "1 launch call of 4 µs a step" in text
    assert "Launch fewer, larger kernels" in text
    assert "Capture the step in a CUDA graph" not in text
    # What is counted once is said in the singular.
    assert "1 read a step" in text
    for wrong in ("1 launch calls", "1 reads", "1 calls", "1 copies", "1 waits"):
        assert wrong not in text.replace("21 ", "")


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: few_launches(400_000), lambda: reading_back(1), lambda: reading_back(12)])
def test_classify_and_diagnose_give_one_verdict(make, tmp_path):
    with open_trace(make().write(tmp_path / "trace.sqlite")) as opened:
        verdict = opened.diagnose().verdict
        assert opened.answer("classify").dicts()[0]["verdict"] == verdict
        if "mixed" not in verdict:
            assert {row["verdict"] for row in opened.answer("classify-steps").dicts()} == {verdict}


# Start-up -------------------------------------------------------------------------------------------------------------


def start_up():
    """A program that makes a context for 400 ms, runs a kernel for 100 ms, and frees its memory for 120 ms."""
    trace = Trace()
    host = trace.thread()
    host.call("cudaMallocManaged_v6000", takes=400_000_000)
    host.launch("add(float *)", runs=100_000_000, grid=(4096, 1, 1)).sync("device")
    host.call("cudaFree_v3020", takes=120_000_000)
    return trace


@pytest.mark.slow
def test_a_run_that_is_mostly_start_up_is_called_that(tmp_path):
    text = said(start_up(), tmp_path)
    assert "start-up and end; 620 ms in total" in text
    assert "until then: cudaMallocManaged, 400 ms" in text
    assert "GPU-bound" not in text
    assert "Healthy" not in text


@pytest.mark.slow
def test_the_calls_of_start_up_are_those_that_ran_then(tmp_path):
    trace = start_up()
    trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["end"] += 900_000_000
    assert "until then: cudaMallocManaged, 400 ms; cudaLaunchKernel" in said(trace, tmp_path)


@pytest.mark.slow
def test_a_gpu_that_works_a_tenth_of_the_wall_is_not_healthy(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(10):
        host.launch(f"solve{number}(float *)", queue=1_000_000 * number, runs=100_000, grid=(4096, 1, 1))
    assert "Healthy" not in said(trace, tmp_path)


# The capture ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_launches_without_gpu_activity_are_not_nothing(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(5):
        host.call("cudaLaunchKernel_v7000")
    text = said(trace, tmp_path)
    assert "Launch calls are recorded, but none of the work they launched" in text
    assert "No kernel, copy or memset" not in text


@pytest.mark.slow
def test_a_program_without_launches_ran_nothing(tmp_path):
    trace = Trace()
    trace.thread().call("cudaGetDeviceCount_v3020")
    assert "No kernel, copy or memset is in this scope" in said(trace, tmp_path)


@pytest.mark.slow
def test_what_no_number_here_reads_is_no_loss(tmp_path):
    trace = start_up()
    for message in (
        "Unable to configure the collection of CPU IP/backtrace samples, context switch data.",
        "perf event paranoid level is 4. Change the paranoid level to 2 to enable CPU IP sample collection.",
        "Unified Memory cannot be traced on devices that don't support peer-to-peer transfers.",
        "CUDA device 0: Unified Memory trace is not supported.",
        "GPU metrics: insufficient privilege, see https://developer.nvidia.com/ERR_NVGPUCTRPERM.",
        "Dxgkrnl ETW events were lost.",
        "NVTX events were dropped.",
    ):
        trace.diagnostic(message, severity="Error")
    assert "The capture is incomplete" not in said(trace, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        "CUPTI buffer overflow: CUDA events were dropped.",
        "CUDA profiling might have not been started correctly.",
    ],
)
def test_lost_events_are_a_loss(message, tmp_path):
    assert "The capture is incomplete" in said(start_up().diagnostic(message, severity="Error"), tmp_path)


# Kernels --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_small_grid_outside_of_the_steps_is_not_theirs(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("setup_random(int *)", runs=3_000_000, grid=(8, 1, 1)).sync("device")
    for _ in range(20):
        for name in ("forward", "backward", "update"):
            host.launch(f"{name}(float *)", runs=100_000, grid=(4096, 1, 1))
        host.copy("D2H", 8, blocking=True)
    text = said(trace, tmp_path)
    assert "steady steps" in text
    assert "setup_random" not in text


@pytest.mark.slow
def test_a_collective_is_never_too_small(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(10):
        host.launch("gemm(float *)", runs=300_000, grid=(4096, 1, 1))
        host.launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)", runs=500_000, grid=(16, 1, 1))
    assert "too small" not in said(trace, tmp_path)


@pytest.mark.slow
def test_a_share_without_steps_is_of_the_trace(tmp_path):
    trace = Trace().gpu()
    trace.thread().launch("divergence(double *)", runs=900_000_000, grid=(4096, 1, 1), block=(256, 1, 1), registers=255)
    text = said(trace, tmp_path)
    assert "% of the trace" in text
    assert "of the step" not in text


# Unified memory -------------------------------------------------------------------------------------------------------


def unified(*, prefetched=False, faults=False):
    """Steps of a kernel of 1 ms for which 400 µs of pages move; then the host reads them, page by page, for 1 ms."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        with host.nvtx("step"):
            begun = host.now + 10_000
            host.launch("add(float *)", at=begun, queue=1_000, runs=1_000_000, grid=(4096, 1, 1))
            for page in range(4):
                at = begun + 50_000 + 200_000 * page
                host.migrate(
                    "UM H2D", 2 << 20, at=at, runs=100_000, cause="User prefetch" if prefetched else "Page fault"
                )
                if faults:
                    host.page_faults(at=at, runs=150_000, count=512, device=0)
            host.sync("device")
            for _page in range(4):
                host.idle(250_000).migrate("UM D2H", 2 << 20, at=host.now, runs=10_000)
                if faults:
                    host.page_faults(at=host.now)
    return trace


@pytest.mark.slow
def test_migrations_are_told_with_the_range_and_the_kernel_that_waits_for_them(tmp_path):
    text = said(unified(), tmp_path)
    assert "--cudabacktrace" not in text, "it tells who makes a call, and the diagnosis does not"
    assert "Unified memory migrates while the program runs: up to 440 µs a step" in text
    assert "4 migrations to the GPU (8.0 MiB), 4 migrations to the host (8.0 MiB) a step take 440 µs" in text
    assert "[add in step]" in text
    assert "cudaMemPrefetchAsync" in text
    # It needs no pinned memory, and its gaps are no dependencies.
    assert "host-bound" in text.partition(";")[0]
    for wrong in ("pinned memory", "dependencies", "no call in the trace", "unknown memory"):
        assert wrong not in text


@pytest.mark.slow
def test_page_faults_are_counted_and_last_longer_than_the_copies(tmp_path):
    found = {one.name: one for one in diagnosed(unified(faults=True), tmp_path).findings}["unified-memory"]
    assert found.recoverable_ns == pytest.approx(4 * 150_000)
    assert "2,048 GPU page faults, 4 CPU page faults a step" in found.evidence


@pytest.mark.slow
def test_what_is_prefetched_is_not_to_be_prefetched(tmp_path):
    found = {one.name: one for one in diagnosed(unified(prefetched=True), tmp_path).findings}["unified-memory"]
    assert found.recoverable_ns == pytest.approx(4 * 10_000)
    assert "migrations to the GPU" not in found.evidence
    assert "8.0 MiB more are prefetched" in found.evidence


def test_the_report_has_what_was_planted(tmp_path):
    with open_trace(unified(faults=True).write(tmp_path / "trace.sqlite")) as opened:
        rows = {(row["event"], row["cause"]): row for row in opened.answer("unified-memory").dicts()}
    there, back = rows["UM H2D", "page fault"], rows["UM D2H", "page fault"]
    assert (there["name"], there["nvtx_path"], there["calls"], there["size_bytes"]) == (
        "add(float *)",
        "step",
        32,
        64 << 20,
    )
    assert (there["total_ns"], there["in_kernels_ns"]) == (32 * 100_000, 32 * 100_000)
    assert (back["name"], back["nvtx_path"], back["in_kernels_ns"]) == (None, "step", 0)
    assert (rows["GPU page faults", None]["faults"], rows["CPU page faults", None]["faults"]) == (32 * 512, 32)


# Hot kernels that take the time --------------------------------------------------------------------------------------


def power_iteration():
    """Steps of a matrix-vector product that takes 60 % of the wall; for the rest the host writes files."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch("gemv2T_kernel_val(double)", runs=6_000_000, grid=(512, 1, 1))
        host.launch("norm(double)", runs=2_000, grid=(512, 1, 1)).idle(10_000_000)
    return trace


@pytest.mark.slow
def test_a_kernel_that_holds_most_of_the_wall_is_named_also_where_the_host_bounds_the_run(tmp_path):
    text = said(power_iteration(), tmp_path)
    assert "host-bound" in text.partition(";")[0]
    assert "gemv2T_kernel_val: 59.9 % of the wall time, 100 % of kernel time, 1 call of 6 ms a step" in text
    assert "memory-bound by its name" in text
    assert "The distance from its roof was not measured" in text
    assert "batch vectors into one matrix product" in text
    assert "Unified memory" not in text


@pytest.mark.slow
def test_what_ncu_measured_says_how_far_a_kernel_is_from_its_roof(tmp_path):
    found = {one.name: one for one in diagnosed(
        power_iteration(), tmp_path, {"gemv2T_kernel_val(double)": {SM: 10, MEMORY: 42.5, DRAM: 42.5}}
    ).findings}  # fmt: skip
    kernels = found["hot-kernels"]
    # A roof of DRAM is 85 % of its peak, so half of it is used.
    assert "memory-bound by ncu" in kernels.evidence
    assert "50.0 % of what DRAM can deliver" in kernels.evidence
    assert kernels.recoverable_ns == pytest.approx(3_000_000, rel=0.01)
    assert "not measured" not in kernels.evidence


@pytest.mark.slow
def test_a_kernel_at_its_roof_is_not_to_be_tuned(tmp_path):
    text = said(power_iteration(), tmp_path, {"gemv2T_kernel_val(double)": {SM: 10, MEMORY: 84, DRAM: 84}})
    assert "gemv2T_kernel_val is near its roof: only less work helps" in text
    assert "Profile gemv2T_kernel_val" not in text
    assert "what bounds the kernels" not in text


def solver(names):
    """Steps of so many kernels of 100 µs each, which keep the GPU busy."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        for name in names:
            host.launch(f"{name}(float *)", runs=100_000, grid=(4096, 1, 1))
    return trace


@pytest.mark.slow
def test_a_run_that_the_gpu_bounds_is_told_its_kernels_first(tmp_path):
    found = diagnosed(solver([f"solve_{name}" for name in "abcdefghijklmnop"]), tmp_path)
    assert found.verdict == "GPU-bound"
    assert found.findings[0].name == "hot-kernels"
    assert "And" not in found.findings[0].evidence  # the first three, at 6 % each


@pytest.mark.slow
def test_short_kernels_are_to_be_fused_and_not_tuned(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        for name in ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "elementwise_kernel", "reduce_kernel"):
            host.launch(name, api=1_000, runs=3_000, grid=(64, 1, 1))
    text = said(trace, tmp_path)
    assert "ends before it fills the GPU: fuse it with its neighbors" in text
    assert "FP8" not in text


@pytest.mark.slow
def test_kernels_that_hold_little_are_not_named(tmp_path):
    assert " hot" not in said(reading_back(12), tmp_path)


@pytest.mark.slow
def test_a_collective_holds_no_time_of_its_own(tmp_path):
    text = said(solver(["gemm", "ncclDevKernel_AllReduce_Sum_f16_RING_LL"]), tmp_path)
    assert "gemm: 50.0 % of the wall time" in text
    assert "AllReduce_Sum_f16_RING_LL: " not in text


# What --nvtx keeps ----------------------------------------------------------------------------------------------------


def training(*, threads):
    """Steps whose backward pass another thread launches, as autograd does, or the same one."""
    trace = Trace()
    host = trace.thread(tid=100)
    engine = trace.thread(tid=101) if threads == 2 else host
    for _ in range(6):
        with host.nvtx("step"):
            host.launch("forward(float *)", runs=100_000)
            engine.now = max(engine.now, host.now)
            engine.launch("backward(float *)", runs=300_000)
            host.now = max(engine.now, host.now)
            host.sync("stream")
    return trace


@pytest.mark.slow
def test_what_other_threads_launch_meanwhile_is_said_to_be_left_out(tmp_path):
    with open_trace(training(threads=2).write(tmp_path / "trace.sqlite"), nvtx="step") as opened:
        for report in ("top", "idle", "classify"):
            assert (
                "another thread launched 1.8 ms of GPU work during these ranges (75.0 % of it), which --nvtx leaves out"
                in " ".join(opened.answer(report).notes)
            )
        assert "which --nvtx leaves out" in " ".join(opened.diagnose().notes)


def test_where_one_thread_launches_all_nothing_is_left_out(tmp_path):
    with open_trace(training(threads=1).write(tmp_path / "trace.sqlite"), nvtx="step") as opened:
        assert "leaves out" not in " ".join(opened.answer("top").notes)


def test_without_a_range_nothing_is_left_out(tmp_path):
    with open_trace(training(threads=2).write(tmp_path / "trace.sqlite")) as opened:
        assert "leaves out" not in " ".join(opened.answer("top").notes)


def test_top_and_nvtx_agree_and_the_step_has_what_all_threads_launch(tmp_path):
    path = training(threads=2).write(tmp_path / "trace.sqlite")
    with open_trace(path) as opened:
        of_range = {row["name"]: row for row in opened.answer("nvtx").dicts()}["step"]
        notes = " ".join(opened.answer("nvtx").notes)
        assert "75.0 % of GPU time was launched outside all push/pop ranges" in notes
    with open_trace(path, nvtx="step") as opened:
        assert sum(row["total_ns"] for row in opened.answer("top").dicts()) == of_range["gpu_ns"] == 6 * 100_000


# Places ---------------------------------------------------------------------------------------------------------------


def loading(*, steps=24, loads=20, takes=25_000_000):
    """Steps of which so many load a library before attention; each range begins with a little of the one before it."""
    trace = Trace().gpu()
    host = trace.thread()
    for number in range(steps):
        with host.nvtx(f"step {number}"):
            with host.nvtx("embed"):
                host.launch("embed(float *)", runs=2_000_000, grid=(4096, 1, 1)).sync("device")
            with host.nvtx(f"layer {number % 4}"):
                if number < loads:
                    host.call("cuLibraryLoadData", takes=takes)
                host.launch("attention(float *)", runs=3_000_000, grid=(4096, 1, 1))
                host.launch("mlp(float *)", runs=5_000_000, grid=(4096, 1, 1)).sync("device")
    return trace


@pytest.mark.slow
def test_a_place_is_told_by_steps_operation_call_and_range(tmp_path):
    with open_trace(loading().write(tmp_path / "trace.sqlite")) as opened:
        text = " ".join(opened.diagnose().text(None).split())
        row = opened.answer("gap-places").dicts()[0]
        longest = opened.answer("gaps").dicts()[:20]
    assert "20 of 24 steps stall 25 ms before attention, in cuLibraryLoadData" in text
    assert "--cudabacktrace" not in text, "it tells who makes a call, and the diagnosis does not"
    assert (row["after_name"], row["host"]) == ("attention(float *)", "module: cuLibraryLoadData")
    assert (row["nvtx_path"], row["gaps"]) == ("step #/layer #", 20)
    assert row["total_ns"] == pytest.approx(20 * 25_000_000, rel=0.01)
    # A gap begins within embed, where the host wakes from its wait, and is nearly all within the layer.
    assert {row["nvtx_path"].partition("/")[2].partition(" ")[0] for row in longest} == {"layer"}


@pytest.mark.slow
def test_gaps_that_are_short_are_no_place(tmp_path):
    assert "stall" not in said(loading(takes=50_000), tmp_path)


def test_a_range_that_has_less_than_half_of_a_gap_is_not_its_place(tmp_path):
    trace = Trace()
    host = trace.thread()
    with host.nvtx("outer"):
        host.launch("a(int)").sync("device")
        for name in ("first", "second", "third"):
            with host.nvtx(name):
                host.idle(1_000_000)
        host.launch("b(int)").sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        assert opened.answer("gaps").dicts()[0]["nvtx_path"] == "outer"


# Names with numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "column", "asked"), [("nvtx", "name", {}), ("pace", "name", {"by": "range"}), ("syncs", "nvtx_path", {})]
)
def test_names_that_differ_in_their_numbers_alone_are_one(report, column, asked, tmp_path):
    with open_trace(loading().write(tmp_path / "trace.sqlite")) as opened:
        names = {row[column] for row in opened.answer(report, **asked).dicts()}
    assert {name.rpartition("/")[2] for name in names} <= {"step #", "layer #", "embed"}


def test_a_name_with_a_number_that_no_other_one_is_like_stays_what_it_is(tmp_path):
    trace = Trace()
    host = trace.thread()
    for name in ("gemm_fp16", "softmax"):
        with host.nvtx(name):
            host.launch("k(int)").sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        assert {row["name"] for row in opened.answer("nvtx").dicts()} == {"gemm_fp16", "softmax"}
        assert {row["nvtx_path"] for row in opened.answer("syncs").dicts()} == {"gemm_fp16", "softmax"}


def test_ranges_can_be_told_apart_by_their_numbers(tmp_path):
    with open_trace(loading(steps=5).write(tmp_path / "trace.sqlite")) as opened:
        folded = {row["name"]: row for row in opened.answer("nvtx").dicts()}
        apart = {row["name"]: row for row in opened.answer("nvtx", fold=False).dicts()}
    assert {f"step {number}" for number in range(5)} <= apart.keys()
    assert folded["step #"]["calls"] == 5
    assert folded["step #"]["gpu_ns"] == sum(apart[f"step {number}"]["gpu_ns"] for number in range(5))
