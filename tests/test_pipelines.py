"""Pipelines in planted runs: matched messages, and bubbles distinguished from late stages."""

from __future__ import annotations

import random

import numpy as np
import pytest
from opening import evaluate_rules
from pipeline_traces import SEND_RECV, ExpertsRun, InterleavedRun, PipelineRun, RingRun

import nsys_insight
from nsys_insight.facts.ranks.messages import Message, Messages
from nsys_insight.facts.ranks.pipeline import find_pipeline, is_even
from nsys_insight.facts.ranks.rank import Rank

MS = 1_000_000


class RunAnswers:
    """The answers about a run."""

    def __init__(self, source, *, diagnose=False):
        with nsys_insight.open(source, use_cache=False) as trace:
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


def analyze(run, folder, *, merged=True, diagnose=False):
    return RunAnswers(run.merged().write(folder / "run.sqlite") if merged else run.write(folder), diagnose=diagnose)


@pytest.mark.slow
def test_stages_that_wait_for_each_other_are_not_late(tmp_path):
    answers = analyze(PipelineRun(8, microbatches=8, steps=5), tmp_path, diagnose=True)
    assert (answers.late, answers.run["verdict"]) == ({}, "even")
    assert (answers.run["stages"], answers.run["stage_messages"]) == (8, 8)
    # (p - 1) / (m + p - 1): the transfers of the messages alone make it a little less.
    assert answers.run["bubble_pct"] == pytest.approx(100 * 7 / 15, abs=2)
    note_start = "the ranks are a pipeline of 8 stages, 8 messages per step from one to the next: in the usual step "
    (note,) = [note for note in answers.notes if note.startswith(note_start)]
    assert note.endswith("with this number of equal microbatches and stages that take equally long, it would be 47%")
    assert "pipeline-bubble" in answers.findings
    assert not answers.findings & {"late-rank", "slow-rank", "moving-straggler"}
    assert (
        answers.diagnosis.run.sentence
        == "8 ranks: stages of a pipeline, none of which is later than usual by enough to report"
    )
    assert note in answers.diagnosis.run.notes
    assert len(answers.messages) == 5 * 7 * 2 * 8


def test_messages_have_sender_receiver_and_waiting_times(tmp_path):
    run = PipelineRun(2, microbatches=4, steps=6)
    run.slower[0] = 2.0
    answers = analyze(run, tmp_path)
    messages = [message for message in answers.messages if message["sender"] == 0]
    assert all((message["receiver"], message["bytes"]) == (1, 1 << 20) for message in messages)
    assert all(message["transfer_ns"] == 20_000 for message in answers.messages)
    # Stage 1 computes for 0.2 ms, and the next microbatch comes after 0.4 ms.
    waited = sorted(message["receive_waiting_ns"] for message in messages)
    assert waited[len(waited) // 2] == pytest.approx(200_000, abs=10_000)
    assert all(min(message["send_waiting_ns"], message["receive_waiting_ns"]) == 0 for message in answers.messages)
    (row,) = [row for row in answers.collectives if row["operation"] == "SendRecv"]
    assert (row["bytes"], row["calls"], row["ranks"], row["transfer_ns"]) == (1 << 20, 6 * 8, 2, 20_000)
    assert row["bus_bytes_per_s"] == row["algorithm_bytes_per_s"] == pytest.approx(1e9 * (1 << 20) / 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 3])
def test_a_stage_that_is_late_in_some_steps(tmp_path, rank):
    run = PipelineRun(8 if rank else 2)
    run.python[rank] = {4: 6 * MS, 7: 6 * MS}
    answers = analyze(run, tmp_path, diagnose=not rank)
    assert (answers.late, answers.run["verdict"]) == ({rank: 2}, "late")
    assert answers.rows[rank]["late_ns"] == pytest.approx(6 * MS, rel=0.02)
    assert answers.rows[rank]["because"] == "CPU work in preprocess"
    assert answers.run["bubble_pct"] == pytest.approx(100 * 7 / 15 if rank else 100 / 9, abs=1.5), (
        "the usual step is as it was"
    )
    # Two of seven steps are 6 ms longer, for which all others wait.
    note_start = f"rank {rank} is late; the others wait 1.7"
    assert any(
        note.startswith(note_start) and note.endswith(" ms more than usual per step on average")
        for note in answers.notes
    )
    if not rank:
        assert {"late-rank", "pipeline-bubble"} <= answers.findings
        assert any("late in 2 of 7 steps (4, 7) by 6" in finding.evidence for finding in answers.diagnosis.findings)


