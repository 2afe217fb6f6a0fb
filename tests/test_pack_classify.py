"""`classify`, `classify-steps` and `host`: verdicts on loops with a known bound, and shares by plain loops."""

from __future__ import annotations

from itertools import pairwise

import oracle
import planted
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opening import open_trace, planted_path
from strategies import traces
from sweeps import sweep
from synthetic import Trace


def rows_by_part(path, **params):
    """Return the rows of `classify` by part."""
    with open_trace(path) as trace:
        return {row["part"]: row for row in trace.classify(**params).to_dicts()}


def bottlenecks(path, **params):
    """Return the rows of `host` by name."""
    with open_trace(path) as trace:
        return {row["bottleneck"]: row for row in trace.host(**params).to_dicts()}


# The verdict ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(planted.ALL.keys() - {"tokens in batches", "prefill and decode"}))
def test_planted_loops_are_bound_by_what_was_planted(name):
    with open_trace(planted_path(name)) as trace:
        rows = {row["part"]: row for row in trace.classify().to_dicts()}
        steps = trace.run("classify-steps")["verdict"].to_list()
    assert rows.pop("wall")["verdict"] == planted.VERDICTS[name]
    verdicts = {row["verdict"] for row in rows.values()} - {None}
    assert verdicts == set(planted.VERDICTS[name].removeprefix("mixed: ").split(", "))
    assert planted.VERDICTS[name] in steps


@pytest.mark.slow
def test_graphs_traced_as_a_unit_are_gpu_work(tmp_path):
    path = planted.graphs(graph_level=True).write(tmp_path / "trace.sqlite")
    assert rows_by_part(path)["wall"]["verdict"] == "mixed: GPU-bound, sync-bound"
    with open_trace(path) as trace:
        assert any("ran as a whole" in note for note in trace.answer("classify").notes)


@pytest.mark.parametrize("name", ["decode_eager", *sweep(["decode_fresh"])])
def test_a_decoder_run_eagerly_is_launch_bound(name, sample):
    assert rows_by_part(sample(name))["wall"]["verdict"] == "launch-bound"


@pytest.mark.parametrize("name", ["decode_graph_node", *sweep(["decode_graph_whole"])])
def test_the_same_decoder_as_a_graph_is_gpu_bound(name, sample):
    assert rows_by_part(sample(name))["wall"]["verdict"] == "GPU-bound"


def test_the_largest_cause_of_churn_comes_first(sample):
    assert rows_by_part(sample("churn"))["wall"]["verdict"] == (
        "mixed: allocation-bound, launch-bound, copy-bound, sync-bound"
    )


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ({"gpu": 77, "launch": 21}, "mixed: GPU-bound, host-bound"),
        ({"gpu": 81, "launch": 19}, "GPU-bound"),
        ({"gpu": 49, "launch": 40}, "host-bound"),
        ({"gpu": 70, "dependency": 24, "sync": 6}, "GPU-bound"),
        ({"gpu": 53, "dependency": 47}, "mixed: GPU-bound, dependency-bound"),
        ({"gpu": 44, "dependency": 50, "sync": 6}, "mixed: dependency-bound, GPU-bound"),
        ({"gpu": 20, "dependency": 75}, "dependency-bound"),
        ({"gpu": 65, "edge": 35}, "mixed: GPU-bound, start-up and end"),
        ({"gpu": 5, "launch": 51, "edge": 43}, "mixed: host-bound, start-up and end"),
        ({"launch": 15, "edge": 85}, "start-up and end"),
        ({"gpu": 45}, "unknown"),
    ],
)
def test_a_busy_gpu_and_the_edges_of_the_trace_are_named(shares, verdict, sample):
    parts = ("gpu", "launch", "sync", "copy", "allocation", "communication", "dependency", "edge")
    values = ", ".join(str(shares.get(part, 0)) for part in parts)
    with open_trace(sample("decode_eager")) as trace:
        (row,) = trace.dicts(f"SELECT _verdict_text(_verdict_of({values}, 'host-bound', 10, 80, 66)) AS verdict")
    assert row["verdict"] == verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("least_pct", "main_pct", "verdict"),
    [
        (10, 66, "mixed: launch-bound, allocation-bound"),
        (10, 50, "launch-bound"),  # 69 µs of 129
        (43, 66, "launch-bound"),  # 40.3 and 46.3% of the wall time
        (50, 66, "unknown"),
    ],
)
def test_limits_are_parameters(least_pct, main_pct, verdict, tmp_path):
    path = planted.allocating().write(tmp_path / "trace.sqlite")
    assert rows_by_part(path, least_pct=least_pct, main_pct=main_pct)["wall"]["verdict"] == verdict
    assert rows_by_part(path, busy_pct=13)["wall"]["verdict"] == "GPU-bound"  # the GPU works 20 µs of 149


