"""Sentences that were false or misleading about published traces, each on a small trace of the same kind."""

from __future__ import annotations

import re

import pytest
from command_line import run
from opening import only_rules, open_trace
from synthetic import Trace

MS = 1_000_000
APP = "/work/app"


def read_text(command, trace, folder, *options, rules=()):
    """Return what a command with these rules prints about a trace, notes included, in one line."""
    path = trace.write(folder / "trace.sqlite") if folder else trace
    with only_rules(*rules):
        result = run(command, path, *options)
    assert result.returncode == 0, result.stderr
    return " ".join((result.stdout + result.stderr).split())


@pytest.fixture(scope="module")
def idle_path(tmp_path_factory):
    return without_gpu_work().write(tmp_path_factory.mktemp("idle") / "trace.sqlite")


def without_gpu_work(*settings):
    """Make operating system calls only, in a capture with these settings."""
    trace = Trace().gpu()
    trace.thread().osrt("read", takes=5 * MS).osrt("write", takes=MS)
    for name, value in settings:
        trace.row("META_DATA_CAPTURE", name=name, value=value)
    return trace


# Late starts ----------------------------------------------------------------------------------------------------------


def wait_for_late_starts():
    """Wait for each kernel, which starts 2 ms after its launch call has returned."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(12):
        host.launch("solve(float *)", queue=2 * MS, runs=50_000, grid=(4096, 1, 1)).sync("stream").idle(20_000)
    return trace


def test_a_kernel_that_starts_late_waits_for_no_host(tmp_path):
    with open_trace(wait_for_late_starts().write(tmp_path / "trace.sqlite")) as trace:
        times = {row["host"]: row["time_ns"] for row in trace.idle().to_dicts()}
        with only_rules():
            diagnosis = trace.diagnose()
    assert times["launch latency"] == pytest.approx(11 * 2 * MS)
    assert times["wait"] == pytest.approx(11 * 25_500)
    text = diagnosis.text(None)
    assert "operations start long after their launch calls have returned" in text
    assert "too slowly" not in text
    assert "Only nsys makes it" not in text


# Samples --------------------------------------------------------------------------------------------------------------


def test_samples_of_a_function_count_together_whoever_called_it(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.call("cudaMalloc_v3020", takes=MS)
    for number in range(100):
        callers = [("load", APP), ("main", APP)] if number % 2 else [("check", APP), ("read", APP), ("main", APP)]
        host.sample(2 * MS + number * MS, ("parse", APP), *callers)
    host.now = 110 * MS
    host.launch("k", runs=MS)
    text = read_text("diagnose", trace, tmp_path, rules=["idle-at-start"])
    assert "of 100 CPU samples in this time: 100.0% in parse (app)" in text


# Traces without GPU work ----------------------------------------------------------------------------------------------


def test_cuda_was_traced_if_only_the_type_of_events_says_it(tmp_path):
    text = read_text("diagnose", without_gpu_work(("CAPTURE_EVENT_TYPE", "Cuda")), tmp_path)
    assert "CUDA was traced, but no call is recorded" in text
    assert "-t cuda" not in text


def test_an_option_of_nsys_is_advised_once(idle_path):
    for options in ((), ("--format", "markdown")):
        text = read_text("diagnose", idle_path, None, *options)
        assert text.count("nsys profile -t cuda") == 1


@pytest.mark.parametrize("arguments", [("steps",), ("loops",), ("steps", "--step-range", "no such range")])
def test_a_report_about_steps_says_that_there_is_no_gpu_work(arguments, idle_path):
    command, *options = arguments
    text = read_text(command, idle_path, None, *options)
    assert "no GPU work" in text
    assert "--step-range" not in text


def test_a_gpu_whose_work_is_not_recorded_is_not_called_unused(tmp_path):
    trace = without_gpu_work(("PROCESS_0:COLLECT_CUDA_TRACE", "true"))
    assert "not used" not in read_text("info", trace, tmp_path)
    trace.thread().launch("k")
    trace.gpu(1)
    assert "gpus not used 1" in read_text("info", trace, tmp_path)


def test_the_brief_counts_no_processes_of_which_none_used_cuda(idle_path):
    assert "0 processes" not in read_text("brief", idle_path, None)


# The brief ------------------------------------------------------------------------------------------------------------


def test_copies_of_two_sizes_have_no_mean_size_and_pages_no_unknown_kind(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for size in (8, 8 << 20):
        host.launch("k", runs=MS).copy("D2H", size, runs=MS).sync("stream")
    host.migrate("UM D2H", 1 << 20, start=host.now + MS, runs=MS)
    text = read_text("brief", trace, tmp_path)
    assert "waits for D2H copy of up to 8.00 MiB" in text
    assert "UM D2H copy" in text
    assert "unknown" not in text


@pytest.fixture(scope="module")
def other_stream_path(tmp_path_factory):
    """Launch kernels on one stream, and synchronize another one, on which nothing runs."""
    trace = Trace().gpu()
    host = trace.thread()
    host.copy("H2D", 4096, runs=5_000)
    for _ in range(200):
        host.launch("step(float *)", api=3_000, queue=5_200, runs=3_400, stream=9, grid=(256, 1, 1))
        host.sync("stream", stream=8, waits=1_400).idle(4_600)
    return trace.write(tmp_path_factory.mktemp("streams") / "trace.sqlite")


def test_a_call_that_returns_at_once_does_not_wait(other_stream_path):
    assert "waits for GPU" not in read_text("brief", other_stream_path, None)


def test_calls_that_do_not_wait_are_not_why_launches_are_late(other_stream_path):
    text = read_text("diagnose", other_stream_path, None, rules=["many-launches"])
    assert "launch-bound" in text
    assert "NSI102" in text
    assert "waits about as often as it launches" not in text


# Steps and the rest of the trace --------------------------------------------------------------------------------------


def test_the_idle_time_outside_the_steps_is_all_of_it(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    host.call("cudaFree_v3020", takes=30 * MS).idle(10 * MS)
    for _ in range(500):
        host.launch("relax(float *)", runs=20_000, grid=(4096, 1, 1)).launch("sum(float *)", runs=5_000)
    host.sync("device").idle(4 * MS).call("cudaMemGetInfo_v3020")
    text = read_text("diagnose", trace, tmp_path)
    times = re.search(
        r"the GPU is busy for ([0-9.]+) µs of ([0-9.]+) ms, and idle for ([0-9.]+) ms, at the longest", text
    )
    assert times, text
    assert float(times[3]) == pytest.approx(float(times[2]) - float(times[1]) / 1000, abs=0.2)
