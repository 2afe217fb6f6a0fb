"""The loops of a program: nests that were planted, nests of real traces, and one iteration of a loop."""

from __future__ import annotations

import lzma
import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import planted
import pytest
from opening import open_trace
from planted_loops import COPY, plant
from sweeps import sweep
from synthetic import Trace

from nsys_insight.errors import UsageError
from nsys_insight.facts.loops import nest as module
from nsys_insight.facts.loops import sequence
from nsys_insight.facts.loops.nest import LoopNest
from nsys_insight.packs.library import built_in_packs


def find_loops(operations, minor=()):
    """Return the outermost loops: iterations, first operation and end of each."""
    is_minor = np.isin(operations, list(minor))
    nest = LoopNest(np.array(operations), is_minor)
    return [(len(loop.iterations), loop.first, loop.end) for loop in nest.loops_of(nest.terms)]


def count_iterations(operations, minor=()):
    return [iterations for iterations, *_ in find_loops(operations, minor)]


LAYER = [10, 11, 12, 13, 14]


class TestNest:
    def test_operations_that_never_repeat_have_no_loops(self):
        assert find_loops(range(50)) == []

    def test_an_empty_sequence_has_no_loops(self):
        assert find_loops([]) == []

    def test_two_repetitions_are_not_a_loop(self):
        assert all(iterations < 3 for iterations in count_iterations([0, *LAYER * 2, 1]))

    def test_a_loop_starts_after_the_setup_and_ends_before_the_teardown(self):
        assert find_loops([90, 91, *LAYER * 7, 92]) == [(7, 2, 37)]

    def test_layers_are_inside_a_step(self):
        operations = ([1, 2] + LAYER * 24 + [3]) * 10
        nest = LoopNest(operations)
        (step,) = nest.loops_of(nest.terms)
        assert (len(step.iterations), step.end) == (10, len(operations))
        (layers,) = nest.loops_of(step.iteration(3))
        assert layers.iterations.tolist() == [step.iterations[3] + 2 + 5 * number for number in range(24)]

    def test_inner_loops_may_turn_a_different_number_of_times(self):
        counts = [4, 9, 1, 6, 2, 7, 5, 3]
        operations = [operation for count in counts for operation in ([1] + LAYER * count + [2, 3])]
        nest = LoopNest(operations)
        (step,) = nest.loops_of(nest.terms)
        assert len(step.iterations) == len(counts)
        inner = [loop for number in range(len(counts)) for loop in nest.loops_of(step.iteration(number))]
        assert [len(loop.iterations) for loop in inner] == counts

    def test_another_kernel_in_one_iteration_does_not_end_the_loop(self):
        operations = LAYER * 20
        operations[52] = 77
        assert count_iterations(operations) == [20]

    def test_an_operation_more_in_one_iteration_does_not_end_the_loop(self):
        assert count_iterations([*LAYER * 9, 77, *LAYER * 11]) == [20]

    def test_a_different_first_iteration_belongs_to_the_loop(self):
        assert count_iterations([10, 11, 12, 13, 77, *LAYER * 9]) == [10]

    def test_a_value_logged_after_every_tenth_iteration_is_not_an_outer_loop(self):
        assert count_iterations((LAYER * 10 + [COPY]) * 6, minor=[COPY]) == [60]

    def test_a_read_back_after_24_layers_is_an_outer_loop(self):
        assert count_iterations((LAYER * 24 + [COPY]) * 6, minor=[COPY]) == [6]

    def test_a_wait_after_about_70_iterations_is_an_outer_loop(self):
        counts = [1, 67, 69, 70, 74, 71, 69, 72, 21]
        operations = [operation for count in counts for operation in [*LAYER * count, COPY]]
        assert count_iterations(operations, minor=[COPY]) == [len(counts)]

    def test_waits_after_any_number_of_iterations_are_no_outer_loop(self):
        counts = [1, 67, 9, 170, 4, 31, 69, 12, 21]
        operations = [operation for count in counts for operation in [*LAYER * count, COPY]]
        assert count_iterations(operations, minor=[COPY]) == [sum(counts)]

    def test_equal_copies_around_different_kernels_are_no_loop(self):
        operations = [number for kernel in range(10, 15) for number in [COPY, *[kernel] * 100, COPY + 1, COPY + 2]]
        assert count_iterations(operations, minor=[COPY, COPY + 1, COPY + 2]) == [100] * 5

    def test_an_iteration_ends_with_its_read_back(self):
        operations = np.array([10, 11, 12, 77, COPY, *[10, 11, 12, COPY] * 5])
        nest = LoopNest(operations, operations == COPY, operations == COPY)
        (loop,) = nest.loops_of(nest.terms)
        assert (len(loop.iterations), loop.first, loop.end) == (6, 0, len(operations))

    def test_two_iterations_do_not_hide_the_loops_in_them(self):
        operations = [COPY, 1, 2, *[3] * 2000, COPY, 1, 2, *[3] * 250, COPY]
        assert count_iterations(operations, minor=[COPY]) == [2000, 250]

    def test_two_loops_are_not_merged(self):
        assert count_iterations(LAYER * 8 + [1] + [20, 21, 22] * 6) == [8, 6]

    def test_half_of_the_operations_in_a_short_loop_do_not_hide_the_outer_period(self):
        body = [*range(100, 178), *[1, 2] * 39]
        assert count_iterations(body * 12) == [12]

    @pytest.mark.parametrize("seeds", [range(40), *sweep([range(40, 200)])])
    def test_planted_nests_are_found(self, seeds):
        wrong = [seed for seed in seeds if not self.is_found(plant(seed))]
        assert len(wrong) <= 0.05 * len(seeds), wrong

    @staticmethod
    def is_found(planted):
        loops = find_loops(planted.operations, minor=[COPY, -2])
        tolerance = 1 if planted.kind == "noise" else 0
        return all(
            any(
                abs(iterations - len(starts)) <= tolerance
                and min(last, end) - max(first, starts[0]) >= 0.8 * (end - starts[0])
                for iterations, first, last in loops
            )
            for starts, end in planted.loops
        )

    @pytest.mark.slow
    def test_a_million_operations_with_differences_are_one_loop(self):
        operations = np.array(([1, 2] + [*range(100, 120)] * 24 + [3, 4, 5]) * 2_000)
        rng = np.random.default_rng(0)
        operations[rng.integers(0, len(operations), 150)] = 999
        (iterations, first, end) = max(find_loops(operations), key=lambda loop: loop[2] - loop[1])
        assert iterations == pytest.approx(2_000, rel=0.01)
        assert end - first > 0.98 * len(operations)


