"""`per-token`: the budget of a steady step, against planted steps and plain sums."""

from __future__ import annotations

import statistics
from pathlib import Path

import oracle
import planted
import polars as pl
import pytest
from opening import open_trace, planted_path
from sweeps import sweep
from synthetic import Trace

from nsys_insight.errors import UsageError

SAMPLES = Path(__file__).parents[1] / "sample_traces"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.sqlite"))


def ask(path, scope=None, **params):
    """Return the rows by metric, the notes, and the steady steps that they summarize."""
    with open_trace(path, **scope or {}) as trace:
        answer = trace.answer("per-token", **params)
        rows = {row["metric"]: row for row in answer.frame().to_dicts()}
        steady_steps = pl.DataFrame(
            trace._connection.duckdb.sql("SELECT * FROM steps WHERE phase = 'steady'")
        ).to_dicts()
        return rows, answer.notes, steady_steps


@pytest.mark.parametrize(("name", "method"), [*((name, "auto") for name in NAMES), ("decode_eager", "sequence")])
def test_statistics_are_those_of_the_steady_steps(name, method):
    rows, _, steady_steps = ask(SAMPLES / f"{name}.sqlite", step_method=method)
    for metric in ("wall_ns", "gpu_busy_ns", "gpu_idle_ns", "api_ns", "launch_calls", "sync_points", "d2h_bytes"):
        values = [step["duration_ns" if metric == "wall_ns" else metric] for step in steady_steps]
        row = rows[metric]
        assert row["total"] == sum(values)
        assert row["mean"] == row["per_token"] == pytest.approx(statistics.mean(values))
        assert row["median"] == statistics.median(values)
        assert row["stddev"] == pytest.approx(statistics.stdev(values), abs=1e-6)
        assert [row["p5"], row["p95"], row["p99"]] == pytest.approx(
            [oracle.quantile(sorted(values), share) for share in (0.05, 0.95, 0.99)]
        )
        assert [row["min"], row["max"]] == [min(values), max(values)]
    assert rows["gpu_busy_ns"]["wall_pct"] + rows["gpu_idle_ns"]["wall_pct"] == pytest.approx(100)
    assert rows["tokens_per_s"]["mean"] == pytest.approx(1e9 / rows["wall_ns"]["mean"])


@pytest.mark.parametrize("name", ["churn", "decode_eager"])
def test_idle_time_has_the_parts_of_classify(name):
    with open_trace(SAMPLES / f"{name}.sqlite") as trace:
        rows = {row["metric"]: row["per_token"] for row in trace.answer("per-token").frame().to_dicts()}
        parts = {row["part"]: row["time_ns"] for row in trace.answer("classify").frame().to_dicts()}
    for part in ("launch", "sync", "allocation", "dependency"):
        assert rows[f"idle_{part}_ns"] == pytest.approx(parts.get(part, 0))
    idle_ns = sum(value for metric, value in rows.items() if metric.startswith("idle_"))
    assert idle_ns == pytest.approx(rows["gpu_idle_ns"])


# tests/test_steps.py has the steps of all loops, and above, metrics are sums of what steps have.
DIFFERENT_LOOPS = ("tokens in batches", "two processes", "prefill and decode", "graphs")


@pytest.mark.parametrize(
    "name", [*DIFFERENT_LOOPS, *sweep(name for name in planted.ALL if name not in DIFFERENT_LOOPS)]
)
def test_the_counts_and_times_of_a_planted_step(name):
    truth = planted.ALL[name]()
    scope = {"process": truth.loops[0].host.pid} if len(truth.loops) > 1 else {}
    rows, _, _ = ask(planted_path(name), scope)
    steady_steps = [step for step in truth.steps[:-1] if step.phase == "steady"]
    assert rows["wall_ns"]["total"] == sum(step.wall_ns for step in steady_steps)
    assert rows["gpu_busy_ns"]["total"] == sum(step.busy_ns for step in steady_steps)
    for metric in ("kernels", "launch_calls", "mallocs", "frees", "sync_points", "h2d_bytes", "d2h_copies"):
        assert rows[metric]["total"] == sum(step.counts.get(metric, 0) for step in steady_steps)


