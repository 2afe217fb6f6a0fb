"""`overlap`: what runs with kernels and what does not, and why, where the trace was built that way."""

from __future__ import annotations

import pytest
from opening import open_trace
from synthetic import Trace

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
REASONS = ("same_stream_ns", "dependency_ns", "launched_late_ns", "no_more_work_ns")


def ask(host, path):
    with open_trace(host.trace.write(path / "trace.sqlite")) as trace:
        return trace.answer("overlap").dicts()


@pytest.mark.parametrize(
    ("kernel", "exposed", "reason"),
    [
        ({"start": 130_000, "stream": 7, "call": 1_000}, 20_000, "same_stream_ns"),
        pytest.param({"start": 130_000, "stream": 13, "call": 1_000}, 20_000, "dependency_ns", marks=pytest.mark.slow),
        ({"start": 130_000, "stream": 13, "call": 115_000}, 20_000, "launched_late_ns"),
        pytest.param(
            {"start": 130_000, "stream": 7, "call": 115_000}, 20_000, "launched_late_ns", marks=pytest.mark.slow
        ),
        pytest.param(None, 20_000, "no_more_work_ns", marks=pytest.mark.slow),
    ],
)
def test_exposed_time_has_the_reason_that_was_planted(tmp_path, kernel, exposed, reason):
    host = Trace().thread(now=0)
    # The kernel on stream 13 runs until 110 µs, so the last 20 µs of the collective on stream 7 are exposed.
    host.launch("gemm(float *)", start=100, api=200, queue=9_700, runs=100_000, stream=13)
    host.launch(NCCL, start=400, api=200, queue=49_400, runs=80_000, stream=7)
    if kernel:
        queue = kernel["start"] - kernel["call"] - 200
        host.launch(
            "norm(float *)", start=kernel["call"], api=200, queue=queue, runs=10_000, stream=kernel["stream"]
        )  # fmt: skip
    (row,) = ask(host, tmp_path)
    assert (row["operation"], row["calls"], row["total_ns"]) == ("AllReduce", 1, 80_000)
    assert (row["overlapped_ns"], row["exposed_ns"]) == (60_000, exposed)
    assert {name: row[name] for name in REASONS} == {name: exposed if name == reason else 0 for name in REASONS}


@pytest.mark.slow
def test_copies_within_the_gpu_are_work_and_others_are_not(tmp_path):
    host = Trace().thread(now=0)
    host.copy("H2D", 1 << 20, runs=50_000)
    host.copy("D2D", 1 << 20, runs=10_000)
    (row,) = ask(host, tmp_path)
    assert (row["operation"], row["bytes"]) == ("H2D copy", 1 << 20)
    assert row["exposed_ns"] == 50_000 == sum(row[name] for name in REASONS)


@pytest.mark.slow
def test_without_communication_and_copies_there_is_no_row(tmp_path):
    assert ask(Trace().thread().launch("gemm(float *)"), tmp_path) == []
