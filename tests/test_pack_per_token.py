"""`per-token`: what a token costs, against plain loops and traces whose truth is known."""

from __future__ import annotations

from pathlib import Path

import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import traces
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import UsageError

SAMPLES = Path(__file__).parents[1] / "sample_traces"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.sqlite"))


def ask(path, scope=None, **params):
    with nsys_insight.open(path).scope(**scope or {}) as trace:
        answer = trace.answer("per-token", **params)
        rows = {row["metric"]: row for row in answer.frame().to_dicts()}
        return {metric: row["total"] for metric, row in rows.items()}, rows, answer.notes


def expected_of(tables):
    """Count in loops over the whole trace."""
    calls, allocations = oracle.outer_api_calls(tables), oracle.allocations(tables)
    counts, busy = oracle.counts(tables), oracle.busy_ns(tables)
    first, last = oracle.wall(tables)
    mean_busy = round(sum(busy.values()) / len(busy)) if busy else 0
    kinds = oracle.labels(tables, "ENUM_CUDA_MEMCPY_OPER", oracle.COPY_KINDS)

    def copied(kind):
        return [copy["bytes"] for copy in tables[oracle.MEMCPY] if kinds[copy["copyKind"]] == kind]

    return {
        "wall_ns": last - first,
        "gpu_busy_ns": mean_busy,
        "gpu_idle_ns": last - first - mean_busy,
        "kernel_ns": sum(map(oracle.duration, tables[oracle.KERNEL])),
        "kernel_avg_ns": None,
        "kernels": counts["kernels"],
        "launch_calls": counts["launch_calls"] + counts["graph_launch_calls"],
        "graph_launches": counts["graph_launch_calls"],
        "api_ns": sum(map(oracle.duration, calls)),
        "sync_calls": sum(bool(oracle.HOST_WAIT.match(call["name"])) for call in calls),
        "h2d_copies": len(copied("Host-to-Device")),
        "h2d_bytes": sum(copied("Host-to-Device")),
        "d2h_copies": len(copied("Device-to-Host")),
        "d2h_bytes": sum(copied("Device-to-Host")),
        "mallocs": sum(allocations["calls"].values()),
        "frees": sum(allocations["free_calls"].values()),
    }


@pytest.mark.parametrize("name", NAMES)
def test_totals_equal_plain_loops(name):
    path = SAMPLES / f"{name}.sqlite"
    assert ask(path, tokens=1)[0] == expected_of(oracle.read(path))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces(), tokens=st.integers(1, 1000))
def test_any_trace_adds_up(trace, tokens, tmp_path):
    path = trace.write(tmp_path / "trace.sqlite")
    tables = oracle.read(path)
    totals, rows, _ = ask(path, tokens=tokens)
    span = oracle.wall(tables)
    if span is None or span[0] == span[1]:
        assert rows == {}
        return
    assert totals == expected_of(tables)
    assert totals["gpu_busy_ns"] + totals["gpu_idle_ns"] == totals["wall_ns"]
    for metric, row in rows.items():
        if metric != "kernel_avg_ns":
            assert row["per_token"] * tokens == pytest.approx(row["total"], rel=1e-12)


def test_a_decode_step_of_the_sample_is_counted_right(sample):
    # 32 steps, each with 196 kernels, one copy of its token in and one out: 198 operations, as nsys_stats says.
    totals, rows, _ = ask(sample("decode_eager"), scope={"nvtx": "decode_step"})
    tables = oracle.read(sample("decode_eager"))
    inside = [
        launch for launch, around in oracle.kernels_in_nvtx(tables) if "decode_step" in {row["name"] for row in around}
    ]
    steps = [row for row in oracle.nvtx_ranges(tables) if row["name"] == "decode_step"]
    assert len(inside) == totals["kernels"] == 32 * 196
    assert sum(launch["kernel_ns"] for launch in inside) == totals["kernel_ns"]
    assert sum(map(oracle.duration, steps)) == totals["wall_ns"]
    per_token = {metric: row["per_token"] for metric, row in rows.items()}
    assert (per_token["kernels"], per_token["launch_calls"], per_token["graph_launches"]) == (196, 196, 0)
    assert (per_token["h2d_copies"], per_token["d2h_copies"], per_token["sync_calls"]) == (1, 1, 2)
    assert per_token["kernel_avg_ns"] == totals["kernel_ns"] / totals["kernels"]
    assert rows["gpu_busy_ns"]["wall_pct"] + rows["gpu_idle_ns"]["wall_pct"] == pytest.approx(100)