def decoding():
    """Return a trace of 6 tokens with 3 layers each; the host takes 5 µs between them."""
    trace = Trace()
    host = trace.thread()
    for _ in range(6):
        host.launch("embed(float *)", runs=2_000)
        for _ in range(3):
            host.launch("gemm(float *)", runs=6_000).launch("add(float *)", runs=1_000)
        host.launch("head(float *)", runs=9_000)
        host.copy("D2H", 8, runs=1_000, blocking=True)
        host.idle(5_000)
    return trace


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    with open_trace(decoding().write(tmp_path_factory.mktemp("loops") / "trace.sqlite")) as trace:
        yield trace


class TestReports:
    def test_loops_are_numbered_from_the_outside_in(self, decoded):
        rows = decoded.run("loops").to_dicts()
        assert [(row["loop"], row["iterations"], row["per_parent"]) for row in rows] == [("1", 6, None), ("1.1", 18, 3)]
        assert [(row["launches"], row["operations"]) for row in rows] == [(8, 9), (2, 2)]

    def test_a_period_lasts_from_start_to_start(self, decoded):
        steps = decoded.sql("SELECT host_start_ns FROM loop_iterations WHERE loop = '1' ORDER BY 1").rows()
        periods = np.diff([start for (start,) in steps])
        (row,) = [row for row in decoded.run("loops").to_dicts() if row["loop"] == "1"]
        assert row["period_ns"] == np.median(periods)

    def test_busy_time_is_the_sum_of_operations_that_do_not_overlap(self, decoded):
        (row,) = [row for row in decoded.run("loops").to_dicts() if row["loop"] == "1"]
        assert row["gpu_busy_ns"] == 2_000 + 3 * 7_000 + 9_000 + 1_000

    def test_one_iteration_is_listed_with_its_inner_loop_folded(self, decoded):
        rows = decoded.run("loop-iteration").to_dicts()
        assert [(row["name"], row["repeats"]) for row in rows] == [
            ("embed(float *)", 1),
            ("loop 1.1", 3),
            ("head(float *)", 1),
            ("D2H copy", 1),
        ]
        inner = decoded.run("loop-iteration", loop="1.1").to_dicts()
        assert [row["name"] for row in inner] == ["gemm(float *)", "add(float *)"]
        assert [row["duration_ns"] for row in inner] == [6_000, 1_000]

    def test_an_iteration_has_its_calls_threads_and_streams_on_one_time_axis(self, decoded):
        rows = decoded.run("loop-iteration").to_dicts()
        (thread,) = {row["thread_id"] for row in rows if row["kind"] != "loop"}
        assert decoded.sql("SELECT DISTINCT thread_id FROM api_calls").rows() == [(thread,)]
        assert [row["call"] for row in rows] == ["cudaLaunchKernel", None, "cudaLaunchKernel", "cudaMemcpy"]
        assert {(row["device_id"], row["stream_id"]) for row in rows if row["kind"] != "loop"} == {(0, 7)}
        (start_ns,) = decoded.sql("SELECT start_ns FROM kernels WHERE name LIKE 'embed%' ORDER BY ALL").to_series()[:1]
        assert all(row["gpu_offset_ns"] >= row["offset_ns"] >= 0 for row in rows)
        assert start_ns > 0

    @pytest.mark.parametrize("event", ["gap", "outlier"])
    def test_around_an_event_every_call_is_listed(self, decoded, event):
        rows = decoded.run("loop-iteration", around=event).to_dicts()
        assert "loop 1.1" not in {row["name"] for row in rows}
        kernels = [row for row in rows if row["kind"] == "kernel"]
        assert {"gemm(float *)", "add(float *)"} <= {row["name"] for row in kernels}
        longest_ns = decoded.sql("SELECT max(duration_ns) FROM gpu_gaps").item()
        if event == "gap":
            assert max(row["gap_ns"] for row in rows) == longest_ns

    def test_without_communication_nothing_is_around_a_collective(self, decoded):
        assert decoded.run("loop-iteration", around="collective").is_empty()

    def test_a_loop_that_does_not_exist_has_no_iteration(self, decoded):
        with pytest.raises(UsageError, match="there is no loop '7'"):
            decoded.run("loop-iteration", loop="7")

    def test_a_trace_without_gpu_work_has_no_loops(self, tmp_path):
        program = Trace()
        program.thread().call("cudaGetDevice")
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            assert trace.run("loops").is_empty()

    def test_equal_launches_of_one_kernel_with_a_wait_are_a_loop(self, tmp_path):
        program = Trace()
        host = program.thread()
        for _ in range(30):
            host.launch("work(int *)", runs=5_000).sync("stream")
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            assert [row["iterations"] for row in trace.run("loops").to_dicts()] == [30]

    def test_migrations_of_unified_memory_are_no_operations(self, tmp_path):
        program = Trace()
        host = program.thread()
        host.launch("add(float *)", runs=900_000).sync("device")
        for number in range(40):
            host.migrate("UM H2D", (4_096, 65_536)[number % 2], start=host.now + 10_000 * number, runs=9_000)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            assert trace.run("loops").is_empty()

    def test_a_wait_more_does_not_end_a_loop(self, tmp_path):
        program = Trace()
        host = program.thread()
        for number in range(9):
            host.launch("solve(float *)", runs=5_000).sync("stream")
            if number in (2, 5, 6):
                host.sync("event", event=1)
            host.copy("D2H", 8, blocking=True).copy("H2D", 8, blocking=True)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            assert [row["iterations"] for row in trace.run("loops").to_dicts()] == [9]

    def test_iterations_may_copy_different_sizes(self, tmp_path):
        program = Trace()
        host = program.thread()
        host.copy("H2D", 1 << 24).memset(1 << 20)
        for size in (64, 64, 700, 9_000, 64, 700, 700, 9_000, 64, 9_000, 9_000, 700):
            host.copy("H2D", size).launch("solve(int *)", runs=5_000)
        host.copy("D2H", 1 << 20, blocking=True)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            assert [row["iterations"] for row in trace.run("loops").to_dicts()] == [12]


