"""Cures fit the program: none that it has already, and none for what the trace does not show."""

from __future__ import annotations

import pytest
from ailments import BF16
from opening import evaluate_rules, open_trace
from rule_tables import STEP
from sweeps import sweep
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


def test_the_call_that_creates_the_context_is_named(tmp_path):
    trace = Trace().gpu()
    host = trace.thread().call("cudaGetDeviceCount_v3020", takes=100).call("cudaHostAlloc_v3020", takes=308 * MS)
    host.launch("work(float *)", runs=10 * MS, **LARGE).sync("device")
    finding = evaluate_on(trace, tmp_path, "idle-at-start")["idle-at-start"]
    assert finding.severity == "critical"
    assert finding.action.startswith("308 ms of it is in cudaHostAlloc, the first long call, which includes the ")


CONTEXT = "{first_ns} of it is in {first_call}, the first long call"


@pytest.mark.parametrize(
    ("calls", "functions", "changes", "expected", "severity"),
    [
        # The first long call creates the context, if it is one of the runtime, or if its name says so.
        ([("cudaGetDeviceCount", 1), ("cudaHostAlloc", 50)], {}, {}, CONTEXT, "critical"),
        ([("cuCtxCreate_v2", 50)], {}, {}, CONTEXT, "critical"),
        ([("cuMemHostAlloc", 50)], {}, {}, "See which of these calls", "critical"),
        (
            [("cuMemAlloc", 1), ("cuMemcpyHtoD", 50)],
            {},
            {},
            "{first_ns} of it is in {first_call}, the call of",
            "critical",
        ),
        # Less than half of the time, calls of less than 10 ms, and a small part of the trace.
        ([("cudaMalloc", 49)], {}, {}, "See what the program does before its first GPU operation", "critical"),
        ([("cudaMalloc", 9)] * 6, {}, {}, "See which of these calls", "critical"),
        ([("cudaMalloc", 50)], {}, {"wall_pct": 49.9}, CONTEXT, None),
        # A quarter of the samples are in the compiler of the driver.
        ([("cudaMalloc", 50)], {"libnvidia-ptxjitcompiler.so": 25.0}, {}, "The driver compiles PTX", "critical"),
        ([("cudaMalloc", 50)], {"libnvidia-ptxjitcompiler.so": 24.9}, {}, CONTEXT, "critical"),
        ([("cudaMalloc", 49)], {"read_file": 90.0}, {}, "Do the work of these functions in parallel", "critical"),
        # With steps, the capture can begin later.
        ([("cudaMalloc", 50)], {}, {"has_steps": True}, "Capture only the steady state", None),
        ([("cudaMalloc", 49)], {"read_file": 90.0}, {"has_steps": True}, "Do the work of these functions", "warning"),
    ],
)
def test_the_cure_of_a_late_first_operation(calls, functions, changes, expected, severity, cure_of):  # noqa: PLR0917
    api_calls, now = [], 0
    for name, takes_ms in calls:
        group = "copy" if "Memcpy" in name else "alloc"
        api_calls.append({"name": name, "call_group": group, "start_ns": now, "end_ns": now + takes_ms * MS,
                          "duration_ns": takes_ms * MS})  # fmt: skip
        now += takes_ms * MS
    samples = 100 if functions else None
    rows = [
        {"function_name": name, "samples_pct": pct, "callers": ""} for name, pct in (functions or {"": 0.0}).items()
    ]
    idle = {"host": "before the first operation", "time_ns": 100 * MS, "wall_pct": 90.0, "gpu_id": 0}
    cure, row = cure_of(
        "idle-at-start", idle_report=[idle | {"wall_pct": changes.get("wall_pct", 90.0)}],
        scope=[{"nvtx": None, "from_ns": None}], _gpu_busy_parts=[{"start_ns": 100 * MS}], outer_api_calls=api_calls,
        _step_totals=[{"has_steps": changes.get("has_steps", False)}],
        _edge_functions=[{"edge": "start", "samples": samples, "functions": rows}],
    )  # fmt: skip
    assert cure.startswith(expected)
    assert row["severity"] == severity