def test_launch_calls_graph_launches_and_kernels_are_three_different_counts(sample):
    # Each step is one graph of 196 kernels more than its own launches; per graph or per node changes kernels alone.
    scope = {"nvtx": "decode_step"}
    node, whole = (ask(sample(f"decode_graph_{way}"), scope=scope) for way in ("node", "whole"))
    assert node[1]["graph_launches"]["per_token"] == whole[1]["graph_launches"]["per_token"] == 1
    assert node[1]["launch_calls"]["per_token"] == whole[1]["launch_calls"]["per_token"] == 2
    assert (node[1]["kernels"]["per_token"], whole[1]["kernels"]["per_token"]) == (197, 1)
    assert not any("graph" in note for note in node[2])
    assert any("--cuda-graph-trace=node" in note for note in whole[2])


def test_without_a_range_the_number_of_tokens_must_be_given(sample):
    with nsys_insight.open(sample("churn")) as trace, pytest.raises(UsageError) as caught:
        trace.answer("per-token")
    assert "--tokens" in caught.value.message
    assert "--nvtx" in caught.value.hint


def test_the_number_of_tokens_given_wins_over_the_number_of_ranges(sample):
    _, ranges, notes = ask(sample("decode_eager"), scope={"nvtx": "decode_step"})
    _, given, silent = ask(sample("decode_eager"), scope={"nvtx": "decode_step"}, tokens=64)
    assert given["kernels"]["per_token"] == ranges["kernels"]["per_token"] / 2
    assert notes == ("one token per range: 32 ranges match decode_step",)
    assert silent == ()


def test_there_is_at_least_one_token(sample):
    with nsys_insight.open(sample("churn")) as trace, pytest.raises(UsageError, match="--tokens"):
        trace.answer("per-token", tokens=0)


def test_of_the_whole_trace_it_says_that_prefill_is_in_it(sample):
    assert any("warm-up and prefill" in note for note in ask(sample("decode_eager"), tokens=32)[2])
    assert not any("warm-up" in note for note in ask(sample("decode_eager"), scope={"to_ns": 10**9}, tokens=32)[2])


def test_busy_is_the_mean_over_the_gpus_that_worked(tmp_path):
    trace = Trace().gpu(0).gpu(1).gpu(2)
    host = trace.thread(pid=1)
    host.launch("k", at=0, api=1_000, queue=0, runs=9_000, device=0)
    host.launch("k", at=1_000, api=1_000, queue=0, runs=3_000, device=1)
    totals, _, notes = ask(trace.write(tmp_path / "trace.sqlite"), tokens=1)
    assert (totals["wall_ns"], totals["gpu_busy_ns"], totals["gpu_idle_ns"]) == (10_000, 6_000, 4_000)
    assert any("2 GPUs" in note for note in notes)


def test_the_gpu_is_busy_in_a_range_with_whatever_it_does_then(tmp_path):
    trace = Trace()
    host = trace.thread().range("step", 0, 10_000).range("step", 20_000, 30_000)
    host.launch("a", at=1_000, api=1_000, queue=3_000, runs=9_000)  # from 5,000 to 14,000
    host.launch("between", at=15_000, api=1_000, queue=0, runs=6_000)  # from 16,000 to 22,000
    host.launch("b", at=21_000, api=1_000, queue=0, runs=2_000)
    totals, _, _ = ask(trace.write(tmp_path / "trace.sqlite"), scope={"nvtx": "step"})
    assert (totals["wall_ns"], totals["gpu_busy_ns"], totals["gpu_idle_ns"]) == (20_000, 9_000, 11_000)
    assert totals["kernel_ns"] == 11_000


def test_a_call_inside_a_call_counts_once(tmp_path):
    trace = Trace()
    trace.thread().launch("k", at=0, api=4_000, driver="cuLaunchKernel").launch(
        "k", at=10_000, api=4_000, driver="cuLaunchKernel"
    )
    totals, _, _ = ask(trace.write(tmp_path / "trace.sqlite"), tokens=2)
    assert (totals["launch_calls"], totals["api_ns"], totals["kernels"]) == (2, 8_000, 2)


def test_a_trace_without_cuda_events_has_no_answer(tmp_path):
    trace = Trace()
    trace.thread().osrt("poll")
    assert ask(trace.write(tmp_path / "trace.sqlite"), tokens=1)[1] == {}
