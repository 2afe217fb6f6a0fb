"""Ranks in every report and view: the `rank` column, sums over ranks, and ranks of one file or of several files."""

from __future__ import annotations

import io
import json

import pytest
from rank_traces import Run
from schemas import validate
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.packs import rank_sums
from nsys_insight.packs.library import built_in_packs
from nsys_insight.render import write

SUMMED_REPORTS = {name: pack for name, pack in built_in_packs().items() if pack.ranks}
COUNT = 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Write a run of three ranks whose second rank is slower. Return one file per rank, and one file with all ranks."""
    run, folder = Run(COUNT, steps=5), tmp_path_factory.mktemp("run")
    run.slower[1] = 1.4
    traces, merged_file = run.traces(), run.merged()
    for rank, trace in enumerate(traces):
        for rank_trace in (trace, merged_file):
            host = rank_trace.thread(pid=100 + rank, gpus=(rank,), now=100_000, first_correlation=90_000)
            host.malloc(1 << 20).copy("H2D", 4096 << rank, blocking=True, runs=20_000)
    paths = [trace.write(folder / f"r_rank{rank}.sqlite") for rank, trace in enumerate(traces)]
    return paths, merged_file.write(folder / "merged.sqlite")


@pytest.fixture(scope="module")
def separate_files(run):
    with nsys_insight.open(run[0], use_cache=False) as trace:
        yield trace


@pytest.fixture(scope="module")
def merged_file(run):
    with nsys_insight.open(run[1], use_cache=False) as trace:
        yield trace


@pytest.mark.slow
def test_every_view_has_trace_and_rank_columns_first(separate_files):
    for view in ("kernels", "nvtx_ranges", "wall", "steps"):
        ranks = separate_files.sql(f"SELECT DISTINCT trace, rank FROM {view} ORDER BY rank").rows()
        assert ranks == [(f"r_rank{rank}", rank) for rank in range(COUNT)]
        assert separate_files.sql(f"FROM {view}").columns[:2] == ["trace", "rank"]


@pytest.mark.slow
def test_rows_have_the_rank_of_their_process(run):
    overlapping_paths = [run[1], run[0][0]]
    with nsys_insight.open(overlapping_paths, use_cache=False) as trace:
        # The rows of rank 0 are in both files.
        rows = trace.sql("SELECT trace, process_id, rank, count(*) FROM kernels GROUP BY ALL ORDER BY ALL").rows()
        assert [row[:3] for row in rows] == [
            *(("merged", 100 + rank, rank) for rank in range(COUNT)), ("r_rank0", 100, None)
        ]  # fmt: skip
        assert trace.sql("SELECT DISTINCT rank FROM wall").rows() == [(None,)]


def test_a_report_without_sums_has_rows_for_each_rank(separate_files):
    rows = separate_files.answer("gap-sizes").dicts()
    assert {(row["trace"], row["rank"]) for row in rows} == {(f"r_rank{rank}", rank) for rank in range(COUNT)}


@pytest.mark.parametrize("name", SUMMED_REPORTS)
def test_sums_over_ranks_equal_those_of_a_loop(separate_files, name):
    pack, rules = SUMMED_REPORTS[name], rank_sums.read_header(SUMMED_REPORTS[name].ranks)
    answer = separate_files.answer(name)
    rows = answer.dicts()
    assert rows
    assert [column.name for column in answer.columns] == list(rules.describe_columns(pack.columns))
    assert all(column.description for column in answer.columns)
    rows_by_rank = separate_files.answer(name, ranks="each").dicts()
    assert answer.notes_named("ranks") == (f"{COUNT} ranks are summed; --ranks each has the rows of each rank",)
    groups = {}
    for row in rows_by_rank:
        groups.setdefault(tuple(row[column] for column in rules.group_by), []).append(row)
    assert len(rows) == len(groups)
    for row in rows:
        group = groups[tuple(row[column] for column in rules.group_by)]
        for column in (*rules.sum, *rules.mean):
            values = [rank_row[column] for rank_row in group]
            total = None if None in values else sum(values) / (COUNT if column in rules.mean else 1)
            assert row[column] == (None if total is None else pytest.approx(total))
        for column in rules.max:
            assert row[column] == max(
                (rank_row[column] for rank_row in group if rank_row[column] is not None), default=None
            )
        rank_totals = [
            sum(rank_row[rules.spread] or 0 for rank_row in group if rank_row["rank"] == rank) for rank in range(COUNT)
        ]
        min_column, max_column, max_rank_column = list(rules.added_columns)[1:]
        if None not in [rank_row[rules.spread] for rank_row in group]:
            assert (row[min_column], row[max_column]) == (
                pytest.approx(min(rank_totals)),
                pytest.approx(max(rank_totals)),
            )
            assert rank_totals[row[max_rank_column]] == pytest.approx(max(rank_totals))
            assert row["ranks"] == len({rank_row["rank"] for rank_row in group})


def test_the_slow_rank_has_the_maximum(separate_files):
    rows = {row["name"]: row for row in separate_files.answer("top").dicts()}
    # Two gemms of 1 ms per step, and on rank 1 of 1.4 ms.
    assert rows["gemm(float *)"]["max_rank"] == 1
    assert rows["gemm(float *)"]["rank_max_ns"] == pytest.approx(14e6, rel=0.01)
    assert rows["gemm(float *)"]["rank_min_ns"] == pytest.approx(10e6, rel=0.01)
    assert rows["gemm(float *)"]["calls"] == 10 * COUNT


@pytest.mark.slow
@pytest.mark.parametrize("report", ["top", "api", "steps", "gap-sizes"])
def test_reports_about_ranks_of_one_file_equal_those_of_several_files(separate_files, merged_file, report):
    def cells(rows):
        # The files differ in times, process ids and labels.
        compared_columns = ("name", "calls", "total_ns", "step", "duration_ns", "kernels", "rank", "gaps", "idle_ns")
        return sorted(str({name: row[name] for name in compared_columns if name in row}) for row in rows)

    assert cells(merged_file.answer(report, ranks="each").dicts()) == cells(
        separate_files.answer(report, ranks="each").dicts()
    )


def test_ranks_of_one_file_are_summed_on_request(separate_files, merged_file):
    plain, added_up = merged_file.answer("top").dicts(), merged_file.answer("top", ranks="sum").dicts()
    assert "ranks" not in plain[0]
    assert added_up == [
        {**row, "wall_pct": pytest.approx(row["wall_pct"], rel=0.02)} for row in separate_files.answer("top").dicts()
    ]
    assert {row["name"]: row["total_ns"] for row in plain} == {row["name"]: row["total_ns"] for row in added_up}


def test_reports_that_cannot_be_summed_say_so(separate_files, merged_file):
    for trace in (separate_files, merged_file):
        with pytest.raises(UsageError, match="gaps cannot be summed over ranks"):
            trace.answer("gaps", ranks="sum")


def test_a_trace_without_ranks_has_none(sample):
    with (
        nsys_insight.open(sample("churn"), use_cache=False) as trace,
        pytest.raises(UsageError, match="has no ranks"),
    ):
        trace.answer("top", ranks="each")


@pytest.mark.slow
def test_traces_of_different_programs_are_summed_only_on_request(sample):
    with nsys_insight.open([sample("churn"), sample("decode_eager")], use_cache=False) as trace:
        assert list(trace.answer("top").dicts()[0])[:2] == ["trace", "name"]
        assert trace.sql("SELECT DISTINCT rank FROM kernels").rows() == [(None,)]
        assert {row["max_rank"] for row in trace.answer("top", ranks="sum").dicts()} == {0, 1}


def make_idle_rank(number):
    """Make a trace of a rank without GPU work."""
    trace = Trace()
    trace.environment = {"RANK": str(number)}
    trace.thread(pid=900).call("cudaGetDevice")
    return trace


@pytest.mark.slow
def test_a_rank_without_gpu_work_is_reported(run, tmp_path):
    idle = make_idle_rank(3).write(tmp_path / "r_rank3.sqlite")
    with nsys_insight.open([*run[0], idle], use_cache=False) as trace:
        answer = trace.answer("ranks")
        assert [row["rank"] for row in answer.dicts()] == [1, 0, 2]
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
        assert [(row["rank"], row["late_steps"]) for row in answer.dicts()] == [(1, 4), (0, 0), (2, 0)]
    assert "again_rank7 has the same kernels at the same times as r_rank1, and is left out" in answer.notes


@pytest.mark.slow
def test_files_of_two_runs_are_not_merged(run, tmp_path):
    other = Run(COUNT, steps=5)
    other.communicators, other.slower = [0xDEF] * COUNT, {2: 1.4}
    paths = [*run[0], *other.write(tmp_path, "s_rank{}")]
    with nsys_insight.open(paths, use_cache=False) as trace:
        answer = trace.answer("ranks")
        assert sum(row["late_steps"] is not None for row in answer.dicts()) == COUNT, "of one of the runs"
        assert any("r_rank0, s_rank0 each claim to be rank 0" in note for note in answer.notes)
        assert list(trace.answer("top").dicts()[0])[:2] == ["trace", "rank"], "nothing is added up"


@pytest.mark.parametrize("pack", SUMMED_REPORTS.values(), ids=SUMMED_REPORTS)
def test_summed_columns_are_columns_of_the_report(pack):
    rules = rank_sums.read_header(pack.ranks)
    listed_columns = [*rules.group_by, *rules.sum, *rules.mean, *rules.min, *rules.max, *(rules.ratio or {})]
    assert len(listed_columns) == len(set(listed_columns))
    assert {*listed_columns, rules.spread, *(name for pair in (rules.ratio or {}).values() for name in pair)} <= set(
        pack.columns
    )


@pytest.mark.slow
@pytest.mark.parametrize("ranks", ["sum", "each"])
def test_answers_about_ranks_match_their_schemas(separate_files, ranks):
    for name in ("idle", "top", "per-token", "gaps"):
        if ranks == "sum" and not built_in_packs()[name].ranks:
            continue
        stream = io.StringIO()
        write(separate_files.answer(name, ranks=ranks), stream, "json", limit=None)
        answer = json.loads(stream.getvalue())
        assert answer["rows"]
        assert {"rank", "ranks"} & answer["rows"][0].keys()
        validate(answer, name, "answer")
