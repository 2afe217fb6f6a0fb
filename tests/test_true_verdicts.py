"""The diagnosis of programs other than decoding loops: findings that must be there, and findings that must not."""

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


def diagnose_trace(trace, folder, metrics_by_kernel=None):
    """Diagnose a trace, with ncu metrics by kernel name for launches of 512 blocks of 128 threads."""
    path = trace.write(folder / "trace.sqlite")
    launches = [
        Launch("r", number, 1, "app", name, 1, 7, 0, "9.0", (512, 1, 1), (128, 1, 1),
               {metric: Metric(value, "%") for metric, value in metrics.items()})
        for number, (name, metrics) in enumerate((metrics_by_kernel or {}).items())
    ]  # fmt: skip
    ncu = store.write(launches, folder / "trace.ncu.duckdb") if launches else None
    with nsys_insight.open(path, ncu=ncu) as opened_trace:
        return opened_trace.diagnose()


def diagnose_text(trace, folder, metrics_by_kernel=None):
    """Return the diagnosis in one line."""
    return " ".join(diagnose_trace(trace, folder, metrics_by_kernel).text(None).split())


# The host -------------------------------------------------------------------------------------------------------------


def make_few_launches(work_ns):
    """Make steps of four launches of 70 µs. The host works for `work_ns` after each launch."""
    trace = Trace()
    host = trace.thread()
    for _ in range(6):
        for name in ("load", "solve", "reduce", "store"):
            host.launch(f"{name}(float *)", api=70_000, runs=50_000).idle(work_ns)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("work_ns", [10_000_000, 400_000])
def test_few_launches_with_cpu_work_are_host_bound_and_no_graph_is_advised(work_ns, tmp_path):
    text = diagnose_text(make_few_launches(work_ns), tmp_path)
    assert "host-bound" in text
    assert "GPU idle during CPU work" in text
    assert "CUDA graph" not in text
    assert "launch-bound" not in text


