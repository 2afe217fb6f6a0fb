"""`syncs`: where the host waits and the GPU idle time that this causes, against plain loops and planted waits."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import oracle
import pytest
from command_line import run
from hypothesis import HealthCheck, given, settings
from opening import open_trace
from real_traces import REAL
from strategies import traces
from synthetic import Trace

REPOSITORY = Path(__file__).parents[1]
real = pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)


def ask(path, **scope):
    with open_trace(path, **scope) as trace:
        answer = trace.answer("syncs")
        return answer.frame().to_dicts(), answer.notes


def select_d2h(rows):
    return [row for row in rows if row["kind"].startswith("D2H")]


def sum_idle_ns(tables):
    return sum(end - start for gaps in oracle.idle_gaps(tables).values() for start, end in gaps)


# Real traces ---------------------------------------------------------------------------------------------------------


@real
def test_d2h_sync_points_are_those_of_plain_loops(path):
    points = oracle.d2h_sync_points(oracle.read(path))
    rows = select_d2h(ask(path)[0])
    assert sum_by_name(rows) == Counter(point["call"]["name"] for point in points)
    assert sum(row["calls"] * row["avg_bytes"] for row in rows) == pytest.approx(
        sum(point["bytes"] for point in points)
    )


def sum_by_name(rows):
    calls_by_name = Counter()
    for row in rows:
        calls_by_name[row["name"]] += row["calls"]
    return calls_by_name


@real
def test_every_synchronizing_call_and_blocking_copy_is_in_one_row(path):
    tables = oracle.read(path)
    blocking = oracle.blocking_copies(tables)
    expected = Counter(
        call["name"]
        for call in oracle.outer_api_calls(tables)
        if oracle.HOST_WAIT.match(call["name"])
        or ("Async" not in call["name"] and (oracle.pid_of(call), call["correlationId"]) in blocking)
    )
    assert sum_by_name(ask(path)[0]) == expected


@real
def test_the_idle_time_of_each_place_is_that_of_its_waits_by_plain_loops(path):
    tables = oracle.read(path)
    names = {(call["globalTid"], call["start"]): call["name"] for call in oracle.outer_api_calls(tables)}
    expected = Counter()
    for (cost_kind, thread, start), ns in oracle.idle_costs(tables).items():
        if cost_kind == "wait":
            expected[names[thread, start]] += ns
    idle_by_name = Counter()
    for row in ask(path)[0]:
        idle_by_name[row["name"]] += row["gpu_idle_ns"]
        assert row["gpu_idle_ns"] <= row["host_wait_ns"]  # these processes use one GPU each
    assert +idle_by_name == expected


def test_a_decode_step_reads_back_one_scalar(sample):
    rows, (note, _) = ask(sample("decode_eager"), nvtx="decode_step")
    columns_by_kind = {
        row["kind"]: (row["nvtx_path"], row["calls"], row["per_range"], row["avg_bytes"]) for row in rows
    }
    # .item() on the sampled token, and torch.tensor([token], device='cuda') at the start.
    assert columns_by_kind == {
        "D2H copy + wait": ("decode_step", 32, 1.0, 8.0),
        "H2D copy + wait": ("decode_step", 32, 1.0, 8.0),
    }
    assert "32, 1 per range" in note


def test_a_copy_into_pageable_memory_and_its_wait_are_one_place(sample):
    rows, _ = ask(sample("churn"))
    tables = oracle.read(sample("churn"))
    assert {row["kind"]: (row["name"], row["calls"]) for row in rows} == {
        "D2H copy": ("cudaMemcpy", 20),
        "D2H copy + wait": ("cudaStreamSynchronize", 20),
        "H2D copy": ("cudaMemcpy", 20),
        "wait": ("cudaDeviceSynchronize", 20),
    }
    pageable = {copy["correlationId"] for copy in tables[oracle.MEMCPY] if copy["bytes"] == 4}
    durations = [
        call["end"] - call["start"]
        for call in oracle.api_calls(tables)
        if call["correlationId"] in pageable or call["name"] == "cudaStreamSynchronize"
    ]
    assert next(row["host_wait_ns"] for row in rows if row["kind"] == "D2H copy + wait") == sum(durations)


# Any trace -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_sync_points_of_any_trace_equal_plain_loops_and_no_idle_time_is_counted_twice(trace, tmp_path):
    path = trace.write(tmp_path / "trace.sqlite")
    tables = oracle.read(path)
    rows, _ = ask(path)
    assert sum(row["calls"] for row in select_d2h(rows)) == len(oracle.d2h_sync_points(tables))
    assert sum(row["gpu_idle_ns"] for row in rows) <= sum_idle_ns(tables)
    assert all(row["gpu_idle_ns"] >= 0 for row in rows)


# What a wait is ------------------------------------------------------------------------------------------------------


PAGEABLE = {"target": "pageable", "api": 30_000}


def item(host):
    """Copy and wait as .item() does without pinned memory."""
    return host.copy("D2H", 4, **PAGEABLE).sync("stream")


def count_waits(tmp_path, act):
    trace = Trace()
    act(trace.thread().launch("work", runs=20_000))
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"))
    return {row["kind"]: row["calls"] for row in rows}


def copy_and_record(host, event):
    return host.copy("D2H", 4).record(event)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "kinds"),
    [
        (lambda h: h.copy("D2H", 4, blocking=True), {"D2H copy": 1}),
        (lambda h: h.copy("D2H", 4).sync("stream"), {"D2H copy + wait": 1}),
        (lambda h: h.copy("D2H", 4).copy("D2H", 4).sync("device"), {"D2H copy + wait": 1}),
        (lambda h: h.copy("D2H", 4).launch("more").record(1).sync("event", event=1), {"D2H copy + wait": 1}),
        # The first wait completes the copy, although the event was recorded earlier.
        (
            lambda h: (
                copy_and_record(copy_and_record(h, 1), 2).sync("stream").sync("event", event=1).sync("event", event=2)
            ),
            {"D2H copy + wait": 1, "wait": 2},
        ),
        (lambda h: h.copy("D2H", 4, stream=13).sync("stream"), {"wait": 1}),
        (lambda h: h.copy("D2H", 4).sync("stream").sync("stream"), {"D2H copy + wait": 1, "wait": 1}),
        # Into pageable memory: the call blocks even if its name says Async. The last copy and its wait are one row.
        (lambda h: h.copy("D2H", 4, **PAGEABLE), {"D2H copy": 1}),
        (lambda h: h.copy("D2H", 4, **PAGEABLE).sync("stream"), {"D2H copy + wait": 1}),
        (lambda h: item(h).copy("D2H", 4, **PAGEABLE), {"D2H copy + wait": 1, "D2H copy": 1}),
        (lambda h: item(h.copy("D2H", 4, **PAGEABLE)), {"D2H copy": 1, "D2H copy + wait": 1}),
        (lambda h: item(item(h)), {"D2H copy + wait": 2}),
        (lambda h: h.copy("H2D", 4, blocking=True).launch("more"), {"H2D copy": 1}),
        (lambda h: h.copy("H2D", 4).sync("stream").launch("more"), {"H2D copy + wait": 1}),
        (lambda h: h.copy("H2D", 4).launch("more").sync("stream").launch("more"), {"wait": 1}),
        # Within the GPU, a copy without Async does not block the host.
        (lambda h: h.copy("D2D", 4, blocking=True), {}),
        (lambda h: h.sync("device"), {"wait": 1}),
        (lambda h: h.call("cuCtxSynchronize").call("cudaGetDevice_v3020"), {"wait": 1}),
        (lambda h: h.copy("D2H", 4), {}),
    ],
)  # fmt: skip
def test_kinds_of_waits(act, kinds, tmp_path):
    assert count_waits(tmp_path, act) == kinds


@pytest.mark.slow
def test_a_driver_call_inside_a_runtime_call_is_not_a_separate_wait(tmp_path):
    def nested(host):
        start = host.now
        host.call("cudaDeviceSynchronize_v3020", takes=5_000).call("cuCtxSynchronize", start=start + 1_000, takes=3_000)

    assert count_waits(tmp_path, nested) == {"wait": 1}


@pytest.mark.slow
def test_a_row_is_a_place_in_the_nvtx_nesting_of_the_waiting_thread(tmp_path):
    trace = Trace()
    trace.thread(tid=101).range("elsewhere", 0, 10**6)
    host = trace.thread()
    for _ in range(3):
        with host.nvtx("step"), host.nvtx("sample"):
            host.launch("work").sync("device")
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"), nvtx="step")
    assert [(row["nvtx_path"], row["calls"], row["per_range"], row["thread_id"]) for row in rows] == [
        ("step/sample", 3, 1.0, 100)
    ]


@pytest.mark.slow
def test_the_first_row_is_the_wait_that_costs_most_in_the_steps(tmp_path):
    """As in `host` and `diagnose`: a long wait at the start is not the one to remove first."""
    trace = Trace()
    host = trace.thread()
    host.launch("warm_up").sync("device", waits=5_000_000).launch("warm_up")
    for _ in range(12):
        with host.nvtx("step"):
            host.launch("work", runs=20_000).sync("stream", waits=40_000).launch("rest", runs=9_000)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"))
    assert [row["nvtx_path"] for row in rows] == ["step", None]
    assert rows[0]["steady_idle_ns"] > 0 == rows[1]["steady_idle_ns"]
    assert rows[0]["gpu_idle_ns"] < rows[1]["gpu_idle_ns"]


# What a wait costs ---------------------------------------------------------------------------------------------------


def measure_idle(tmp_path, trace, **scope):
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"), **scope)
    return {re.sub(r"^cuda|Synchronize$", "", row["name"]): row["gpu_idle_ns"] for row in rows}


def trace_busy_until_10_000(**options):
    """Return a trace with a GPU that is busy from 1,000 to 10,000, and its thread."""
    trace = Trace()
    return trace, trace.thread().launch("first", start=0, api=500, queue=500, runs=9_000, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("next_at", "idle"),
    [
        (13_000, 4_000),  # the next operation starts at 14,000, and would have at 10,000: all of the gap
        (30_000, 9_000),  # the gap lasts 21,000, but the wait blocked the host for 9,000
    ],
)
def test_a_wait_in_which_the_gpu_ran_out_of_work_costs_the_gap_but_at_most_its_duration(next_at, idle, tmp_path):
    trace, host = trace_busy_until_10_000()
    host.sync("stream", start=2_000, waits=9_000)  # back at 11,000
    host.launch("next", start=next_at, api=500, queue=500)
    assert measure_idle(tmp_path, trace) == {"Stream": idle}


@pytest.mark.slow
def test_a_wait_that_began_after_the_gpu_ran_out_of_work_costs_its_own_time(tmp_path):
    trace, host = trace_busy_until_10_000()
    host.sync("stream", start=15_000, waits=2_000).launch("next", start=30_000, api=500, queue=500)
    assert measure_idle(tmp_path, trace) == {"Stream": 2_000}


@pytest.mark.slow
def test_two_waits_share_a_gap_and_no_time_is_counted_twice(tmp_path):
    trace, host = trace_busy_until_10_000()
    host.sync("stream", start=2_000, waits=9_000).sync("device", start=12_000, waits=3_000)
    host.launch("next", start=30_000, api=500, queue=500)
    assert measure_idle(tmp_path, trace) == {"Stream": 9_000, "Device": 3_000}


@pytest.mark.slow
def test_a_wait_that_ends_while_the_gpu_is_busy_costs_nothing(tmp_path):
    trace, host = trace_busy_until_10_000()
    host.launch(
        "queued", start=600, api=500, queue=20_000 - 1_100, runs=50_000, stream=13
    )  # idle from 10,000 to 20,000
    host.sync("stream", start=2_000, waits=28_000).launch("next", start=90_000)
    assert measure_idle(tmp_path, trace) == {"Stream": 0}


@pytest.mark.slow
def test_a_wait_after_the_last_operation_costs_nothing(tmp_path):
    trace, host = trace_busy_until_10_000()
    host.sync("device", start=2_000, waits=9_000).call("cudaGetDevice_v3020", start=50_000)
    assert measure_idle(tmp_path, trace) == {"Device": 0}


@pytest.mark.slow
def test_of_two_blocked_threads_only_the_wait_of_the_launching_one_costs_idle_time(tmp_path):
    trace, host = trace_busy_until_10_000()
    trace.thread(tid=101).sync("device", start=1_500, waits=9_500)
    host.sync("stream", start=2_000, waits=9_000).launch("next", start=30_000, api=500, queue=500)
    assert measure_idle(tmp_path, trace) == {"Stream": 9_000, "Device": 0}


@pytest.mark.slow
def test_a_wait_costs_only_idle_time_of_the_gpus_of_its_process(tmp_path):
    trace = Trace()
    for pid, gpu in ((1, 0), (2, 1)):
        host = trace.thread(pid=pid, gpus=[gpu]).launch("first", start=0, api=500, queue=500, runs=9_000 + pid)
        host.launch("next", start=30_000, api=500, queue=500)
        if pid == 1:
            host.call("cudaDeviceSynchronize_v3020", start=2_000, takes=9_000)  # CUPTI recorded no wait
    assert measure_idle(tmp_path, trace) == {"Device": 9_000}


@pytest.mark.slow
def test_a_wait_without_a_gpu_costs_idle_time_of_all_gpus_of_its_process(tmp_path):
    trace = Trace()
    host = trace.thread()
    for device in (0, 1):
        host.launch("first", start=0, api=500, queue=500, runs=9_000 + device, device=device)
        host.launch("next", start=30_000, api=500, queue=500, device=device)
    host.call("cudaDeviceSynchronize_v3020", start=2_000, takes=9_000)
    assert measure_idle(tmp_path, trace) == {"Device": 9_000 + 9_000}


@pytest.mark.slow
def test_a_wait_for_one_gpu_costs_every_gpu_that_its_thread_launches_on(tmp_path):
    trace = Trace()
    host = trace.thread()
    for device in (0, 1):
        host.launch("first", start=0, api=500, queue=500, runs=9_000 + device, device=device)
        host.launch("next", start=30_000, api=500, queue=500, device=device)
    host.sync("device", start=2_000, waits=9_000, device=1)
    assert measure_idle(tmp_path, trace) == {"Device": 9_000 + 9_000}


@pytest.mark.slow
def test_a_trace_without_waits_has_an_empty_answer(tmp_path):
    trace = Trace()
    trace.thread().launch("work")
    assert ask(trace.write(tmp_path / "trace.sqlite")) == ([], ())
    assert ask(Trace().write(tmp_path / "empty.sqlite")) == ([], ())


def add_second_copy(trace, **changes):
    """Let the last copying call run a second copy, as batch and peer copies do."""
    copies = trace.rows[oracle.MEMCPY]
    copies.append({**copies[-1], **changes})
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("changes", [{"copyKind": "Host-to-Device", "bytes": 9}, {"deviceId": 1}, {"streamId": 99}])
def test_a_call_that_copies_twice_waits_once(changes, blocking, tmp_path):
    trace = Trace()
    trace.thread().copy(
        "D2H", 4, blocking=blocking, target="pageable", api_name=None if blocking else "cudaMemcpyBatchAsync"
    )
    rows, _ = ask(add_second_copy(trace, **changes).write(tmp_path / "trace.sqlite"))
    call = oracle.duration(trace.rows[oracle.RUNTIME][0])
    assert [(row["kind"], row["calls"], row["host_wait_ns"], row["avg_bytes"]) for row in rows] == [
        ("D2H copy", 1, call, 4)
    ]


@pytest.mark.slow
def test_a_wait_for_a_call_that_copied_twice_is_one_wait(tmp_path):
    trace = Trace()
    host = trace.thread().copy("D2H", 4, target="pageable")
    add_second_copy(trace, copyKind="Host-to-Device")
    host.sync("stream")
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"))
    assert [(row["kind"], row["calls"], row["avg_bytes"]) for row in rows] == [("D2H copy + wait", 1, 4)]
    assert rows[0]["host_wait_ns"] == sum(map(oracle.duration, trace.rows[oracle.RUNTIME]))


def test_a_narrow_terminal_shows_what_distinguishes_two_rows_and_where_to_read_on():
    path = Path(__file__).parent / "data" / "serving" / "serving_b.sqlite"
    result = run("syncs", path, env={"COLUMNS": "80"})
    rows = [re.sub(r"[\d.,]+ ", "", line) for line in result.stdout.splitlines() if " copy + wait " in line]
    assert len(rows) == len(set(rows)) == 6
    assert "note: nsys-insight diagnose says which waits are worth removing, and how" in result.stderr
    assert (
        "worth removing"
        not in run("syncs", REPOSITORY / "sample_traces" / "decode_eager.sqlite", "--nvtx", "layer_1").stderr
    )
