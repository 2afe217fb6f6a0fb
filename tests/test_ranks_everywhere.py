"""Ranks in every report and view: `rank` beside `trace`, all added up, and those of one file as those of several."""

from __future__ import annotations

import pytest
from rank_traces import Run
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.packs import added
from nsys_insight.packs.library import built_in

ADDED = {name: pack for name, pack in built_in().items() if pack.ranks}
COUNT = 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Give a run of three ranks, the second of which works longer: its folder, a file for each and one of all."""
    run, folder = Run(COUNT, steps=5), tmp_path_factory.mktemp("run")
    run.slower[1] = 1.4
    traces, merged = run.traces(), run.merged()
    for rank, trace in enumerate(traces):
        for of in (trace, merged):
            host = of.thread(pid=100 + rank, gpus=(rank,), now=100_000, first_correlation=90_000)
            host.malloc(1 << 20).copy("H2D", 4096 << rank, blocking=True, runs=20_000)
    paths = [trace.write(folder / f"r_rank{rank}.sqlite") for rank, trace in enumerate(traces)]
    return paths, merged.write(folder / "merged.sqlite")


@pytest.fixture(scope="module")
def apart(run):
    with nsys_insight.open(run[0], use_cache=False) as trace:
        yield trace


@pytest.fixture(scope="module")
def together(run):
    with nsys_insight.open(run[1], use_cache=False) as trace:
        yield trace


@pytest.mark.slow
def test_every_view_has_the_rank_beside_the_trace(apart):
    for view in ("kernels", "nvtx_ranges", "wall", "steps"):
        found = apart.sql(f"SELECT DISTINCT trace, rank FROM {view} ORDER BY rank").rows()
        assert found == [(f"r_rank{rank}", rank) for rank in range(COUNT)]
        assert apart.sql(f"FROM {view}").columns[:2] == ["trace", "rank"]


@pytest.mark.slow
def test_rows_of_several_processes_have_the_rank_of_theirs(run):
    one_of_each = [run[1], run[0][0]]
    with nsys_insight.open(one_of_each, use_cache=False) as trace:
        # The file of rank 0 holds what the other one has of it as well.
        found = trace.sql("SELECT trace, process_id, rank, count(*) FROM kernels GROUP BY ALL ORDER BY ALL").rows()
        assert [row[:3] for row in found] == [
            *(("merged", 100 + rank, rank) for rank in range(COUNT)), ("r_rank0", 100, None)
        ]  # fmt: skip
        assert trace.sql("SELECT DISTINCT rank FROM wall").rows() == [(None,)]


def test_a_report_that_is_not_added_up_has_a_row_for_each_rank(apart):
    rows = apart.answer("gap-sizes").dicts()
    assert {(row["trace"], row["rank"]) for row in rows} == {(f"r_rank{rank}", rank) for rank in range(COUNT)}


@pytest.mark.parametrize("name", ADDED)
def test_ranks_are_added_up_as_a_loop_does(apart, name):
    pack, how = ADDED[name], added.of_header(ADDED[name].ranks)
    answer = apart.answer(name)
    rows = answer.dicts()
    assert rows
    assert [column.name for column in answer.columns] == list(how.columns(pack.columns))
    assert all(column.description for column in answer.columns)
    each = apart.answer(name, ranks="each").dicts()
    assert answer.notes_of("ranks") == (f"{COUNT} ranks are summed; --ranks each has the rows of each rank",)
    groups = {}
    for row in each:
        groups.setdefault(tuple(row[column] for column in how.by), []).append(row)
    assert len(rows) == len(groups)
    for row in rows:
        of = groups[tuple(row[column] for column in how.by)]
        for column in (*how.sum, *how.mean):
            values = [one[column] for one in of]
            total = None if None in values else sum(values) / (COUNT if column in how.mean else 1)
            assert row[column] == (None if total is None else pytest.approx(total))
        for column in how.max:
            assert row[column] == max((one[column] for one in of if one[column] is not None), default=None)
        spread = [sum(one[how.spread] or 0 for one in of if one["rank"] == rank) for rank in range(COUNT)]
        least, most, which = list(how.more)[1:]
        if None not in [one[how.spread] for one in of]:
            assert (row[least], row[most]) == (pytest.approx(min(spread)), pytest.approx(max(spread)))
            assert spread[row[which]] == pytest.approx(max(spread))
            assert row["ranks"] == len({one["rank"] for one in of})


def test_the_slow_rank_is_the_one_with_most(apart):
    rows = {row["name"]: row for row in apart.answer("top").dicts()}
    # Two gemms of 1 ms a step, and on rank 1 of 1.4 ms.
    assert rows["gemm(float *)"]["max_rank"] == 1
    assert rows["gemm(float *)"]["rank_max_ns"] == pytest.approx(14e6, rel=0.01)
    assert rows["gemm(float *)"]["rank_min_ns"] == pytest.approx(10e6, rel=0.01)
    assert rows["gemm(float *)"]["calls"] == 10 * COUNT


@pytest.mark.slow
@pytest.mark.parametrize("report", ["top", "api", "steps", "gap-sizes"])
def test_ranks_of_one_file_are_answered_as_those_of_several(apart, together, report):
    def cells(rows):
        # Times of the trace, numbers of processes and labels are what the files differ in.
        kept = ("name", "calls", "total_ns", "step", "duration_ns", "kernels", "rank", "gaps", "idle_ns")
        return sorted(str({name: row[name] for name in kept if name in row}) for row in rows)

    assert cells(together.answer(report, ranks="each").dicts()) == cells(apart.answer(report, ranks="each").dicts())


def test_ranks_of_one_file_are_added_up_where_that_is_asked(apart, together):
    plain, added_up = together.answer("top").dicts(), together.answer("top", ranks="sum").dicts()
    assert "ranks" not in plain[0]
    assert added_up == [
        {**row, "wall_pct": pytest.approx(row["wall_pct"], rel=0.02)} for row in apart.answer("top").dicts()
    ]
    assert {row["name"]: row["total_ns"] for row in plain} == {row["name"]: row["total_ns"] for row in added_up}


def test_reports_that_cannot_be_added_up_say_so(apart, together):
    for trace in (apart, together):
        with pytest.raises(UsageError, match="gaps cannot be summed over ranks"):
            trace.answer("gaps", ranks="sum")


def test_a_trace_without_ranks_has_none(sample):
    with (
        nsys_insight.open(sample("churn"), use_cache=False) as trace,
        pytest.raises(UsageError, match="has no ranks"),
    ):
        trace.answer("top", ranks="each")


@pytest.mark.slow
def test_traces_that_are_no_run_are_not_added_up_unasked(sample):
    with nsys_insight.open([sample("churn"), sample("decode_eager")], use_cache=False) as trace:
        assert list(trace.answer("top").dicts()[0])[:2] == ["trace", "name"]
        assert trace.sql("SELECT DISTINCT rank FROM kernels").rows() == [(None,)]
        assert {row["max_rank"] for row in trace.answer("top", ranks="sum").dicts()} == {0, 1}


def idle_rank(number):
    """A trace of a rank in which the GPU does nothing."""
    trace = Trace()
    trace.environment = {"RANK": str(number)}
    trace.thread(pid=900).call("cudaGetDevice")
    return trace


@pytest.mark.slow
def test_a_rank_without_gpu_work_is_there(run, tmp_path):
    idle = idle_rank(3).write(tmp_path / "r_rank3.sqlite")
    with nsys_insight.open([*run[0], idle], use_cache=False) as trace:
        answer = trace.answer("ranks")
        assert [row["rank"] for row in answer.dicts()] == [0, 1, 2]
        assert "rank 3 ran no NCCL kernels" in answer.notes
        assert not any("not in these traces" in note for note in answer.notes)
        gemm = next(row for row in trace.answer("top").dicts() if row["name"] == "gemm(float *)")
        assert (gemm["ranks"], gemm["rank_min_ns"], gemm["max_rank"]) == (COUNT, 0, 1)
        assert trace.sql("SELECT DISTINCT rank FROM api_calls ORDER BY 1").rows() == [(0,), (1,), (2,), (3,)]


@pytest.mark.slow
def test_a_file_that_is_given_twice_counts_once(run, tmp_path):
    again = tmp_path / "again_rank7.sqlite"
    again.write_bytes(run[0][1].read_bytes())
    with nsys_insight.open([*run[0], again], use_cache=False) as trace:
        answer = trace.answer("ranks")
        assert [(row["rank"], row["late_steps"]) for row in answer.dicts()] == [(0, 0), (1, 4), (2, 0)]
    assert "again_rank7 has the same kernels at the same times as r_rank1, and is left out" in answer.notes


@pytest.mark.slow
def test_files_of_two_runs_are_not_taken_for_one(run, tmp_path):
    other = Run(COUNT, steps=5)
    other.communicators, other.slower = [0xDEF] * COUNT, {2: 1.4}
    paths = [*run[0], *other.write(tmp_path, "s_rank{}")]
    with nsys_insight.open(paths, use_cache=False) as trace:
        answer = trace.answer("ranks")
        assert sum(row["late_steps"] is not None for row in answer.dicts()) == COUNT, "of one of the runs"
        assert any("r_rank0, s_rank0 each claim to be rank 0" in note for note in answer.notes)
        assert list(trace.answer("top").dicts()[0])[:2] == ["trace", "rank"], "nothing is added up"


@pytest.mark.parametrize("pack", ADDED.values(), ids=ADDED)
def test_what_is_added_up_are_columns_of_the_report(pack):
    how = added.of_header(pack.ranks)
    named = [*how.by, *how.sum, *how.mean, *how.min, *how.max, *(how.ratio or {})]
    assert len(named) == len(set(named))
    assert {*named, how.spread, *(name for pair in (how.ratio or {}).values() for name in pair)} <= set(pack.columns)