@pytest.mark.parametrize(("waits_ms", "count"), [(49, 1), (50, 0)])
def test_a_wait_for_lost_kernels_is_no_idle_end(waits_ms, count, run_rule):
    idle = {"host": "after the last operation", "time_ns": 100 * MS, "wall_pct": 90.0, "gpu_id": 0}
    wait = {"name": "cudaDeviceSynchronize", "start_ns": 0, "end_ns": waits_ms * MS}
    rows = run_rule(
        "idle-at-end", idle_report=[idle], scope=[{"nvtx": None, "to_ns": None}], steps=[{"phase": "tail"}],
        _gpu_busy_parts=[{"end_ns": 0}], outer_api_calls=[wait],
        _edge_functions=[{"edge": "end", "samples": None, "functions": None}],
    )  # fmt: skip
    assert len(rows) == count


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "has_steps", "expected"),
    [
        ([("cudaHostAlloc", "pinned host", 1)], False, "Pin host memory once"),
        ([("cudaHostRegister", "pinned host", 10), ("cudaHostUnregister", None, 10)], True, "Pin host memory once"),
        ([("cudaMalloc", "device", 1), ("cudaHostAlloc", "pinned host", 1)], False, "Allocate ahead of the work"),
        ([("cudaMalloc", "device", 10), ("cudaFree", None, 2)], True, "Allocate once before the loop"),
        ([("cudaMallocAsync", "device", 10), ("cudaFree", None, 10)], True, "Let the pool keep its memory"),
        (
            [("cudaMallocAsync", "stream-ordered", 10), ("cudaMemPoolTrimTo", None, 10)], True,
            "Do not trim the pool in the loop",
        ),
        # Memory that the loop keeps is not to be reused.
        ([("cudaMalloc", "device", 10), ("cudaFree", None, 1)], True, "The memory is not freed in the loop"),
    ],
)  # fmt: skip
def test_the_cure_of_allocations(calls, has_steps, expected, cure_of):
    assert cure_of("allocation", **describe_allocations(calls, has_steps=has_steps))[0].startswith(expected)


@pytest.mark.parametrize(
    ("times_ms", "expected"),
    [
        # One free in which a library sets itself up, and half of the time in such frees.
        ([400], "set themselves up"),
        ([100, 50, 50], "set themselves up"),
        ([100, 51, 50], "Allocate ahead of the work"),
        ([99], "Allocate ahead of the work"),
    ],
)
def test_a_free_that_starts_a_library_needs_no_allocation_ahead(times_ms, expected, cure_of):
    tables = describe_allocations([("cudaFree", None, 1), ("cudaMalloc", "device", 1)], has_steps=False)
    frees = [{"duration_ns": takes * MS, "call_group": "free", "start_ns": 9} for takes in times_ms]
    cure, _ = cure_of("allocation", **tables | {"outer_api_calls": frees})
    assert expected in cure


def test_the_context_is_no_cost_of_allocations(run_rule):
    """It is created before the first operation, at 1 ns."""
    tables = describe_allocations([("cudaMalloc", "device", 1)], has_steps=False)
    calls = [
        {"duration_ns": takes * MS, "call_group": "alloc", "start_ns": start} for start, takes in ((0, 120), (1, 5))
    ]
    (row,) = run_rule("allocation", **tables | {"outer_api_calls": calls})
    assert (row["calls"], row["host_ns"]) == (1, 5 * MS)