@pytest.mark.slow
def test_the_counts_of_a_decode_step_of_the_sample(sample):
    # 196 kernels, one copy of its token in and one out: 198 operations, as in nsys_stats.
    tables = oracle.read(sample("decode_eager"))
    step_launches = [
        launch
        for launch, open_ranges in oracle.kernels_in_nvtx(tables)
        if "decode_step" in {row["name"] for row in open_ranges}
    ]
    ranges = [row for row in oracle.nvtx_ranges(tables) if row["name"] == "decode_step"]
    for scope in ({}, {"nvtx": "decode_step"}):
        rows, _, _ = ask(sample("decode_eager"), scope)
        assert rows["kernels"]["total"] == len(step_launches) == 32 * 196
        assert rows["kernel_ns"]["total"] == sum(launch["kernel_ns"] for launch in step_launches)
        # A step lasts to the start of the next one; the parts of a scope by ranges last as long as their ranges.
        from_start_to_start = ranges[-1]["end"] - ranges[0]["start"]
        assert rows["wall_ns"]["total"] == (sum(map(oracle.duration, ranges)) if scope else from_start_to_start)
        per_token = {metric: row["per_token"] for metric, row in rows.items()}
        assert (per_token["kernels"], per_token["launch_calls"], per_token["graph_launches"]) == (196, 196, 0)
        assert (per_token["h2d_copies"], per_token["d2h_copies"], per_token["sync_calls"]) == (1, 1, 2)
        assert rows["kernel_avg_ns"]["mean"] == pytest.approx(rows["kernel_ns"]["total"] / rows["kernels"]["total"])


@pytest.mark.slow
def test_the_kernels_of_graphs_traced_as_a_unit_are_unknown_and_not_0(sample):
    node_rows, _, _ = ask(sample("decode_graph_node"))
    graph_rows, notes, _ = ask(sample("decode_graph_whole"))
    for rows in (node_rows, graph_rows):
        assert rows["graph_launches"]["median"] == 1
        assert rows["launch_calls"]["median"] == 2
    assert node_rows["kernels"]["median"] == 197
    assert {
        graph_rows[metric]["per_token"] for metric in ("kernels", "kernel_ns", "kernel_avg_ns", "kernel_med_ns")
    } == {None}
    assert any("--cuda-graph-trace=node" in note for note in notes)


def test_the_excluded_prefill_has_the_figures_of_phases(sample):
    path = sample("decode_eager")
    _, notes, _ = ask(path)
    with open_trace(path) as trace:
        (prefill,) = trace.dicts("SELECT gpu_busy_ns, kernels FROM phase_steps WHERE phase = 'prefill'")
    assert prefill["kernels"] == 196
    assert any(note.startswith("Excluded: prefill (3.3 ms, GPU busy 433 µs, 196 kernels)") for note in notes)