@pytest.mark.slow
def test_a_straggler_that_moves_from_stage_to_stage(tmp_path):
    run, chance = PipelineRun(8, steps=14), random.Random(2)  # noqa: S311 - not for secrets
    run.microbatches = 4
    for step in range(1, 14, 2):
        run.python[chance.randrange(8)][step] = 5 * MS
    answers = analyze(run, tmp_path, diagnose=True)
    assert answers.run["verdict"] == "moving"
    assert answers.late == {rank: len(steps) for rank, steps in run.python.items() if steps}
    assert {"moving-straggler", "pipeline-bubble"} <= answers.findings


@pytest.mark.slow
def test_a_stage_with_more_work_sets_the_pace_and_is_not_late(tmp_path):
    run = PipelineRun(4)
    run.slower[2] = 1.5
    answers = analyze(run, tmp_path)
    assert answers.late == {}
    assert any(
        note.endswith("; rank 2 works 1.5 times as long as the median of the others, which sets the pace")
        for note in answers.notes
    )
    assert answers.run["bubble_pct"] > 100 * 3 / 11 + 10


def test_a_stage_with_more_work_costs_what_equal_stages_save(tmp_path):
    def measure(factors):
        run = PipelineRun(4)
        run.slower = factors
        with nsys_insight.open(run.merged().write(tmp_path / "run.sqlite"), use_cache=False) as trace:
            (step_ns,) = trace.sql("SELECT median(wall_ns) FROM rank_steps").rows()[0]
            (pace,) = trace.rows("FROM _stage_pace")
            return step_ns, pace

    uneven_ns, pace = measure({1: 2.0})
    even_ns, even_pace = measure(dict.fromkeys(range(4), 1.25))
    # The messages that no longer hide behind the wait are short here.
    assert pace.high_ns == pytest.approx(uneven_ns - even_ns, rel=0.1)
    assert (pace.rank, even_pace.high_ns) == (1, None)


@pytest.mark.slow
def test_a_delay_that_fits_into_the_bubble_makes_no_rank_late(tmp_path):
    # The last stage has 1.2 ms to itself in each step: it computes for 0.2 ms where the first one takes twice as long.
    run = PipelineRun(3)
    run.slower[0], run.python[1] = 2.0, {4: 100_000}
    assert analyze(run, tmp_path).late == {}


@pytest.mark.slow
def test_two_pipelines_side_by_side(tmp_path):
    run = PipelineRun(4)
    run.replicas = 2
    run.python[6] = {3: 5 * MS, 6: 5 * MS}
    answers = analyze(run, tmp_path)
    assert (answers.run["stages"], answers.run["ranks"], answers.late) == (4, 8, {6: 2})


@pytest.mark.slow
def test_a_capture_that_begins_a_step_later(tmp_path):
    run = PipelineRun(3, microbatches=6)
    run.begins, run.python[2] = {1: 1}, {5: 5 * MS}
    answers = analyze(run, tmp_path, merged=False)
    assert (answers.run["stages"], answers.late) == (3, {2: 1})
    assert answers.run["bubble_pct"] == pytest.approx(100 * 2 / 8, abs=1)


