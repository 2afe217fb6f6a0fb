"""Four ranks on four GPUs: what was planted is found, by as much as the program measured.

Both are in tests/data/four_ranks/README.md.
"""

from __future__ import annotations

import pytest
from opening import unpack
from sweeps import sweep

import nsys_insight
from tests.conftest import REPOSITORY

PACKED = REPOSITORY / "tests" / "data" / "four_ranks"
MIB = 1 << 20


def open_run(name, *ranks):
    """Open some ranks of a run."""
    paths = [unpack(PACKED / f"{name}_rank{rank}.sqlite.xz") for rank in ranks]
    return nsys_insight.open(paths, use_cache=False)


def read_lateness(trace):
    """Return by rank the steps in which it is late, and by how many ms, where that is more than 1 ms."""
    rows = trace.rows("FROM rank_steps WHERE late_ns > 1e6 ORDER BY rank, step")
    return {
        rank: {row.step: row.late_ns / 1e6 for row in rows if row.rank == rank}
        for rank in dict.fromkeys(row.rank for row in rows)
    }


@pytest.mark.parametrize(("run", "delay_ms"), [("ddp_late", 16.20 - 7.38), *sweep([("fsdp_late", 36.41 - 28.99)])])
def test_a_late_rank_is_named_with_its_steps_and_place(run, delay_ms):
    with open_run(run, 0, 2) as trace:
        lateness = read_lateness(trace)
        (cause,) = trace.rows("SELECT host, place FROM ranks WHERE cause IS NOT NULL")
    assert lateness.keys() == {2}
    assert lateness[2].keys() == {3, 7}
    assert list(lateness[2].values()) == pytest.approx([delay_ms] * 2, rel=0.1)
    assert (cause.host, cause.place) == ("CPU work", "data")


def test_a_tensor_group_with_a_larger_batch_makes_the_other_one_wait():
    with open_run("tensor_larger", 0, 1, 2, 3) as trace:
        lateness = read_lateness(trace)
        (groups,) = trace.sql("SELECT groups FROM rank_run").rows()[0]
    assert lateness.keys() == {2, 3}
    for delays in lateness.values():
        assert list(delays.values()) == pytest.approx([14.94 - 8.48] * 7, rel=0.1)
    assert groups == [[[0, 1], [2, 3]], [[0, 2], [1, 3]]]


def test_a_stage_with_more_layers_sets_the_pace():
    with open_run("pipeline_larger", 0, 1, 2, 3) as trace:
        (pace,) = trace.rows("FROM _stage_pace")
    assert (pace.rank, round(pace.ratio, 1)) == (1, 2.0)
    assert pace.high_ns / 2e6 < 21.64 - 17.94 < pace.high_ns / 1e6


@pytest.mark.slow
def test_the_diagnosis_begins_with_the_long_stage():
    with open_run("pipeline_larger", 0, 1, 2, 3) as trace:
        diagnosis = trace.diagnose()
    assert diagnosis.run.sentence.startswith("4 ranks: the stages of a pipeline are uneven: rank 1 is busy for 16.")
    assert diagnosis.findings[0].name == "pipeline-bubble"
    assert diagnosis.findings[0].cure.text.startswith("Give that rank fewer layers")


def test_an_expert_with_more_tokens_makes_the_others_wait():
    with open_run("experts_larger", 0, 1) as trace:
        lateness = read_lateness(trace)
    assert lateness.keys() == {1}
    # Its tokens are twice as many as those of another expert: 1.6 times as many as with equal ones.
    equal_ms = (14.20 - 10.96) * (2 / 5 - 1 / 5) / (2 / 5 - 1 / 4)
    assert list(lateness[1].values()) == pytest.approx([equal_ms] * 7, rel=0.2)


# Measured by events on the first rank to leave, in µs. They include some µs of overhead.
CALLS_US = {"AllReduce": 318.9, "AllGather": 658.3, "ReduceScatter": 660.8, "Broadcast": 204.4, "AlltoAll": 185.4}
# Bytes by the formulas of nccl-tests, for four ranks with 64 MiB each.
BUS_MIB = {"AllReduce": 2 * 3 / 4 * 64, "AllGather": 3 * 64, "ReduceScatter": 3 * 64, "Broadcast": 64, "AlltoAll": 48}


def test_bus_bandwidth_is_that_of_the_formulas_and_of_the_program():
    with open_run("sizes", 0, 1, 2, 3) as trace:
        rows = {(row["operation"], row["bytes"]): row for row in trace.answer("collectives").dicts()}
    for name, measured_us in CALLS_US.items():
        row = rows[name, (16 if name == "AlltoAll" else 64) * MIB]  # what a rank sends to each
        expected = BUS_MIB[name] * MIB / (measured_us / 1e6)
        assert row["bus_bytes_per_s"] == pytest.approx(expected, rel=0.05), name


def test_without_all_ranks_a_bandwidth_is_unknown_or_has_a_note():
    with open_run("sizes", 0, 2) as trace:
        answer = trace.answer("collectives")
        rows = {row["operation"]: row for row in answer.dicts() if row["bytes"] == 64 * MIB}
        assert [rows[name]["bus_bytes_per_s"] for name in ("AllReduce", "AllGather")] == [None, None]
        assert rows["Broadcast"]["bus_bytes_per_s"] > 300e9, "does not depend on the number of ranks"
        assert any(note.startswith("rank 1 is not in these traces, so how many ranks") for note in answer.notes)
    with open_run("sizes", 0, 1) as trace:
        notes = trace.answer("collectives").notes
        assert any(note.startswith("the bandwidths count the ranks whose traces are given") for note in notes)
