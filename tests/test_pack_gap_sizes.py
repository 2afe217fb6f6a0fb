"""`gap-sizes`: idle time by the length of the gaps, against plain loops and traces with known gaps."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace
from real_traces import REAL
from strategies import traces
from synthetic import Trace

REPOSITORY = Path(__file__).parents[1]
US, MS = 1_000, 1_000_000
CLASSES = {
    "under 1 µs": (0, US), "1 to 2 µs": (US, 2 * US), "2 to 5 µs": (2 * US, 5 * US), "5 to 10 µs": (5 * US, 10 * US),
    "10 to 20 µs": (10 * US, 20 * US), "20 to 50 µs": (20 * US, 50 * US), "50 to 100 µs": (50 * US, 100 * US),
    "100 µs to 1 ms": (100 * US, MS), "1 to 10 ms": (MS, 10 * MS), "10 ms and more": (10 * MS, float("inf")),
}  # fmt: skip


def ask(path, **scope):
    with open_trace(path, **scope) as trace:
        return trace.run("gap-sizes").to_dicts()


def group_lengths(tables):
    """Group the lengths of all gaps by GPU and class."""
    lengths_by_class = defaultdict(list)
    for gpu, gaps in sorted(oracle.idle_gaps(tables).items()):
        for name, (low, high) in CLASSES.items():
            lengths = [end - start for start, end in gaps if low <= end - start < high]
            if lengths:
                lengths_by_class[gpu, name] = lengths
    return lengths_by_class


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_equals_plain_loops(path):
    tables = oracle.read(path)
    expected, (first, last) = group_lengths(tables), oracle.wall(tables)
    rows = ask(path)
    assert [(row["gpu_id"], row["length"]) for row in rows] == list(expected)
    for row, lengths in zip(rows, expected.values(), strict=True):
        assert (row["gaps"], row["total_ns"], row["max_ns"]) == (len(lengths), sum(lengths), max(lengths))
        assert row["avg_ns"] == pytest.approx(sum(lengths) / len(lengths))
        assert row["wall_pct"] == pytest.approx(100 * sum(lengths) / (last - first))
    assert sum(row["idle_pct"] for row in rows) == pytest.approx(100)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_gaps_and_busy_time_of_any_trace_add_up(trace, tmp_path):
    path = trace.write(tmp_path / "trace.sqlite")
    tables = oracle.read(path)
    rows = ask(path)
    busy, intervals = oracle.busy_ns(tables), oracle.busy_intervals(tables)
    for gpu, gpu_intervals in intervals.items():
        idle = [row for row in rows if row["gpu_id"] == gpu]
        assert busy[gpu] + sum(row["total_ns"] for row in idle) == gpu_intervals[-1][1] - gpu_intervals[0][0]
        assert sum(row["gaps"] for row in idle) == len(gpu_intervals) - 1


@pytest.mark.parametrize(
    ("gap", "length"),
    [(999, "under 1 µs"), (1_000, "1 to 2 µs"), (99_999, "50 to 100 µs"), (10 * MS, "10 ms and more")],
)
def test_a_class_includes_its_lower_bound(gap, length, tmp_path):
    trace = Trace()
    trace.thread().kernel("a", start=0, runs=100).kernel("b", start=100 + gap, runs=100)
    (row,) = ask(trace.write(tmp_path / "trace.sqlite"))
    assert (row["length"], row["gaps"], row["total_ns"]) == (length, 1, gap)


def test_an_operation_that_ends_before_it_starts_takes_no_time(tmp_path):
    trace = Trace()
    trace.thread().kernel("a", start=0, runs=100).kernel("b", start=1_100, runs=-1_050).kernel("c", start=2_600)
    (row,) = ask(trace.write(tmp_path / "trace.sqlite"))
    assert (row["gaps"], row["total_ns"]) == (2, 2_500)


def test_under_nvtx_only_idle_time_inside_the_ranges_counts(sample):
    rows = ask(sample("decode_eager"), nvtx="decode_step")
    tables = oracle.read(sample("decode_eager"))
    steps = [(r["start"], r["end"]) for r in oracle.nvtx_ranges(tables) if r["name"] == "decode_step"]
    expected = sum(max(0, min(end, b) - max(start, a)) for start, end in oracle.idle_gaps(tables)[0] for a, b in steps)
    assert sum(row["total_ns"] for row in rows) == expected
