"""Cures fit the program: none that it has already, and none for what the trace does not show."""

from __future__ import annotations

import pytest
from opening import evaluate_rules, open_trace
from synthetic import Trace

MS = 1_000_000
LARGE = {"grid": (4096, 1, 1), "block": (256, 1, 1)}


def evaluate_on(trace, folder, *rules):
    """Evaluate these rules on a trace; return the findings by name."""
    with open_trace(trace.write(folder / "trace.sqlite")) as opened_trace:
        return evaluate_rules(opened_trace, rules)


def make_loop(body, steps=12):
    """Make steps of two kernels, with `body` before each."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(steps):
        body(host)
        for name in ("load", "solve"):
            host.launch(f"{name}(float *)", runs=MS, **LARGE)
        host.sync("device")
    return trace


# Start-up -------------------------------------------------------------------------------------------------------------


def make_start_up(*calls, outside=0):
    """Make a program of one kernel of 10 ms. `calls` (name, time) and other host work come before it."""
    trace = Trace().gpu()
    host = trace.thread()
    for name, takes in calls:
        host.call(name, takes=takes)
    host.idle(outside).launch("work(float *)", runs=10 * MS, **LARGE).sync("device")
    return trace


def test_the_call_that_creates_the_context_is_named(tmp_path):
    trace = make_start_up(("cudaGetDeviceCount_v3020", 100), ("cudaHostAlloc_v3020", 308 * MS))
    finding = evaluate_on(trace, tmp_path, "idle-at-start")["idle-at-start"]
    assert finding.severity == "critical"
    assert finding.action.startswith("308 ms of it is in cudaHostAlloc, the first long call, which includes the ")
    assert "steady state" not in finding.action


def test_start_up_outside_of_calls_is_not_the_context(tmp_path):
    trace = make_start_up(("cudaMalloc_v3020", 20 * MS), outside=300 * MS)
    action = evaluate_on(trace, tmp_path, "idle-at-start")["idle-at-start"].action
    assert "before its first GPU operation" in action
    assert "context" not in action


def test_calls_of_the_driver_do_not_create_the_context(tmp_path):
    trace = make_start_up(("cuMemHostAlloc", 200 * MS))
    action = evaluate_on(trace, tmp_path, "idle-at-start")["idle-at-start"].action
    assert action.startswith("See which of these calls the first GPU work needs")


def test_a_wait_for_lost_kernels_is_no_idle_end(tmp_path):
    def diagnose_end(*, waits, idle):
        trace = Trace().gpu()
        host = trace.thread()
        host.launch("work(float *)", runs=10 * MS, **LARGE).sync("device")
        host.sync("device", waits=waits).idle(idle).call("cudaFree_v3020", takes=MS)
        return evaluate_on(trace, tmp_path, "idle-at-end")

    assert "idle-at-end" not in diagnose_end(waits=90 * MS, idle=MS)
    assert "idle-at-end" in diagnose_end(waits=MS, idle=90 * MS)


def test_a_short_start_is_not_critical(tmp_path):
    trace = make_start_up(("cudaMalloc_v3020", 2 * MS))
    assert evaluate_on(trace, tmp_path, "idle-at-start")["idle-at-start"].severity == "info"


def test_a_trace_with_steps_can_be_captured_without_its_start(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.call("cudaMalloc_v3020", takes=200 * MS)
    for _ in range(12):
        for name in ("load", "solve"):
            host.launch(f"{name}(float *)", runs=MS, **LARGE)
        host.sync("device")
    finding = evaluate_on(trace, tmp_path, "idle-at-start")["idle-at-start"]
    assert finding.action.startswith("Capture only the steady state")
    assert finding.severity == "info"


# Memory ---------------------------------------------------------------------------------------------------------------


def test_the_context_is_no_cost_of_allocations(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.call("cudaFree_v3020", takes=120 * MS)
    host.launch("first(float *)", runs=MS, **LARGE).sync("device")
    host.call("cudaMalloc_v3020", takes=5 * MS)
    host.launch("second(float *)", runs=MS, **LARGE).sync("device")
    finding = evaluate_on(trace, tmp_path, "allocation")["allocation"]
    assert "the CPU spends 5 ms in 1 call in total" in finding.evidence
    assert "pinning" not in finding.action


def test_pinning_is_named_only_with_pinned_memory(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("first(float *)", runs=MS, **LARGE).sync("device")
    host.call("cudaHostAlloc_v3020", takes=5 * MS)
    host.launch("second(float *)", runs=MS, **LARGE).sync("device")
    assert "Pin host memory ahead" in evaluate_on(trace, tmp_path, "allocation")["allocation"].action


@pytest.mark.parametrize("is_freed", [True, False])
def test_memory_that_the_loop_keeps_is_not_to_be_reused(is_freed, tmp_path):
    def allocate(host):
        host.call("cuMemAlloc_v2", takes=500_000)
        if is_freed:
            host.call("cuMemFree_v2", takes=100_000)

    trace = make_loop(allocate)
    for row in trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["demangledName"] = row["shortName"] = "main_24_gpu"
    action = evaluate_on(trace, tmp_path, "allocation")["allocation"].action
    assert ("Put a data region" in action) is is_freed
    assert ("one contiguous array" in action) is not is_freed


# Copies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "is_named"), [(4, False), (4 << 20, True)])
def test_pinned_memory_is_not_advised_for_a_few_bytes(size, is_named, tmp_path):
    def read(host):
        host.copy("D2H", size, api=100_000, queue=400_000, runs=600_000, blocking=True, target="pageable")

    findings = evaluate_on(make_loop(read), tmp_path, "pageable-copy", "copy-bound")
    assert ("pageable-copy" in findings) is is_named
    assert ("pinned memory" in findings["copy-bound"].action) is is_named
    assert (findings["copy-bound"].saving_low_ns is not None) is is_named


def test_pinned_memory_is_not_advised_where_it_is_pinned(tmp_path):
    trace = make_loop(lambda host: host.copy("H2D", 16 << 20, runs=2 * MS, blocking=True, source="pinned"))
    assert "pinned" not in evaluate_on(trace, tmp_path, "copy-bound")["copy-bound"].action


def test_a_single_copy_is_hardly_worth_pinning(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.copy("H2D", 64 << 20, runs=10 * MS, blocking=True, source="pageable")
    host.launch("work(float *)", runs=10 * MS, **LARGE).sync("device")
    finding = evaluate_on(trace, tmp_path, "copy-bound")["copy-bound"]
    assert "pinning memory for one copy takes about as long" in finding.action
    assert finding.saving_low_ns is None


def test_the_rate_of_pinned_memory_is_that_of_the_trace(tmp_path):
    """Pageable copies of 8 GB/s, and one pinned copy of 10 GB/s: a fifth is saved, not three fifths."""

    def copy(host):
        host.copy("H2D", 16 << 20, runs=(16 << 20) // 8, blocking=True, source="pageable")

    trace = make_loop(copy)
    trace.thread().copy("H2D", 16 << 20, start=100, runs=(16 << 20) // 10, source="pinned")
    finding = evaluate_on(trace, tmp_path, "copy-bound")["copy-bound"]
    assert finding.saving_low_ns == pytest.approx(0.2 * finding.recoverable_ns, rel=0.05)


# The host -------------------------------------------------------------------------------------------------------------


def make_pause(call=None, takes=40 * MS):
    """Make two kernels, with an operating system call or other work of the host between them."""
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("first(float *)", runs=MS, **LARGE).sync("device")
    if call:
        host.osrt(call, takes=takes)
    else:
        host.idle(takes)
    host.launch("second(float *)", runs=MS, **LARGE).sync("device")
    return trace


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (None, "See what the host does in the longest gaps"),
        ("nanosleep", "Remove the sleep"),
        ("pthread_join", "The host waits for other threads"),
    ],
)
def test_cpu_work_without_steps_has_no_next_step(call, expected, tmp_path):
    finding = evaluate_on(make_pause(call), tmp_path, "cpu-work")["cpu-work"]
    assert finding.action.startswith(expected)
    assert "next step" not in finding.action + finding.caveat


def test_a_thread_off_the_cpu_does_no_work(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.launch("first(float *)", runs=MS, **LARGE).sync("device")
    host.off_cpu(host.now + MS, host.now + 39 * MS).idle(40 * MS)
    host.launch("second(float *)", runs=MS, **LARGE).sync("device")
    action = evaluate_on(trace, tmp_path, "cpu-work")["cpu-work"].action
    assert action.startswith("The thread that launches is off the CPU")


def test_waits_without_steps_are_in_no_loop(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for name in ("first", "second", "third"):
        host.launch(f"{name}(float *)", runs=MS, **LARGE).sync("device", waits=4 * MS)
    action = evaluate_on(trace, tmp_path, "other-wait")["other-wait"].action
    assert "loop" not in action


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("device", "Remove cudaDeviceSynchronize from the loop"), ("event", "Wait for fewer events")],
)
def test_the_synchronization_that_costs_most_is_the_one_to_remove(kind, expected, tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(12):
        for name in ("load", "solve"):
            host.launch(f"{name}(float *)", runs=MS, **LARGE)
        host.sync(kind, waits=3 * MS)
    assert evaluate_on(trace, tmp_path, "other-wait")["other-wait"].action.startswith(expected)


def test_loops_of_do_concurrent_have_no_directives(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(12):
        for name in ("relax_40_gpu", "norm_52_gpu"):
            host.launch(name, runs=MS, **LARGE).sync("stream").idle(MS)
    action = evaluate_on(trace, tmp_path, "other-wait")["other-wait"].action
    assert "async" in action
    assert "do concurrent" in action
    assert "OpenMP" not in action


@pytest.mark.parametrize(("queue", "is_late"), [(5 * MS, False), (2_000, True)])
def test_launches_that_have_returned_are_not_the_host_s_fault(queue, is_late, tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(12):
        host.launch("infer(float *)", queue=queue, api=MS if is_late else 5_000, runs=20_000).idle(queue + 30_000)
    action = evaluate_on(trace, tmp_path, "slow-launches")["slow-launches"].action
    assert action.startswith("See what the host does before" if is_late else "The launch calls have returned before.")


# Unified memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_in_kernel", [True, False])
def test_a_prefetch_is_advised_only_if_kernels_wait_for_pages(is_in_kernel, tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        start = host.now
        host.launch("solve(float *)", runs=10 * MS, **LARGE)
        if is_in_kernel:
            host.migrate("UM H2D", 2 << 20, start=start + 2 * MS, runs=3 * MS)
        host.sync("device")
        host.migrate("UM D2H", 2 << 20, start=host.now, runs=2 * MS, cause="Page fault").idle(3 * MS)
    action = evaluate_on(trace, tmp_path, "unified-memory")["unified-memory"].action
    assert ("refetch" in action) is is_in_kernel


@pytest.mark.parametrize("migration_ms", [0, 8])
def test_the_time_of_migrations_is_not_saved_by_more_blocks(migration_ms, tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    start = host.now
    host.launch("add(float *)", runs=10 * MS, grid=(1, 1, 1), block=(256, 1, 1)).sync("device")
    if migration_ms:
        host.migrate("UM H2D", 2 << 20, start=start + MS, runs=migration_ms * MS)
    saved_ns = evaluate_on(trace, tmp_path, "one-block")["one-block"].recoverable_ns
    assert saved_ns == pytest.approx((10 - migration_ms) * MS, rel=0.02)


def test_a_host_that_touches_managed_memory_does_not_launch_slowly(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(10):
        for number in range(8):
            host.launch(f"pivot{number}(float *)", runs=60_000, **LARGE).sync("device")
        host.migrate("UM D2H", 64 << 10, start=host.now + 400_000, runs=10_000).idle(420_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        verdict = opened_trace.answer("classify").dicts()[0]["verdict"]
    assert "host-bound" in verdict
    assert "launch-bound" not in verdict


def test_a_read_back_without_steps_is_not_in_every_step(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for name in ("first", "second", "third"):
        host.launch(f"{name}(float *)", runs=MS, **LARGE).copy("D2H", 8, runs=2_000, blocking=True).idle(MS)
    finding = evaluate_on(trace, tmp_path, "d2h-sync")["d2h-sync"]
    assert "step" not in finding.action + finding.caveat


# Fusion ---------------------------------------------------------------------------------------------------------------

RANDOM = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4>(long)"


@pytest.mark.parametrize("is_used", [False, True])
def test_random_numbers_alone_are_the_input_of_a_benchmark(is_used, tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    names = [RANDOM, "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"]
    if is_used:
        names[1] = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>(int)"
    for _ in range(10):
        for _ in range(4):
            for name in names:
                host.launch(name, runs=10_000, grid=(512, 1, 1), block=(256, 1, 1)).idle(10_000)
            host.launch("nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_NNT", runs=30_000, **LARGE)
        host.sync("device")
    findings = evaluate_on(trace, tmp_path, "fusion")
    assert ("fusion" in findings) is is_used


def make_chains(*names):
    """Make steps of a matrix product and, after each chain, another one."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(10):
        for chain in names:
            host.launch("nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_NNT", runs=30_000, **LARGE)
            for name in chain:
                host.launch(name, runs=10_000, grid=(512, 1, 1), block=(256, 1, 1)).idle(5_000)
        host.sync("device")
    return trace


