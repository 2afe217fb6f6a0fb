"""The critical path of a step: its parts, and the step time when a part of the program is made faster."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from opening import open_trace
from synthetic import Trace

from tests.conftest import REPOSITORY

STEPS = 14
# The parts of a step of each program, in ns. A test makes each part faster in the program, and measures the steps.
HOST_BOUND = {"work": 400_000, "launch": 6_000, "k": 100_000}
GPU_BOUND = {"work": 20_000, "launch": 6_000, "k": 300_000, "m": 150_000}
# The copies of one stream are hidden behind the kernels of another, for the most part.
TWO_STREAMS = {"work": 30_000, "launch": 6_000, "k": 200_000, "side": 150_000}


def host_bound(work, launch, k):
    """Return steps that read back their result before the host works."""
    trace = Trace()
    host = trace.thread()
    for _ in range(STEPS):
        with host.nvtx("step"):
            host.launch("k", api=launch, runs=k).copy("D2H", 4, runs=1_000, blocking=True, target="pageable")
            host.idle(work)
    return trace


def gpu_bound(work, launch, k, m):
    """Return steps that are launched far ahead."""
    trace = Trace()
    host = trace.thread()
    for _ in range(STEPS):
        with host.nvtx("step"):
            host.launch("k", api=launch, runs=k).launch("m", api=launch, runs=m).idle(work)
    host.sync("device")
    return trace


def two_streams(work, launch, k, side):
    """Return steps with kernels on two streams, and a wait for both."""
    trace = Trace()
    host = trace.thread()
    for _ in range(STEPS):
        with host.nvtx("step"):
            host.launch("k", api=launch, runs=k, stream=7).launch("side", api=launch, runs=side, stream=13)
            host.sync("device").idle(work)
    return trace


PROGRAMS = [(host_bound, HOST_BOUND), (gpu_bound, GPU_BOUND), (two_streams, TWO_STREAMS)]
NAMES = {"work": ("CPU work", None), "launch": ("API call", "cudaLaunchKernel")}


def ask(path):
    with open_trace(path) as trace:
        answer = trace.answer("critical-path", step_range="step")
        (run,) = trace.dicts("FROM critical_path_run") or [{}]
        return {(row["kind"], row["name"]): row for row in answer.dicts()}, run


def measure_period(path):
    """Return the duration of a step, from the first kernels of the steps."""
    with closing(sqlite3.connect(path)) as database:
        query = """SELECT k.start FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.demangledName
            WHERE s.value = 'k' ORDER BY k.start"""
        starts = [start for (start,) in database.execute(query)][4:]
    return (starts[-1] - starts[0]) / (len(starts) - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "times"), PROGRAMS, ids=lambda value: getattr(value, "__name__", ""))
def test_predicted_savings_are_those_of_a_faster_program(tmp_path, program, times):
    rows, run = ask(program(**times).write(tmp_path / "trace.sqlite"))
    assert run["reason"] is None
    period_ns = measure_period(tmp_path / "trace.sqlite")
    assert run["measured_ns"] == pytest.approx(period_ns, rel=0.01)
    assert run["played_ns"] == pytest.approx(period_ns, rel=0.01)
    assert sum(row["path_ns"] for row in rows.values()) == pytest.approx(run["played_ns"], rel=1e-9)
    for part, ns in times.items():
        row = rows.get(NAMES.get(part, ("kernel", part)), {"saved_ns": 0, "half_saved_ns": 0, "path_ns": 0})
        for column, remaining_ns in (("saved_ns", 0), ("half_saved_ns", ns // 2)):
            faster = program(**{**times, part: remaining_ns}).write(tmp_path / f"{part}.{column}.sqlite")
            saved_ns = row[column] or 0
            assert saved_ns == pytest.approx(period_ns - measure_period(faster), abs=0.011 * period_ns), (part, column)
        assert (row["saved_ns"] or 0) <= row["path_ns"] * 1.000001


@pytest.mark.slow
def test_a_hidden_stream_limits_the_saving_of_the_other(tmp_path):
    rows, _ = ask(two_streams(**TWO_STREAMS).write(tmp_path / "trace.sqlite"))
    k = rows["kernel", "k"]
    assert k["path_ns"] == pytest.approx(200_000)
    # The second launch call begins 6 µs after the first: without k, side ends 150 + 6 - 200 µs later than k did.
    assert k["saved_ns"] == pytest.approx(44_000, abs=2_000)
    assert k["takes_over"] == "kernel: side"
    assert ("kernel", "side") not in rows


def test_the_path_is_on_the_host_if_nothing_waits_for_the_gpu(tmp_path):
    rows, _ = ask(gpu_bound(work=900_000, launch=6_000, k=10_000, m=10_000).write(tmp_path / "trace.sqlite"))
    assert not {kind for kind, name in rows} - {"CPU work", "API call", "launch latency"}
    assert rows["CPU work", None]["path_ns"] == pytest.approx(900_000, rel=0.01)


@pytest.mark.slow
def test_threads_that_call_at_the_same_time_have_no_critical_path(tmp_path):
    trace = Trace()
    first, second = trace.thread(), trace.thread(tid=101)
    for step in range(STEPS):
        first.now = second.now = step * 1_000_000
        with first.nvtx("step"):
            for _ in range(20):
                first.launch("k", api=20_000, runs=10_000)
                second.call("cudaEventQuery", takes=20_000)
            first.idle(20_000)
    path = trace.write(tmp_path / "trace.sqlite")
    rows, run = ask(path)
    assert not rows
    assert "threads" in run["reason"]
    with open_trace(path) as session:
        answer = session.answer("critical-path", step_range="step")
    assert "as a note says" in answer.empty
    assert any("cannot be determined" in note and run["reason"] in note for note in answer.notes)


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_whole", "churn"])
def test_the_simulation_of_real_steps_equals_the_measurement_and_adds_up(name):
    with open_trace(REPOSITORY / "sample_traces" / f"{name}.sqlite") as trace:
        rows, (run,) = trace.answer("critical-path").dicts(), trace.dicts("FROM critical_path_run")
    assert run["played_ns"] == pytest.approx(run["measured_ns"], rel=0.06)
    assert sum(row["path_ns"] for row in rows) == pytest.approx(run["played_ns"], rel=1e-9)
    assert all(
        row["saved_ns"] is None or 0 <= row["half_saved_ns"] <= row["saved_ns"] <= row["path_ns"] for row in rows
    )
    assert all(
        row["total_ns"] is None or row["path_ns"] <= 1.05 * row["total_ns"] for row in rows if row["kind"] == "kernel"
    )


def test_waits_of_a_gpu_with_another_number_are_its_own(tmp_path):
    # nsys states device 0 for waits on any device. Versions before 2023.4 do not describe the context.
    def write(device, version="2025.3"):
        trace = Trace()
        host = trace.thread(gpus=(0, 1))
        for _ in range(STEPS):
            with host.nvtx("step"):
                host.launch("k", runs=300_000, device=device).sync("stream", device=device).idle(20_000)
        for row in trace.rows["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"]:
            row["deviceId"] = 0
        return trace.write(tmp_path / f"{device}.{version}.sqlite", version=version)

    rows, _ = ask(write(0))
    for version in ("2025.3", "2022.2"):
        assert ask(write(1, version))[0] == rows
    assert rows["kernel", "k"]["saved_ns"] > 250_000


def test_a_range_without_operations_is_no_step_to_simulate(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(2):
        with host.nvtx("step"):
            host.launch("k", runs=400_000).launch("m", runs=400_000)
    with host.nvtx("step"):
        host.sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        assert [row["kernels"] for row in session.run("steps", step_range="step").to_dicts()] == [2, 2, 0]
        assert {"k", "m"} <= {row["name"] for row in session.run("critical-path", step_range="step").to_dicts()}


@pytest.mark.parametrize(
    ("call", "takes", "pid", "is_noted"),
    [
        ("cudaMalloc", 133_000_000, 200, True),
        # A short call, a wait, and the program's own call create no context of another process.
        ("cudaMalloc", 19_999_999, 200, False),
        ("cudaDeviceSynchronize", 133_000_000, 200, False),
        ("cudaMalloc", 133_000_000, 100, False),
    ],
)
def test_a_note_says_that_another_process_creates_its_context(call, takes, pid, is_noted, tmp_path):
    trace = Trace()
    trace.thread(pid=pid, tid=pid + 1).call(call, start=0, takes=takes)
    host = trace.thread(pid=100, now=1_000_000)
    for _ in range(STEPS):
        with host.nvtx("step"):
            host.launch("k", api=6_000, queue=300_000, runs=100_000).sync("device").idle(20_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer("critical-path", step_range="step")
    notes = [note for note in answer.notes if "first CUDA call" in note]
    assert len(notes) == is_noted
    if is_noted:
        assert notes[0].startswith(f"while process {pid} made its first CUDA call, {call} of 133 ms, ")
