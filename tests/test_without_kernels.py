"""Traces without GPU work: what they show instead, and refusals that do not ask for what was given."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from opening import diagnose_with, open_trace
from synthetic import Trace

MS = 1_000_000


def mark_ranges(trace):
    host = trace.thread()
    for number in range(11):
        with host.nvtx(f"Forward {number}"):
            host.idle(8 * MS)


def call_cuda(trace):
    trace.thread().call("cudaMalloc_v3020", takes=90 * MS).call("cudaFree_v3020")


def call_system(trace):
    trace.thread().osrt("epoll_wait", takes=70 * MS).osrt("read")


def sample_metrics(trace):
    for time in range(10):
        trace.gpu_metric("SMs Active [Throughput %]", time=time * MS, value=40)


CONTENTS = {
    mark_ranges: "11 NVTX ranges; the names with the most time: Forward # 88 ms (11 times) (",
    call_cuda: "2 CUDA calls; the names with the most time: cudaMalloc 90 ms (1 time)",
    call_system: "2 calls into the operating system, waits included; the names with the most time: epoll_wait 70 ms",
    sample_metrics: "10 samples of GPU metrics; the largest means: SMs Active 40.0%",
}


@pytest.mark.parametrize("plant", CONTENTS)
def test_a_trace_without_gpu_work_shows_what_it_has(plant, tmp_path):
    plant(trace := Trace())
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        notes = diagnose_with(session).notes
    assert [words in "\n".join(notes) for words in CONTENTS.values()] == [plant is other for other in CONTENTS]


def test_a_refusal_does_not_request_steps_that_were_named(tmp_path):
    mark_ranges(trace := Trace())
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        for step_range, is_named in (("Forward #", True), ("Forward 1", True), ("Backward #", False)):
            empty = session.answer("steps", step_range=step_range).empty
            assert "his trace has no GPU work" in empty
            assert ("NVTX range is" in empty or "NVTX ranges are" in empty) == is_named
            assert "with --step-range" not in empty


@pytest.mark.parametrize("is_traced", [True, False])
def test_a_refusal_does_not_request_cuda_that_was_traced(is_traced, tmp_path):
    mark_ranges(trace := Trace())
    if is_traced:
        trace.row("META_DATA_CAPTURE", name="PROCESS_0:COLLECT_CUDA_TRACE", value="true")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        for report in ("top", "idle", "api"):
            assert ("nsys profile -t cuda" in session.answer(report).empty) != is_traced, report


@pytest.mark.parametrize("garbage", [-1_675_485_333, 40])
def test_the_first_sample_of_a_gpu_may_be_garbage(garbage, tmp_path):
    trace = Trace()
    for time in range(10):
        trace.gpu_metric("GPC Clock Frequency [MHz]", time=time * MS, value=210 if time else garbage)
        trace.gpu_metric("SMs Active [Throughput %]", time=time * MS, value=50 if time else 99)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        clock, active = session.answer("metrics").dicts()
    assert (clock["min"], active["max"]) == ((210, 50) if garbage < 0 else (40, 99))


def test_failed_launches_request_no_steps(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.copy("H2D", size=1 << 20)
    for _ in range(20):
        host.call("cudaLaunchKernel_v7000", returns=222)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        text, empty = diagnose_with(session).text(None), session.answer("top").empty
    assert "Not recorded" not in text
    assert "every launch failed, so no kernel ran" in empty


@pytest.mark.parametrize("has_samples", [True, False])
def test_cpu_samples_at_other_times_are_not_requested_again(has_samples, tmp_path):
    trace = Trace()
    host = trace.thread().idle(100 * MS)
    for _ in range(20):
        host.launch("kernel", runs=MS)
    host.sync("device")
    for number in range(50 if has_samples else 0):
        host.sample(number * MS, ("parse", "app"))
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer("cpu-work")
    assert ("--sample=process-tree" in answer.empty) != has_samples
    assert ("CPU samples are recorded, at other times" in answer.empty) == has_samples


@pytest.mark.parametrize("pause_ms", [0, 20])
def test_the_mean_of_a_few_long_steps_is_not_each_step(pause_ms, tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(100):
        for _ in range(20):
            host.launch("kernel", runs=50_000)
        host.sync("stream").idle(pause_ms * MS if number % 10 == 9 else 0)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        text = diagnose_with(session).text(None)
    assert ("of the time of the steps" in text) == (pause_ms > 0)
    assert ("of each step" in text) == (pause_ms == 0)


def test_what_is_not_in_the_trace_is_no_effect_of_nsys(tmp_path):
    sample = Path(__file__).parents[1] / "sample_traces/decode_eager.sqlite"
    path = tmp_path / "trace.sqlite"
    path.write_bytes(sample.read_bytes())
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
    with open_trace(path) as session:
        lines = diagnose_with(session).text(None).splitlines()
    assert lines[0].endswith("what ran on the GPU is not in the trace")
    assert lines[1].startswith("CUDA calls succeeded whose work on the GPU is not in the trace")