@pytest.mark.parametrize(
    ("totals", "saved_ns"),
    [
        # Without waits, the idle time gets shorter by all of the time of the calls.
        ({"sync_calls": 0, "idle_ns": 9e5}, 5e5),
        ({"sync_calls": 0, "idle_ns": 4e5}, 4e5),
        ({"sync_calls": 0, "idle_ns": 1e5}, 2e5),
        ({"sync_calls": 1, "idle_ns": 9e5}, 2e5),
        ({"sync_calls": 0, "idle_ns": 9e5, "has_steps": False}, 2e5),
    ],
)
def test_what_fewer_allocations_save(totals, saved_ns, run_rule):
    tables = describe_allocations([("cudaMalloc", "device", 10), ("cudaFree", None, 10)], has_steps=True)
    (host,), (step,) = tables["host_report"], tables["_step_totals"]
    tables |= {"host_report": [host | {"recoverable_ns": 2e5, "host_ns": 5e5}], "_step_totals": [step | totals]}
    (row,) = run_rule("allocation", **tables)
    assert (row["recoverable_ns"], row["saving_low_ns"]) == pytest.approx((saved_ns, 0.35 * saved_ns))


def describe_allocations(calls, *, has_steps):
    """Give the tables of a program that makes these calls: name, memory, and calls in the steps."""
    report = [
        {"name": name, "memory": memory, "call_group": "free" if memory is None else "alloc", "total_ns": 9 - place,
         "steady_count": count if has_steps else None}
        for place, (name, memory, count) in enumerate(calls)
    ]  # fmt: skip
    return {
        "mallocs_report": report, "steps": [{"phase": "steady" if has_steps else "tail"}],
        "outer_api_calls": [{"duration_ns": 5 * MS, "call_group": "alloc", "start_ns": 9}],
        "_gpu_busy_parts": [{"start_ns": 1}], "step_calls": [{"thread_id": 1, "call_group": "alloc"}],
        "_pool_waits": [{"tail_ns": 0, "alloc_ns": 0, "waits": 1}],
        "_allocating_libraries": [{"handle_events": None, "has_thrust": False}],
        "_step_totals": [{**STEP, "has_steps": has_steps, "sync_calls": 1}],
        "host_report": [{"code": "allocation", "recoverable_ns": 5e5, "wall_pct": 50.0, "count": 1, "host_ns": 5e5}],
    }  # fmt: skip


# Copies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "has_steps", "expected", "has_low"),
    [
        # Pinned memory is advised for large copies of pageable memory.
        ({}, True, "Keep the data on the GPU; otherwise copy from pinned memory", True),
        ({"avg_bytes": 65_535}, True, "The copies are small", False),
        ({"source_memory": "pinned"}, True, "Keep the data on the GPU; otherwise copy it earlier", False),
        # A few copies are not worth pinning for.
        ({"calls": 4}, False, "Copy in parts, so that kernels work on the first part", False),
        ({"calls": 5}, False, "Keep the data on the GPU; otherwise copy from pinned memory", True),
        (
            {"copy_kind": "D2H", "source_memory": "device", "target_memory": "pageable"},
            True,
            "Copy back only what the host needs, and less often; otherwise copy to pinned memory",
            True,
        ),
        (
            {"copy_kind": "D2H", "source_memory": "device", "target_memory": "pinned"},
            True,
            "Copy back only what the host needs, and less often; otherwise copy on a stream",
            False,
        ),
    ],
)
def test_pinned_memory_is_advised_where_it_saves_time(changes, has_steps, expected, has_low, cure_of):
    copies = {
        "name": "cudaMemcpy", "copy_kind": "H2D", "source_memory": "pageable", "target_memory": "device", "calls": 10,
        "avg_bytes": 65_536, "total_ns": 5e5, "bandwidth_bytes_per_s": 5e9, **changes,
    }  # fmt: skip
    tables = {
        "_steady_copies": [copies], "_pinned_rate": [{"bytes_per_s": 1e10}],
        "_step_totals": [{**STEP, "has_steps": has_steps}],
        "host_report": [{"code": "pageable_copy", "recoverable_ns": 1e5, "wall_pct": 10.0, "count": 1}],
        "classify_report": [{"part": "copy", "recoverable_ns": 5e5, "time_ns": 5e5, "evidence": ""}],
    }  # fmt: skip
    cure, row = cure_of("copy-bound", **tables)
    assert cure.startswith(expected)
    assert (row["saving_low_ns"] is not None) is has_low