@pytest.mark.slow
def test_interleaved_stages_that_wait_for_each_other_are_not_late(tmp_path):
    run = InterleavedRun(4, steps=5)
    answers = analyze(run, tmp_path)
    assert (answers.late, answers.run["verdict"], answers.run["stages"]) == ({}, "even", 8)
    # (p - 1) / (v m + p - 1), of four ranks with two stages each and eight microbatches.
    assert answers.run["bubble_pct"] == pytest.approx(100 * 3 / 19, abs=0.5)
    (note,) = [note for note in answers.notes if "pipeline" in note]
    assert note.startswith(
        "the ranks are a pipeline of 4 ranks with 2 stages each, 16 messages per step from one to the"
    )
    assert note.endswith("; with 8 equal microbatches and stages that take equally long, it would be 16%")


@pytest.mark.slow
def test_an_interleaved_stage_that_is_late_in_some_steps(tmp_path):
    run = InterleavedRun(3, microbatches=6, steps=6)
    run.python[1], run.slower[2] = {4: 5 * MS}, 1.3
    answers = analyze(run, tmp_path)
    assert answers.late == {1: 1}
    # A delay that fits into the bubble makes no rank late.
    assert answers.rows[1]["late_ns"] == pytest.approx(5 * MS, rel=0.2)
    assert any("rank 2 works 1.3 times as long as the median of the others" in note for note in answers.notes)


@pytest.mark.slow
def test_a_late_rank_of_a_ring_is_found(tmp_path):
    run = RingRun(4, microbatches=4, steps=6)
    assert analyze(run, tmp_path).late == {}
    run.python[2] = {3: 6 * MS, 5: 6 * MS}
    answers = analyze(run, tmp_path)
    assert (answers.late, answers.run["stages"]) == ({2: 2}, None)
    assert answers.rows[2]["late_ns"] == pytest.approx(6 * MS, rel=0.01)
    assert answers.rows[2]["because"] == "CPU work in preprocess"
    run.python, run.slower = {rank: {} for rank in range(4)}, {1: 1.5}
    answers = analyze(run, tmp_path)
    assert (answers.late, answers.rows[1]["because"]) == ({1: 5}, "its GPU is busy 1.5 times as long")


def test_a_rank_that_sends_to_all_others_is_not_compared_with_them():
    star, ring = ((messages, range(3)) for messages in (ranks_with_messages(3, [(0, 1), (0, 2)])[0], RING))
    assert not is_even(*star)
    assert is_even(*ring)


@pytest.mark.slow
def test_without_payloads_messages_are_not_matched_and_no_rank_is_late(tmp_path):
    run = PipelineRun(4)
    run.has_payloads = False
    answers = analyze(run, tmp_path)
    assert (answers.messages, answers.late, answers.run["stages"], answers.run["verdict"]) == ([], {}, None, "even")
    assert "messages from rank to rank (SendRecv) are not matched, and count as transfer" in answers.notes
    run.python[1] = {4: 6 * MS, 7: 6 * MS}
    assert analyze(run, tmp_path).late == {1: 2}, "the delay of the rank itself is known"


def ranks_with_messages(count, pairs, steps=4):
    """Return matched messages of these pairs, ranks with one kernel per step that has the messages, and the steps."""
    start = np.arange(steps, dtype=np.int64) * MS + 1_000
    unknown_sizes = np.full(steps, -1, dtype=np.int64)
    ranks = [
        Rank(0, number, 0, number, ["SendRecv"] * steps, ["x"] * steps, unknown_sizes, start, start + 500)
        for number in range(count)
    ]
    messages = [
        Message("x", sender, receiver, 8, step, step, is_alone=True)
        for step in range(steps)
        for sender, receiver in pairs
    ]
    edges = dict.fromkeys(range(count), (start - 1_000, start + MS - 1_000))
    return Messages(messages, {}), ranks, edges


RING = ranks_with_messages(3, [(0, 1), (1, 2), (2, 0)])[0]


