"""Where the launches of a step come from, on a loop with known launches."""

from __future__ import annotations

import pytest
from opening import open_trace
from synthetic import Trace

STEPS = 6


def loop(*, graphs=False):
    trace = Trace()
    host = trace.thread()
    host.launch("warm_up(float *)", runs=9_000).idle(50_000)
    for _ in range(STEPS):
        with host.nvtx("step"):
            for layer in ("attention", "mlp"):
                with host.call_stack((f"{layer}(Tensor)", "/app/model.so"), ("forward(Tensor)", "/app/model.so")):
                    host.launch("sgemm_128x128(float *)", api=6_000, runs=30_000)
                    host.launch("vectorized_elementwise_kernel(float *)", api=4_000, runs=2_000)
            if graphs:
                host.graph_launch(kernels=[("softmax(float *)", 1_000), ("relu(float *)", 500)])
            host.copy("D2H", 4, blocking=True).idle(20_000)
    return trace


def census(trace, path, **params):
    with open_trace(trace.write(path / "trace.sqlite")) as session:
        rows = {row["name"]: row for row in session.answer("launch-census", **params).dicts()}
        budget = {row["metric"]: row["mean"] for row in session.answer("per-token").dicts()}
    return rows, budget


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [False, True])
def test_each_grouping_adds_up_to_the_launches_of_a_token(tmp_path, graphs):
    for grouping in ("family", "kernel", "caller", "stack"):
        rows, budget = census(loop(graphs=graphs), tmp_path, group_by=grouping)
        assert sum(row["launch_calls"] for row in rows.values()) == pytest.approx(budget["launch_calls"])
        assert sum(row["host_ns"] for row in rows.values()) == pytest.approx(budget["api_launch_ns"])
        assert sum(row["kernels"] for row in rows.values()) == pytest.approx(budget["kernels"])
        assert sum(row["launch_pct"] for row in rows.values()) == pytest.approx(100)


@pytest.mark.slow
def test_a_row_has_calls_host_time_and_gpu_time(tmp_path):
    rows, _ = census(loop(), tmp_path)
    assert {name: (row["launch_calls"], row["host_ns"], row["gpu_ns"]) for name, row in rows.items()} == {
        "gemm": (2, 12_000, 60_000), "elementwise": (2, 8_000, 4_000),
    }  # fmt: skip


@pytest.mark.slow
def test_rows_by_caller_and_by_stack(tmp_path):
    callers, _ = census(loop(), tmp_path, group_by="caller")
    assert {name: row["launch_calls"] for name, row in callers.items()} == {
        "attention (model.so)": 2, "mlp (model.so)": 2,
    }  # fmt: skip
    stacks, _ = census(loop(), tmp_path, group_by="stack", stack=2)
    assert stacks.keys() == {"attention (model.so) < forward (model.so)", "mlp (model.so) < forward (model.so)"}


def test_a_graph_is_one_call_with_all_its_kernels(tmp_path):
    rows, _ = census(loop(graphs=True), tmp_path)
    graph = rows["CUDA graph"]
    assert (graph["launch_calls"], graph["kernels"], graph["gpu_ns"]) == (1, 2, 1_500)
