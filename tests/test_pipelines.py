"""Pipelines: messages matched with each other, bubbles told from stages that are late, in planted runs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pipeline_traces import SEND_RECV, InterleavedRun, PipelineRun, RingRun

import nsys_insight
from nsys_insight.facts.ranks.messages import Message, Messages
from nsys_insight.facts.ranks.pipeline import is_even, rows
from nsys_insight.facts.ranks.rank import Rank

MS = 1_000_000


class Asked:
    """What is said of a run."""

    def __init__(self, what, *, diagnose=False):
        with nsys_insight.open(what, use_cache=False) as trace:
            answer = trace.answer("ranks")
            self.rows, self.notes = {row["rank"]: row for row in answer.dicts()}, answer.notes
            (self.run,) = trace.dicts("FROM rank_run")
            self.messages = trace.dicts("FROM messages")
            self.collectives = trace.answer("collectives").dicts()
            self.diagnosis = trace.diagnose() if diagnose else None

    @property
    def late(self):
        return {rank: row["late_steps"] for rank, row in self.rows.items() if row["late_steps"]}

    @property
    def findings(self):
        return {finding.name for finding in self.diagnosis.findings}


def of(run, folder, *, merged=True, diagnose=False):
    return Asked(run.merged().write(folder / "run.sqlite") if merged else run.write(folder), diagnose=diagnose)


@pytest.mark.slow
def test_stages_that_wait_for_each_other_are_late_for_nobody(tmp_path):
    found = of(PipelineRun(8, microbatches=8, steps=5), tmp_path, diagnose=True)
    assert (found.late, found.run["verdict"]) == ({}, "even")
    assert (found.run["stages"], found.run["stage_messages"]) == (8, 8)
    # (p - 1) / (m + p - 1): the transfers of the messages alone make it a little less.
    assert found.run["bubble_pct"] == pytest.approx(100 * 7 / 15, abs=2)
    said = (
        "the ranks are a pipeline of 8 stages, 8 messages a step from one to the next: in the usual step a rank waits "
    )
    (note,) = [note for note in found.notes if note.startswith(said)]
    assert note.endswith("with this number of equal microbatches and stages that take equally long, it would be 47%")
    assert "pipeline-bubble" in found.findings
    assert not found.findings & {"late-rank", "slow-rank", "moving-straggler"}
    assert (
        found.diagnosis.run.sentence
        == "8 ranks: stages of a pipeline, none of which is later than usual by enough to report"
    )
    assert note in found.diagnosis.run.notes
    assert len(found.messages) == 5 * 7 * 2 * 8


def test_messages_have_their_ends_and_who_waited(tmp_path):
    run = PipelineRun(2, microbatches=4, steps=6)
    run.slower[0] = 2.0
    found = of(run, tmp_path)
    there = [one for one in found.messages if one["sender"] == 0]
    assert all((one["receiver"], one["bytes"]) == (1, 1 << 20) for one in there)
    assert all(one["transfer_ns"] == 20_000 for one in found.messages)
    # Stage 1 computes for 0.2 ms, and the next microbatch comes after 0.4 ms.
    waited = sorted(one["receive_waiting_ns"] for one in there)
    assert waited[len(waited) // 2] == pytest.approx(200_000, abs=10_000)
    assert all(min(one["send_waiting_ns"], one["receive_waiting_ns"]) == 0 for one in found.messages)
    (row,) = [row for row in found.collectives if row["operation"] == "SendRecv"]
    assert (row["bytes"], row["calls"], row["ranks"], row["transfer_ns"]) == (1 << 20, 6 * 8, 2, 20_000)
    assert row["bus_bytes_per_s"] == row["algorithm_bytes_per_s"] == pytest.approx(1e9 * (1 << 20) / 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 3])
def test_a_stage_that_is_late_in_some_steps(tmp_path, rank):
    run = PipelineRun(8 if rank else 2)
    run.python[rank] = {4: 6 * MS, 7: 6 * MS}
    found = of(run, tmp_path, diagnose=not rank)
    assert (found.late, found.run["verdict"]) == ({rank: 2}, "late")
    assert found.rows[rank]["late_ns"] == pytest.approx(6 * MS, rel=0.02)
    assert found.rows[rank]["because"] == "CPU work in preprocess"
    assert found.run["bubble_pct"] == pytest.approx(100 * 7 / 15 if rank else 100 / 9, abs=1.5), (
        "the usual step is as it was"
    )
    # Two of seven steps are 6 ms longer, for which all others wait.
    said = f"rank {rank} is late; the others wait 1.7"
    assert any(
        note.startswith(said) and note.endswith(" ms more than usual per step on average") for note in found.notes
    )
    if not rank:
        assert {"late-rank", "pipeline-bubble"} <= found.findings
        assert any("late in 2 of 7 steps (4, 7) by 6" in finding.evidence for finding in found.diagnosis.findings)


@pytest.mark.slow
def test_a_straggler_that_moves_from_stage_to_stage(tmp_path):
    run, chance = PipelineRun(8, steps=14), random.Random(2)  # noqa: S311 - not for secrets
    run.microbatches = 4
    for step in range(1, 14, 2):
        run.python[chance.randrange(8)][step] = 5 * MS
    found = of(run, tmp_path, diagnose=True)
    assert found.run["verdict"] == "moving"
    assert found.late == {rank: len(steps) for rank, steps in run.python.items() if steps}
    assert {"moving-straggler", "pipeline-bubble"} <= found.findings


@pytest.mark.slow
def test_a_stage_with_more_to_compute_sets_the_pace_and_is_not_late(tmp_path):
    run = PipelineRun(4)
    run.slower[2] = 1.5
    found = of(run, tmp_path)
    assert found.late == {}
    assert any(
        note.endswith("; rank 2 works 1.5 times as long as the median of the others, which sets the pace")
        for note in found.notes
    )
    assert found.run["bubble_pct"] > 100 * 3 / 11 + 10


@pytest.mark.slow
def test_a_delay_that_the_bubble_takes_up_makes_nobody_late(tmp_path):
    # The last stage has 1.2 ms to itself in each step: it computes for 0.2 ms where the first one takes twice as long.
    run = PipelineRun(3)
    run.slower[0], run.python[1] = 2.0, {4: 100_000}
    assert of(run, tmp_path).late == {}


@pytest.mark.slow
def test_two_pipelines_side_by_side(tmp_path):
    run = PipelineRun(4)
    run.replicas = 2
    run.python[6] = {3: 5 * MS, 6: 5 * MS}
    found = of(run, tmp_path)
    assert (found.run["stages"], found.run["ranks"], found.late) == (4, 8, {6: 2})


@pytest.mark.slow
def test_a_capture_that_begins_a_step_later(tmp_path):
    run = PipelineRun(3, microbatches=6)
    run.begins, run.python[2] = {1: 1}, {5: 5 * MS}
    found = of(run, tmp_path, merged=False)
    assert (found.run["stages"], found.late) == (3, {2: 1})
    assert found.run["bubble_pct"] == pytest.approx(100 * 2 / 8, abs=1)


@pytest.mark.slow
def test_interleaved_stages_wait_for_each_other_and_are_late_for_nobody(tmp_path):
    run = InterleavedRun(4, steps=5)
    found = of(run, tmp_path)
    assert (found.late, found.run["verdict"], found.run["stages"]) == ({}, "even", 8)
    # (p - 1) / (v m + p - 1), of four ranks with two stages each and eight microbatches.
    assert found.run["bubble_pct"] == pytest.approx(100 * 3 / 19, abs=0.5)
    (note,) = [note for note in found.notes if "pipeline" in note]
    assert note.startswith("the ranks are a pipeline of 4 ranks with 2 stages each, 16 messages a step from one to the")
    assert note.endswith("; with 8 equal microbatches and stages that take equally long, it would be 16%")


@pytest.mark.slow
def test_an_interleaved_stage_that_is_late_in_some_steps(tmp_path):
    run = InterleavedRun(3, microbatches=6, steps=6)
    run.python[1], run.slower[2] = {4: 5 * MS}, 1.3
    found = of(run, tmp_path)
    assert found.late == {1: 1}
    # What delay the bubble takes up makes nobody late.
    assert found.rows[1]["late_ns"] == pytest.approx(5 * MS, rel=0.2)
    assert any("rank 2 works 1.3 times as long as the median of the others" in note for note in found.notes)


@pytest.mark.slow
def test_a_rank_of_a_ring_that_is_late_is_told_from_the_others(tmp_path):
    run = RingRun(4, microbatches=4, steps=6)
    assert of(run, tmp_path).late == {}
    run.python[2] = {3: 6 * MS, 5: 6 * MS}
    found = of(run, tmp_path)
    assert (found.late, found.run["stages"]) == ({2: 2}, None)
    assert found.rows[2]["late_ns"] == pytest.approx(6 * MS, rel=0.01)
    assert found.rows[2]["because"] == "CPU work in preprocess"
    run.python, run.slower = {rank: {} for rank in range(4)}, {1: 1.5}
    found = of(run, tmp_path)
    assert (found.late, found.rows[1]["because"]) == ({1: 5}, "its GPU is busy 1.5 times as long")


def test_one_that_sends_to_all_others_is_not_compared_with_them():
    ones, ring = ((messages, range(3)) for messages in (ranks_that_send(3, [(0, 1), (0, 2)])[0], RING))
    assert not is_even(*ones)
    assert is_even(*ring)


@pytest.mark.slow
def test_without_payloads_messages_are_not_matched_and_nobody_is_called_late(tmp_path):
    run = PipelineRun(4)
    run.is_told = False
    found = of(run, tmp_path)
    assert (found.messages, found.late, found.run["stages"], found.run["verdict"]) == ([], {}, None, "even")
    assert "messages from rank to rank (SendRecv) are not matched, and count as transfer" in found.notes
    run.python[1] = {4: 6 * MS, 7: 6 * MS}
    assert of(run, tmp_path).late == {1: 2}, "what it does by itself is known all the same"


def ranks_that_send(count, pairs, steps=4):
    """Ranks with one kernel a step, in which messages of these pairs are; and the matched messages, and the steps."""
    start = np.arange(steps, dtype=np.int64) * MS + 1_000
    none = np.full(steps, -1, dtype=np.int64)
    ranks = [Rank(0, at, 0, at, ["SendRecv"] * steps, ["x"] * steps, none, start, start + 500) for at in range(count)]
    found = [Message("x", one, other, 8, step, step, is_alone=True) for step in range(steps) for one, other in pairs]
    edges = dict.fromkeys(range(count), (start - 1_000, start + MS - 1_000))
    return Messages(found, {}), ranks, edges


RING = ranks_that_send(3, [(0, 1), (1, 2), (2, 0)])[0]


@pytest.mark.parametrize(
    ("count", "pairs", "stages"),
    [
        (3, [(0, 1), (1, 2)], 3),
        (4, [(0, 1), (2, 3)], 2),
        (2, [(0, 1), (1, 0)], None),  # an exchange, in one kernel
        (3, [(0, 1), (1, 2), (2, 0)], None),  # a ring
        (3, 2 * [(0, 1), (1, 2)] + [(2, 0)], 6),  # which one of them does not close: two stages each
        (3, 5 * [(0, 1), (1, 2)] + 3 * [(2, 0)], None),  # a ring of which two in five are not known
        (3, 2 * [(0, 1)] + 3 * [(1, 2)] + [(2, 0)], None),
        (3, [(0, 1), (0, 2)], None),  # one that sends to all
    ],
)
def test_stages_are_ranks_that_send_along_a_row(count, pairs, stages):
    found = rows(*ranks_that_send(count, pairs))
    assert (found and found.stages) == stages


def test_a_run_of_messages_alone_says_why_nothing_is_told(tmp_path):
    trace = PipelineRun(2, steps=4).merged()
    kernels = trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]
    kernels[:] = [row for row in kernels if "AllReduce" not in row["demangledName"]]
    assert any(row["demangledName"] == SEND_RECV for row in kernels)
    with nsys_insight.open(trace.write(tmp_path / "run.sqlite"), use_cache=False) as opened:
        notes = opened.answer("ranks").notes
    assert any(note.startswith("these ranks only exchange messages") for note in notes)
    assert not any("belong to different runs" in note for note in notes)
