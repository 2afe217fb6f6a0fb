"""`speed-of-light`: utilization and the parts of a step, against planted times and plain averages with sqlite3."""

from __future__ import annotations

import lzma
import sqlite3
import tomllib
from pathlib import Path

import command_line
import pytest
from opening import open_trace
from synthetic import Trace

CLINIC = Path(__file__).parents[1] / "benchmarks" / "clinic"
STEPS, PERIOD_NS = 6, 10_000
TIMES = (
    "at_roof_ns", "below_roof_ns", "memory_bound_ns", "unrated_ns", "small_kernels_ns", "communication_ns", "copy_ns",
    "other_ns", "idle_ns",
)  # fmt: skip
GEMM = 2 * 8192 * 4096 * 4096
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
# Percentage by metric: what the samples of step N say.
METRICS = {
    "Tensor Active [Throughput %]": 70,
    "SMs Active [Throughput %]": 90,
    "DRAM Read Bandwidth [Throughput %]": 20,
}


def write_training(path, *, sampled=range(STEPS)):
    """Write steps with a known matrix product, small kernels, communication that is half hidden, and a copy."""
    trace = Trace()
    host = trace.thread(now=1_000_000)
    for step in range(STEPS):
        begin = host.now
        with host.nvtx("step"):
            host.copy("H2D", 1 << 20, runs=40_000)
            host.sync("device")
            with host.nvtx("aten::mm, seq = 1, sizes = [[8192, 4096], [4096, 4096]]"):
                host.launch("hgemm_nn", runs=400_000, grid=(512, 1, 1))
            for _ in range(4):
                host.launch("scale(float *)", runs=2_000)
            host.launch(NCCL, runs=300_000, stream=20, queue=200_000)
            host.sync("device")
            host.idle(50_000 + step)
        if step in sampled:
            for name, percentage in METRICS.items():
                for time in range(begin + 5_000, host.now, PERIOD_NS):
                    trace.gpu_metric(name, time=time, value=percentage + step + time // PERIOD_NS % 3)
        else:
            host.idle(PERIOD_NS)
    return trace.write(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_training(tmp_path_factory.mktemp("speed") / "training.sqlite", sampled=range(STEPS - 2))


def ask(path, **params):
    with open_trace(path) as trace:
        answer = trace.answer("speed-of-light", **params)
        return answer.dicts(), answer.notes


def test_samples_of_a_step_are_a_plain_average_and_unsampled_is_not_0(path):
    rows, notes = ask(path, by="step")
    with open_trace(path) as trace:
        steps = trace.rows("SELECT start_ns, end_ns FROM steps WHERE phase = 'steady' ORDER BY step")
    columns = dict(zip(("tensor_pct", "sms_active_pct"), METRICS, strict=False))
    assert len(rows) == len(steps) >= STEPS - 1
    with sqlite3.connect(path) as file:
        for row, step in zip(rows, steps, strict=True):
            for column, name in columns.items():
                mean, count = file.execute(
                    # The interval of the last sample has no end, so it is left out.
                    """SELECT avg(value), count(*)
                       FROM GPU_METRICS JOIN TARGET_INFO_GPU_METRICS USING (typeId, metricId)
                       WHERE metricName = ? AND timestamp >= ? AND timestamp < ?
                           AND timestamp < (SELECT max(timestamp) FROM GPU_METRICS)""",
                    (name, step.start_ns, step.end_ns),
                ).fetchone()
                assert row[column] == pytest.approx(mean) if count else row[column] is None
    file.close()
    assert [row["samples"] > 0 for row in rows] == [step < STEPS - 2 for step in range(len(rows))]
    assert any("less than 10 samples per execution" in note for note in notes)


def test_parts_of_a_step_are_the_planted_ones(path):
    ((row,), _) = ask(path)
    assert sum(row[part] for part in TIMES) == pytest.approx(row["wall_ns"])
    assert row["small_kernels_ns"] == 8_000
    assert row["copy_ns"] == 40_000
    # It starts while the matrix product runs, and counts only where it runs alone.
    assert 0 < row["communication_ns"] < 300_000
    # 275 GFLOP in 400 µs are 64% of the peak of an H200: below the roof.
    assert row["below_roof_ns"] == 400_000
    assert row["bar"].count("B") == round(20 * 400_000 / row["wall_ns"])
    assert len(row["bar"]) == 20


@pytest.mark.parametrize(
    ("params", "flop", "source"),
    [
        ({}, GEMM, "kernels"),
        pytest.param({"flops_per_step": 5e11}, 5e11, "given", marks=pytest.mark.slow),
        pytest.param(
            {"parameters": 1e8, "batch": 4, "tokens_per_step": 100}, 2 * 1e8 * 400, "parameters", marks=pytest.mark.slow
        ),
        pytest.param(
            {"parameters": 1e8, "batch": 4, "tokens_per_step": 100, "training": True},
            6 * 1e8 * 400,
            "parameters",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_utilization_is_operations_by_time_and_peak(path, params, flop, source):
    ((row,), _) = ask(path, **params)
    assert row["flop_count"] == pytest.approx(flop)
    assert row["flop_from"] == source
    peak = 132 * 1.98e9 * 4096
    assert row["mfu_pct"] == pytest.approx(100 * flop / (row["wall_ns"] / 1e9) / peak, rel=1e-3)
    ((by_sheet,), notes) = ask(path, peak=989.4, **params)
    assert by_sheet["mfu_pct"] == pytest.approx(row["mfu_pct"] * peak / 989.4e12, rel=1e-3)
    assert any("989.4 TFLOP/s in fp16 per GPU: as given" in note for note in notes)


@pytest.mark.slow
def test_without_sizes_or_samples_nothing_is_claimed(tmp_path):
    host = Trace().thread()
    for _ in range(STEPS):
        with host.nvtx("step"):
            host.launch("hgemm_nn", runs=400_000)
            host.sync("device")
    ((row,), notes) = ask(host.trace.write(tmp_path / "plain.sqlite"))
    assert row["unrated_ns"] == 400_000
    assert (row["mfu_pct"], row["tensor_pct"], row["clock_hz"]) == (None, None, None)
    assert any("which is not the same as no activity" in note for note in notes)


@pytest.mark.slow
def test_ranges_last_from_their_first_operation_to_their_last(path):
    rows, _ = ask(path, by="range")
    by_name = {row["name"]: row for row in rows}
    product = by_name["aten::mm, seq = #, sizes = [[#, #], [#, #]]"]
    assert (product["count"], product["wall_ns"], product["below_roof_ns"]) == (STEPS, 400_000, 400_000)
    assert product["mfu_pct"] == pytest.approx(100 * GEMM / 400e-6 / (132 * 1.98e9 * 4096), rel=1e-3)
    assert by_name["step"]["count"] == STEPS


@pytest.mark.slow
def test_a_budget_may_be_a_utilization(path):
    result = command_line.run("check", str(path), "--min", "mfu_pct=90", "--flops-per-step", "5e11")
    assert result.returncode == 1
    assert "speed-of-light" in result.stdout
    result = command_line.run("check", str(path), "--min", "mfu_pct=1", "--flops-per-step", "5e11")
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_a_gpu_that_the_trace_does_not_describe_can_be_named(path, tmp_path):
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(path.read_bytes())
    with sqlite3.connect(copy) as file:
        file.execute("DROP TABLE TARGET_INFO_GPU")
    file.close()
    ((row,), notes) = ask(copy)
    assert row["mfu_pct"] is None
    assert any("name it with --gpu" in note for note in notes)
    ((row,), notes) = ask(copy, gpu="h100")
    assert row["peak_tflop_per_s"] == pytest.approx(132 * 1.98e9 * 4096 / 1e12)
    assert any("peaks are those of H100 SXM" in note for note in notes)
    ((row,), notes) = ask(copy, gpu="unheard of")
    assert row["mfu_pct"] is None
    assert any("no GPU unheard of is known" in note for note in notes)
    ((own_row,), notes) = ask(path, gpu="T4")
    assert own_row["peak_tflop_per_s"] == pytest.approx(132 * 1.98e9 * 4096 / 1e12)
    assert any("so --gpu is not used" in note for note in notes)


@pytest.mark.slow
def test_a_training_run_has_the_utilization_that_its_own_clock_gives(tmp_path):
    # benchmarks/clinic/programs/encoder_train.py: three encoder layers of width 768, 32 sequences of 256 tokens.
    corpus = tomllib.loads((CLINIC / "corpus.toml").read_text(encoding="utf-8"))["pair"]
    (measured_ms,) = [pair["ms_ailing"] for pair in corpus if pair["name"] == "encoder_train"]
    trace_path = tmp_path / "encoder_train.sqlite"
    trace_path.write_bytes(lzma.decompress((CLINIC / "traces" / "encoder_train_ailing.sqlite.xz").read_bytes()))
    parameters = 3 * (4 * 768**2 + 2 * 768 * 3072) + 768 * 16
    ((row,), _) = ask(trace_path, parameters=parameters, training=True, batch=32, tokens_per_step=256)
    peak = 132 * 1.98e9 * 256  # FP32, without tensor cores
    assert row["precision"] == "fp32"
    assert row["mfu_pct"] == pytest.approx(100 * 6 * parameters * 32 * 256 / (measured_ms / 1e3) / peak, rel=0.02)


@pytest.mark.slow
def test_mfu_is_that_of_the_time_that_the_program_printed(tmp_path):
    # forms.py train --profile 5 printed both; nsys recorded meanwhile.
    printed_ms, operations = 29.218, 10_926_396_801_024
    path = tmp_path / "train.sqlite"
    path.write_bytes(lzma.decompress((CLINIC / "traces" / "form_train.sqlite.xz").read_bytes()))
    ((row,), _) = ask(path, flops_per_step=operations)
    peak = 132 * 1.98e9 * 4096  # BF16 in tensor cores, at the maximum clock
    assert row["mfu_pct"] == pytest.approx(100 * operations / (printed_ms / 1e3) / peak, rel=0.02)


def test_the_bar_has_a_legend_and_unknown_columns_are_not_shown(sample):
    result = command_line.run("speed-of-light", str(sample("decode_eager")), env={"COLUMNS": "100"})
    assert "note: bar, a character for 5% of the time: s small kernels, . idle" in result.stderr
    assert not [line for line in result.stdout.splitlines() if line.split()[:1] in (["mfu"], ["tensor"], ["dram"])]
