"""`graph-candidates`: the predicted saving of a CUDA graph, against the real saving and sums by hand."""

from __future__ import annotations

import planted
import pytest
from opening import open_trace


def ask(path, **params):
    with open_trace(path) as trace:
        rows = trace.run("graph-candidates", **params).to_dicts()
    return rows[0] if rows else None


def read_step_wall(path):
    with open_trace(path) as trace:
        rows = {row["metric"]: row for row in trace.run("per-token").to_dicts()}
    return rows["wall_ns"]["mean"]


@pytest.mark.parametrize("graphed", ["decode_graph_node", "decode_graph_whole"])
@pytest.mark.parametrize("eager", ["decode_eager", "decode_fresh"])
def test_the_step_time_of_the_same_model_as_a_graph_is_within_the_bounds(eager, graphed, sample):
    row = ask(sample(eager))
    assert row["verdict"] == "yes"
    assert row["graph_wall_low_ns"] < read_step_wall(sample(graphed)) < row["graph_wall_high_ns"]


@pytest.mark.parametrize("graphed", ["decode_graph_node", "decode_graph_whole"])
def test_a_step_that_is_already_a_graph_needs_none(graphed, sample):
    row = ask(sample(graphed))
    assert (row["verdict"], row["saving_high_ns"]) == ("no", 0)
    assert "already" in row["reason"]


@pytest.mark.slow
def test_the_saving_is_calculated_as_documented(tmp_path):
    # 10 kernels of 2 µs per step; before 9 of them the GPU waits 7 µs: 2 µs Python, 4 µs launch call, 1 µs on the way.
    truth = planted.launch_bound(8)
    path = truth.write(tmp_path / "trace.sqlite")
    row = ask(path)
    waiting, launches = 9 * 7_000, truth.steps[3].counts["launch_calls"]
    assert row["single_launches"] == launches
    assert row["waiting_ns"] == pytest.approx(waiting)
    graph_launch_ns = launches * 300 + row["launch_call_ns"]
    assert row["saving_high_ns"] == pytest.approx(waiting - graph_launch_ns)
    assert row["saving_low_ns"] < row["saving_high_ns"]
    assert row["graph_wall_low_ns"] == pytest.approx(row["wall_ns"] - row["saving_high_ns"])
    assert ask(path, kernel_gap_low_ns="1us")["saving_high_ns"] == pytest.approx(
        waiting - graph_launch_ns - launches * 700
    )


def test_a_gpu_with_a_deep_queue_gains_nothing(tmp_path):
    row = ask(planted.deep_queue(8).write(tmp_path / "trace.sqlite"))
    assert (row["verdict"], row["saving_high_ns"]) == ("no", 0)


@pytest.mark.slow
def test_allocations_and_waits_in_the_step_are_named(tmp_path):
    row = ask(planted.allocating(8).write(tmp_path / "trace.sqlite"))
    assert "2 allocations and frees a step cannot be captured" in row["obstacles"]
    assert ask(planted.launch_bound(8).write(tmp_path / "other.sqlite"))["obstacles"] is None


@pytest.mark.slow
def test_tokens_share_the_saving_of_a_step(tmp_path):
    path = planted.launch_bound(8).write(tmp_path / "trace.sqlite")
    assert ask(path, tokens_per_step=4)["saving_low_ns"] == pytest.approx(ask(path)["saving_low_ns"] / 4)


@pytest.mark.slow
def test_a_few_long_gaps_are_cpu_work_and_many_are_launch_overhead(tmp_path):
    def write_loop(think, after):
        loop = planted.Loop(planted.Trace())
        for _ in range(8):
            loop.step()
            planted.layers(loop, 50_000, think=think)
            loop.python(after)
        loop.sync()
        return planted.planted(loop.trace, loop).write(tmp_path / f"{think}.sqlite")

    # 9 kernels of 50 µs: 14 µs remain when the last call returns. Then 900 µs of CPU work: one gap in ten.
    few_long_row = ask(write_loop(0, 900_000))
    gap = few_long_row["waiting_ns"]
    assert few_long_row["long_gap_ns"] == pytest.approx(gap, rel=0.02)
    assert few_long_row["saving_high_ns"] < 0.02 * gap
    assert few_long_row["verdict"] == "no"
    assert few_long_row["reason"].endswith("most of it is CPU work other than launching")
    # Of 200 µs before every launch, 50 µs and the call of 4 µs are launching.
    many_long_row = ask(write_loop(200_000, 0))
    assert many_long_row["long_gap_ns"] == pytest.approx(many_long_row["waiting_ns"] - 9 * 54_000)
    assert many_long_row["verdict"] == "yes"
