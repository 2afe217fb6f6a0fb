"""`streams`: work and overlap of CUDA streams, against a sweep in Python and planted traces."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace
from real_traces import REAL
from strategies import traces
from synthetic import Trace

REPOSITORY = Path(__file__).parents[1]


def ask(path, **scope):
    with open_trace(path, **scope) as trace:
        answer = trace.answer("streams")
        return {
            (row["process_id"], row["device_id"], row["stream_id"]): row for row in answer.frame().to_dicts()
        }, answer.notes


def calculate_expected(tables):
    """Merge the work of each stream, then intersect it with the work of the other streams."""
    gpus = {(row["pid"], row["cudaId"]): row["gpuId"] for row in tables["TARGET_INFO_CUDA_DEVICE"]}
    work, counts = defaultdict(list), defaultdict(Counter)
    for table in oracle.GPU_WORK:
        for row in tables[table]:
            key = (oracle.pid_of(row), row["deviceId"], row["streamId"])
            work[key].append((row["start"], max(row["start"], row["end"])))
            counts[key][{oracle.KERNEL: "kernels", oracle.GRAPH: "graphs"}.get(table, "copies")] += 1
    unions = {key: oracle.union(intervals) for key, intervals in work.items()}
    expected = {}
    for key, busy in unions.items():
        gpu = gpus.get(key[:2], key[1])
        other_streams = [
            busy_times for other, busy_times in unions.items() if other != key and gpus.get(other[:2], other[1]) == gpu
        ]
        shared = oracle.union(busy_time for busy_times in other_streams for busy_time in busy_times)
        overlap = sum(max(0, min(b, d) - max(a, c)) for a, b in busy for c, d in shared)
        expected[key] = {
            "gpu_id": gpu,
            "busy_ns": sum(b - a for a, b in busy),
            "overlap_ns": overlap,
            "span_ns": busy[-1][1] - busy[0][0],
            **{name: counts[key][name] for name in ("kernels", "copies", "graphs")},
        }
    return expected


def assert_equals_loops(path):
    tables = oracle.read(path)
    expected, busy, wall = calculate_expected(tables), oracle.busy_ns(tables), oracle.wall(tables)
    rows, _ = ask(path)
    assert {key: {column: row[column] for column in expected[key]} for key, row in rows.items()} == expected
    for row in rows.values():
        if wall[1] > wall[0]:
            assert row["wall_pct"] == pytest.approx(100 * row["busy_ns"] / (wall[1] - wall[0]))
        if row["busy_ns"]:
            assert row["overlap_pct"] == pytest.approx(100 * row["overlap_ns"] / row["busy_ns"])
            assert row["gpu_busy_pct"] == pytest.approx(100 * row["busy_ns"] / busy[row["gpu_id"]])
    assert [row["busy_ns"] for row in rows.values()] == sorted((row["busy_ns"] for row in rows.values()), reverse=True)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_equals_plain_loops(path):
    assert_equals_loops(path)


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_equals_plain_loops(trace, tmp_path):
    assert_equals_loops(trace.write(tmp_path / "trace.sqlite"))


def test_overlap_is_with_any_other_stream_of_the_gpu_and_counts_once(tmp_path):
    trace = Trace()
    first, second = trace.thread(pid=1, gpus=[0]), trace.thread(pid=2, gpus=[0])
    trace.thread(pid=3, gpus=[1]).kernel("elsewhere", start=0, runs=10_000)
    first.kernel("a", start=0, runs=1_000, stream=7).kernel("b", start=500, runs=1_000, stream=13)
    second.kernel("c", start=700, runs=400, stream=7)
    rows, (note, _) = ask(trace.write(tmp_path / "trace.sqlite"))
    times = {key: (row["busy_ns"], row["overlap_ns"]) for key, row in rows.items()}
    assert times == {(3, 0, 7): (10_000, 0), (1, 0, 7): (1_000, 500), (1, 0, 13): (1_000, 600), (2, 0, 7): (400, 400)}
    # 2,400 ns of streams in 1,500 ns of GPU 0; a single stream is not worth reporting.
    assert note == "GPU 0: while it is busy, 1.6 of 3 streams are busy on average"


def test_kernels_that_overlap_on_one_stream_count_once(tmp_path):
    trace = Trace()
    trace.thread().kernel("long", start=0, runs=1_000).kernel("short", start=100, runs=100).kernel(
        "late", start=900, runs=200
    )
    rows, notes = ask(trace.write(tmp_path / "trace.sqlite"))
    assert [(row["kernels"], row["busy_ns"], row["overlap_ns"], row["span_ns"]) for row in rows.values()] == [
        (3, 1_100, 0, 1_100)
    ]
    assert [note for note in notes if "no CUDA API calls" not in note] == []


def test_the_type_and_priority_of_a_stream_are_reported(sample):
    rows, _ = ask(sample("decode_graph_node"))
    assert sorted((key[2], row["stream_type"], row["priority"]) for key, row in rows.items()) == [
        (7, "null stream", 0),
        (33, "non-blocking stream", 0),
        (37, "non-blocking stream", 0),
    ]


def test_a_scope_narrows_what_is_counted(sample):
    rows, _ = ask(sample("decode_eager"), nvtx="decode_step")
    assert [(row["kernels"], row["copies"]) for row in rows.values()] == [(32 * 196, 64)]


def test_no_stream_is_busy_for_longer_than_the_scope(tmp_path):
    trace = Trace()
    host = trace.thread().range("step", 0, 2_000).range("step", 9_000, 11_000)
    host.launch("long", start=100, api=10, queue=0, runs=10_000).launch(
        "beside", start=200, api=10, queue=0, runs=50, stream=13
    )
    host.launch("after", start=9_500, api=10, queue=700, runs=1_000)
    path = trace.write(tmp_path / "trace.sqlite")
    rows, _ = ask(path, from_ns=0, to_ns=1_110)  # nothing happens before 100
    assert {key[2]: (row["busy_ns"], row["wall_pct"]) for key, row in rows.items()} == {
        7: (10_000, pytest.approx(100 * 1_000 / 1_010)), 13: (50, pytest.approx(100 * 50 / 1_010)),
    }  # fmt: skip
    rows, _ = ask(path, nvtx="step")
    # 110 to 2,000 and 9,000 to 11,000 without the hole from 10,110 to 10,210.
    assert rows[100, 0, 7]["wall_pct"] == pytest.approx(100 * (1_890 + 1_110 + 790) / 4_000)
    assert rows[100, 0, 7]["busy_ns"] == 11_000
