"""`diff` of runs of several ranks or processes: all of them are compared, and figures equal those of plain loops."""

from __future__ import annotations

import json
import sqlite3
from itertools import pairwise
from statistics import fmean

import command_line
import planted
import pytest
import rank_traces
from opening import open_trace
from synthetic import Trace

from nsys_insight.compare.comparison import compare
from nsys_insight.compare.members import pair_members
from nsys_insight.compare.noise import Samples
from nsys_insight.compare.processes import average_samples, measure_run
from nsys_insight.compare.runs import Member, from_json, to_json
from tests.conftest import REPOSITORY

LATE_NS = 3_000_000


def make_run(*, late=0, first_pid=100):
    """Return a run of two ranks, whose second one is late in each step."""
    run = rank_traces.Run(2)
    run.first_pid = first_pid
    run.python[1] = dict.fromkeys(range(12), late)
    return run


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """Return traces of two processes each, before and after the second rank stopped being late."""
    folder = tmp_path_factory.mktemp("merged")
    return [
        make_run(late=late, first_pid=pid).merged().write(folder / f"{name}.sqlite")
        for name, late, pid in (("before", LATE_NS, 100), ("after", 0, 300))
    ]


def diff(*arguments):
    result = command_line.run("diff", *map(str, arguments), "-f", "json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    rows = {(row["part"], row["name"], row["metric"]): row for row in answer["rows"]}
    return rows, answer, result.stderr


def name_sides(before, after):
    """Return the arguments of `diff` for several files of each side."""
    return [word for flag, side in (("--before", before), ("--after", after)) for path in side for word in (flag, path)]


def measure_by_loops(paths):
    """Return step times and waiting times by rank with plain loops over the tables, in ns per step."""
    starts, collectives = {}, {}
    for path in paths:
        with sqlite3.connect(path) as file:
            marks = file.execute("SELECT globalTid, start FROM NVTX_EVENTS WHERE text = 'step' ORDER BY start")
            for thread, start in marks:
                starts.setdefault(thread >> 24 & 0xFFFFFF, []).append(start)
            kernels = file.execute(
                """SELECT globalPid, start, "end" FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
                   JOIN StringIds AS s ON s.id = k.demangledName WHERE s.value LIKE 'nccl%' ORDER BY start"""
            )
            for process, start, end in kernels:
                collectives.setdefault(process >> 24 & 0xFFFFFF, []).append((start, end))
        file.close()
    walls = [fmean(later - start for start, later in pairwise(starts[pid])) for pid in sorted(starts)]
    by_rank = [collectives[pid][2:] for pid in sorted(collectives)]  # the first step has no start by a collective
    waiting = [max(start for start, _ in row) * len(row) - sum(start for start, _ in row) for row in zip(*by_rank)]  # noqa: B905
    transfer = [min(end for _, end in row) - max(start for start, _ in row) for row in zip(*by_rank)]  # noqa: B905
    return walls, sum(waiting) / 2 / 11, sum(transfer) / 11


@pytest.mark.slow
@pytest.mark.parametrize("is_merged", [True, False])
def test_headline_and_rows_of_two_ranks_equal_plain_loops(merged, tmp_path, is_merged):
    sides = [[path] for path in merged]
    if not is_merged:
        sides = [
            make_run(late=late).write(tmp_path, f"{name}_rank{{}}")
            for name, late in (("before", LATE_NS), ("after", 0))
        ]
    rows, answer, _ = diff(*name_sides(*sides))
    decision = answer["rows"][0]
    expected = [measure_by_loops(side) for side in sides]
    for side, (walls, waiting_ns, transfer_ns) in zip(("before", "after"), expected, strict=True):
        assert decision[side] == pytest.approx(fmean(walls), rel=1e-3)
        for rank, wall_ns in enumerate(walls):
            assert rows["rank", f"rank {rank}", "wall_ns"][side] == pytest.approx(wall_ns, rel=1e-3)
        assert rows["collective", "AllReduce 25.0 MiB", "waiting_ns"][side] == pytest.approx(
            waiting_ns, rel=1e-3, abs=1_000
        )
        assert rows["collective", "AllReduce 25.0 MiB", "transfer_ns"][side] == pytest.approx(transfer_ns, rel=1e-3)
        assert rows["collective", "AllReduce 25.0 MiB", "calls"][side] == 2
    assert decision["verdict"] == "accept"
    assert rows["rank", "rank 1", "late_ns"]["before"] == pytest.approx(LATE_NS, rel=0.01)
    assert rows["rank", "rank 1", "late_ns"]["after"] == 0
    assert "figures are means over 2 ranks (0, 1)" in answer["notes"]
    assert "late ranks, per step on average: before, rank 1 by 3 ms; after, none" in answer["notes"]


@pytest.mark.slow
def test_repeated_runs_of_one_rank_are_runs_and_not_ranks(tmp_path):
    paths = [make_run().write(tmp_path, f"{name}_rank{{}}")[0] for name in "abcd"]
    rows, answer, _ = diff(*name_sides(paths[:2], paths[2:]))
    assert not any(part == "rank" for part, _, _ in rows)
    assert not any("rank" in note for note in answer["notes"])


@pytest.mark.slow
def test_a_process_is_found_under_its_other_id_in_the_other_trace(merged):
    rows, answer, stderr = diff(*merged, "--process", 101)
    before = measure_by_loops(merged[:1])[0][1]
    assert answer["rows"][0]["before"] == pytest.approx(before, rel=1e-3)
    assert "process 101 is compared with process 301 of after.sqlite, paired by rank" in stderr
    assert not any(part == "rank" for part, _, _ in rows)


def test_a_process_that_no_trace_has_is_an_error(merged):
    result = command_line.run("diff", *map(str, merged), "--process", "7")
    assert result.returncode == 2
    assert "no process 7 in before.sqlite runs work on a GPU" in result.stderr


def write_two_programs(path, *, times=(30_000, 50_000), steps=12, pids=(100, 200)):
    """Write a trace of two processes that run other kernels and share one GPU."""
    trace = Trace()
    loops = [planted.Loop(trace, pid=pid, nvtx="step #") for pid in pids]
    for pid, name in zip(pids, ("/opt/serve", "/opt/train"), strict=True):
        trace.processes[pid] = name
    for _ in range(steps):
        for loop, names, runs in zip(loops, (("decode(int)", "sample(int)"), ("gemm(float)",)), times, strict=True):
            loop.step()
            for name in names:
                loop.launch(name, runs)
            loop.sync()
            loop.python(40_000)
    planted.planted(trace, *loops).write(path)
    return path


@pytest.mark.slow
def test_each_of_two_programs_decides_for_itself(tmp_path):
    before = write_two_programs(tmp_path / "before.sqlite")
    after = write_two_programs(tmp_path / "after.sqlite", times=(30_000, 150_000), pids=(200, 100))
    rows, answer, _ = diff(before, after)
    assert answer["rows"][0]["name"] == "process 200 (train) → 100 (train)"
    assert answer["rows"][0]["verdict"] == "revert"
    served = rows["rank", "process 100 (serve) → 200 (serve)", "kernel_ns"]
    assert served["before"] == served["after"] == 60_000
    assert "processes are paired by their commands" in answer["notes"]
    assert any("processes do different work" in note for note in answer["notes"])
    # The busiest process is another one, so there is nothing in common to compare its kernels with.
    assert not any(part in {"run", "kernel"} for part, _, _ in rows)


def test_replicas_are_averaged_and_a_process_with_little_work_is_named(tmp_path):
    trace = Trace()
    loops = [planted.Loop(trace, pid=pid, gpu=gpu, nvtx="step #") for gpu, pid in enumerate((100, 200))]
    for _ in range(12):
        for loop, runs in zip(loops, (20_000, 40_000), strict=True):
            loop.step()
            loop.launch("gemm(float)", runs)
            loop.sync()
    helper = trace.thread(pid=300, gpus=(0,), now=5_000_000)
    helper.launch("probe(float)", runs=1_000)
    planted.planted(trace, *loops).write(tmp_path / "replicas.sqlite")
    with open_trace(tmp_path / "replicas.sqlite") as trace_of_three:
        run = measure_run(trace_of_three)
    assert run.metrics["gpu_busy_ns"].mean == 30_000
    assert [member.label for member in run.members] == ["process 200 (app)", "process 100 (app)"]
    assert run.coverage.startswith(
        "figures are means over 2 processes, which do the same work (200, 100); not measured"
    )
    assert "process 300 (app)" in run.coverage
    assert from_json(json.loads(to_json(run)), tmp_path) == run
    comparison = compare([run], [run])
    assert comparison.decision == "indistinguishable"
    assert {row.name for row in comparison.rows if row.part == "rank"} == {"process 200 (app)", "process 100 (app)"}


@pytest.mark.slow
def test_real_ranks_in_two_folders_are_compared_one_by_one(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        for rank in (0, 1):
            path = REPOSITORY / "tests" / "data" / "ranks" / f"ddp_{name}_rank{rank}.sqlite"
            (tmp_path / name / path.name).symlink_to(path)
    rows, _, _ = diff(tmp_path / "a", tmp_path / "b")
    # The program measured 2.66 ms in the first all-reduce of rank 0; its transfer takes 0.08 ms.
    assert rows["rank", "rank 0", "waiting_ns"]["after"] / 1e6 == pytest.approx(2.66 - 0.08, abs=0.15)
    assert rows["rank", "rank 1", "gpu_busy_ns"]["verdict"] == "regressed"
    assert rows["decision", None, "wall_ns"]["verdict"] == "indistinguishable"


@pytest.mark.parametrize(
    ("before", "after", "matched_by", "pairs"),
    [
        ([Member(1, rank=0), Member(2, rank=1)], [Member(3, rank=1), Member(4, rank=0)], "rank", [(1, 4), (2, 3)]),
        ([Member(1, gpus="0"), Member(2, gpus="1")], [Member(3, gpus="1")], "GPU", [(2, 3)]),
        (
            [Member(1, gpus="0", command="a"), Member(2, gpus="0", command="b")],
            [Member(4, gpus="0", command="b"), Member(3, gpus="0", command="a")],
            "command",
            [(1, 3), (2, 4)],
        ),
        ([Member(2, command="a"), Member(1, command="a")], [Member(9), Member(8)], "order", [(1, 8), (2, 9)]),
    ],
)
def test_members_are_paired_by_rank_gpu_command_or_order(before, after, matched_by, pairs):
    match = pair_members(before, after)
    assert match.matched_by == matched_by
    assert [(old.process_id, new.process_id) for old, new in match.pairs] == pairs
    assert len(match.unpaired) == len(before) + len(after) - 2 * len(pairs)


def test_the_mean_over_ranks_of_different_length_is_the_mean_of_their_means():
    mean = average_samples([Samples((1.0, 2.0, 6.0)), Samples((5.0, 7.0))])
    assert len(mean.values) == 2
    assert mean.mean == pytest.approx((3 + 6) / 2)
    assert average_samples([Samples((1.0,)), None]) is None