class TestTokens:
    def test_tokens_are_divided_by_the_steps(self, sample):
        rows, notes, _ = ask(sample("decode_eager"), tokens=64)
        assert rows["kernels"]["per_token"] == 98
        assert "a step makes 2 tokens; of the columns, only per_token is divided by them" in notes

    @pytest.mark.slow
    def test_a_step_may_make_several_tokens_of_several_sequences(self, tmp_path):
        truth = planted.tokens_in_batches()
        path = truth.write(tmp_path / "trace.sqlite")
        rows, _, _ = ask(path, tokens_per_step=2, batch=4)
        assert truth.tokens_per_step == 8
        assert rows["kernels"]["per_token"] == truth.steps[0].counts["kernels"] / 8
        assert rows["tokens_per_s"]["mean"] == pytest.approx(8e9 / truth.steps[0].wall_ns)

    @pytest.mark.slow
    def test_without_steps_the_full_scope_is_divided_by_tokens(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for number in range(4):
            host.launch(f"k{number}", api=4_000, runs=3_000, driver="cuLaunchKernel")
        path = trace.write(tmp_path / "trace.sqlite")
        assert ask(path)[0] == {}
        rows, notes, _ = ask(path, tokens=2)
        first, last = oracle.wall(oracle.read(path))
        assert rows["wall_ns"]["per_token"] == (last - first) / 2
        assert rows["kernels"]["per_token"] == rows["launch_calls"]["per_token"] == 2
        assert rows["api_ns"]["total"] == 16_000
        assert rows["kernels"]["stddev"] is rows["kernels"]["p95"] is None
        assert any("no steps were found" in note for note in notes)

    def test_there_is_at_least_one_token(self, sample):
        with open_trace(sample("churn")) as trace, pytest.raises(UsageError, match="tokens cannot be 0"):
            trace.answer("per-token", tokens=0)


class TestBandwidth:
    @pytest.mark.slow
    def test_the_memory_floor_follows_from_the_bandwidth_of_the_gpu_in_the_trace(self, tmp_path):
        truth = planted.launch_bound()
        truth.trace.gpu(0, memoryBandwidth=2_000_000_000_000)
        rows, _, _ = ask(truth.write(tmp_path / "trace.sqlite"), model_bytes="100kB")
        wall = truth.steps[0].wall_ns
        assert rows["memory_floor_ns"]["per_token"] == 50
        assert rows["headroom_ns"]["per_token"] == wall - 50
        assert rows["achieved_bytes_per_s"]["per_token"] == pytest.approx(100_000 / wall * 1e9)
        assert rows["bandwidth_pct"]["per_token"] == pytest.approx(100 * 50 / wall)

    def test_a_given_bandwidth_has_precedence(self, tmp_path):
        path = planted.launch_bound().write(tmp_path / "trace.sqlite")
        rows, _, _ = ask(path, model_bytes="1MB", bandwidth_bytes_per_s="1TB/s")
        assert rows["memory_floor_ns"]["per_token"] == 1_000

    @pytest.mark.slow
    def test_a_trace_without_gpu_data_has_no_memory_floor_but_a_note(self, tmp_path):
        path = planted.launch_bound().write(tmp_path / "trace.sqlite", without_tables=["TARGET_INFO_GPU"])
        rows, notes, _ = ask(path, model_bytes=1_000)
        assert "memory_floor_ns" not in rows
        assert any("--bandwidth" in note for note in notes)


@pytest.mark.slow
def test_busy_is_the_mean_over_the_gpus_that_worked(tmp_path):
    trace = Trace().gpu(0).gpu(1).gpu(2)
    host = trace.thread(pid=1)
    host.launch("k", start=0, api=1_000, queue=0, runs=9_000, device=0)
    host.launch("k", start=1_000, api=1_000, queue=0, runs=3_000, device=1)
    rows, notes, _ = ask(trace.write(tmp_path / "trace.sqlite"), tokens=1)
    totals = [rows[metric]["total"] for metric in ("wall_ns", "gpu_busy_ns", "gpu_idle_ns")]
    assert totals == [10_000, 6_000, 4_000]
    assert any("2 GPUs" in note for note in notes)


@pytest.mark.slow
def test_several_processes_have_a_note(tmp_path):
    truth = planted.two_processes()
    _, notes, _ = ask(truth.write(tmp_path / "trace.sqlite"))
    assert any("100, 200" in note for note in notes)


def test_a_trace_without_cuda_events_has_no_answer(tmp_path):
    trace = Trace()
    trace.thread().osrt("poll")
    assert ask(trace.write(tmp_path / "trace.sqlite"), tokens=1)[0] == {}
