"""What `diagnose` says of programs that are no decoding loop: what must be said, and what must not."""

from __future__ import annotations

import pytest
from opening import open_trace
from synthetic import Trace


def said(trace, folder):
    """Give the diagnosis in one line."""
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        return " ".join(opened.diagnose().text(None).split())


# The host -------------------------------------------------------------------------------------------------------------


def few_launches(each):
    """Four launches of 70 µs a step; after each of them the host works for so long."""
    trace = Trace()
    host = trace.thread()
    for _ in range(6):
        for name in ("load", "solve", "reduce", "store"):
            host.launch(f"{name}(float *)", api=70_000, runs=50_000).idle(each)
    return trace


@pytest.mark.parametrize("each", [10_000_000, 400_000])
def test_few_launches_with_cpu_work_before_each_are_host_bound_and_no_graph_saves_that(each, tmp_path):
    text = said(few_launches(each), tmp_path)
    assert "host-bound" in text
    assert "The GPU waits while the CPU works" in text
    assert "CUDA graph" not in text
    assert "launch-bound" not in text


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


def test_without_steps_no_graph_is_advised(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(200):
        host.launch(f"kernel{number}(float *)", runs=2_000).idle(5_000)
    text = said(trace, tmp_path)
    assert "Launch fewer and larger kernels" in text
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


def test_one_launch_a_step_is_no_cuda_graph(tmp_path):
    text = said(reading_back(1), tmp_path)
    assert "1 launch call of 4 µs a step" in text
    assert "Launch fewer and larger kernels" in text
    assert "Capture the step in a CUDA graph" not in text


def test_what_is_counted_once_is_said_in_the_singular(tmp_path):
    text = said(reading_back(1), tmp_path)
    assert "1 read a step" in text
    for wrong in ("1 launch calls", "1 reads", "1 calls", "1 copies", "1 waits"):
        assert wrong not in text.replace("21 ", "")


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


def test_a_run_that_is_mostly_start_up_is_called_that(tmp_path):
    text = said(start_up(), tmp_path)
    assert "start-up and end; 620 ms in all" in text
    assert "until then: cudaMallocManaged, 400 ms" in text
    assert "GPU-bound" not in text
    assert "Healthy" not in text


def test_the_calls_of_start_up_are_those_that_ran_then(tmp_path):
    trace = start_up()
    trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["end"] += 900_000_000
    assert "until then: cudaMallocManaged, 400 ms; cudaLaunchKernel" in said(trace, tmp_path)


def test_a_gpu_that_works_a_tenth_of_the_wall_is_not_healthy(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(10):
        host.launch(f"solve{number}(float *)", queue=1_000_000 * number, runs=100_000, grid=(4096, 1, 1))
    assert "Healthy" not in said(trace, tmp_path)


# The capture ----------------------------------------------------------------------------------------------------------


def test_launches_without_gpu_activity_are_not_nothing(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(5):
        host.call("cudaLaunchKernel_v7000")
    text = said(trace, tmp_path)
    assert "Launch calls are recorded, but nothing of what they ran" in text
    assert "Nothing ran on a GPU" not in text


def test_a_program_without_launches_ran_nothing(tmp_path):
    trace = Trace()
    trace.thread().call("cudaGetDeviceCount_v3020")
    assert "Nothing ran on a GPU" in said(trace, tmp_path)


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        ("Unable to configure the collection of CPU IP/backtrace samples, context switch data.", False),
        ("perf event paranoid level is 4. Change the paranoid level to 2 to enable CPU IP sample collection.", False),
        ("Unified Memory cannot be traced on devices that don't support peer-to-peer transfers.", False),
        ("CUDA device 0: Unified Memory trace is not supported.", False),
        ("CUPTI buffer overflow: CUDA events were dropped.", True),
    ],
)
def test_what_no_number_here_reads_is_no_loss(message, lost, tmp_path):
    trace = start_up().diagnostic(message, severity="Error")
    assert ("The capture is not complete" in said(trace, tmp_path)) == lost


# Kernels --------------------------------------------------------------------------------------------------------------


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


def test_a_collective_is_never_too_small(tmp_path):
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(10):
        host.launch("gemm(float *)", runs=300_000, grid=(4096, 1, 1))
        host.launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)", runs=500_000, grid=(16, 1, 1))
    assert "too small" not in said(trace, tmp_path)


def test_a_share_without_steps_is_of_the_trace(tmp_path):
    trace = Trace().gpu()
    trace.thread().launch("divergence(double *)", runs=900_000_000, grid=(4096, 1, 1), block=(256, 1, 1), registers=255)
    text = said(trace, tmp_path)
    assert "% of the trace" in text
    assert "of the step" not in text