@pytest.mark.parametrize(("size", "count"), [(65_536, 1), (65_535, 0)])
def test_pageable_copies_of_a_few_bytes_are_no_finding(size, count, run_rule):
    copies = {"name": "cudaMemcpy", "copy_kind": "D2H", "source_memory": "device", "target_memory": "pageable",
              "avg_bytes": size, "total_ns": 1}  # fmt: skip
    host = {"code": "pageable_copy", "recoverable_ns": 1e5, "wall_pct": 10.0, "count": 1}
    assert len(run_rule("pageable-copy", _steady_copies=[copies], host_report=[host])) == count


def test_the_rate_of_pinned_memory_is_that_of_the_trace(tmp_path):
    """Pageable copies of 8 GB/s, and one pinned copy of 10 GB/s: a fifth is saved, not three fifths."""

    def copy(host):
        host.copy("H2D", 16 << 20, runs=(16 << 20) // 8, blocking=True, source="pageable")

    trace = make_loop(copy)
    trace.thread().copy("H2D", 16 << 20, start=100, runs=(16 << 20) // 10, source="pinned")
    finding = evaluate_on(trace, tmp_path, "copy-bound")["copy-bound"]
    assert finding.saving_low_ns == pytest.approx(0.2 * finding.recoverable_ns, rel=0.05)


# The host -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activity", "work_ns", "waits", "expected"),
    [
        ("OS call: nanosleep", 51, (6, 0.8), "Remove the sleep"),
        ("OS call: clock_nanosleep", 51, (0, 0), "Remove the sleep"),
        ("OS call: nanosleep", 50, (0, 0), "Do that work in another thread"),
        ("OS call: pthread_join", 51, (0, 0), "The host waits for other threads"),
        ("OS call: sem_timedwait", 51, (0, 0), "The host waits for other threads"),
        ("OS call: read", 51, (0, 0), "Do that work in another thread"),
        # A thread off the CPU does no work.
        ("off the CPU", 51, (0, 0), "The thread that launches is off the CPU"),
        # Many short waits are those of a host that issues operations one by one.
        ("OS call: read", 51, (6, 0.8), "The host issues operations one by one"),
        ("OS call: read", 51, (5, 0.8), "Do that work in another thread"),
        ("OS call: read", 51, (6, 0.79), "Do that work in another thread"),
    ],
)
def test_what_most_of_the_cpu_work_is(activity, work_ns, waits, expected, cure_of):
    assert cure_of("cpu-work", **describe_cpu_work(activity, work_ns, waits))[0].startswith(expected)


def test_cpu_work_without_steps_has_no_next_step(cure_of):
    cure, _ = cure_of("cpu-work", **describe_cpu_work("OS call: read", 50, (6, 0.8), phase="tail"))
    assert cure.startswith("See what the host does in the longest gaps")
    assert "next step" not in cure


def describe_cpu_work(activity, work_ns, waits, *, phase="steady"):
    """Give the tables of a program whose GPU waits 100 ns for the host, `work_ns` of them for an activity."""
    gap = {"start_ns": 0, "end_ns": 100, "duration_ns": 100, "cause": "launch", "host": "CPU work", "nvtx_path": "",
           "before_name": "a", "after_name": "b"}  # fmt: skip
    work = {"what": activity, "time_ns": work_ns, "nvtx_path": "", "counted_by": "activity", "is_known": True,
            "work_pct": 50.0}  # fmt: skip
    return {
        "gaps_report": [gap], "_cpu_work": [work], "_steady_windows": [{"start_ns": 0, "end_ns": 100}],
        "host_report": [{"code": "cpu_work", "recoverable_ns": 100.0, "wall_pct": 50.0}], "steps": [{"phase": phase}],
        "_managed_work": [{"managed_share": 0.0}], "_mpi_work": [{"name": None}], "_event_waits": [],
        "_silent_waits": [{"run_in_steps": False}], "classify_report": [{"part": "launch", "see": "gaps"}],
        "_late_waits": [{"short_gaps": waits[0], "short_gap_ns": 40_000, "short_share": waits[1]}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "phase", "expected"),
    [
        ([("cudaDeviceSynchronize", 9), ("cudaEventSynchronize", 8)], "steady", "Remove the wait"),
        ([("cudaDeviceSynchronize", 8), ("cudaEventSynchronize", 9)], "steady", "Wait for fewer events"),
        ([("cudaDeviceSynchronize", 9)], "tail", "Remove the waits that nothing needs"),  # in no loop
    ],
)
def test_the_synchronization_that_costs_most_is_the_one_to_remove(calls, phase, expected, cure_of):
    syncs = [
        {"name": name, "nvtx_path": None, "copy_kind": "H2D", "is_copy": False, "steady_count": 9, "host_wait_ns": 1,
         "steady_idle_ns": idle_ns, "gpu_idle_ns": 1}
        for name, idle_ns in calls
    ]  # fmt: skip
    host = {"code": "other_wait", "recoverable_ns": 1e5, "wall_pct": 10.0, "count": 9, "host_ns": 1e5}
    cure, _ = cure_of("other-wait", syncs_report=syncs, host_report=[host], steps=[{"phase": phase}])
    assert cure.startswith(expected)


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


@pytest.mark.parametrize(
    ("latency_ns", "expected"), [(51, "The launch calls have returned before."), (50, "See what the host does before")]
)
def test_launches_that_have_returned_are_not_the_host_s_fault(latency_ns, expected, cure_of):
    budget = [
        {"part": "launch", "host": host, "time_ns": time_ns}
        for host, time_ns in (("launch latency", latency_ns), ("CPU work", 100 - latency_ns))
    ]
    call = {"name": "cudaLaunchKernel", "call_group": "launch", "duration_ns": 1_000}
    cure, _ = cure_of(
        "slow-launches", step_budget=budget, outer_api_calls=[call], api_calls=[call], steps=[{"phase": "steady"}],
        graph_candidates_report=[{"single_launches": 2, "verdict": "no"}], step_method=[{"tokens_per_step": 1}],
        classify_report=[{"part": part, "recoverable_ns": 1e6, "time_ns": 1e6, "see": "graph-candidates",
                          "evidence": ""} for part in ("launch", "wall")],
    )  # fmt: skip
    assert cure.startswith(expected)


# Unified memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("in_kernel_ns", "allocations", "words"),
    [
        (1_000, 0.8, "Prefetch the data"),
        (999, 0.8, "do what the host does with them"),
        (1_000, 1.0, "allocate device memory once before the loop"),
        (999, 1.0, "allocate device memory once before the loop"),
    ],
)
def test_the_cure_of_migrations(in_kernel_ns, allocations, words, cure_of):
    """A prefetch is advised only if kernels wait for pages, and not for memory that each step allocates."""
    event = {"start_ns": 1, "cause": "page fault", "event": "UM D2H", "duration_ns": 10_000, "size_bytes": 1 << 20,
             "in_kernel_ns": in_kernel_ns, "faults": 1, "name": "solve(float *)", "nvtx_path": None}  # fmt: skip
    windows = [{"start_ns": 0, "end_ns": 9}]
    call = {"kind": "call", "name": "cudaMallocManaged", "calls": allocations, "has_steps": True}
    cure, row = cure_of(
        "unified-memory", _unified_memory_events=[event], _steady_windows=windows, _step_totals=[STEP],
        step_operations=[call],
    )  # fmt: skip
    assert words in cure
    assert (row["saving_low_ns"] is not None) == (allocations >= 0.9)


