"""Two ranks on two GPUs: the reported times are those that the program measured (tests/data/ranks/README.md)."""

from __future__ import annotations

import pytest

import nsys_insight
from tests.conftest import REPOSITORY

# Measured by events on the GPU of the waiting rank, while nsys recorded. The all-reduce itself takes 0.08 ms of it.
MEASURED_MS = {4: 12.56, 9: 13.02, 14: 13.19, 19: 12.80, 24: 12.64, 29: 12.84}


@pytest.fixture
def run():
    """Open both ranks of a variant."""
    return lambda variant: nsys_insight.open(
        [REPOSITORY / "tests" / "data" / "ranks" / f"{variant}_rank{rank}.sqlite" for rank in (0, 1)],
        use_cache=False,
    )


@pytest.mark.slow
def test_the_late_rank_is_named_with_its_steps_and_its_place(run):
    with run("ddp_a") as trace:
        sentence = trace.diagnose().run.sentence
        waited = {row.step: row.waiting_ns / 1e6 for row in trace.rows("FROM rank_steps WHERE rank = 0")}
    assert sentence.startswith("2 ranks: rank 1 is late in 6 of 29 steps (4, 9, 14, 19, 24, 29) by 12.9 ms, and in ")
    assert ": CPU work in data; " in sentence
    for step, expected_ms in MEASURED_MS.items():
        assert waited[step] == pytest.approx(expected_ms, abs=0.6), "three more all-reduces wait a little"
    assert all(waited[step] < 2 for step in waited.keys() - MEASURED_MS.keys())


@pytest.mark.slow
def test_a_rank_with_more_to_compute_is_not_a_late_host(run):
    with run("ddp_b") as trace:
        sentence = trace.diagnose().run.sentence
        (waited,) = trace.rows("SELECT median(waiting_ns) / 1e6 AS ms FROM rank_steps WHERE rank = 0")
    start = "2 ranks: rank 1 is late in 29 of 29 steps by 2.52 ms: its GPU is busy 3.4 times as long; "
    assert sentence.startswith(start)
    assert waited.ms == pytest.approx(2.66 - 0.08, abs=0.15)


# Measured by events on the rank that came last, in µs. They include some µs of overhead.
CALLS_US = {"AllReduce": 886.2, "AllGather": 1032.7, "ReduceScatter": 1031.1, "Broadcast": 746.4, "SendRecv": 746.5}
KIB, MIB = 1 << 10, 1 << 20


def test_sizes_and_bandwidths_are_those_that_the_program_measured(run):
    with run("sizes") as trace:
        rows = trace.answer("collectives").dicts()
        assert trace.sql("SELECT DISTINCT host_number, gpu FROM ranks").rows() == [(0, "NVIDIA H200")]
    rows_by_size = {(row["operation"], row["bytes"]): row for row in rows}
    small = rows_by_size.pop(("AllReduce", 4))
    assert small["calls"] == 20 * 12, "before each call"
    assert rows_by_size.keys() == {(name, size) for name in CALLS_US for size in (64 * KIB, MIB, 16 * MIB, 256 * MIB)}
    assert all((row["calls"], row["ranks"]) == (12, 2) for row in rows_by_size.values())
    for name, measured_us in CALLS_US.items():
        row = rows_by_size[name, 256 * MIB]
        assert row["transfer_ns"] / 1e3 == pytest.approx(measured_us, rel=0.012)
        bus = 256 * MIB / (measured_us / 1e6)  # with two ranks, each operation sends every byte once
        assert row["bus_bytes_per_s"] == pytest.approx(bus, rel=0.012)
        assert row["nvlink_pct"] == pytest.approx(100 * bus / 450e9, rel=0.012)


@pytest.mark.slow
def test_a_pipeline_waits_as_long_as_the_program_measured(run):
    with run("pipe") as trace:
        run_verdict = trace.diagnose().run
        waited = {row.step: row.waited_ns / 1e6 for row in trace.rows(
            """SELECT s.step, sum(m.receive_ns) AS waited_ns FROM messages AS m
               JOIN rank_steps AS s ON s.rank = m.receiver AND m.received_ns - s.start_ns BETWEEN 0 AND s.wall_ns
               WHERE m.receiver = 0 GROUP BY s.step"""
        )}  # fmt: skip
        (bubble,) = trace.sql("SELECT stages, stage_messages, bubble_pct FROM rank_run").rows()
    assert run_verdict.sentence.startswith("2 ranks: rank 1 is late in 2 of 7 steps (3, 7) by 6.2")
    assert ": CPU work in preprocess; " in run_verdict.sentence
    assert [waited[step] for step in (3, 7)] == pytest.approx([12.21, 12.16], abs=0.1)
    assert [waited[step] for step in (1, 2, 4, 5, 6)] == pytest.approx([5.94] * 5, abs=0.15)
    # The theoretical bubble of two stages with six microbatches is 1 / 7.
    assert bubble[:2] == (2, 6)
    assert bubble[2] == pytest.approx(100 / 7, abs=1)
