"""Rules about the host: each finds what was planted, with its numbers, and not what only looks like it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import ailments
import planted
import pytest
from ailments import BF16, LARGE, MS, NATIVE, run_steps
from opening import evaluate_rules, open_trace, unpack
from sweeps import sweep
from synthetic import Trace

from nsys_insight.diagnose.ranking import rank

SHARED = Path(__file__).parents[2] / "shared"
RULES = ailments.FAMILIES["host"]


@pytest.mark.parametrize("name", RULES)
def test_a_rule_fires_on_its_program_and_not_on_cured_ones(name, findings_of):
    ailments.check_rule(name, findings_of)


def step_ns(truth):
    """Give the mean wall time of the steps that were planted, without the first and the last."""
    steps = truth.steps[1:-1]
    return sum(step.wall_ns for step in steps) / len(steps)


@pytest.mark.parametrize(
    ("name", "make", "make_cured"),
    [
        ("graph-break", ailments.branches, lambda: ailments.branches(is_cured=True)),
        ("host-input", ailments.batches, lambda: ailments.batches(host_ms=0.05)),
        ("host-stage", ailments.host_stages, lambda: ailments.host_stages(host_ms=0.05)),
        ("checkpoint-stall", ailments.checkpoints, lambda: ailments.checkpoints(interval=0)),
        ("alternating", ailments.turns, lambda: ailments.turns(waits=False)),
        ("compile-in-loop", ailments.loads, lambda: ailments.loads(steps_with_loads=())),
        ("default-stream", ailments.streams, lambda: ailments.streams(is_cured=True)),
    ],
)
def test_what_the_cure_saves_is_within_the_estimate(name, make, make_cured, findings_of):
    finding = findings_of(make)[name]
    saved_ns = step_ns(make()) - step_ns(make_cured())
    assert 0.95 * finding.saving_low_ns <= saved_ns <= 1.1 * finding.recoverable_ns
    # The range of a rule is 3 at most; that of the step without nsys makes it wider, where the saving may be idle time.
    assert finding.recoverable_ns <= (5 if name == "graph-break" else 3.01) * finding.saving_low_ns


class TestGraphBreak:
    def test_the_flag_and_the_kernel_before_it_are_named(self, findings_of):
        finding = findings_of(ailments.branches)["graph-break"]
        assert finding.values["reads"] == pytest.approx(4)
        assert finding.values["launches_each"] == pytest.approx(2)
        assert "the kernel before the copy is mostly triton_red_fused_gelu_gt_max_0" in finding.evidence
        assert finding.values["compiled_pct"] == pytest.approx(100 * 10 / 30)
        assert finding.cure.framework == "inductor"

    def test_long_work_in_few_steps_is_not_saved_with_the_flag(self, findings_of):
        def body(loop, number):
            loop.launch("insert(int *)", 400_000, **LARGE)
            loop.copy("D2H", 1, 1_000, blocking=True)
            loop.python(50 * MS if number in (5, 10) else 80_000)

        finding = findings_of(partial(run_steps, body, steps=16, sync=False))["graph-break"]
        assert finding.recoverable_ns < 200_000


class TestHostInput:
    def test_the_gaps_are_those_before_the_copies(self, findings_of):
        values = findings_of(ailments.batches)["host-input"].values
        assert values["copy_bytes"] == 1 << 20
        assert values["gap_ns"] == pytest.approx(2 * MS, rel=0.2)
        assert values["step_ns"] == pytest.approx(step_ns(ailments.batches()), rel=0.05)

    def test_a_wait_for_the_gpu_before_the_work_does_not_hide_it(self, findings_of):
        finding = findings_of(partial(ailments.batches, host_ms=2.0, kernel_ms=8.0))["host-input"]
        assert finding.values["gap_ns"] == pytest.approx(2 * MS, rel=0.2)

    @pytest.mark.slow
    def test_all_gaps_of_a_long_run_count(self, findings_of):
        def body(loop, _):
            loop.python(300_000)
            loop.copy("H2D", 1 << 20, 50_000)
            loop.launch(BF16, 100_000, **LARGE)
            loop.copy("D2H", 8, 1_000, blocking=True)
            loop.python(150_000)
            loop.launch("update(float *)", 50_000, **LARGE)
            loop.sync()

        values = findings_of(partial(run_steps, body, steps=1_200, sync=False))["host-input"].values
        assert values["input_steps"] == values["steps"] >= 1_190

    @pytest.mark.sweep  # tests/test_rule_limits.py
    def test_a_cuda_call_before_the_copy_is_no_preparation(self, findings_of):
        def body(loop, _):
            loop.malloc(1 << 20, 2 * MS)
            loop.copy("H2D", 1 << 20, 50_000)
            loop.launch(BF16, MS, **LARGE)
            loop.copy("D2H", 8, 1_000, blocking=True)
            loop.free(1_000)

        assert "host-input" not in findings_of(partial(run_steps, body, sync=False))


def test_stalls_between_modules_belong_to_them(tmp_path):
    with open_trace(ailments.modules(pause=200_000).write(tmp_path / "trace.sqlite")) as trace:
        (finding,) = rank(evaluate_rules(trace, {"op-by-op", "stall-place"}).values())
    assert (finding.name, [member.name for member in finding.also]) == ("op-by-op", ["stall-place"])


@pytest.mark.parametrize(
    ("host", "family", "symptom"),
    [
        # Only fewer frees make the stall shorter.
        ("free: cudaFree", "allocation", None),
        ("alloc: cudaMalloc", "allocation", None),
        ("sync: cudaStreamSynchronize", "sync", "start"),
        ("copy: cudaMemcpy", "copy", "start"),
        ("module: cuModuleLoadData", None, "start"),
        ("CPU work", None, "start"),
    ],
)
def test_a_stall_in_a_free_has_the_cause_of_the_free(host, family, symptom, run_rule):
    (row,) = run_rule("stall-place", **describe_stalls(host))
    assert (row["family"], row["symptom"], row["is_launched"]) == (family, symptom, False)
    assert (row["stalls"], row["stall_ns"], row["stalled_steps"]) == (2, MS, 2)


@pytest.mark.parametrize(
    ("wait", "contexts", "expected"),
    [
        ({"are_none": True}, None, "is_launched_before"),
        ({"are_none": True}, 2, "follows_turns"),
        ({"are_functions": True}, None, "follows_host_functions"),
        ({"value_call": "cuStreamWaitValue32"}, None, "follows_values"),
    ],
)
def test_what_an_operation_waits_for_that_was_launched_in_time(wait, contexts, expected, run_rule):
    (row,) = run_rule("stall-place", **describe_stalls("launched before the gap", wait, contexts))
    causes = ("is_launched_before", "follows_turns", "follows_host_functions", "follows_values")
    assert [name for name in causes if row[name]] == [expected]


def test_stalls_count_on_the_gpu_of_the_steps_up_to_their_end(run_rule):
    tables = describe_stalls("CPU work")
    first, last = tables["gaps_report"]
    # The end of the program begins in the last step. Another process stalls its own GPU.
    tables["gaps_report"] = [first, {**last, "end_ns": 60 * MS, "duration_ns": 58 * MS}, {**first, "gpu_id": 1}]
    (row,) = run_rule("stall-place", **tables)
    assert row["recoverable_ns"] == (MS + 2 * MS) / 2


def describe_stalls(host, wait=None, contexts=None):
    """Give the tables of two steps of 2 ms with a gap of 1 ms in each."""
    gaps = [
        {"gpu_id": 0, "start_ns": start, "end_ns": start + MS, "cause": "launch", "host": host, "nvtx_path": "step",
         "after_name": "a"}
        for start in (0, 2 * MS)
    ]  # fmt: skip
    windows = [{"step": step, "start_ns": 2 * MS * step, "end_ns": 2 * MS * (step + 1)} for step in (0, 1)]
    return {
        "gaps_report": [{**gap, "duration_ns": MS} for gap in gaps], "gpu_gaps": [{"duration_ns": MS}] * 2,
        "step_gpus": [{"phase": "steady", "gpu_id": 0}], "_steady_windows": windows,
        "_step_totals": [{"units": 2, "wall_ns": 2e6}], "_other_processes": [{"contexts_in_turn": contexts}],
        "_silent_waits": [{"are_none": False, "are_functions": False, "value_call": None} | (wait or {})],
    }  # fmt: skip


def test_an_operation_may_wait_for_a_function_of_the_host(tmp_path):
    """Kernel b is launched in time and starts 2 ms after a. A function that the stream runs on the host has no row."""
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        with host.nvtx("step"):
            host.launch("a", runs=MS).call("cudaLaunchHostFunc_v10000")
            host.launch("b", queue=3 * MS, runs=MS).sync("stream")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        evidence = evaluate_rules(session, {"stall-place"})["stall-place"].evidence
    assert "waits for another GPU or process, or for what has no row" not in evidence
    assert "functions on the host (cudaLaunchHostFunc), for which the operation may wait" in evidence


class TestAlternating:
    def test_both_times_are_those_that_were_planted(self, findings_of):
        values = findings_of(ailments.turns)["alternating"].values
        assert values["busy_ns"] == pytest.approx(2 * MS, rel=0.01)
        assert values["host_ns"] == pytest.approx(2 * MS, rel=0.01)
        assert values["wait_ns"] == pytest.approx(2 * MS, rel=0.01)

    def test_a_host_that_launches_while_the_gpu_works_and_then_waits_takes_turns(self, findings_of):
        def body(loop, _):
            for _ in range(40):
                loop.launch("solve(float *)", 100_000, **LARGE)
                loop.python(20_000)
            loop.sync()
            loop.python(1_200_000)

        finding = findings_of(partial(run_steps, body, sync=False))["alternating"]
        assert finding.recoverable_ns == pytest.approx(1_200_000, rel=0.1)

    @pytest.mark.sweep  # tests/test_rule_limits.py
    def test_the_copy_of_the_next_input_is_not_saved(self, findings_of):
        finding = findings_of(partial(self.uploads, works_first=True))["alternating"]
        assert finding.recoverable_ns == pytest.approx(2 * MS, rel=0.1)

    @staticmethod
    def uploads(*, works_first):
        """Copy the input for 2 ms and compute for 6 ms; the host works for 2 ms, before the copy or during it."""

        def body(loop, _):
            loop.python(2 * MS if works_first else 0)
            loop.copy("H2D", 64 << 20, 2 * MS)
            loop.python(0 if works_first else 2 * MS)
            loop.launch("solve(float *)", 6 * MS, **LARGE)
            loop.sync()

        return run_steps(body, sync=False)


def sleeping(*, call="clock_nanosleep", on_main_thread=True, period_ms=37.0):
    """Sleep in each step until 37 ms have passed: no camera or display has this rate."""
    trace = Trace()
    helper = trace.thread(pid=100, tid=101)

    def body(loop, _):
        loop.launch("convert(float *)", 4 * MS, **LARGE)
        loop.sync(wakes=0)
        start = loop.host.now
        takes = loop.steps[-1].host_start_ns + int(period_ms * MS) - start
        (loop.host if on_main_thread else helper).osrt(call, start=start, takes=takes)
        loop.python(start + takes - loop.host.now if not on_main_thread else 0)

    loop = planted.Loop(trace.gpu())
    for number in range(30):
        loop.step()
        body(loop, number)
    return planted.planted(trace, loop)


class TestPacedOutside:
    def test_a_usual_rate_is_named(self, findings_of):
        finding = findings_of(ailments.fixed_rate)["paced-outside"]
        assert finding.values["rate"] == 25
        assert finding.values["gap_ns"] == pytest.approx(36 * MS, rel=0.01)
        assert finding.recoverable_ns is None
        assert "()" not in finding.evidence

    @pytest.mark.slow  # tests/test_rule_limits.py
    def test_a_thread_that_sleeps_has_any_rate(self, findings_of):
        finding = findings_of(sleeping)["paced-outside"]
        assert "a step takes 37 ms and varies by" in finding.evidence
        assert "in clock_nanosleep() for 33 ms" in finding.evidence

    @pytest.mark.sweep  # tests/test_rule_limits.py
    def test_other_threads_set_no_rate(self, findings_of):
        assert "paced-outside" not in findings_of(partial(sleeping, on_main_thread=False))


class TestCompileInLoop:
    def test_the_steps_that_load_are_counted(self, findings_of):
        finding = findings_of(ailments.loads)["compile-in-loop"]
        assert finding.values["load_steps"] == finding.values["loads"] == 5
        assert "5 calls of cuLibraryLoadData" in finding.evidence

    def test_the_last_step_whose_end_is_not_recorded_is_no_step_without_loads(self, findings_of):
        finding = findings_of(partial(ailments.loads, steps_with_loads=range(16)))["compile-in-loop"]
        assert finding.evidence.startswith("15 of 16 steps load code: 15 calls")
        assert "such a step takes 22 ms on average; the loads" in finding.evidence


class TestCheckpointStall:
    @pytest.mark.sweep  # tests/test_rule_limits.py
    @pytest.mark.parametrize(("after_ms", "saved_ms"), [(0, 56), (20, 76)])
    def test_a_long_step_right_after_it_belongs_to_it(self, after_ms, saved_ms, findings_of):
        def body(loop, number):
            for _ in range(6):
                loop.launch(BF16, 500_000, **LARGE)
            loop.copy("D2H", 8, 1_000, blocking=True)
            if number in (8, 18):
                for _ in range(4):
                    loop.copy("D2H", 50 << 20, 4 * MS, blocking=True)
                    loop.python(10 * MS)
            if number in (9, 19):
                loop.python(after_ms * MS)

        finding = findings_of(partial(run_steps, body, steps=24, sync=False))["checkpoint-stall"]
        assert finding.recoverable_ns * 23 == pytest.approx(2 * saved_ms * MS, rel=0.1)
        assert finding.values["long_steps"] == 2

    def test_the_long_steps_and_what_they_copy(self, findings_of):
        values = findings_of(ailments.checkpoints)["checkpoint-stall"].values
        assert (values["long_steps"], values["every"]) == (2, 10)
        assert values["copied_bytes"] == 4 * (50 << 20) + 8
        assert values["ordinary_bytes"] == 8
        assert values["ordinary_ns"] == pytest.approx(3 * MS, rel=0.05)
        assert values["long_ns"] == pytest.approx(3 * MS + 4 * 14 * MS, rel=0.05)

    def test_calls_that_write_are_named(self, findings_of):
        def body(loop, number):
            loop.launch(BF16, 3 * MS, **LARGE)
            loop.copy("D2H", 8, 1_000, blocking=True)
            if number % 8 == 4:
                loop.copy("D2H", 50 << 20, 4 * MS, blocking=True)
                start = loop.host.now
                loop.python(30 * MS)
                loop.host.osrt("writev", start=start, takes=30 * MS)

        finding = findings_of(partial(run_steps, body, steps=24, sync=False))["checkpoint-stall"]
        assert finding.values["file_ns"] == 30 * MS
        assert "mostly in writev()" in finding.evidence


def test_modules_and_updates_are_counted(findings_of):
    modules = findings_of(ailments.MODULES_AND_UPDATES)["op-by-op"].values
    assert modules["modules"] == pytest.approx(30)
    updates = findings_of(ailments.MODULES_AND_UPDATES)["graph-node-updates"].values
    assert (updates["updates"], updates["graph_launches"]) == (20, 1)
    assert updates["update_ns"] == pytest.approx(200_000)


class TestDefaultStream:
    def test_what_waits_is_what_was_planted(self, findings_of):
        finding = findings_of(ailments.streams)["default-stream"]
        assert finding.values["held"] == pytest.approx(2, rel=0.1)
        assert finding.values["overlap_ns"] == pytest.approx(300_000, rel=0.05)

    def test_small_kernels_behind_the_default_stream_could_run_at_once(self, findings_of):
        def body(loop, _):
            host = loop.host
            begin = max(host.now + 20_000, *loop.streams.values(), 0)
            for stream in (13, 14, 15, 16):
                for name, runs, on in (("relax(float *)", 100_000, stream), ("note(float *)", 1_000, ailments.NULL)):
                    call = loop._call("launch", 2_000)
                    loop._operate(call, begin, runs, on)
                    host.launch(
                        name, start=call, api=2_000, queue=begin - call - 2_000, runs=runs, stream=on,
                        grid=(16, 1, 1), block=(256, 1, 1),
                    )  # fmt: skip
                    host.now = max(host.now, call + 2_000)
                    loop._count("kernels", "launch_calls", number=1)
                    begin += runs + 1_000
            loop.python(max(0, begin - 50_000 - host.now))

        # The step that is found is a kernel of 100 µs and the note after it.
        finding = findings_of(partial(run_steps, body, sync=False))["default-stream"]
        assert finding.values["overlap_ns"] == pytest.approx(100_000, rel=0.2)

    @pytest.mark.sweep  # tests/test_rule_limits.py
    @pytest.mark.parametrize("case", [{"events": True}, {"copy_stream": 13}, {"copies": False}])
    def test_streams_in_order_for_another_reason_are_left_alone(self, case, findings_of):
        assert "default-stream" not in findings_of(partial(ailments.streams, **case))


class TestBacktraceOverhead:
    def test_the_time_after_calls_with_a_backtrace(self, findings_of):
        finding = findings_of(ailments.backtraces)["backtrace-overhead"]
        assert finding.values["calls"] == 40
        assert finding.values["extra_ns"] == pytest.approx(60_000)
        assert finding.values["backtrace_ns"] == pytest.approx(40 * 60_000)
        assert finding.recoverable_ns is None


# The real program, the rule that is to name its ailment, and what the cure saved per step as measured (in ms, without
# the profiler; a step of `breaks` is one layer of twelve).
REAL = [
    ("breaks", "graph-break", (3.56 - 0.18) / 12),
    ("jaxloop", "host-input", 11.6 - 0.34),
    ("checkpoint", "checkpoint-stall", 50.9 - 15.7),
]
HOST_RULES = {*RULES} - {"graph-node-updates", "backtrace-overhead"}


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "name", "saved_ms"), REAL)
def test_real_ailments_are_named_first_with_what_the_cure_saved(trace, name, saved_ms):
    with open_trace(unpack_shared(f"clinic/{trace}")) as real_trace:
        finding = real_trace.diagnose().findings[0]
    assert finding.name == name
    assert finding.saving_low_ns <= saved_ms * MS <= finding.recoverable_ns


TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32_execute_kernel__5x_cublas"


def allocations(kernel, *, events=0):
    """Allocate in each step, and make events, before a kernel of a library."""

    def body(loop, _):
        for _ in range(events):
            loop.host.call("cudaEventCreateWithFlags", takes=1_000)
        loop.malloc(1 << 20, 60_000)
        loop.launch(kernel, 100_000, **LARGE)
        loop.sync()
        loop.free(60_000)

    return run_steps(body)


def test_a_handle_that_is_made_in_each_step_is_named(tmp_path):
    with open_trace(allocations(TF32, events=18).write(tmp_path / "trace.sqlite")) as trace:
        finding = evaluate_rules(trace, ["allocation"])["allocation"]
    assert "make the handle once" in finding.action
    assert "18 events are made per step too" in finding.evidence


@pytest.mark.parametrize(
    ("provenance", "events", "framework", "expected"),
    [
        ("CUTLASS", 16, "cuda", (16, False)),
        ("cuBLAS", 18, "cuda", (18, False)),
        ("cuSOLVER", 18, "cuda", (18, False)),
        ("cuBLAS", 15, "cuda", (None, False)),
        ("hand-written", 18, "cuda", (None, False)),
        ("CUB/Thrust", 18, "cuda", (None, True)),
        ("cuBLAS", 18, "pytorch", (None, False)),  # which has an allocator of its own
    ],
)
def test_libraries_that_may_allocate_in_each_step(provenance, events, framework, expected, run_rule):
    rows = run_rule(
        "_allocating_libraries",
        kernel_names=[{"name": "k", "provenance": provenance}],
        step_operations=[{"kind": "call", "name": "cudaEventCreateWithFlags", "calls": events}],
        frameworks=[{"framework": framework, "is_program": True}],
    )
    assert [(row["handle_events"], row["has_thrust"]) for row in rows] == [expected]


def packs(name, *, calls=40, other_kernels=8):
    """Launch a short kernel many times in a step, between others."""

    def body(loop, _):
        for number in range(calls):
            loop.launch(name, 1_500, grid=(100 + number, 1, 1), block=(128, 1, 1))
        for number in range(other_kernels):
            loop.launch(f"sweep{number}(float *)", 3_000, **LARGE)

    return run_steps(body, sync=False)


def test_a_kernel_of_the_program_that_has_most_launches_is_named(tmp_path):
    with open_trace(packs("pack_face(float *, int)").write(tmp_path / "trace.sqlite")) as trace:
        finding = evaluate_rules(trace, ["launch-bound"])["launch-bound"]
    assert "40 of the launches are of pack_face" in finding.evidence
    assert "Launch pack_face once for all of its inputs" in finding.action


@pytest.mark.parametrize(
    ("shape_calls", "provenance", "changes", "expected"),
    [
        ([40], "hand-written", {}, "one_kernel"),
        ([20, 20], "Numba", {}, "one_kernel"),  # all shapes count together
        ([16], "hand-written", {"single_launches": 32}, "one_kernel"),
        ([15], "hand-written", {"single_launches": 20}, "without_graphs"),
        ([23], "hand-written", {}, "without_graphs"),
        ([40], "PyTorch native", {}, "without_graphs"),
        ([40], "hand-written", {"graph_launches": 1}, "with_graphs"),
        ([40], "hand-written", {"has_steps": False}, "without_graphs"),
    ],
)
def test_a_kernel_with_most_launches_is_one_of_the_program(shape_calls, provenance, changes, expected, run_rule):
    launches = {"single_launches": 48, "graph_launches": 0, "launch_call_ns": 4_000, "verdict": "yes",
                "saving_low_ns": 1e5} | {name: changes[name] for name in changes if name != "has_steps"}  # fmt: skip
    parts = [
        {"part": part, "recoverable_ns": 1e5, "time_ns": 1e6, "see": "graph-candidates", "evidence": ""}
        for part in ("launch", "wall")
    ]
    (row,) = run_rule(
        "launch-bound", classify_report=parts, graph_candidates_report=[launches], unprofiled_step=[{"source": None}],
        _slowest_phase=[{"place": None}], step_method=[{"tokens_per_step": 1}],
        steps=[{"phase": "steady", "kernel_ns": 1e5, "kernels": 48}],
        _steady_shapes=[{"name": "pack_face(float *)", "calls": 2 * calls} for calls in shape_calls],
        kernel_names=[{"name": "pack_face(float *)", "provenance": provenance}],
        _step_totals=[{"units": 2, "has_steps": changes.get("has_steps", True)}],
    )  # fmt: skip
    assert row["cure_case"] == expected
    assert (row["same_kernel"] is not None) == (expected == "one_kernel")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trace", "names"),
    [
        ("clinic/fp32", set()),
        ("clinic/adam", set()),
        ("clinic/attention", set()),
        ("clinic/late_rank1", {"host-input"}),
        ("faults/camera-paced-called-host-bound", {"paced-outside"}),
        ("faults/host-keeps-ahead-false", set()),
        ("faults/sync-charged-while-gpu-busy", {"alternating"}),
        ("faults/child-process-diagnostic", {"host-input"}),
    ],
)
def test_rules_about_the_host_on_real_programs(trace, names):
    with open_trace(unpack_shared(trace)) as real_trace:
        assert evaluate_rules(real_trace, HOST_RULES).keys() == names


def unpack_shared(name):
    """Unpack a trace of the shared folder; skip the test if it is missing."""
    packed = SHARED / f"{name}.sqlite.xz"
    if not packed.exists():
        pytest.skip("needs the traces in ../shared")
    return unpack(packed)


class TestWorkBetweenOperations:
    """A host that is late before one operation after another issues too many; one that is late once works too long."""

    @staticmethod
    def make(*, gaps, python_ns, name=""):
        def body(loop, _):
            for number in range(32):
                if number < gaps:
                    loop.python(python_ns)
                loop.launch(name or NATIVE.format("exp_kernel_cuda"), 3_000, **LARGE)

        return run_steps(body)

    @pytest.mark.parametrize(
        ("changes", "is_spread"),
        [
            ({"gaps": 32, "python_ns": 120_000}, True),
            # tests/test_true_cures.py has the limits of cpu-work; the others are those of the view.
            *sweep(
                [
                    ({"gaps": 32, "python_ns": 120_000, "name": "advect(float *)"}, False),
                    ({"gaps": 4, "python_ns": 450_000}, False),
                    ({"gaps": 16, "python_ns": 600_000}, False),
                    ({"gaps": 1, "python_ns": 8_000_000}, False),
                ]
            ),
        ],
    )
    def test_the_cure_is_fewer_operations_where_python_is_late_before_each(self, changes, is_spread, tmp_path):
        with open_trace(self.make(**changes).trace.write(tmp_path / "trace.sqlite")) as trace:
            finding = evaluate_rules(trace, ["cpu-work"])["cpu-work"]
        assert ("one by one" in finding.action) == is_spread
        assert finding.action.startswith("Python issues operations one by one") == is_spread
        assert ("it waits for" in finding.evidence) == is_spread
        if is_spread:
            assert finding.values["short_gaps"] == pytest.approx(32, abs=1.5)
            assert finding.values["short_gap_ns"] == pytest.approx(120_000, rel=0.2)

    @pytest.mark.parametrize(
        ("waits_ns", "framework", "expected"),
        [
            ([120_000] * 32, "pytorch", (16, 120_000, 1.0)),
            ([499_999, 500_000], "jax", (1, 499_999.5, 499_999 / 999_999)),
            ([600_000] * 16, "cupy", (8, 600_000, None)),
            ([120_000] * 32, "cuda", None),
        ],
    )
    def test_waits_for_a_late_host(self, waits_ns, framework, expected, run_rule):
        """Of two steps. The wait after them, and those for another reason, do not count."""
        starts = [number * 1_000_000 for number in range(len(waits_ns))]
        waits = [
            {"start_ns": start, "end_ns": start + wait_ns, "host": "late"}
            for start, wait_ns in zip(starts, waits_ns, strict=True)
        ]
        waits += [
            {"start_ns": 0, "end_ns": 9, "host": "wait"},
            {"start_ns": 40 * MS, "end_ns": 49 * MS, "host": "late"},
        ]
        rows = run_rule(
            "_late_waits", _idle_time=waits, _step_totals=[{"units": 2}],
            _steady_windows=[{"start_ns": 0, "end_ns": 16 * MS}, {"start_ns": 16 * MS, "end_ns": 40 * MS}],
            frameworks=[{"framework": framework, "is_program": True}],
        )  # fmt: skip
        assert [(row["short_gaps"], row["short_gap_ns"], row["short_share"]) for row in rows] == (
            [expected] if expected else []
        )