@pytest.mark.parametrize("migration_ms", [*sweep([0]), 8])
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


def test_a_known_chain_has_the_remedy_of_the_catalog(tmp_path):
    gelu = [
        native(name) for name in ("pow_tensor_scalar", "MulFunctor", "CUDAFunctor_add", "MulFunctor", "tanh_kernel")
    ]
    gelu += [native(name) for name in ("CUDAFunctor_add", "MulFunctor", "MulFunctor")]
    known_chain = evaluate_on(make_chains(gelu), tmp_path, "fusion")["fusion"]
    assert known_chain.action.startswith(
        "For GELU in pieces: torch.nn.functional.gelu(approximate='tanh'), or torch.compile. "
    )
    unknown_chain = evaluate_on(make_chains([native("MulFunctor"), native("sqrt_kernel")]), tmp_path, "fusion")[
        "fusion"
    ]
    assert unknown_chain.action.startswith("Use torch.compile for the module that has the chain")


def test_an_optimizer_with_foreach_has_a_fused_variant(tmp_path):
    update = "void at::native::multi_tensor_apply_kernel<TensorListMetadata<2>, {}<float>>(T1)"
    chain = [update.format(name) for name in ("BinaryOpScalarFunctor", "LerpFunctor", "PointwiseOpScalarFunctor")]
    finding = evaluate_on(make_chains(chain), tmp_path, "fusion")["fusion"]
    assert "optimizer, foreach" in finding.evidence
    assert finding.action.startswith("Create the optimizer with fused=True")


