"""`pace`: the time of a kernel or a range from step to step, on traces with known times."""

from __future__ import annotations

import oracle
import pytest
from opening import open_trace
from synthetic import Trace


def ask(path, **params):
    with open_trace(path) as trace:
        return {row["name"]: row for row in trace.run("pace", **params).to_dicts()}


@pytest.fixture
def growing(tmp_path):
    """Write eight steps in which attention grows by 1 µs each. One step has an extra kernel."""
    trace = Trace()
    host = trace.thread()
    for number in range(8):
        with host.nvtx("step"):
            host.launch("attention", runs=1_000 * (number + 1)).launch("gemm", runs=5_000).launch("gemm", runs=5_000)
            if number == 5:
                host.launch("compact", runs=700)
            host.sync("stream")
    return trace.write(tmp_path / "trace.sqlite")


def test_the_pace_of_a_growing_kernel(growing):
    row = ask(growing)["attention"]
    assert (row["first_ns"], row["last_ns"], row["median_ns"]) == (1_000, 8_000, 4_500)
    assert row["slope_ns"] == pytest.approx(1_000)
    assert (row["max_ns"], row["max_step"], row["total_ns"], row["steps"]) == (8_000, 7, 36_000, 8)
    assert row["pace"] == "▂▃▄▅▆▇██"


def test_the_pace_of_a_constant_kernel(growing):
    row = ask(growing)["gemm"]
    assert (row["median_ns"], row["slope_ns"], row["calls_per_step"], row["pace"]) == (10_000, 0, 2, "█" * 8)


def test_the_pace_of_a_kernel_in_a_single_step(growing):
    row = ask(growing)["compact"]
    assert (row["max_step"], row["median_ns"], row["pace"]) == (5, 0, "▁▁▁▁▁█▁▁")


def test_a_pattern_selects_names(growing):
    assert ask(growing, name="att*").keys() == {"attention"}


def test_ranges_have_host_time(sample):
    rows = ask(sample("decode_eager"), by="range")
    ranges = [row for row in oracle.nvtx_ranges(oracle.read(sample("decode_eager"))) if row["name"] == "decode_step"]
    assert rows["decode_step"]["total_ns"] == sum(map(oracle.duration, ranges))
    assert rows["layer_#"]["calls_per_step"] == 4


@pytest.mark.parametrize("method", ["nvtx", "sequence"])
def test_the_kernels_of_all_steady_steps_are_there(sample, method):
    with open_trace(sample("decode_eager")) as trace:
        rows = trace.run("pace", step_method=method)
        per_step = trace.run("per-token", step_method=method)
    kernel_ns = per_step.filter(per_step["metric"] == "kernel_ns")["total"].item()
    assert rows["total_ns"].sum() == kernel_ns
    assert set(rows["pace"].str.len_chars()) == {32 if method == "nvtx" else 31}


@pytest.mark.slow
def test_many_steps_are_drawn_as_40(tmp_path):
    trace = Trace()
    host = trace.thread()
    for _ in range(100):
        with host.nvtx("step"):
            host.launch("a").launch("b").sync("stream")
    rows = ask(trace.write(tmp_path / "trace.sqlite"))
    assert rows["a"]["pace"] == "█" * 40