@pytest.mark.slow
def test_without_steps_the_full_scope_is_classified_with_a_note(tmp_path):
    trace = Trace()
    host = trace.thread()
    for name, runs in (("a", 1_000), ("b", 3_000), ("c", 2_000)):
        host.launch(name, api=4_000, queue=1_000, runs=runs).idle(20_000)
    path = trace.write(tmp_path / "trace.sqlite")
    rows = rows_by_part(path)
    assert rows["wall"]["verdict"] == "launch-bound"
    first, last = oracle.wall(oracle.read(path))
    assert rows["wall"]["time_ns"] == last - first
    with open_trace(path) as session:
        assert "whole scope" in session.answer("classify").notes[0]
        assert session.run("classify-steps").is_empty()


# The shares ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # 20 µs asleep after the GPU is done; then 10 µs Python and 5 µs for the launch that the wait of 70 µs delayed.
        ("sync bound", {"gpu": 90_000, "copy": 1_000, "sync": 35_000}),
        # 200 µs of copies, 16 µs before the one to the GPU, and 5 µs after it, until the first kernel.
        ("copy bound", {"gpu": 25_000, "copy": 200_000 + 16_000 + 5_000, "sync": 16_000}),
        ("allocating", {"gpu": 20_000, "allocation": 60_000, "launch": 69_000}),
        # A wait of 3 µs costs only 3 µs: the host is late at every kernel.
        ("prefill and decode", {"gpu": 18_000, "copy": 1_000, "sync": 3_000, "launch": 77_000}),
        ("communicating", {"gpu": 180_000, "communication": 200_000}),
        # A launch call of 10 µs for a graph of 6 kernels that is traced by its nodes: 3 µs of it are the profiler's.
        ("graphs", {"gpu": 30_000, "copy": 1_000, "profiler": 3_000, "sync": 19_000}),
    ],
)
def test_the_time_of_a_planted_step_is_split_as_planted(name, expected):
    rows = rows_by_part(planted_path(name))
    wall = rows.pop("wall")
    assert {part: row["time_ns"] for part, row in rows.items()} == pytest.approx(expected, abs=2)
    assert wall["time_ns"] == pytest.approx(sum(expected.values()))
    assert wall["recoverable_ns"] == pytest.approx(sum(row["recoverable_ns"] or 0 for row in rows.values()))


@pytest.mark.slow
def test_a_removed_launch_leaves_the_gap_between_two_kernels(tmp_path):
    path = planted.launch_bound().write(tmp_path / "trace.sqlite")
    assert rows_by_part(path)["launch"]["recoverable_ns"] == pytest.approx(9 * 7_000 - 9 * 300)
    assert rows_by_part(path, kernel_gap_ns="1us")["launch"]["recoverable_ns"] == pytest.approx(9 * 7_000 - 9 * 1_000)