def in_turn(host, number):
    host.launch("work(float *)", runs=100_000).sync("stream").idle(100_000)


def sleeping(host, number):
    host.launch("work(float *)", runs=20_000).sync("stream").osrt("nanosleep", takes=100_000)


def queued_early(host, number):
    """The first kernel is long: when it ends, all others are in the queue; the host takes longer than the GPU."""
    host.launch("work(float *)", runs=2_000_000 if number == 0 else 5_000).idle(60_000)


def starting_late(host, number):
    host.launch("work(float *)", runs=5_000, queue=200_000).sync("stream")


PROGRAMS = {"in turn": in_turn, "sleeping": sleeping, "queued early": queued_early, "starting late": starting_late}


class TestPace:
    @staticmethod
    def find_pace(trace, tmp_path):
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as program_trace:
            return {row["loop"]: row["paced_by"] for row in program_trace.run("loops").to_dicts()}["1"]

    @pytest.mark.parametrize(
        ("make", "pace"),
        [
            (planted.deep_queue, "GPU"),
            (planted.launch_bound, "host"),
            (planted.communicating, "communication"),
        ],
    )
    def test_a_loop_is_paced_by_the_gpu_the_host_or_communication(self, tmp_path, make, pace):
        assert self.find_pace(make(), tmp_path) == pace

    @pytest.mark.parametrize(
        ("program", "pace"),
        [
            ("in turn", "GPU and host in turn"),
            ("sleeping", "outside event"),
            ("queued early", "GPU"),
            ("starting late", None),
        ],
    )
    def test_a_loop_is_paced_by_turns_by_an_event_or_it_is_not_clear(self, tmp_path, program, pace):
        trace = Trace()
        host = trace.thread()
        for number in range(12):
            PROGRAMS[program](host, number)
        assert self.find_pace(trace, tmp_path) == pace


