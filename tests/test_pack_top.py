"""`top`: kernels by GPU time, against loops in Python and against the output of nsys."""

from __future__ import annotations

import csv
from pathlib import Path

import oracle
import pytest
from opening import open_trace
from real_traces import SAMPLE_NAMES
from synthetic import Trace

REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY / "sample_traces"
NSYS_FOLDER = REPOSITORY / "tests" / "data" / "nsys_stats"
# The names of a statistic in the oracle and in the report.
COLUMNS = {"count": "calls", "total": "total_ns", "avg": "avg_ns", "median": "med_ns", "min": "min_ns", "max": "max_ns"}
COLUMNS |= {"stddev": "stddev_ns", "p95": "p95_ns", "p99": "p99_ns"}


def top(path, **params):
    with open_trace(path) as trace:
        return {row["name"]: row for row in trace.top(**params).to_dicts()}


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_equals_what_nsys_stats_prints(name):
    answer = top(SAMPLES / f"{name}.sqlite")
    with (NSYS_FOLDER / f"{name}.cuda_gpu_kern_sum.csv").open(newline="") as file:
        nsys_rows = list(csv.DictReader(file))
    assert [nsys_row["Name"] for nsys_row in nsys_rows] == pytest.approx(list(answer)) or {
        r["Name"] for r in nsys_rows
    } == set(answer)
    for nsys_row in nsys_rows:
        own_row = answer[nsys_row["Name"]]
        assert (own_row["total_ns"], own_row["calls"]) == (int(nsys_row["Total Time (ns)"]), int(nsys_row["Instances"]))
        assert (own_row["min_ns"], own_row["max_ns"]) == (int(nsys_row["Min (ns)"]), int(nsys_row["Max (ns)"]))
        assert own_row["avg_ns"] == pytest.approx(float(nsys_row["Avg (ns)"]), abs=0.051)
        assert own_row["med_ns"] == pytest.approx(float(nsys_row["Med (ns)"]), abs=0.051)
        # nsys prints 0 if a single call has no deviation.
        assert (own_row["stddev_ns"] or 0) == pytest.approx(float(nsys_row["StdDev (ns)"]), abs=0.051)
        assert own_row["kernel_time_pct"] == pytest.approx(float(nsys_row["Time (%)"]), abs=0.051)


@pytest.mark.parametrize(
    ("group_by", "column"), [("full", "demangledName"), ("short", "shortName"), ("mangled", "mangledName")]
)
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_equals_plain_loops_for_every_kind_of_name(name, group_by, column):
    tables = oracle.read(SAMPLES / f"{name}.sqlite")
    expected = oracle.kernel_totals(tables, column)
    answer = top(SAMPLES / f"{name}.sqlite", group_by=group_by)
    assert answer.keys() == expected.keys()
    for kernel, row in answer.items():
        for statistic, report_column in COLUMNS.items():
            assert row[report_column] == pytest.approx(expected[kernel][statistic])


def test_shares_are_of_all_kernel_time_and_of_the_wall():
    path = SAMPLES / "decode_eager.sqlite"
    first, last = oracle.wall(oracle.read(path))
    answer = top(path)
    assert sum(row["kernel_time_pct"] for row in answer.values()) == pytest.approx(100)
    for row in answer.values():
        assert row["wall_pct"] == pytest.approx(100 * row["total_ns"] / (last - first))


@pytest.mark.parametrize("group_by", ["family", "provenance", "device", "stream", "nvtx"])
def test_any_grouping_keeps_all_kernels_and_their_time(group_by):
    kernel_rows = top(SAMPLES / "decode_eager.sqlite").values()
    grouped_rows = top(SAMPLES / "decode_eager.sqlite", group_by=group_by).values()
    assert len(grouped_rows) < len(kernel_rows)
    for column in ("calls", "total_ns"):
        assert sum(row[column] for row in grouped_rows) == sum(row[column] for row in kernel_rows)


def test_by_nvtx_a_kernel_counts_for_the_innermost_range_of_its_launching_thread():
    answer = top(SAMPLES / "decode_eager.sqlite", group_by="nvtx")
    assert answer["decode_step/layer_0"]["calls"] == 32 * 45
    assert answer["prefill/layer_0"]["calls"] < 60


def test_a_single_call_has_no_deviation(tmp_path):
    trace = Trace()
    trace.thread(pid=1, tid=1).launch("once", start=0, runs=100)
    trace.write(tmp_path / "t.sqlite")
    assert top(tmp_path / "t.sqlite")["once"]["stddev_ns"] is None


def test_kernels_hidden_in_graphs_have_a_note_with_their_share():
    with open_trace(SAMPLES / "decode_graph_whole.sqlite") as trace:
        answer = trace.answer("top")
    tables = oracle.read(SAMPLES / "decode_graph_whole.sqlite")
    graphs = sum(oracle.duration(row) for row in tables[oracle.GRAPH])
    kernels = sum(oracle.duration(row) for row in tables[oracle.KERNEL])
    (note,) = answer.notes
    assert "32 times" in note
    assert f"{100 * graphs / (graphs + kernels):.1f}%" in note
    assert "--cuda-graph-trace=node" in note
