"""`graph-candidates`: what a CUDA graph would save, against what it did save, and sums done by hand."""

from __future__ import annotations

import planted
import pytest
from opening import open_trace


def ask(path, **params):
    with open_trace(path) as trace:
        rows = trace.run("graph-candidates", **params).to_dicts()
    return rows[0] if rows else None


def wall_of_step(path):
    with open_trace(path) as trace:
        rows = {row["metric"]: row for row in trace.run("per-token").to_dicts()}
    return rows["wall_ns"]["mean"]


@pytest.mark.parametrize("graphed", ["decode_graph_node", "decode_graph_whole"])
@pytest.mark.parametrize("eager", ["decode_eager", "decode_fresh"])
def test_the_bounds_hold_what_the_same_model_really_takes_as_a_graph(eager, graphed, sample):
    found = ask(sample(eager))
    assert found["verdict"] == "yes"
    assert found["graph_wall_low_ns"] < wall_of_step(sample(graphed)) < found["graph_wall_high_ns"]


@pytest.mark.parametrize("graphed", ["decode_graph_node", "decode_graph_whole"])
def test_what_is_a_graph_already_needs_none(graphed, sample):
    found = ask(sample(graphed))
    assert (found["verdict"], found["saving_high_ns"]) == ("no", 0)
    assert "already" in found["reason"]


@pytest.mark.slow
def test_the_arithmetic_is_the_one_that_is_described(tmp_path):
    # 10 kernels of 2 µs a step; before 9 of them the GPU waits 7 µs: 2 µs Python, 4 µs launch call, 1 µs on the way.
    truth = planted.launch_bound(8)
    path = truth.write(tmp_path / "trace.sqlite")
    found = ask(path)
    waiting, launches = 9 * 7_000, truth.steps[3].counts["launch_calls"]
    assert found["single_launches"] == launches
    assert found["waiting_ns"] == pytest.approx(waiting)
    least = launches * 300 + found["launch_call_ns"]
    assert found["saving_high_ns"] == pytest.approx(waiting - least)
    assert found["saving_low_ns"] < found["saving_high_ns"]
    assert found["graph_wall_low_ns"] == pytest.approx(found["wall_ns"] - found["saving_high_ns"])
    assert ask(path, kernel_gap_low_ns="1us")["saving_high_ns"] == pytest.approx(waiting - least - launches * 700)


def test_a_gpu_with_a_deep_queue_gains_nothing(tmp_path):
    found = ask(planted.deep_queue(8).write(tmp_path / "trace.sqlite"))
    assert (found["verdict"], found["saving_high_ns"]) == ("no", 0)


@pytest.mark.slow
def test_allocations_and_waits_in_the_step_are_named(tmp_path):
    found = ask(planted.allocating(8).write(tmp_path / "trace.sqlite"))
    assert "2 allocations and frees a step cannot be captured" in found["obstacles"]
    assert ask(planted.launch_bound(8).write(tmp_path / "other.sqlite"))["obstacles"] is None


@pytest.mark.slow
def test_tokens_share_the_saving_of_a_step(tmp_path):
    path = planted.launch_bound(8).write(tmp_path / "trace.sqlite")
    assert ask(path, tokens_per_step=4)["saving_low_ns"] == pytest.approx(ask(path)["saving_low_ns"] / 4)


def test_without_steps_there_is_nothing_to_capture(tmp_path):
    from synthetic import Trace

    assert ask(Trace().write(tmp_path / "trace.sqlite")) is None


@pytest.mark.slow
def test_a_few_long_times_of_cpu_work_stay_and_many_are_launching(tmp_path):
    def looped(think, after):
        loop = planted.Loop(planted.Trace())
        for _ in range(8):
            loop.step()
            planted.layers(loop, 50_000, think=think)
            loop.python(after)
        loop.sync()
        return planted.planted(loop.trace, loop).write(tmp_path / f"{think}.sqlite")

    # 9 kernels of 50 µs, of which 14 µs remain when the last call returns; then 900 µs of CPU work: one gap in ten.
    few = ask(looped(0, 900_000))
    gap = few["waiting_ns"]
    assert few["long_gap_ns"] == pytest.approx(gap, rel=0.02)
    assert few["saving_high_ns"] < 0.02 * gap
    assert few["verdict"] == "no"
    assert few["reason"].endswith("most of it is CPU work other than launching")
    # Of 200 µs before every launch, 50 µs and the call of 4 µs are launching.
    many = ask(looped(200_000, 0))
    assert many["long_gap_ns"] == pytest.approx(many["waiting_ns"] - 9 * 54_000)
    assert many["verdict"] == "yes"