class TestSteps:
    def test_a_loop_that_only_copies_is_not_the_step(self, tmp_path):
        program = Trace()
        host = program.thread()
        for _ in range(8):
            host.copy("H2D", 1 << 25, runs=900_000).sync("stream")
        host.launch("encode(float *)", runs=5_000)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            (method,) = trace.sql("SELECT method, step_count FROM step_method").rows()
            assert [row["iterations"] for row in trace.run("loops").to_dicts()] == [8]
        assert method == (None, 0)

    def test_ranges_of_nccl_are_not_steps(self, tmp_path):
        program = Trace()
        host = program.thread()
        for _ in range(8):
            host.launch("forward(float *)", runs=3_000).launch("backward(float *)", runs=3_000)
            for _ in range(4):
                with host.nvtx("ncclAllReduce"):
                    host.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(void *)", runs=40_000)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            (method,) = trace.sql("SELECT method, step_count FROM step_method").rows()
        assert method == ("sequence", 8)

    def test_a_step_lasts_until_the_next_range_begins(self, tmp_path):
        program = Trace()
        host = program.thread()
        starts = []
        for _ in range(8):
            starts.append(host.now)
            with host.nvtx("step"):
                host.launch("work(float *)", runs=3_000).sync("stream")
            host.idle(60_000)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            rows = trace.sql("SELECT start_ns, end_ns FROM steps WHERE step < 7 ORDER BY step").rows()
        assert rows == list(pairwise(starts))

    @pytest.mark.parametrize(("between", "tails"), [(60_000, 1), (0, 0)])
    def test_the_last_range_is_no_step_if_the_others_have_host_time_after_them(self, tmp_path, between, tails):
        program = Trace()
        host = program.thread()
        for _ in range(8):
            with host.nvtx("step"):
                host.launch("work(float *)", runs=30_000).sync("stream")
            host.idle(between)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            ((count, outliers),) = trace.sql("SELECT tail_count, outlier_count FROM step_method").rows()
        assert (count, outliers) == (tails, 0)

    def test_the_loop_of_the_steps_is_named(self, decoded):
        (note,) = [note for note in decoded.answer(built_in_packs()["steps"]).notes if "confidence" in note]
        assert note.startswith("steps are the iterations of loop 1, after each D2H copy, of process ")

    def test_much_work_between_two_ranges_belongs_to_no_step(self, tmp_path):
        program = Trace()
        host = program.thread()
        for number in range(8):
            with host.nvtx("decode"):
                host.launch("decode(float *)", runs=30_000).sync("stream")
            if number == 3:
                for kernel in range(5):
                    host.launch(f"prefill{kernel}(float *)", runs=1_000)
                host.sync("stream")
        with open_trace(program.write(tmp_path / "trace.sqlite")) as trace:
            kernels = trace.sql("SELECT kernels FROM steps WHERE step IS NOT NULL").rows()
        assert {count for (count,) in kernels} == {1}


