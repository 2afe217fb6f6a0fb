"""Ranks of planted runs: which one delays the others, by how much and why, and how certain that is."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from grid_traces import GridRun
from opening import evaluate_rules, open_trace
from rank_traces import ALL_REDUCE, Run, describe_payloads, payload
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.facts.intervals import Intervals
from nsys_insight.facts.nccl import Payload, Schemas
from nsys_insight.facts.rank_numbers import number_ranks
from nsys_insight.facts.ranks import clocks, judge, pipeline
from nsys_insight.facts.ranks.matching import match_groups
from nsys_insight.facts.ranks.rank import Rank
from nsys_insight.facts.ranks.run import align_run
from nsys_insight.packs.step_options import AUTO
from nsys_insight.page.ranks import draw_ranks

MS = 1_000_000


def answer_report(source, report="ranks", **options):
    """Answer a report about a trace or several files: return its rows and its notes."""
    with nsys_insight.open(source, use_cache=False) as trace:
        answer = trace.answer(report, **options)
        return answer.dicts(), answer.notes


def answer_by_rank(run, folder, *, merged=True, **options):
    """Write a run, answer a report about it, and return the rows by rank and the notes."""
    rows, notes = answer_report(run.merged().write(folder / "run.sqlite") if merged else run.write(folder), **options)
    return {row["rank"]: row for row in rows}, notes


def late_ranks(rows):
    return {rank for rank, row in rows.items() if row["late_steps"]}


def make_late_data_run():
    """Make a run of two ranks. In every fifth step, the second rank gets its data 12 ms later."""
    run = Run(2, steps=15)
    run.python[1] = dict.fromkeys((4, 9, 14), 12 * MS)
    return run


# Who is late, and why ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("merged", [True, False])
def test_a_rank_whose_host_is_late(tmp_path, merged):
    rows, notes = answer_by_rank(make_late_data_run(), tmp_path, merged=merged)
    assert late_ranks(rows) == {1}
    assert (rows[1]["late_steps"], rows[1]["because"]) == (3, "CPU work in data")
    assert rows[1]["late_ns"] == pytest.approx(12 * MS, rel=0.01)
    # 14 steps, from the second one on. As long as rank 1 is late, rank 0 only communicates.
    assert rows[0]["waiting_ns"] + rows[0]["transfer_ns"] == pytest.approx(36 * MS / 14 + 300_000, rel=0.02)
    assert rows[1]["waiting_ns"] < 10_000
    assert any(note.startswith("rank 1 is late; the others wait") for note in notes)


@pytest.mark.slow
def test_one_file_of_all_ranks_and_a_file_for_each_are_the_same_run(tmp_path):
    merged_rows, _ = answer_by_rank(make_late_data_run(), tmp_path)
    separate_rows, _ = answer_by_rank(make_late_data_run(), tmp_path, merged=False)
    for rank, row in merged_rows.items():
        for name in ("step_ns", "busy_ns", "waiting_ns", "transfer_ns", "idle_ns", "late_ns"):
            assert separate_rows[rank][name] == (row[name] and pytest.approx(row[name], abs=2_000))


@pytest.mark.slow
def test_the_parts_of_a_step_add_up_to_it(tmp_path):
    path = make_late_data_run().merged().write(tmp_path / "run.sqlite")
    with open_trace(path) as trace:
        unexplained = trace.sql(
            "SELECT wall_ns - busy_ns - waiting_ns - transfer_ns - idle_ns AS left_over FROM rank_steps"
        )
        assert set(unexplained["left_over"]) == {0}


@pytest.mark.slow
def test_a_rank_whose_kernels_are_slower(tmp_path):
    run = Run(8, steps=10)
    run.slower[3] = 1.4
    rows, _ = answer_by_rank(run, tmp_path)
    assert late_ranks(rows) == {3}
    # Four kernels of 1 ms per step.
    assert (rows[3]["late_steps"], rows[3]["because"]) == (9, "its GPU is busy 1.4 times as long")
    assert rows[3]["late_ns"] == pytest.approx(1.6 * MS, rel=0.02)


@pytest.mark.slow
def test_a_rank_that_waits_in_a_call(tmp_path):
    run = make_late_data_run()
    trace = run.merged()
    with_call = [row for row in trace.rows["NVTX_EVENTS"] if row.get("end") and row["end"] - row["start"] > 10 * MS]
    for row in with_call:
        if row["text"] == "data":
            trace.row(
                "CUPTI_ACTIVITY_KIND_RUNTIME", start=row["start"] + 1_000, end=row["end"] - 1_000, eventClass=0,
                globalTid=row["globalTid"], correlationId=90_000 + row["start"] // 1_000, nameId="cudaMalloc_v3020",
                returnValue=0,
            )  # fmt: skip
    rows, _ = answer_report(trace.write(tmp_path / "run.sqlite"))
    assert (rows[0]["rank"], rows[0]["because"]) == (1, "cudaMalloc in data")


def make_run_ahead(first, second):
    """Make two ranks whose hosts launch ahead, with this Python in each step; the second begins a step later."""
    run = Run(2, steps=10)
    run.is_ahead = True
    run.python = {0: dict.fromkeys(range(10), first), 1: dict.fromkeys(range(10), second) | {0: second + 15 * MS}}
    return run


@pytest.mark.parametrize("merged", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_hosts_that_set_the_pace_on_all_ranks(tmp_path, merged):
    # The GPU of rank 0 waits for most of each step, but its host needs nearly as long as that of rank 1.
    rows, notes = answer_by_rank(make_run_ahead(10 * MS, int(10.4 * MS)), tmp_path, merged=merged)
    assert late_ranks(rows) == set()
    assert rows[0]["waiting_ns"] > 0.4 * rows[0]["step_ns"]
    for rank, python in enumerate((10.1, 10.5)):  # and a few calls
        assert rows[rank]["host_ns"] == pytest.approx(python * MS, rel=0.02)
    assert any(note.startswith("no rank is late by itself: the hosts of all ranks work 10.") for note in notes)


def test_delays_that_busy_hosts_leave_are_not_lost():
    # Each GPU waits 6 ms for another in turn, but 19 of 20 ms are the hosts' own; two steps are 10 ms longer.
    late_ns = np.zeros((10, 2), dtype=np.int64)
    late_ns[range(10), [0, 1] * 5] = 6 * MS
    late_ns[[3, 7], 1] = 16 * MS
    wall = np.full((10, 2), 20 * MS)
    wall[[3, 7]] = 30 * MS
    hosts = [np.full(10, 19 * MS)] * 2
    limited = judge.limit_to_hosts(judge.Verdict("moving", [0, 1], late_ns), wall, hosts)
    assert limited.kind == "moving"
    assert limited.late_ns[[3, 7], 1].tolist() == [11 * MS, 11 * MS]
    even = judge.limit_to_hosts(
        judge.Verdict("moving", [0, 1], np.where(late_ns > 6 * MS, 6 * MS, late_ns)), wall * 0 + 19 * MS, hosts
    )
    assert even.kind == "host"


def test_a_delay_is_at_most_what_the_others_would_save(tmp_path):
    path = make_run_ahead(6 * MS, 11 * MS).merged().write(tmp_path / "run.sqlite")
    rows, _ = answer_report(path)
    assert [row["rank"] for row in rows] == [1, 0]  # the rank that costs most comes first
    assert rows[1]["waiting_ns"] > 6 * MS
    assert rows[0]["cost_ns"] == pytest.approx(5 * MS, rel=0.02)
    with open_trace(path) as trace:
        late = evaluate_rules(trace, ["late-rank"])["late-rank"]
    assert late.recoverable_ns == pytest.approx(5 * MS, rel=0.02)
    assert late.saving_low_ns == pytest.approx(5 * MS, rel=0.02)
    assert late.values["stretch_ns"] == pytest.approx(11.1 * MS, rel=0.02)
    assert "no CUDA call, then gemm" in late.evidence


@pytest.mark.slow
def test_two_ranks_that_are_late_together(tmp_path):
    run = Run(6, steps=10)
    run.slower = {4: 1.5, 5: 1.5}
    rows, notes = answer_by_rank(run, tmp_path)
    assert late_ranks(rows) == {4, 5}
    assert any(note.startswith("ranks 4, 5 are late") for note in notes)


def test_a_slow_link_makes_no_rank_late(tmp_path):
    run = Run(4, steps=8)
    run.transfer = 5 * MS
    rows, notes = answer_by_rank(run, tmp_path)
    assert late_ranks(rows) == set()
    assert all(row["transfer_ns"] > 7.9 * MS and row["waiting_ns"] < 20_000 for row in rows.values())
    assert "no rank is later than the others by enough to report" in notes


@pytest.mark.slow
def test_a_straggler_that_moves(tmp_path):
    run, chance = Run(8, steps=24), random.Random(3)  # noqa: S311 - not for secrets
    for step in range(24):
        run.python[chance.randrange(8)][step] = 6 * MS
    rows, notes = answer_by_rank(run, tmp_path)
    assert "no single rank is late: it is a different one from step to step" in notes
    assert sum(row["late_steps"] for row in rows.values()) == 23


@pytest.mark.slow
def test_even_ranks(tmp_path):
    run = Run(4, steps=8)
    run.jitter = 30_000
    rows, notes = answer_by_rank(run, tmp_path)
    assert late_ranks(rows) == set()
    assert "no rank is later than the others by enough to report" in notes


@pytest.mark.slow
def test_a_delay_below_the_clock_error_is_not_reported(tmp_path):
    run = Run(4, steps=10)
    run.slower[2] = 1.05  # 200 µs per step, and clocks that agree within half of that
    assert late_ranks(answer_by_rank(run, tmp_path)[0]) == {2}
    run.leaves = 150_000
    rows, notes = answer_by_rank(run, tmp_path)
    assert late_ranks(rows) == set()
    assert any("agree within" in note and "the order of arrivals closer than that is unknown" in note for note in notes)


@pytest.mark.slow
def test_sixty_four_ranks(tmp_path):
    run = Run(64, steps=6, buckets=1)
    run.python[40] = {3: 9 * MS}
    rows, _ = answer_by_rank(run, tmp_path)
    assert (len(rows), late_ranks(rows)) == (64, {40})
    assert rows[40]["late_ns"] == pytest.approx(9 * MS, rel=0.01)


@pytest.mark.slow
def test_five_hundred_ranks(tmp_path):
    run = Run(512, steps=4, buckets=1)
    run.python[300] = {2: 9 * MS}
    path = run.merged().write(tmp_path / "run.sqlite")
    rows, notes = answer_report(path)
    assert (len(rows), rows[0]["rank"], rows[0]["late_steps"]) == (512, 300, 1)
    assert rows[0]["late_ns"] == pytest.approx(9 * MS, rel=0.01)
    (note,) = [note for note in notes if note.startswith("over 512 ranks (least, median, most): busy 2")]
    assert ", 3 ms, 3.0" in note
    with open_trace(path) as trace:
        picture = draw_ranks(trace, AUTO, "", ())
    assert (picture.count, [bar.label for bar in picture.spread][:2]) == (512, ["works", "waits for others"])
    assert len(picture.grid) == 64
    assert 300 in [row.rank for row in picture.grid]


def test_utilization_of_ranks_and_what_overlap_would_give(tmp_path):
    run = Run(2, steps=6)
    run.transfer = 1_000_000
    path = run.merged().write(tmp_path / "run.sqlite")
    rows, notes = answer_report(path, flops_per_step=4e12, peak=1000.0)
    step_ns, exposed_ns = (rows[0]["step_ns"], rows[0]["waiting_ns"] + rows[0]["transfer_ns"])
    assert rows[0]["mfu_pct"] == pytest.approx(100 * 2e12 / (step_ns / 1e9) / 1e15)
    assert rows[0]["busy_mfu_pct"] == pytest.approx(rows[0]["mfu_pct"] * step_ns / rows[0]["busy_ns"])
    (note,) = [note for note in notes if note.startswith("MFU of the run")]
    assert note.endswith(f"{rows[0]['mfu_pct'] * step_ns / (step_ns - exposed_ns):.3g}% at most")
    assert any(note.startswith("a rank only communicates or waits for ") for note in notes)
    by_parameters, _ = answer_report(path, parameters=1e9, training=True, tokens_per_step=1000, peak=1000.0)
    assert by_parameters[0]["mfu_pct"] == pytest.approx(1.5 * rows[0]["mfu_pct"])
    assert answer_report(path)[0][0]["mfu_pct"] is None


# Which ranks, and how certain -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_hosts_whose_clocks_differ_and_drift(tmp_path):
    run = Run(4, steps=30)
    run.clock = {2: (3 * MS, 400e-6), 3: (3 * MS, 400e-6)}
    run.python[3] = dict.fromkeys(range(3, 30, 5), 4 * MS)
    paths = run.write(tmp_path)
    rows, notes = answer_report(paths)
    assert [(row["rank"], row["because"]) for row in rows if row["late_steps"]] == [(3, "CPU work in data")]
    assert any("differed by up to 3" in note and "drifted by up to 4e+02 µs per second" in note for note in notes)
    with nsys_insight.open(paths, use_cache=False) as trace:
        clock_rows = trace.sql("SELECT rank, clock_offset_ns, clock_drift_ppm FROM ranks ORDER BY rank").rows()
        (error,) = trace.sql("SELECT error_ns FROM rank_run").rows()[0]
    assert error < 5_000
    for rank, offset, drift in clock_rows:
        expected, expected_drift = run.clock.get(rank, (0, 0.0))
        assert drift == pytest.approx(1e6 * expected_drift, abs=20)
        assert offset == pytest.approx(expected, abs=0.02 * MS)


@pytest.mark.slow
def test_a_missing_rank_is_reported(tmp_path):
    run = Run(4, steps=8)
    run.missing, run.slower = {1}, {2: 1.4}
    rows, notes = answer_by_rank(run, tmp_path, merged=False)
    assert (set(rows), late_ranks(rows)) == ({0, 2, 3}, {2})
    assert "rank 1 is not in these traces" in notes


@pytest.mark.slow
def test_a_capture_that_begins_a_step_later(tmp_path):
    run = Run(3, steps=8)
    run.begins, run.slower = {1: 1}, {2: 1.4}
    rows, notes = answer_by_rank(run, tmp_path, merged=False)
    assert late_ranks(rows) == {2}
    assert rows[2]["late_ns"] == pytest.approx(1.6 * MS, rel=0.02)
    assert any(note.startswith("2 of 16 collectives are not in the capture of every rank") for note in notes)


@pytest.mark.slow
def test_captures_with_different_steps(tmp_path):
    run = Run(3, steps=9, buckets=1)
    run.begins, run.ends = {0: 2, 1: 1}, {1: 6, 2: 8}
    run.python[2] = {4: 12 * MS, 7: 12 * MS}
    rows, notes = answer_by_rank(run, tmp_path, merged=False)
    assert late_ranks(rows) == {2}
    # The capture of rank 1 lacks the second late step. Before step 2, the arrival times of the ranks are unknown.
    assert (rows[2]["late_steps"], rows[2]["late_ns"]) == (1, pytest.approx(12 * MS, rel=0.01))
    note_start = "5 of 9 collectives are not in the capture of every rank, and are not counted; steps are counted as in"
    assert any(note.startswith(note_start) and note.endswith("of rank 0") for note in notes)
    # Captures that do not overlap in time cannot be matched.
    run = Run(2, steps=8, buckets=1)
    run.begins, run.ends, run.slower = {1: 4}, {0: 4}, {1: 1.4}
    (tmp_path / "apart").mkdir()
    rows, notes = answer_by_rank(run, tmp_path / "apart", merged=False)
    assert all(row["step_ns"] is None and row["late_steps"] is None for row in rows.values())
    assert any("cannot be matched with each other" in note for note in notes)


def test_captures_of_equal_steps_with_unknown_start_are_not_matched(tmp_path):
    # All steps are alike, and the start time of the captures is unknown.
    run = Run(2, steps=8)
    run.jitter, run.leaves, run.begins, run.communicators = 0, 1, {1: 1}, [None, None]
    paths = []
    for rank, trace in enumerate(run.traces()):
        paths.append(trace.write(tmp_path / f"rank{rank}.sqlite", without_tables=["TARGET_INFO_SESSION_START_TIME"]))
    rows, notes = answer_report(paths)
    assert all(row["step_ns"] is None for row in rows)
    assert any("cannot be matched with each other" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("communicators", [[1, 2, 3], [None] * 3])
@pytest.mark.parametrize("merged", [True, False])
def test_programs_that_do_not_communicate_with_each_other(tmp_path, communicators, merged):
    run = Run(3, steps=10)
    run.is_independent, run.communicators, run.jitter, run.slower = True, communicators, 300_000, {1: 1.3}
    rows, notes = answer_by_rank(run, tmp_path, merged=merged)
    assert all(row["step_ns"] is None and row["late_steps"] is None for row in rows.values())
    assert any("cannot be matched with each other" in note for note in notes)
    with nsys_insight.open(sorted(tmp_path.glob("*.sqlite")), use_cache=False) as trace:
        if merged:
            assert trace.diagnose().run is None
        else:
            reason = "in the capture of one rank only" if communicators[0] else "operations, sizes or times differ"
            with pytest.raises(UsageError, match=reason):
                trace.diagnose()


@pytest.mark.slow
def test_ranks_are_matched_without_the_payloads(tmp_path):
    run = Run(4, steps=10)
    run.communicators, run.slower = [None] * 4, {3: 1.4}
    for merged in (True, False):
        assert late_ranks(answer_by_rank(run, tmp_path, merged=merged)[0]) == {3}


def test_broadcasts_that_the_root_leaves_early_are_matched():
    def make_rank(number):
        operations = ["Broadcast" if index % 3 == 0 else "AllReduce" for index in range(15)]
        ends = np.arange(1, 16) * 100_000
        # All ranks are in an AllReduce together; a Broadcast of 10 ns is over on the root when the other rank begins.
        is_broadcast = np.array([operation == "Broadcast" for operation in operations])
        ends[is_broadcast] += 50_000 * number
        starts = ends - np.where(is_broadcast, 10, 5_000)
        return Rank(number, 100 + number, 0, number, operations, ["1"] * 15, np.full(15, 1024), starts, ends)

    (group,) = match_groups([make_rank(0), make_rank(1)], [0, 0])
    assert len(group.complete_rows) == 15


class TestGroups:
    """Replicas of a model on several ranks each: ranks of a replica share a communicator, and replicas another one."""

    def test_a_late_rank_is_found_in_any_group(self, tmp_path):
        run = GridRun(4, 2)
        run.python[5] = dict.fromkeys(range(2, 12, 2), 6 * MS)
        rows, notes = answer_by_rank(run, tmp_path)
        assert late_ranks(rows) == {5}
        assert (rows[5]["late_steps"], rows[5]["because"]) == (5, "CPU work in data")
        assert rows[5]["late_ns"] == pytest.approx(6 * MS, rel=0.01)
        groups = "2 groups of 4 ranks do the same side by side: ranks 0, 1, 2, 3; ranks 4, 5, 6, 7"
        other_groups = "4 groups of 2 ranks do the same side by side: ranks 0, 4; ranks 1, 5; ranks 2, 6; 1 more"
        assert {groups, other_groups} <= set(notes)

    @pytest.mark.slow  # tests/test_four_ranks.py has one of a real run
    def test_a_group_with_a_larger_batch_is_late(self, tmp_path):
        run = GridRun(2, 2)
        run.slower, run.larger_groups = {2: 2, 3: 2}, {1}  # each collective of the second group has twice the size
        rows, _ = answer_by_rank(run, tmp_path)
        assert late_ranks(rows) == {2, 3}
        for rank in (2, 3):  # four layers of 0.8 ms, twice as long
            assert rows[rank]["late_ns"] == pytest.approx(3.2 * MS, rel=0.02)

    def test_captures_that_begin_at_different_steps(self, tmp_path):
        run = GridRun(2, 2)
        run.slower, run.begins, run.clock = {3: 1.5}, {2: 2, 3: 1}, {3: (2 * MS, 1e-5)}
        rows, _ = answer_by_rank(run, tmp_path, merged=False)
        assert late_ranks(rows) == {3}
        # Four layers of 0.8 ms, half as long again.
        assert rows[3]["late_ns"] == pytest.approx(1.6 * MS, rel=0.05)
        assert {row["step_ns"] for row in rows.values()} - {None}

    @pytest.mark.slow
    def test_even_groups(self, tmp_path):
        assert late_ranks(answer_by_rank(GridRun(2, 4), tmp_path)[0]) == set()

    def test_replicas_that_share_nothing_are_not_compared(self, tmp_path):
        run = GridRun(2, 2, shares_gradients=False)
        run.slower = {3: 1.5}
        rows, notes = answer_by_rank(run, tmp_path)
        assert [rank for rank, row in rows.items() if row["step_ns"] is not None] == [0, 1]
        assert any("lateness is judged among ranks 0, 1" in note for note in notes)


def test_a_program_without_nccl_has_no_ranks(sample):
    for report in ("ranks", "collectives"):
        assert answer_report(sample("churn"), report)[0] == []


def test_traces_that_are_no_run_say_why(tmp_path, sample):
    rank = make_late_data_run().write(tmp_path)[0]
    for paths, reason in (
        ([sample("churn"), sample("decode_eager")], "no NCCL kernels are in these traces"),
        ([rank, sample("churn")], "only one of these traces has NCCL kernels"),
    ):
        with nsys_insight.open(paths, use_cache=False) as trace, pytest.raises(UsageError, match=reason):
            trace.diagnose()


def test_one_rank_of_a_run(tmp_path):
    path = make_late_data_run().write(tmp_path)[0]
    (row,), notes = answer_report(path)
    assert (row["rank"], row["step_ns"], row["nccl_kernels"]) == (0, None, 30)
    assert any("pass the traces of the others" in note for note in notes)
    (row,), _ = answer_report(path, "collectives")
    assert (row["operation"], row["calls"], row["ranks"], row["waiting_ns"]) == ("AllReduce", 30, None, None)


@pytest.mark.slow
def test_gpus_of_one_process_are_ranks(tmp_path):
    trace = Trace()
    hosts = [trace.thread(pid=100, tid=100 + device, gpus=(0, 1)) for device in range(2)]
    for step in range(10):
        begins = 1_000 + step * 3 * MS
        for device, host in enumerate(hosts):
            runs = MS + 500_000 * device
            host.launch("gemm(float *)", start=begins, queue=1_000, runs=runs, device=device)
            host.launch(ALL_REDUCE, queue=begins + runs - host.now, runs=2 * MS - runs, device=device, stream=20)
    path = trace.write(tmp_path / "run.sqlite")
    rows, _ = answer_report(path)
    assert [(row["rank"], row["gpu_id"], row["because"]) for row in rows] == [
        (1, 1, "its GPU is busy 1.5 times as long"), (0, 0, None)
    ]  # fmt: skip
    with open_trace(path) as opened_trace:
        diagnosis = opened_trace.diagnose()
    assert (diagnosis.run.rank, diagnosis.trace["scope"]) == (1, {"device": 1})


def test_the_communicator_in_use_throughout_defines_the_steps():
    # Four ranks meet at the start, and then reduce in pairs.
    ranks = []
    for number in range(4):
        pair = f"pair {number // 2}"
        start = np.array([*range(0, 4 * MS, MS), *range(10 * MS, 110 * MS, MS)], dtype=np.int64)
        group = ["all"] * 4 + [pair] * 100
        sizes = np.full(len(start), 8)
        ranks.append(Rank(0, number, 0, number, ["AllReduce"] * 104, group, sizes, start, start + 500_000))
    run = align_run(ranks, [None])
    assert [collective.group.name for collective in run.collectives] == ["pair 0", "pair 1", "all"]


# Collectives ---------------------------------------------------------------------------------------------------------


def test_collectives_have_size_transfer_waiting_and_bandwidth(tmp_path):
    (row,), _ = answer_report(make_late_data_run().merged().write(tmp_path / "run.sqlite"), "collectives")
    assert (row["operation"], row["bytes"], row["calls"], row["ranks"]) == ("AllReduce", 25 << 20, 30, 2)
    assert row["communicator"] == f"{0xABC:016x}"
    assert row["transfer_ns"] == pytest.approx(300_000, rel=0.02)
    assert row["max_skew_ns"] == pytest.approx(12 * MS, rel=0.01)
    assert row["algorithm_bytes_per_s"] == pytest.approx(1e9 * (25 << 20) / row["transfer_ns"])
    assert row["bus_bytes_per_s"] == pytest.approx(row["algorithm_bytes_per_s"])  # 2 (n - 1) / n of two ranks


@pytest.mark.slow
def test_bus_bandwidth_of_an_all_gather_counts_the_data_of_all_ranks(tmp_path):
    run = Run(4, steps=6)
    run.operation = ALL_REDUCE.replace("AllReduce_Sum_f32", "AllGather")
    (row,), _ = answer_report(run.merged().write(tmp_path / "run.sqlite"), "collectives")
    assert row["operation"] == "AllGather"
    assert row["bus_bytes_per_s"] == pytest.approx(3 * (25 << 20) * 1e9 / row["transfer_ns"])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["bytes", "digits", "blob"])
def test_payloads_are_read_in_every_storage_form(tmp_path, form):
    run = Run(2, steps=4)
    run.hexadecimal = form == "digits"
    path = run.merged().write(tmp_path / "run.sqlite")
    if form == "blob":
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE NVTX_EVENTS SET binaryData = CAST(binaryData AS BLOB)")
    for use_cache in (False, True):
        with nsys_insight.open(path, use_cache=use_cache) as trace:
            collectives = trace.sql("SELECT DISTINCT operation, communicator, bytes FROM nccl_kernels").rows()
            assert collectives == [("AllReduce", f"{0xABC:016x}", 25 << 20)]


def test_calls_of_a_group_are_one_kernel(tmp_path):
    trace = Trace()
    describe_payloads(trace)
    host = trace.thread()
    for communicators in ((7, 7), (7, 8)):
        for communicator in communicators:
            host.range("ncclAllReduce", host.now, host.now + 500, domain="NCCL")
            trace.rows["NVTX_EVENTS"][-1]["binaryData"] = payload(communicator, 1_000)
            host.idle(1_000)
        host.launch(ALL_REDUCE)
    with open_trace(trace.write(tmp_path / "run.sqlite")) as opened_trace:
        rows = opened_trace.sql("SELECT communicator, bytes FROM nccl_kernels ORDER BY start_ns").rows()
    # The second group has two communicators. Which of them its kernel used is unknown.
    assert rows == [("0000000000000007", 2_000), (None, None)]


LAYOUT = [(1, 5, 24, "NCCL communicator ID", 0), (1, 5, 24, "Message size [bytes]", 8), (1, 5, 24, "Rank", 16)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (payload(9, 64), Payload(9, 64, 0)),
        (payload(9, 64).hex().encode(), Payload(9, 64, 0)),
        (payload(9, 64)[:-1], Payload()),
        (payload(9, 1 << 60), Payload(9, None, 0)),
        (payload(9, 64, schema=6), Payload()),
        (b"", Payload()),
        (b"not a payload, and longer than the header of one", Payload()),
    ],
)
def test_a_payload_has_only_the_fields_of_its_schema(data, expected):
    assert Schemas(LAYOUT).read(data) == expected


def test_a_field_with_two_offsets_is_not_read():
    assert Schemas([*LAYOUT, (2, 5, 24, "Rank", 20)]).read(payload(9, 64)) == Payload(9, 64)


# Clocks, intervals and rank numbers -----------------------------------------------------------------------------------


def test_a_clock_is_fitted_with_its_drift():
    chance = np.random.default_rng(1)
    ends = np.cumsum(chance.integers(MS, 3 * MS, 500))
    other = np.rint(ends * (1 + 50e-6) + 7 * MS + chance.normal(0, 500, 500)).astype(np.int64)
    other[::50] += 2 * MS  # outliers
    clock = clocks.fit(ends, other)
    assert clock.drift == pytest.approx(50e-6, rel=0.05)
    assert np.abs(np.delete(clock.apply(other) - ends, np.s_[::50])).max() < 5_000
    assert clock.error < 5_000


class Links:
    """The ends of collectives that pairs of traces share. The fourth trace shares none."""

    def __init__(self, shared):
        self.shared = shared

    def linked_traces(self, trace):
        return [other for first, other in self.shared if first == trace]

    def common_ends(self, trace, other):
        return self.shared[trace, other]


def test_clocks_are_aligned_through_an_intermediate_trace():
    ends = np.arange(1, 400) * MS
    second, third = ends + 5 * MS, np.rint(ends * (1 + 1e-4)).astype(np.int64) + 11 * MS
    shared = {(0, 1): (ends, second), (1, 0): (second, ends), (1, 2): (second, third), (2, 1): (third, second)}
    fitted_clocks = clocks.align_clocks(Links(shared), 0)
    assert fitted_clocks.keys() == {0, 1, 2}
    assert np.abs(fitted_clocks[2].apply(third) - ends).max() < 100


def test_busy_time_equals_a_count_of_every_nanosecond():
    chance = random.Random(5)  # noqa: S311 - not for secrets
    for _ in range(50):
        pairs = [(start, start + chance.randrange(0, 9)) for start in (chance.randrange(60) for _ in range(12))]
        starts, ends = (np.array(values, dtype=np.int64) for values in zip(*pairs, strict=True))
        covered = {ns for start, end in pairs for ns in range(start, end)}
        busy = Intervals.make_disjoint(starts, ends)
        times = np.arange(-2, 80)
        assert busy.measure_before(times).tolist() == [sum(ns < time for ns in covered) for time in times]
        gaps = busy.find_gaps(10, 50)
        assert sorted(ns for start, end in gaps for ns in range(start, end)) == sorted(set(range(10, 50)) - covered)


def test_nothing_is_busy_where_nothing_ran():
    no_times = np.array([], dtype=np.int64)
    assert Intervals.make_disjoint(no_times, no_times).measure_before(np.array([0, 5])).tolist() == [0, 0]
    assert Intervals.make_disjoint(no_times, no_times).find_gaps(0, 5) == [(0, 5)]


def test_a_rank_that_is_late_once_by_little_is_not_reported():
    wall = np.full((100, 3), 10 * MS)
    waiting = np.zeros((100, 3), dtype=np.int64)
    waiting[40, [0, 2]] = 5 * MS  # in one step of a hundred: half a percent of all
    assert judge.judge(wall, waiting, np.zeros_like(waiting), 0.0).kind == "even"
    waiting[::10, [0, 2]] = 5 * MS
    verdict = judge.judge(wall, waiting, np.zeros_like(waiting), 0.0)
    assert (verdict.kind, verdict.late_columns) == ("late", [1])


@pytest.mark.parametrize("judge_ranks", [judge.judge, pipeline.judge_against_other_steps])
def test_no_rank_is_late_in_steps_of_no_time(judge_ranks):
    no_times = np.zeros((4, 3), dtype=np.int64)
    assert judge_ranks(no_times, no_times, no_times, 0.0).kind == "even"


def make_rank(trace, process=1, gpu=0):
    no_times = np.array([], dtype=np.int64)
    return Rank(trace, process, gpu, gpu, [], [], no_times, no_times, no_times)


@pytest.mark.parametrize(
    ("labels", "by_library", "environments", "numbers", "source"),
    [
        (["b", "a"], {(0, 1): (1, 2, "NCCL"), (1, 1): (0, 2, "NCCL")}, [{}, {}], [1, 0], "NCCL"),
        (["b", "a"], {}, [{"RANK": 5, "WORLD_SIZE": 8}, {"RANK": 4}], [5, 4], "the launcher"),
        (["b", "a"], {}, [{"RANK": 0}, {"RANK": 0}], [0, 1], "order"),
        (["run_rank3.x", "run_rank12.x"], {}, [{}, {}], [3, 12], "the files' names"),
        (["rank3", "rank3"], {}, [{}, {}], [0, 1], "order"),
    ],
)
def test_ranks_are_numbered_by_the_best_available_source(labels, by_library, environments, numbers, source):
    numbering = number_ranks([make_rank(0), make_rank(1)], labels, by_library, environments)
    assert (numbering.numbers, numbering.source) == (numbers, source)


def test_processes_of_one_trace_are_numbered_by_their_gpus():
    numbering = number_ranks([make_rank(0, 11, gpu=1), make_rank(0, 12, gpu=0)], ["all"], {}, [{"RANK": 0}])
    assert (numbering.numbers, numbering.source, numbering.missing) == ([1, 0], "order", [])


@pytest.mark.slow
def test_only_the_rank_is_read_from_the_environment(tmp_path):
    run = Run(2, steps=5)
    traces = run.traces()
    paths = []
    for trace, rank in zip(traces, (1, 0), strict=True):
        trace.environment = {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "10.1.2.3"}
        paths.append(trace.write(tmp_path / f"{rank}x.sqlite"))
    rows, notes = answer_report(paths)
    assert {row["trace"]: row["rank"] for row in rows} == {"1x": 1, "0x": 0}
    assert "rank 2 is not in these traces" in notes
    assert Trace.SECRET not in str((rows, notes))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "blob"])
def test_a_scrubbed_rank_gives_the_same_answers(tmp_path, form, monkeypatch):
    from nsys_insight.packs.library import built_in_packs
    from nsys_insight.scrub import verify
    from nsys_insight.scrub.scrub import scrub

    about_ranks = {name: built_in_packs()[name] for name in ("ranks", "collectives", "streams", "nvtx")}
    monkeypatch.setattr(verify, "built_in_packs", lambda: about_ranks)

    path = make_late_data_run().write(tmp_path)[1]
    if form == "blob":
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE NVTX_EVENTS SET binaryData = CAST(binaryData AS BLOB)")
    scrub(path, tmp_path / "other.sqlite")  # raises if a report gives other numbers
    (row,), _ = answer_report(tmp_path / "other.sqlite", "collectives")
    assert (row["bytes"], row["calls"]) == (25 << 20, 30)


def test_a_pattern_selects_the_matching_files(tmp_path, monkeypatch):
    from nsys_insight.cli.trace_argument import resolve_trace_paths

    make_late_data_run().write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in resolve_trace_paths([tmp_path / "rank*.sqlite"])] == ["rank0.sqlite", "rank1.sqlite"]
    with pytest.raises(UsageError, match="no file is called"):
        resolve_trace_paths([tmp_path / "run*.sqlite"])