def native(operation):
    return f"void at::native::vectorized_elementwise_kernel<4, at::native::{operation}<float>>(int)"


def test_chains_of_one_kind_are_counted_together(tmp_path):
    first, second = [native("MulFunctor"), native("sqrt_kernel")], [native("CUDAFunctor_add"), native("sqrt_kernel")]
    finding = evaluate_on(make_chains(first, second, first), tmp_path, "fusion")["fusion"]
    assert finding.evidence.startswith("fusing 2 chains saves ")
    assert ": 2 kernels in a row 3" in finding.evidence
    assert finding.evidence.count("in a row") == 1


def test_an_optimizer_with_foreach_has_a_fused_variant(tmp_path):
    update = "void at::native::multi_tensor_apply_kernel<TensorListMetadata<2>, {}<float>>(T1)"
    chain = [update.format(name) for name in ("BinaryOpScalarFunctor", "LerpFunctor", "PointwiseOpScalarFunctor")]
    finding = evaluate_on(make_chains(chain), tmp_path, "fusion")["fusion"]
    assert "optimizer, foreach" in finding.evidence
    assert finding.action.startswith("Create the optimizer with fused=True")


# Kernels --------------------------------------------------------------------------------------------------------------


def test_kernels_of_the_program_itself_are_in_no_library(tmp_path):
    trace = make_loop(lambda _: None)
    action = evaluate_on(trace, tmp_path, "hot-kernels")["hot-kernels"].action
    assert action.startswith("Profile ")
    assert "library" not in action