@pytest.mark.slow
def test_tokens_share_the_time_of_a_step(tmp_path):
    path = planted.sync_bound().write(tmp_path / "trace.sqlite")
    step_rows, token_rows = rows_by_part(path), rows_by_part(path, tokens_per_step=4)
    for part, row in step_rows.items():
        assert token_rows[part]["time_ns"] == pytest.approx(row["time_ns"] / 4)
        assert token_rows[part]["wall_pct"] == pytest.approx(row["wall_pct"])


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_the_parts_of_any_trace_add_up_to_the_wall_of_each_gpu(tmp_path, trace):
    path = trace.write(tmp_path / "trace.sqlite")
    with open_trace(path) as session:
        rows = session.sql("SELECT gpu_id, sum(time_ns)::BIGINT FROM step_budget WHERE step IS NULL GROUP BY 1").rows()
        steps = session.sql("SELECT sum(time_ns)::BIGINT FROM step_budget WHERE step IS NOT NULL").item()
        walls = session.sql(
            "SELECT sum(duration_ns)::BIGINT FROM step_gpus JOIN steps USING (step, phase) WHERE phase = 'steady'"
        ).item()
    assert steps == walls
    tables = oracle.read(path)
    first, last = oracle.wall(tables) or (0, 0)
    if steps is None and last > first:
        assert dict(rows) == dict.fromkeys(oracle.busy_ns(tables), last - first)


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    operations=st.lists(
        st.tuples(
            st.sampled_from(["relu", "ncclDevKernel_AllReduce_Sum", "H2D", "D2D"]),
            st.integers(0, 3_000),
            st.integers(1, 2_000),
        ),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_exclusive_times_equal_a_plain_loop(tmp_path, operations):
    trace = Trace()
    host = trace.thread()
    intervals = []
    for stream, (kind, queue, runs) in enumerate(operations):
        start = host.now + 100 + queue
        if kind in ("H2D", "D2D"):
            host.copy(kind, 8, api=100, queue=queue, runs=runs, stream=stream)
        else:
            host.launch(kind, api=100, queue=queue, runs=runs, stream=stream)
        intervals.append((start, start + runs, kind))
    expected = {"gpu": 0, "communication": 0, "copy": 0}
    for a, b in pairwise(sorted({edge for start, end, _ in intervals for edge in (start, end)})):
        active_kinds = {kind for start, end, kind in intervals if start <= a and b <= end}
        if active_kinds & {"relu", "D2D"}:
            expected["gpu"] += b - a
        elif "ncclDevKernel_AllReduce_Sum" in active_kinds:
            expected["communication"] += b - a
        elif active_kinds:
            expected["copy"] += b - a
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        session.answer("classify", step_method="graph")  # there are no steps, so it classifies the full scope
        times = dict(
            session._connection.duckdb.sql("SELECT part, time_ns FROM step_budget WHERE host IS NULL").fetchall()
        )
    assert times == {part: ns for part, ns in expected.items() if ns}


# TKLQT ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["launch bound", "deep queue", "graphs"])
def test_the_launch_and_queue_time_is_that_of_a_plain_loop(name):
    truth = planted.ALL[name]()
    path = planted_path(name)
    tables = oracle.read(path)
    starts = {}
    for row in tables[oracle.KERNEL]:
        starts[row["correlationId"]] = min(row["start"], starts.get(row["correlationId"], row["start"]))
    with open_trace(path) as trace:
        rows = trace.run("classify-steps").to_dicts()
    assert rows
    for row, step, following in zip(rows, truth.steps, truth.steps[1:], strict=False):
        calls = [
            call for call in oracle.api_calls(tables)
            if call["correlationId"] in starts and step.host_start_ns <= call["start"] < following.host_start_ns
        ]  # fmt: skip
        launch_queue_times = [starts[call["correlationId"]] - call["start"] for call in calls]
        queues = [max(0, starts[call["correlationId"]] - call["end"]) for call in calls]
        assert (row["launch_calls"], row["launch_queue_ns"]) == (len(calls), sum(launch_queue_times))
        assert row["queue_pct"] == pytest.approx(100 * sum(queues) / sum(launch_queue_times))


@pytest.mark.parametrize(
    ("name", "place"),
    [("launch bound", "CPU-bound"), ("deep queue", "GPU-bound"), ("graphs", "between CPU- and GPU-bound")],
)
def test_it_places_the_step_between_cpu_and_gpu(name, place):
    assert rows_by_part(planted_path(name))["wall"]["evidence"].endswith(f": {place}")


# The host ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bottlenecks_are_ranked_by_what_they_cost(tmp_path):
    path = planted.allocating().write(tmp_path / "trace.sqlite")
    with open_trace(path) as trace:
        rows = trace.host().to_dicts()
    assert [(row["bottleneck"], row["count"], row["recoverable_ns"]) for row in rows] == [
        ("allocations and frees", 2, 60_000),
        ("launch calls", 10, 10 * 5_000),
        ("CPU work", None, 9 * 2_000 + 1_000),
    ]
    host = {row["bottleneck"]: row["host_ns"] for row in rows}
    assert host == {"allocations and frees": 60_000, "launch calls": 40_000, "CPU work": 9 * 5_000 + 4_000}


@pytest.mark.slow
def test_waits_are_grouped_by_what_they_wait_for(tmp_path):
    rows = bottlenecks(planted.copy_bound().write(tmp_path / "trace.sqlite"))
    assert {name: (row["count"], row["recoverable_ns"]) for name, row in rows.items()} == {
        "blocking copies to the GPU": (1, 21_000),
        "D2H sync points": (1, 16_000),
        "other waits": (1, 0),
        "launch calls": (5, 0),
    }


def test_pageable_copies_and_blocking_memsets_cost_the_idle_time_of_their_calls(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.launch("first", start=0, api=1_000, queue=0, runs=4_000)  # until 5,000
    host.copy(
        "H2D", 64, start=3_000, api=6_000, queue=1_000, runs=1_000, source="pageable"
    )  # call until 9,000, runs until 11,000
    host.memset(
        64, start=10_000, api=5_000, queue=5_000, runs=1_000, api_name="cudaMemset_v3020"
    )  # call until 15,000, runs until 21,000
    host.launch("last", start=30_000, api=1_000, queue=0, runs=1_000)
    rows = bottlenecks(trace.write(tmp_path / "trace.sqlite"))
    assert rows["pageable copies"]["recoverable_ns"] == 9_000 - 5_000
    assert (rows["blocking memsets"]["count"], rows["blocking memsets"]["recoverable_ns"]) == (1, 15_000 - 11_000)


@pytest.mark.slow
def test_host_time_that_the_gpu_hides_is_not_recoverable(tmp_path):
    for row in bottlenecks(planted.deep_queue().write(tmp_path / "trace.sqlite")).values():
        assert (row["recoverable_ns"], row["wall_pct"]) == (0, 0)


@pytest.mark.parametrize(("name", "first"), [("churn", "allocations and frees"), ("decode_eager", "launch calls")])
def test_the_most_expensive_bottleneck_of_a_real_program_comes_first(name, first, sample):
    rows = bottlenecks(sample(name))
    assert next(iter(rows)) == first
    with open_trace(sample(name)) as trace:
        per_token = {row["metric"]: row["per_token"] for row in trace.run("per-token").to_dicts()}
    assert rows["launch calls"]["count"] == per_token["launch_calls"]
    waits = sum(
        row["count"]
        for kind, row in rows.items()
        if kind in ("D2H sync points", "other waits", "blocking copies to the GPU")
    )
    assert waits == per_token["sync_points"]
    if name == "churn":
        assert rows["allocations and frees"]["count"] == per_token["mallocs"] + per_token["frees"]
        assert rows["blocking memsets"]["count"] == rows["D2H sync points"]["count"] / 2 == 1