@pytest.mark.slow
def test_many_expensive_launches_are_launch_bound(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(6):
        for name in range(20):
            host.launch(f"kernel{'abcdefghijklmnopqrst'[name]}(float *)", api=10_000, runs=3_000).idle(8_000)
    text = diagnose_text(trace, tmp_path)
    assert "launch-bound" in text
    assert "a CUDA graph saves" in text
    assert "host-bound" not in text


@pytest.mark.slow
def test_without_steps_no_graph_is_advised(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(200):
        host.launch(f"kernel{number}(float *)", runs=2_000).idle(5_000)
    text = diagnose_text(trace, tmp_path)
    assert "Launch fewer, larger kernels" in text
    assert "CUDA graph" not in text


def make_read_backs(launches):
    """Make steps of this number of small kernels. The host reads back a few bytes at the end of each step."""
    trace = Trace()
    host = trace.thread()
    for _ in range(30):
        for name in range(launches):
            host.launch(f"kernel{'abcdefghijklmnopqrst'[name]}(float *)", runs=8_000, api=4_000)
        host.copy("D2H", 8, runs=1_000, blocking=True).idle(40_000)
    return trace


@pytest.mark.slow
def test_no_graph_is_advised_for_one_launch_a_step(tmp_path):
    text = diagnose_text(make_read_backs(1), tmp_path)
    assert "1 launch call per step at 4 µs" in text
    assert "Launch fewer, larger kernels" in text
    assert "as a CUDA graph" not in text
    # A count of one has a singular noun.
    assert "1 copy of 8 B to the host per step; the CPU waits" in text
    for wrong in ("1 launch calls", "1 reads", "1 calls", "1 copies", "1 waits"):
        assert wrong not in text.replace("21 ", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: make_few_launches(400_000), lambda: make_read_backs(1), lambda: make_read_backs(12)]
)
def test_classify_and_diagnose_give_one_verdict(make, tmp_path):
    with open_trace(make().write(tmp_path / "trace.sqlite")) as opened_trace:
        verdict = opened_trace.diagnose().verdict
        assert opened_trace.answer("classify").dicts()[0]["verdict"] == verdict
        if "mixed" not in verdict:
            assert {row["verdict"] for row in opened_trace.answer("classify-steps").dicts()} == {verdict}


# Start-up -------------------------------------------------------------------------------------------------------------


def make_start_up():
    """Make a program that creates a context in 400 ms, runs a kernel for 100 ms, and frees its memory in 120 ms."""
    trace = Trace()
    host = trace.thread()
    host.call("cudaMallocManaged_v6000", takes=400_000_000)
    host.launch("add(float *)", runs=100_000_000, grid=(4096, 1, 1)).sync("device")
    host.call("cudaFree_v3020", takes=120_000_000)
    return trace


@pytest.mark.slow
def test_a_run_that_is_mostly_start_up_is_reported_as_such(tmp_path):
    text = diagnose_text(make_start_up(), tmp_path)
    assert "start-up and end; 620 ms in total" in text
    assert "until then: 400 ms in cudaMallocManaged" in text
    assert "GPU-bound" not in text
    assert "Healthy" not in text


@pytest.mark.slow
def test_only_calls_during_start_up_are_reported_for_it(tmp_path):
    trace = make_start_up()
    trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["end"] += 900_000_000
    # The launch call takes 5 µs of it, too little to be named.
    assert "until then: 400 ms in cudaMallocManaged (see idle)" in diagnose_text(trace, tmp_path)


@pytest.mark.slow
def test_a_gpu_that_works_a_tenth_of_the_time_is_not_healthy(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(10):
        host.launch(f"solve{number}(float *)", queue=1_000_000 * number, runs=100_000, grid=(4096, 1, 1))
    assert "Healthy" not in diagnose_text(trace, tmp_path)


# The capture ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_launches_without_gpu_activity_are_reported(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(5):
        host.call("cudaLaunchKernel_v7000")
    text = diagnose_text(trace, tmp_path)
    assert "Launch calls are recorded, but none of the work they launched" in text
    assert "No kernel, copy or memset" not in text


@pytest.mark.slow
def test_a_program_without_launches_ran_nothing(tmp_path):
    trace = Trace()
    trace.thread().call("cudaGetDeviceCount_v3020")
    assert "CUDA calls are recorded, but no kernel, copy or memset" in diagnose_text(trace, tmp_path)


@pytest.mark.slow
def test_diagnostics_about_unused_data_are_not_a_loss(tmp_path):
    trace = make_start_up()
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
    assert "The capture is incomplete" not in diagnose_text(trace, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        "CUPTI buffer overflow: CUDA events were dropped.",
        "CUDA profiling might have not been started correctly.",
    ],
)
def test_lost_cuda_events_are_a_loss(message, tmp_path):
    assert "The capture is incomplete" in diagnose_text(make_start_up().diagnostic(message, severity="Error"), tmp_path)


# Kernels --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_small_grid_outside_of_the_steps_is_not_reported(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("setup_random(int *)", runs=3_000_000, grid=(8, 1, 1)).sync("device")
    for _ in range(20):
        for name in ("forward", "backward", "update"):
            host.launch(f"{name}(float *)", runs=100_000, grid=(4096, 1, 1))
        host.copy("D2H", 8, blocking=True)
    text = diagnose_text(trace, tmp_path)
    assert "steady steps" in text
    assert "setup_random" not in text


@pytest.mark.slow
def test_a_collective_is_never_too_small(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(10):
        host.launch("gemm(float *)", runs=300_000, grid=(4096, 1, 1))
        host.launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)", runs=500_000, grid=(16, 1, 1))
    assert "too small" not in diagnose_text(trace, tmp_path)


@pytest.mark.slow
def test_a_share_without_steps_is_of_the_trace(tmp_path):
    trace = Trace().gpu()
    trace.thread().launch("divergence(double *)", runs=900_000_000, grid=(4096, 1, 1), block=(256, 1, 1), registers=255)
    text = diagnose_text(trace, tmp_path)
    assert "% of the trace" in text
    assert "of the step" not in text


# Unified memory -------------------------------------------------------------------------------------------------------


def make_unified_memory(*, prefetched=False, faults=False):
    """Make steps of a kernel of 1 ms with 400 µs of migrations. Then the host reads the pages for 1 ms."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        with host.nvtx("step"):
            start_ns = host.now + 10_000
            host.launch("add(float *)", start=start_ns, queue=1_000, runs=1_000_000, grid=(4096, 1, 1))
            for page in range(4):
                page_ns = start_ns + 50_000 + 200_000 * page
                host.migrate(
                    "UM H2D",
                    2 << 20,
                    start=page_ns,
                    runs=100_000,
                    cause="User prefetch" if prefetched else "Page fault",
                )
                if faults:
                    host.page_faults(start=page_ns, runs=150_000, count=512, device=0)
            host.sync("device")
            for _page in range(4):
                host.idle(250_000).migrate("UM D2H", 2 << 20, start=host.now, runs=10_000)
                if faults:
                    host.page_faults(start=host.now)
    return trace


@pytest.mark.slow
def test_migrations_are_reported_with_their_range_and_waiting_kernel(tmp_path):
    text = diagnose_text(make_unified_memory(), tmp_path)
    assert "--cudabacktrace" not in text, "it tells who makes a call, and the diagnosis does not"
    assert "Unified memory migrates while the program runs: up to 440 µs per step" in text
    assert "4 migrations to the GPU (8.00 MiB), 4 migrations to the host (8.00 MiB) per step; moving the pages" in text
    assert "moving the pages takes 440 µs per step" in text
    assert "[add in step]" in text
    assert "cudaMemPrefetchAsync" in text
    # Managed memory needs no pinned memory, and its gaps are not dependencies.
    assert "host-bound" in text.partition(";")[0]
    for wrong in ("pinned memory", "dependencies", "no call in the trace", "unknown memory"):
        assert wrong not in text


@pytest.mark.slow
def test_page_faults_are_counted_and_take_longer_than_the_copies(tmp_path):
    finding = {
        candidate.name: candidate for candidate in diagnose_trace(make_unified_memory(faults=True), tmp_path).findings
    }["unified-memory"]
    assert finding.recoverable_ns == pytest.approx(4 * 150_000)
    assert "2,048 page faults of the GPU, 4 page faults of the CPU per step" in finding.evidence
    assert "; those of the GPU last 600 µs per step" in finding.evidence
    assert finding.values["fault_ns"] == pytest.approx(4 * 150_000)


@pytest.mark.slow
def test_no_prefetch_is_advised_for_prefetched_pages(tmp_path):
    finding = {
        candidate.name: candidate
        for candidate in diagnose_trace(make_unified_memory(prefetched=True), tmp_path).findings
    }["unified-memory"]
    assert finding.recoverable_ns == pytest.approx(4 * 10_000)
    assert "migrations to the GPU" not in finding.evidence
    assert "8.00 MiB more are prefetched" in finding.evidence


def test_the_report_has_the_planted_numbers(tmp_path):
    with open_trace(make_unified_memory(faults=True).write(tmp_path / "trace.sqlite")) as opened_trace:
        rows = {(row["event"], row["cause"]): row for row in opened_trace.answer("unified-memory").dicts()}
    to_gpu, to_host = rows["UM H2D", "page fault"], rows["UM D2H", "page fault"]
    assert (to_gpu["name"], to_gpu["nvtx_path"], to_gpu["calls"], to_gpu["size_bytes"]) == (
        "add(float *)",
        "step",
        32,
        64 << 20,
    )
    assert (to_gpu["total_ns"], to_gpu["in_kernels_ns"]) == (32 * 100_000, 32 * 100_000)
    assert (to_host["name"], to_host["nvtx_path"], to_host["in_kernels_ns"]) == (None, "step", 0)
    assert (rows["GPU page faults", None]["faults"], rows["CPU page faults", None]["faults"]) == (32 * 512, 32)


# Hot kernels that take the time --------------------------------------------------------------------------------------


def make_power_iteration():
    """Make steps of a matrix-vector product with 60% of the step time. The host writes files in the rest of it."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch("gemv2T_kernel_val(double)", runs=6_000_000, grid=(512, 1, 1))
        host.launch("norm(double)", runs=2_000, grid=(512, 1, 1)).idle(10_000_000)
    return trace


@pytest.mark.slow
def test_a_kernel_with_most_of_the_time_is_reported_even_if_the_run_is_host_bound(tmp_path):
    text = diagnose_text(make_power_iteration(), tmp_path)
    assert "host-bound" in text.partition(";")[0]
    assert (
        "gemv2T_kernel_val: 59.9% of the wall time, 100.0% of kernel time, 1 call per step of 6 ms on average" in text
    )
    assert "memory-bound by name" in text
    assert "distance from the roofline not measured" in text
    assert "batch vectors into one matrix product" in text
    assert "Unified memory" not in text


@pytest.mark.slow
def test_ncu_metrics_give_the_distance_of_a_kernel_from_its_roof(tmp_path):
    findings = {finding.name: finding for finding in diagnose_trace(
        make_power_iteration(), tmp_path, {"gemv2T_kernel_val(double)": {SM: 10, MEMORY: 42.5, DRAM: 42.5}}
    ).findings}  # fmt: skip
    kernels = findings["hot-kernels"]
    # The roof of DRAM is 85% of its peak, so the kernel uses half of the roof.
    assert "memory-bound by ncu" in kernels.evidence
    assert "50.0% of what DRAM can deliver" in kernels.evidence
    assert kernels.recoverable_ns == pytest.approx(3_000_000, rel=0.01)
    assert "not measured" not in kernels.evidence


@pytest.mark.slow
def test_no_tuning_is_advised_for_a_kernel_at_its_roof(tmp_path):
    text = diagnose_text(
        make_power_iteration(), tmp_path, {"gemv2T_kernel_val(double)": {SM: 10, MEMORY: 84, DRAM: 84}}
    )
    assert "gemv2T_kernel_val is near its roofline; reduce its work" in text
    assert "Profile gemv2T_kernel_val" not in text
    assert "what bounds the kernels" not in text


def make_solver(names):
    """Make steps of one kernel of 100 µs per name. They keep the GPU busy."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        for name in names:
            host.launch(f"{name}(float *)", runs=100_000, grid=(4096, 1, 1))
    return trace


@pytest.mark.slow
def test_hot_kernels_are_the_first_finding_of_a_gpu_bound_run(tmp_path):
    diagnosis = diagnose_trace(make_solver([f"solve_{name}" for name in "abcdefghijklmnop"]), tmp_path)
    assert diagnosis.verdict == "GPU-bound"
    assert diagnosis.findings[0].name == "hot-kernels"
    # The first three, at 6% each.
    assert all(f"solve_{name}: " in diagnosis.findings[0].evidence for name in "abc")
    assert "solve_d" not in diagnosis.findings[0].evidence
    assert "more kernel" not in diagnosis.findings[0].evidence


@pytest.mark.slow
def test_fusion_instead_of_tuning_is_advised_for_short_kernels(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        for name in ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "elementwise_kernel", "reduce_kernel"):
            host.launch(name, api=1_000, runs=3_000, grid=(64, 1, 1))
    text = diagnose_text(trace, tmp_path)
    assert "is too short to fill the GPU: fuse it with its neighbors" in text
    assert "FP8" not in text


@pytest.mark.slow
def test_kernels_with_little_time_are_not_reported(tmp_path):
    names = {finding.name for finding in diagnose_trace(make_read_backs(12), tmp_path).findings}
    assert names
    assert "hot-kernels" not in names


@pytest.mark.slow
def test_a_collective_is_not_a_hot_kernel(tmp_path):
    text = diagnose_text(make_solver(["gemm", "ncclDevKernel_AllReduce_Sum_f16_RING_LL"]), tmp_path)
    assert "gemm: 50.0% of the wall time" in text
    assert "AllReduce_Sum_f16_RING_LL: " not in text


# The scope of --nvtx --------------------------------------------------------------------------------------------------


def make_training(*, threads):
    """Make steps whose backward pass is launched by a second thread, as with autograd, or by the same thread."""
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
def test_work_of_other_threads_is_reported_as_left_out(tmp_path):
    with open_trace(make_training(threads=2).write(tmp_path / "trace.sqlite"), nvtx="step") as opened_trace:
        for report in ("top", "idle", "classify"):
            assert (
                "another thread launched 1.8 ms of GPU work during these ranges (75.0% of it), which --nvtx leaves out"
                in " ".join(opened_trace.answer(report).notes)
            )
        assert "which --nvtx leaves out" in " ".join(opened_trace.diagnose().notes)


def test_with_one_thread_no_work_is_left_out(tmp_path):
    with open_trace(make_training(threads=1).write(tmp_path / "trace.sqlite"), nvtx="step") as opened_trace:
        assert "leaves out" not in " ".join(opened_trace.answer("top").notes)


def test_without_a_range_no_work_is_left_out(tmp_path):
    with open_trace(make_training(threads=2).write(tmp_path / "trace.sqlite")) as opened_trace:
        assert "leaves out" not in " ".join(opened_trace.answer("top").notes)


def test_top_and_nvtx_agree_on_the_work_of_the_step(tmp_path):
    path = make_training(threads=2).write(tmp_path / "trace.sqlite")
    with open_trace(path) as opened_trace:
        step_range = {row["name"]: row for row in opened_trace.answer("nvtx").dicts()}["step"]
        notes = " ".join(opened_trace.answer("nvtx").notes)
        assert "75.0% of GPU time was launched outside all push/pop ranges" in notes
    with open_trace(path, nvtx="step") as opened_trace:
        assert sum(row["total_ns"] for row in opened_trace.answer("top").dicts()) == step_range["gpu_ns"] == 6 * 100_000


# Places ---------------------------------------------------------------------------------------------------------------


def make_loading(*, steps=24, loads=20, takes=25_000_000):
    """Make steps. The first `loads` steps load a library before attention. The gap begins in the range before."""
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


@pytest.fixture(scope="module")
def loading(tmp_path_factory):
    return make_loading(steps=5).write(tmp_path_factory.mktemp("loading") / "trace.sqlite")


@pytest.mark.slow
def test_a_stall_is_reported_with_steps_operation_call_and_range(tmp_path):
    with open_trace(make_loading().write(tmp_path / "trace.sqlite")) as opened_trace:
        text = " ".join(opened_trace.diagnose().text(None).split())
        row = opened_trace.answer("gap-places").dicts()[0]
        longest = opened_trace.answer("gaps").dicts()[:20]
    assert "in 20 of 24 steps, the GPU stalls before attention; 20 stalls of 25 ms (median)" in text
    assert "the CPU is in cuLibraryLoadData for most of each" in text
    assert "--cudabacktrace" not in text, "it tells who makes a call, and the diagnosis does not"
    assert (row["after_name"], row["host"]) == ("attention(float *)", "module: cuLibraryLoadData")
    assert (row["nvtx_path"], row["gaps"]) == ("step #/layer #", 20)
    assert row["total_ns"] == pytest.approx(20 * 25_000_000, rel=0.01)
    # A gap begins in embed, where the host wakes from its wait. Nearly all of it is in the layer.
    assert {row["nvtx_path"].partition("/")[2].partition(" ")[0] for row in longest} == {"layer"}


@pytest.mark.slow
def test_stalls_of_a_list_that_is_cut_are_lower_bounds(tmp_path):
    """The report gaps lists the 1,000 longest gaps."""
    trace = Trace()
    host = trace.thread()
    for _ in range(1_100):
        host.launch("work(float *)", runs=10_000).sync("device").idle(200_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        findings = [entry for finding in opened_trace.diagnose().findings for entry in (finding, *finding.also)]
    stall = next(finding for finding in findings if finding.name == "stall-place")
    assert stall.values["least_stalls"] <= 1_000
    assert stall.values.keys().isdisjoint({"stalls", "total_ns", "stall_ns", "stalled_steps"})
    assert "at least" in stall.evidence


@pytest.mark.slow
def test_short_gaps_are_not_reported_as_stalls(tmp_path):
    assert "stall" not in diagnose_text(make_loading(takes=50_000), tmp_path)


def test_a_range_with_less_than_half_of_a_gap_is_not_its_range(tmp_path):
    trace = Trace()
    host = trace.thread()
    with host.nvtx("outer"):
        host.launch("a(int)").sync("device")
        for name in ("first", "second", "third"):
            with host.nvtx(name):
                host.idle(1_000_000)
        host.launch("b(int)").sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        assert opened_trace.answer("gaps").dicts()[0]["nvtx_path"] == "outer"


# Names with numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "column", "options"),
    [("nvtx", "name", {}), ("pace", "name", {"by": "range"}), ("syncs", "nvtx_path", {})],
)
def test_names_that_differ_only_in_numbers_are_merged(report, column, options, loading):
    with open_trace(loading) as opened_trace:
        names = {row[column] for row in opened_trace.answer(report, **options).dicts()}
    assert {name.rpartition("/")[2] for name in names} <= {"step #", "layer #", "embed"}


def test_a_name_with_a_number_that_is_unique_is_not_changed(tmp_path):
    trace = Trace()
    host = trace.thread()
    for name in ("gemm_fp16", "softmax"):
        with host.nvtx(name):
            host.launch("k(int)").sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        assert {row["name"] for row in opened_trace.answer("nvtx").dicts()} == {"gemm_fp16", "softmax"}
        assert {row["nvtx_path"] for row in opened_trace.answer("syncs").dicts()} == {"gemm_fp16", "softmax"}


def test_ranges_can_be_separated_by_their_numbers(loading):
    with open_trace(loading) as opened_trace:
        merged_ranges = {row["name"]: row for row in opened_trace.answer("nvtx").dicts()}
        separate_ranges = {row["name"]: row for row in opened_trace.answer("nvtx", fold=False).dicts()}
    assert {f"step {number}" for number in range(5)} <= separate_ranges.keys()
    assert merged_ranges["step #"]["calls"] == 5
    assert merged_ranges["step #"]["gpu_ns"] == sum(separate_ranges[f"step {number}"]["gpu_ns"] for number in range(5))