@pytest.mark.parametrize(("threads", "is_named"), [(31, False), (32, True)])
def test_empty_lanes_are_no_question_of_occupancy(threads, is_named, tmp_path):
    # An SM of this GPU holds 16 blocks, a third of its warps.
    trace = Trace().gpu(computeMajor=8, computeMinor=6, smCount=68, maxWarpsPerSm=48, maxBlocksPerSm=16)
    host = trace.thread()
    for _ in range(12):
        host.launch("walk(float *)", runs=MS, grid=(100_000, 1, 1), block=(threads, 1, 1))
        host.launch("walk(float *)", runs=MS, grid=(100_000, 1, 1), block=(threads, 1, 1))
        host.sync("device")
    findings = evaluate_on(trace, tmp_path, "low-occupancy")
    assert ("low-occupancy" in findings) is is_named
    if is_named:
        assert "limited by blocks, 2 calls per step of 1 ms on average" in findings["low-occupancy"].evidence


def test_the_occupancy_of_a_library_kernel_is_not_the_user_s(tmp_path):
    def launch_both(host):
        for name in ("void at::native::softmax_warp_forward<float, float, float, 11>(float *)", "smooth(float *)"):
            host.launch(name, runs=MS, registers=255, **LARGE)

    finding = evaluate_on(make_loop(launch_both), tmp_path, "low-occupancy")["low-occupancy"]
    assert "smooth" in f"{finding.place} {finding.evidence}"
    assert "softmax" not in f"{finding.place} {finding.evidence}"