@pytest.mark.parametrize(
    ("count", "pairs", "stages"),
    [
        (3, [(0, 1), (1, 2)], 3),
        (4, [(0, 1), (2, 3)], 2),
        (2, [(0, 1), (1, 0)], None),  # an exchange, in one kernel
        (3, [(0, 1), (1, 2), (2, 0)], None),  # a ring
        (3, 2 * [(0, 1), (1, 2)] + [(2, 0)], 6),  # the ring lacks one message: two stages each
        (3, 5 * [(0, 1), (1, 2)] + 3 * [(2, 0)], None),  # a ring with two of five messages missing
        (3, 2 * [(0, 1)] + 3 * [(1, 2)] + [(2, 0)], None),
        (3, [(0, 1), (0, 2)], None),  # a rank that sends to all
    ],
)
def test_stages_are_ranks_that_send_along_a_row(count, pairs, stages):
    pipeline = find_pipeline(*ranks_with_messages(count, pairs))
    assert (pipeline and pipeline.stages) == stages


def test_a_run_with_only_messages_has_a_note(tmp_path):
    trace = PipelineRun(2, steps=4).merged()
    kernels = trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]
    kernels[:] = [row for row in kernels if "AllReduce" not in row["demangledName"]]
    assert any(row["demangledName"] == SEND_RECV for row in kernels)
    with nsys_insight.open(trace.write(tmp_path / "run.sqlite"), use_cache=False) as session:
        notes = session.answer("ranks").notes
    assert any(note.startswith("these ranks only exchange messages") for note in notes)
    assert not any("belong to different runs" in note for note in notes)


# Exchanges of all ranks with all -------------------------------------------------------------------------------------


def without_reductions(trace):
    """Return a trace without its all-reduces."""
    kernels = trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]
    kernels[:] = [row for row in kernels if "AllReduce" not in row["demangledName"]]
    return trace


@pytest.mark.parametrize("shares", [(0.8, 0.2), pytest.param((0.2, 0.2, 0.4, 0.2), marks=pytest.mark.slow)])
def test_experts_that_get_most_tokens(tmp_path, shares):
    run, late = ExpertsRun(shares), shares.index(max(shares))
    with nsys_insight.open(without_reductions(run.merged()).write(tmp_path / "run.sqlite"), use_cache=False) as trace:
        first, *other_rows = trace.answer("ranks").dicts()
        assert (first["rank"], [row["cost_ns"] for row in other_rows]) == (late, [0] * (len(shares) - 1))
        # There are four layers. In each, the ranks compute for as long as their share.
        extra_ns = 4 * run.forward * (max(shares) - min(shares))
        assert first["cost_ns"] == pytest.approx(extra_ns, rel=0.01)
        largest, *_ = (row for row in trace.answer("collectives").dicts() if row["operation"] == "AlltoAll")
        assert largest["bytes"] == pytest.approx(run.size * max(shares), abs=len(shares))
        finding = evaluate_rules(trace, ["slow-rank"])["slow-rank"]
        assert finding.recoverable_ns == pytest.approx(extra_ns * (1 - 1 / len(shares)), rel=0.01)
        ratio = (1 + len(shares) * max(shares)) / (1 + len(shares) * min(shares))
        assert finding.values["sent_ratio"] == pytest.approx(ratio, rel=0.01)
        assert "auxiliary loss" in finding.cure.text


@pytest.mark.slow
def test_balanced_experts_make_no_rank_late(tmp_path):
    answers = analyze(ExpertsRun((0.5, 0.5)), tmp_path, diagnose=True)
    assert answers.late == {}
    assert not answers.findings & {"late-rank", "slow-rank", "moving-straggler"}


@pytest.mark.slow
def test_exchanges_without_payloads_are_known_by_the_names_of_their_calls(tmp_path):
    trace = without_reductions(ExpertsRun((0.8, 0.2)).merged())
    for row in trace.rows["NVTX_EVENTS"]:
        row["binaryData"] = None
    with nsys_insight.open(trace.write(tmp_path / "run.sqlite"), use_cache=False) as session:
        assert {row["operation"] for row in session.answer("collectives").dicts()} == {"Exchange"}
        assert session.answer("ranks").dicts()[0]["late_steps"]
        finding = evaluate_rules(session, ["slow-rank"])["slow-rank"]
        assert "auxiliary loss" in finding.cure.text