# Kernels --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_kernels_of_the_program_itself_are_in_no_library(tmp_path):
    trace = make_loop(lambda _: None)
    action = evaluate_on(trace, tmp_path, "hot-kernels")["hot-kernels"].action
    assert action.startswith("Profile ")
    assert "library" not in action


@pytest.mark.parametrize(
    ("changes", "occupancy", "provenance", "is_named"),
    [
        ({}, {}, "hand-written", True),
        # Warps of smaller blocks are mostly empty.
        ({"block": "32x1x1"}, {}, "hand-written", True),
        ({"block": "31x1x1"}, {}, "hand-written", False),
        ({"block": "4x8x1"}, {}, "hand-written", True),
        # A kernel of a library has the registers and the blocks that it has.
        ({}, {}, "PyTorch native", False),
        ({}, {}, "Triton", True),
        ({}, {}, "Numba", True),
        ({"name": BF16}, {}, "hand-written", False),
        # The limits.
        ({}, {"occupancy_pct": 39.9}, "hand-written", True),
        ({}, {"occupancy_pct": 40.0}, "hand-written", False),
        ({}, {"waves_per_sm": 1.0}, "hand-written", True),
        ({}, {"waves_per_sm": 0.9}, "hand-written", False),
    ],
)
def test_an_occupancy_that_the_program_sets(changes, occupancy, provenance, is_named, run_rule):
    shape = {"name": "walk(float *)", "grid": "100000x1x1", "block": "128x1x1", "calls": 2, "total_ns": 2 * MS,
             "avg_ns": MS, "kernel_time_pct": 90.0, **changes}  # fmt: skip
    place = {name: shape[name] for name in ("name", "grid", "block", "total_ns")}
    rows = run_rule(
        "low-occupancy", _steady_shapes=[shape], kernel_names=[{"name": shape["name"], "provenance": provenance}],
        occupancy_report=[{**place, "occupancy_pct": 33.3, "limited_by": "blocks", "waves_per_sm": 2.0,
                           "next_step": "48 more: larger blocks", **occupancy}],
        classify_report=[{"part": part, "time_ns": MS} for part in ("gpu", "wall")], _step_totals=[STEP],
        _graph_tracing=[{"whole_pct": 0.0, "wholes": 0}],
    )  # fmt: skip
    assert [(row["place"], row["next_step"]) for row in rows] == [("walk", "larger blocks")] * is_named