# Traces of ../shared with their loops: the iterations of the step, and the median step time in milliseconds.
CLINIC = {
    "adam": (8, 37.8),
    "after_rank0": (8, 34.4),
    "after_rank1": (8, 34.3),
    "attention": (6, 11.6),
    "checkpoint": (19, 31.0),
    "fp32": (4, 50.2),
    "jaxloop": (12, 14.4),
    "late_rank0": (18, 39.0),
    "late_rank1": (18, 40.6),
}
CLINIC3 = {
    "bigsmem": (40, 1.35),
    "dataparallel": (6, 132.8),
    "gqarepeat": (32, 5.47),
    "memsetloop": (40, 0.584),
    "metrics_rank0": (10, 30.0),
    "metrics_rank1": (10, 29.9),
    "smallsolve": (8, 21.9),
    "sortsample": (10, 1.28),
    "tokenloop": (46, 18.8),
}
FAULTS = {
    "2026-11-27/eval-twice-no-steps": (60, 1.742),
    "2026-11-27/pause-every-10-merges-iterations": (100, 1.067),
    "camera-paced-called-host-bound": (38, 40.0),
    "nvtx-subrange-as-step": (8, 75.7),
    "one-kernel-loop-not-found": (100, 0.014),
    "outer-loop-of-909-kernels-missed": (3, 74.1),
    "sub-loop-of-levels": (16, 6.74),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "iterations", "step_ms"),
    [(f"clinic/{name}", *truth) for name, truth in CLINIC.items()]
    + [(f"clinic3/{name}", *truth) for name, truth in CLINIC3.items()]
    + [(f"faults/{name}", *truth) for name, truth in FAULTS.items()],
)
def test_the_steps_of_traces_with_known_loops(shared, tmp_path, name, iterations, step_ms):
    packed = shared / f"{name}.sqlite.xz"
    path = tmp_path / "trace.sqlite"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    with open_trace(path) as trace:
        ((count,),) = trace.sql("SELECT step_count FROM step_method").rows()
        ((median,),) = trace.sql("SELECT median(duration_ns) / 1e6 FROM steps WHERE phase = 'steady'").rows()
    assert count == iterations
    assert median == pytest.approx(step_ms, rel=0.02)


@pytest.mark.parametrize("example", re.findall(r"^    ([\w ]+?) +->  (\d+) x", module.__doc__, re.MULTILINE))
def test_the_examples_of_the_module_are_found(example):
    operations, iterations = example
    assert count_iterations([ord(name) for name in operations.split()]) == [int(iterations)]


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_loops_are_the_same_however_many_operations_are_read_at_a_time(sample, monkeypatch, name):
    def read_loops():
        with open_trace(sample(name)) as trace:
            return [list(trace.sql(f"FROM {view} ORDER BY ALL").rows()) for view in ("loops", "loop_operations")]

    at_once = read_loops()
    monkeypatch.setattr(sequence, "ROWS_PER_READ", 100)
    assert read_loops() == at_once
    assert at_once[1]


def unite_one_by_one(tokens, kinds):
    """Return the token of each operation after copies of one kind between equal launches became one token."""
    operations = [token for token in tokens if kinds[token] != "wait"]
    least_tokens = {}
    copies = []
    for before, token, after in zip(operations, operations[1:], operations[2:], strict=False):
        if kinds[token] in {"H2D", "D2H"} and kinds[before] == kinds[after] == "kernel":
            copies.append((token, (kinds[token], before, after)))
            least_tokens[copies[-1][1]] = min(token, least_tokens.get(copies[-1][1], token))
    common = {}
    for token, place in copies:
        common[token] = min(least_tokens[place], common.get(token, token))
    return [common.get(token, token) for token in tokens]


def test_copies_between_equal_launches_are_one_operation():
    kinds = ["kernel", "kernel", "H2D", "H2D", "H2D", "D2H", "D2H", "wait"]
    rows = [SimpleNamespace(kind=kind, device_id=0, is_wait=kind == "wait") for kind in kinds]
    generator = np.random.default_rng(1)
    united = 0
    for length in (0, 1, 2, 3, *range(4, 200, 2)):
        tokens = generator.integers(0, len(kinds), length)
        columns = {"token": tokens.astype(np.int32)}
        sequence._unite_copies(columns, rows)
        assert columns["token"].tolist() == unite_one_by_one(tokens.tolist(), kinds)
        united += columns["token"].tolist() != tokens.tolist()
    assert united > 10
