"""Ranks: which one makes the others wait, by how much and why, and what of that is known, in planted runs."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from opening import open_trace
from rank_traces import ALL_REDUCE, Run, describe_payloads, payload
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.facts.nccl import Payload, Schemas
from nsys_insight.facts.rank_numbers import numbered
from nsys_insight.facts.ranks import clocks, judge
from nsys_insight.facts.ranks.budget import Busy
from nsys_insight.facts.ranks.rank import Rank
from nsys_insight.facts.ranks.run import run_of

MS = 1_000_000


def asked(what, report="ranks", **options):
    """Answer a report about a run, a trace or files: its rows by rank, and its notes."""
    with nsys_insight.open(what, use_cache=False) as trace:
        answer = trace.answer(report, **options)
        return answer.dicts(), answer.notes


def of(run, folder, *, merged=True, **options):
    rows, notes = asked(run.merged().write(folder / "run.sqlite") if merged else run.write(folder), **options)
    return {row["rank"]: row for row in rows}, notes


def late(rows):
    return {rank for rank, row in rows.items() if row["late_steps"]}


def data_late():
    """Of two ranks the second one gets its data 12 ms later in every fifth step."""
    run = Run(2, steps=15)
    run.python[1] = dict.fromkeys((4, 9, 14), 12 * MS)
    return run


# Who is late, and why ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("merged", [True, False])
def test_a_rank_whose_host_is_late(tmp_path, merged):
    rows, notes = of(data_late(), tmp_path, merged=merged)
    assert late(rows) == {1}
    assert (rows[1]["late_steps"], rows[1]["because"]) == (3, "CPU work in data")
    assert rows[1]["late_ns"] == pytest.approx(12 * MS, rel=0.01)
    # Of 14 steps, from the second one on: all that rank 1 is late, rank 0 does nothing but communicate.
    assert rows[0]["waiting_ns"] + rows[0]["transfer_ns"] == pytest.approx(36 * MS / 14 + 300_000, rel=0.02)
    assert rows[1]["waiting_ns"] < 10_000
    assert any(note.startswith("rank 1 is late; the others wait") for note in notes)


@pytest.mark.slow
def test_one_file_of_all_ranks_and_a_file_for_each_are_the_same_run(tmp_path):
    together, _ = of(data_late(), tmp_path)
    apart, _ = of(data_late(), tmp_path, merged=False)
    for rank, row in together.items():
        for name in ("step_ns", "busy_ns", "waiting_ns", "transfer_ns", "idle_ns", "late_ns"):
            assert apart[rank][name] == (row[name] and pytest.approx(row[name], abs=2_000))


@pytest.mark.slow
def test_the_parts_of_a_step_add_up_to_it(tmp_path):
    path = data_late().merged().write(tmp_path / "run.sqlite")
    with open_trace(path) as trace:
        apart = trace.sql("SELECT wall_ns - busy_ns - waiting_ns - transfer_ns - idle_ns AS left_over FROM rank_steps")
        assert set(apart["left_over"]) == {0}


@pytest.mark.slow
def test_a_rank_whose_kernels_are_slower(tmp_path):
    run = Run(8, steps=10)
    run.slower[3] = 1.4
    rows, _ = of(run, tmp_path)
    assert late(rows) == {3}
    # Four kernels of 1 ms a step.
    assert (rows[3]["late_steps"], rows[3]["because"]) == (9, "its GPU is busy 1.4 times as long")
    assert rows[3]["late_ns"] == pytest.approx(1.6 * MS, rel=0.02)


@pytest.mark.slow
def test_a_rank_that_waits_in_a_call(tmp_path):
    run = data_late()
    trace = run.merged()
    with_call = [row for row in trace.rows["NVTX_EVENTS"] if row.get("end") and row["end"] - row["start"] > 10 * MS]
    for row in with_call:
        if row["text"] == "data":
            trace.row(
                "CUPTI_ACTIVITY_KIND_RUNTIME", start=row["start"] + 1_000, end=row["end"] - 1_000, eventClass=0,
                globalTid=row["globalTid"], correlationId=90_000 + row["start"] // 1_000, nameId="cudaMalloc_v3020",
                returnValue=0,
            )  # fmt: skip
    rows, _ = asked(trace.write(tmp_path / "run.sqlite"))
    assert rows[1]["because"] == "cudaMalloc in data"


@pytest.mark.slow
def test_two_ranks_that_are_late_together(tmp_path):
    run = Run(6, steps=10)
    run.slower = {4: 1.5, 5: 1.5}
    rows, notes = of(run, tmp_path)
    assert late(rows) == {4, 5}
    assert any(note.startswith("ranks 4, 5 are late") for note in notes)


def test_a_slow_link_is_nobody_s_fault(tmp_path):
    run = Run(4, steps=8)
    run.transfer = 5 * MS
    rows, notes = of(run, tmp_path)
    assert late(rows) == set()
    assert all(row["transfer_ns"] > 7.9 * MS and row["waiting_ns"] < 20_000 for row in rows.values())
    assert "no rank is later than the others by enough to report" in notes


@pytest.mark.slow
def test_a_straggler_that_moves(tmp_path):
    run, chance = Run(8, steps=24), random.Random(3)  # noqa: S311 - not for secrets
    for step in range(24):
        run.python[chance.randrange(8)][step] = 6 * MS
    rows, notes = of(run, tmp_path)
    assert "no single rank is late: it is a different one from step to step" in notes
    assert sum(row["late_steps"] for row in rows.values()) == 23


@pytest.mark.slow
def test_even_ranks(tmp_path):
    run = Run(4, steps=8)
    run.jitter = 30_000
    rows, notes = of(run, tmp_path)
    assert late(rows) == set()
    assert "no rank is later than the others by enough to report" in notes


@pytest.mark.slow
def test_what_is_less_than_the_clocks_error_is_not_said(tmp_path):
    run = Run(4, steps=10)
    run.slower[2] = 1.05  # 200 µs a step, and clocks that agree within half of that
    assert late(of(run, tmp_path)[0]) == {2}
    run.leaves = 150_000
    rows, notes = of(run, tmp_path)
    assert late(rows) == set()
    assert any("agree within" in note and "the order of arrivals closer than that is unknown" in note for note in notes)


@pytest.mark.slow
def test_sixty_four_ranks(tmp_path):
    run = Run(64, steps=6, buckets=1)
    run.python[40] = {3: 9 * MS}
    rows, _ = of(run, tmp_path)
    assert (len(rows), late(rows)) == (64, {40})
    assert rows[40]["late_ns"] == pytest.approx(9 * MS, rel=0.01)


# What is known -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_hosts_whose_clocks_differ_and_drift(tmp_path):
    run = Run(4, steps=30)
    run.clock = {2: (3 * MS, 400e-6), 3: (3 * MS, 400e-6)}
    run.python[3] = dict.fromkeys(range(3, 30, 5), 4 * MS)
    paths = run.write(tmp_path)
    rows, notes = asked(paths)
    assert [(row["rank"], row["because"]) for row in rows if row["late_steps"]] == [(3, "CPU work in data")]
    assert any("differed by up to 3" in note and "drifted by up to 4e+02 µs a second" in note for note in notes)
    with nsys_insight.open(paths, use_cache=False) as trace:
        known = trace.sql("SELECT rank, clock_offset_ns, clock_drift_ppm FROM ranks ORDER BY rank").rows()
        (error,) = trace.sql("SELECT error_ns FROM rank_run").rows()[0]
    assert error < 5_000
    for rank, offset, drift in known:
        expected, drifts = run.clock.get(rank, (0, 0.0))
        assert drift == pytest.approx(1e6 * drifts, abs=20)
        assert offset == pytest.approx(expected, abs=0.02 * MS)


@pytest.mark.slow
def test_a_rank_that_is_missing_is_said(tmp_path):
    run = Run(4, steps=8)
    run.missing, run.slower = {1}, {2: 1.4}
    rows, notes = of(run, tmp_path, merged=False)
    assert (set(rows), late(rows)) == ({0, 2, 3}, {2})
    assert "rank 1 is not in these traces" in notes


@pytest.mark.slow
def test_a_capture_that_begins_a_step_later(tmp_path):
    run = Run(3, steps=8)
    run.begins, run.slower = {1: 1}, {2: 1.4}
    rows, notes = of(run, tmp_path, merged=False)
    assert late(rows) == {2}
    assert rows[2]["late_ns"] == pytest.approx(1.6 * MS, rel=0.02)
    assert any(note.startswith("2 of 16 collectives are not in the capture of every rank") for note in notes)


@pytest.mark.slow
def test_captures_with_different_steps(tmp_path):
    run = Run(3, steps=9, buckets=1)
    run.begins, run.ends = {0: 2, 1: 1}, {1: 6, 2: 8}
    run.python[2] = {4: 12 * MS, 7: 12 * MS}
    rows, notes = of(run, tmp_path, merged=False)
    assert late(rows) == {2}
    # Of the two, the second one is in no capture of rank 1; nor is known when the ranks were together before step 2.
    assert (rows[2]["late_steps"], rows[2]["late_ns"]) == (1, pytest.approx(12 * MS, rel=0.01))
    said = "5 of 9 collectives are not in the capture of every rank, and are not counted; steps are counted as in"
    assert any(note.startswith(said) and note.endswith("of rank 0") for note in notes)
    # Captures of which each begins when the other one has ended tell nothing of each other.
    run = Run(2, steps=8, buckets=1)
    run.begins, run.ends, run.slower = {1: 4}, {0: 4}, {1: 1.4}
    (tmp_path / "apart").mkdir()
    rows, notes = of(run, tmp_path / "apart", merged=False)
    assert all(row["step_ns"] is None and row["late_steps"] is None for row in rows.values())
    assert any("cannot be matched with each other" in note for note in notes)


def test_captures_at_any_time_are_not_matched_where_nothing_tells_how(tmp_path):
    # Every step is like the next one, and nobody knows when the captures began.
    run = Run(2, steps=8)
    run.jitter, run.leaves, run.begins, run.communicators = 0, 1, {1: 1}, [None, None]
    paths = []
    for rank, trace in enumerate(run.traces()):
        paths.append(trace.write(tmp_path / f"rank{rank}.sqlite", without_tables=["TARGET_INFO_SESSION_START_TIME"]))
    rows, notes = asked(paths)
    assert all(row["step_ns"] is None for row in rows)
    assert any("cannot be matched with each other" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("communicators", [[1, 2, 3], [None] * 3])
@pytest.mark.parametrize("merged", [True, False])
def test_programs_that_do_not_communicate_with_each_other(tmp_path, communicators, merged):
    run = Run(3, steps=10)
    run.apart, run.communicators, run.jitter, run.slower = True, communicators, 300_000, {1: 1.3}
    rows, notes = of(run, tmp_path, merged=merged)
    assert all(row["step_ns"] is None and row["late_steps"] is None for row in rows.values())
    assert any("cannot be matched with each other" in note for note in notes)
    with nsys_insight.open(sorted(tmp_path.glob("*.sqlite")), use_cache=False) as trace:
        if merged:
            assert trace.diagnose().run is None
        else:
            with pytest.raises(UsageError, match="share no NCCL collectives"):
                trace.diagnose()


@pytest.mark.slow
def test_ranks_are_matched_without_the_payloads(tmp_path):
    run = Run(4, steps=10)
    run.communicators, run.slower = [None] * 4, {3: 1.4}
    for merged in (True, False):
        assert late(of(run, tmp_path, merged=merged)[0]) == {3}


def test_a_program_without_nccl_has_no_ranks(sample):
    for report in ("ranks", "collectives"):
        assert asked(sample("churn"), report)[0] == []


def test_one_rank_of_a_run(tmp_path):
    path = data_late().write(tmp_path)[0]
    (row,), notes = asked(path)
    assert (row["rank"], row["step_ns"], row["nccl_kernels"]) == (0, None, 30)
    assert any("pass the traces of the others" in note for note in notes)
    (row,), _ = asked(path, "collectives")
    assert (row["operation"], row["calls"], row["ranks"], row["waiting_ns"]) == ("AllReduce", 30, None, None)


@pytest.mark.slow
def test_gpus_of_one_process_are_ranks(tmp_path):
    trace = Trace()
    hosts = [trace.thread(pid=100, tid=100 + device, gpus=(0, 1)) for device in range(2)]
    for step in range(10):
        begins = 1_000 + step * 3 * MS
        for device, host in enumerate(hosts):
            runs = MS + 500_000 * device
            host.launch("gemm(float *)", at=begins, queue=1_000, runs=runs, device=device)
            host.launch(ALL_REDUCE, queue=begins + runs - host.now, runs=2 * MS - runs, device=device, stream=20)
    path = trace.write(tmp_path / "run.sqlite")
    rows, _ = asked(path)
    assert [(row["rank"], row["gpu_id"], row["because"]) for row in rows] == [
        (0, 0, None), (1, 1, "its GPU is busy 1.5 times as long")
    ]  # fmt: skip
    with open_trace(path) as opened:
        found = opened.diagnose()
    assert (found.run.rank, found.trace["scope"]) == (1, {"device": 1})


def test_the_communicator_that_is_used_all_along_tells_of_the_steps():
    # Four ranks meet at the start, and then reduce in pairs.
    ranks = []
    for number in range(4):
        pair = f"pair {number // 2}"
        start = np.array([*range(0, 4 * MS, MS), *range(10 * MS, 110 * MS, MS)], dtype=np.int64)
        group = ["all"] * 4 + [pair] * 100
        sizes = np.full(len(start), 8)
        ranks.append(Rank(0, number, 0, number, ["AllReduce"] * 104, group, sizes, start, start + 500_000))
    found = run_of(ranks, [None])
    assert [of.group.name for of in found.collectives] == ["pair 0", "pair 1", "all"]


# Collectives ---------------------------------------------------------------------------------------------------------


def test_collectives_have_size_transfer_waiting_and_bandwidth(tmp_path):
    (row,), _ = asked(data_late().merged().write(tmp_path / "run.sqlite"), "collectives")
    assert (row["operation"], row["bytes"], row["calls"], row["ranks"]) == ("AllReduce", 25 << 20, 30, 2)
    assert row["communicator"] == f"{0xABC:016x}"
    assert row["transfer_ns"] == pytest.approx(300_000, rel=0.02)
    assert row["max_skew_ns"] == pytest.approx(12 * MS, rel=0.01)
    assert row["algorithm_bytes_per_s"] == pytest.approx(1e9 * (25 << 20) / row["transfer_ns"])
    assert row["bus_bytes_per_s"] == pytest.approx(row["algorithm_bytes_per_s"])  # 2 (n - 1) / n of two ranks


@pytest.mark.slow
def test_the_bus_of_an_all_gather_carries_what_all_ranks_give(tmp_path):
    run = Run(4, steps=6)
    run.operation = ALL_REDUCE.replace("AllReduce_Sum_f32", "AllGather")
    (row,), _ = asked(run.merged().write(tmp_path / "run.sqlite"), "collectives")
    assert row["operation"] == "AllGather"
    assert row["bus_bytes_per_s"] == pytest.approx(3 * (25 << 20) * 1e9 / row["transfer_ns"])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["bytes", "digits", "blob"])
def test_payloads_are_read_however_they_are_written(tmp_path, form):
    run = Run(2, steps=4)
    run.hexadecimal = form == "digits"
    path = run.merged().write(tmp_path / "run.sqlite")
    if form == "blob":
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE NVTX_EVENTS SET binaryData = CAST(binaryData AS BLOB)")
    for use_cache in (False, True):
        with nsys_insight.open(path, use_cache=use_cache) as trace:
            found = trace.sql("SELECT DISTINCT operation, communicator, bytes FROM nccl_kernels").rows()
            assert found == [("AllReduce", f"{0xABC:016x}", 25 << 20)]


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
    with open_trace(trace.write(tmp_path / "run.sqlite")) as opened:
        rows = opened.sql("SELECT communicator, bytes FROM nccl_kernels ORDER BY start_ns").rows()
    # Which of the second group's calls its kernel runs nobody knows.
    assert rows == [("0000000000000007", 2_000), (None, None)]


LAYOUT = [(1, 5, 24, "NCCL communicator ID", 0), (1, 5, 24, "Message size [bytes]", 8), (1, 5, 24, "Rank", 16)]


@pytest.mark.parametrize(
    ("data", "says"),
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
def test_a_payload_says_what_its_schema_has_and_no_more(data, says):
    assert Schemas(LAYOUT).read(data) == says


def test_a_schema_that_is_laid_out_in_two_ways_is_none():
    assert Schemas([*LAYOUT, (2, 5, 24, "Rank", 20)]).read(payload(9, 64)) == Payload(9, 64)


# The parts -----------------------------------------------------------------------------------------------------------


def test_a_clock_is_fitted_with_its_drift():
    chance = np.random.default_rng(1)
    ends = np.cumsum(chance.integers(MS, 3 * MS, 500))
    other = np.rint(ends * (1 + 50e-6) + 7 * MS + chance.normal(0, 500, 500)).astype(np.int64)
    other[::50] += 2 * MS  # some are not what they seem
    clock = clocks.fit(ends, other)
    assert clock.drift == pytest.approx(50e-6, rel=0.05)
    assert np.abs(np.delete(clock.apply(other) - ends, np.s_[::50])).max() < 5_000
    assert clock.error < 5_000


class Links:
    """The ends that pairs of traces share; the fourth trace shares none."""

    def __init__(self, shared):
        self.shared = shared

    def of(self, trace):
        return [other for one, other in self.shared if one == trace]

    def ends(self, one, other):
        return self.shared[one, other]


def test_a_clock_that_is_reached_by_way_of_another_one():
    ends = np.arange(1, 400) * MS
    second, third = ends + 5 * MS, np.rint(ends * (1 + 1e-4)).astype(np.int64) + 11 * MS
    shared = {(0, 1): (ends, second), (1, 0): (second, ends), (1, 2): (second, third), (2, 1): (third, second)}
    found = clocks.aligned(Links(shared), 0)
    assert found.keys() == {0, 1, 2}
    assert np.abs(found[2].apply(third) - ends).max() < 100


def test_busy_time_is_what_counting_each_ns_gives():
    chance = random.Random(5)  # noqa: S311 - not for secrets
    for _ in range(50):
        pairs = [(start, start + chance.randrange(0, 9)) for start in (chance.randrange(60) for _ in range(12))]
        starts, ends = (np.array(values, dtype=np.int64) for values in zip(*pairs, strict=True))
        covered = {ns for start, end in pairs for ns in range(start, end)}
        busy = Busy([starts[:5], starts[5:]], [ends[:5], ends[5:]])
        times = np.arange(-2, 80)
        assert busy.until(times).tolist() == [sum(ns < time for ns in covered) for time in times]
        gaps = busy.gaps(10, 50)
        assert sorted(ns for start, end in gaps for ns in range(start, end)) == sorted(set(range(10, 50)) - covered)


def test_nothing_is_busy_where_nothing_ran():
    none = np.array([], dtype=np.int64)
    assert Busy([none], [none]).until(np.array([0, 5])).tolist() == [0, 0]
    assert Busy([none], [none]).gaps(0, 5) == [(0, 5)]


def test_a_rank_that_once_is_late_by_little_is_not_named():
    wall = np.full((100, 3), 10 * MS)
    waiting = np.zeros((100, 3), dtype=np.int64)
    waiting[40, [0, 2]] = 5 * MS  # in one step of a hundred: half a percent of all
    assert judge.judge(wall, waiting, np.zeros_like(waiting), 0.0).kind == "even"
    waiting[::10, [0, 2]] = 5 * MS
    found = judge.judge(wall, waiting, np.zeros_like(waiting), 0.0)
    assert (found.kind, found.late) == ("late", [1])


def a_rank(trace, process=1, gpu=0):
    none = np.array([], dtype=np.int64)
    return Rank(trace, process, gpu, gpu, [], [], none, none, none)


@pytest.mark.parametrize(
    ("labels", "by_nccl", "environments", "numbers", "by"),
    [
        (["b", "a"], {(0, 1): (1, 2), (1, 1): (0, 2)}, [{}, {}], [1, 0], "NCCL"),
        (["b", "a"], {}, [{"RANK": 5, "WORLD_SIZE": 8}, {"RANK": 4}], [5, 4], "the launcher"),
        (["b", "a"], {}, [{"RANK": 0}, {"RANK": 0}], [0, 1], "order"),
        (["run_rank3.x", "run_rank12.x"], {}, [{}, {}], [3, 12], "the files' names"),
        (["rank3", "rank3"], {}, [{}, {}], [0, 1], "order"),
    ],
)
def test_ranks_are_numbered_by_who_knows(labels, by_nccl, environments, numbers, by):
    told = numbered([a_rank(0), a_rank(1)], labels, by_nccl, environments)
    assert (told.numbers, told.by) == (numbers, by)


def test_processes_of_one_trace_are_numbered_by_their_gpus():
    told = numbered([a_rank(0, 11, gpu=1), a_rank(0, 12, gpu=0)], ["all"], {}, [{"RANK": 0}])
    assert (told.numbers, told.by, told.missing) == ([1, 0], "order", [])


@pytest.mark.slow
def test_the_environment_is_asked_for_the_rank_and_nothing_else(tmp_path):
    run = Run(2, steps=5)
    traces = run.traces()
    paths = []
    for trace, rank in zip(traces, (1, 0), strict=True):
        trace.environment = {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "10.1.2.3"}
        paths.append(trace.write(tmp_path / f"{rank}x.sqlite"))
    rows, notes = asked(paths)
    assert {row["trace"]: row["rank"] for row in rows} == {"1x": 1, "0x": 0}
    assert "rank 2 is not in these traces" in notes
    assert Trace.SECRET not in str((rows, notes))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "blob"])
def test_a_scrubbed_rank_says_the_same(tmp_path, form, monkeypatch):
    from nsys_insight.packs.library import built_in
    from nsys_insight.scrub import verify
    from nsys_insight.scrub.scrub import scrub

    about_ranks = {name: built_in()[name] for name in ("ranks", "collectives", "streams", "nvtx")}
    monkeypatch.setattr(verify, "built_in", lambda: about_ranks)

    path = data_late().write(tmp_path)[1]
    if form == "blob":
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE NVTX_EVENTS SET binaryData = CAST(binaryData AS BLOB)")
    scrub(path, tmp_path / "other.sqlite")  # which raises where a report has other numbers
    (row,), _ = asked(tmp_path / "other.sqlite", "collectives")
    assert (row["bytes"], row["calls"]) == (25 << 20, 30)


def test_a_pattern_stands_for_what_it_fits(tmp_path, monkeypatch):
    from nsys_insight.cli.trace_argument import resolve_all

    data_late().write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in resolve_all([tmp_path / "rank*.sqlite"])] == ["rank0.sqlite", "rank1.sqlite"]
    with pytest.raises(UsageError, match="no file is called"):
        resolve_all([tmp_path / "run*.sqlite"])
