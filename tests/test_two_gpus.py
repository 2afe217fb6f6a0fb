"""Captures on two GPUs and of frameworks (tests/data/odd): what a GPU waited for, and what nsys could not process."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from opening import diagnose_with, evaluate_rules, open_trace

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

CAPTURES = REPOSITORY / "tests" / "data" / "odd"


@pytest.fixture
def find(capture):
    """Give a function that evaluates rules on a capture and returns their findings by code."""

    def evaluate(name: str, *codes: str):
        with open_trace(capture(name)) as trace:
            return {finding.code: finding for finding in evaluate_rules(trace, codes).values()}

    return evaluate


def read(path: Path, query: str):
    with sqlite3.connect(path) as file:
        return file.execute(query).fetchall()


def idle_times(path: Path) -> dict[tuple[int, str, str], int]:
    with open_trace(path) as trace:
        return {(row["gpu_id"], row["cause"], row["host"]): row["time_ns"] for row in trace.answer("idle").dicts()}


def sum_waits(path: Path) -> dict[int, int]:
    """Add up, from the file, how long each GPU was idle after the launch call of the operation that ended it."""
    calls = dict(read(path, 'SELECT correlationId, "end" FROM CUPTI_ACTIVITY_KIND_RUNTIME'))
    ends: dict[int, int] = {}
    waits = {0: 0, 1: 0}
    rows = read(
        path,
        """SELECT start, "end", deviceId, correlationId FROM (
            SELECT start, "end", deviceId, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL
            UNION ALL SELECT start, "end", deviceId, correlationId FROM CUPTI_ACTIVITY_KIND_MEMCPY
        ) ORDER BY start""",
    )
    for start, end, gpu, correlation in rows:
        if gpu in ends and start > ends[gpu]:
            waits[gpu] += max(0, start - max(ends[gpu], calls[correlation]))
        ends[gpu] = max(ends.get(gpu, 0), end)
    return waits


def test_a_copy_through_the_host_is_a_copy_from_its_call_to_its_end(capture, find):
    path = capture("staged")
    # Each row has the bytes of the copy, and 21 µs: more than 700 GB/s.
    pairs = read(path, 'SELECT copyKind, bytes, "end" - start FROM CUPTI_ACTIVITY_KIND_MEMCPY')
    assert {kind for kind, _, _ in pairs} == {1, 2}
    assert all(size / duration > 700 for _, size, duration in pairs)
    idle = idle_times(path)
    staged = {gpu: ns for (gpu, cause, host), ns in idle.items() if (cause, host) == ("copy", "staged copy")}
    # On the GPU that is read, nothing else ends a gap after a launch call.
    calls = dict(read(path, "SELECT correlationId, start FROM CUPTI_ACTIVITY_KIND_RUNTIME"))
    expected, before = 0, {}
    for start, end, gpu, correlation, kind in read(
        path,
        """SELECT * FROM (
            SELECT start, "end", deviceId, correlationId, 0 FROM CUPTI_ACTIVITY_KIND_KERNEL
            UNION ALL SELECT start, "end", deviceId, correlationId, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY
        ) ORDER BY start""",
    ):
        if kind == 2:
            expected += start - max(before[gpu], calls[correlation])
        before[gpu] = end
    assert staged[0] == expected
    assert not any(host == "launch latency" for _, _, host in idle)
    finding = find("staged", "NSI305")["NSI305"]
    assert finding.values["copies"] == pytest.approx(1)
    assert finding.values["mean_bytes"] == 16 << 20
    # Without nsys, a step took 745 µs, and 323 µs with peer access.
    assert 422_000 <= finding.recoverable_ns <= 500_000
    assert "cudaDeviceEnablePeerAccess" in finding.action
    assert not find("staged", "NSI101")
    with open_trace(path) as trace:
        copies = trace.answer("copies")
        (row,) = (row for row in copies.dicts() if row["kind"] == "staged P2P")
        assert (row["calls"], row["bandwidth_bytes_per_s"]) == (60, None)
        assert any("30 copies from one GPU to another went through host memory" in note for note in copies.notes)


@pytest.mark.parametrize(
    ("name", "cause", "host"), [("staged", "copy", "staged copy"), ("access", "dependency", "stream wait")]
)
def test_gaps_have_the_words_of_idle_for_waits_on_the_gpu(capture, name, cause, host):
    with open_trace(capture(name)) as trace:
        rows = trace.answer("gaps").dicts()
    longest = [(row["cause"], row["host"]) for row in rows[:10]]
    assert longest == [(cause, host)] * 10
    assert all(row["host_ns"] <= row["duration_ns"] for row in rows)
    # The explanation of a gap is what took most of it: together, they are part of the time in idle.
    in_gaps = sum(row["host_ns"] for row in rows if row["host"] == host)
    in_idle = sum(ns for (_, *words), ns in idle_times(capture(name)).items() if words == [cause, host])
    assert 0.5 * in_idle < in_gaps <= in_idle


def test_the_scope_of_one_gpu_has_the_same_causes(capture):
    path = capture("staged")
    with open_trace(path) as trace:
        times_by_cause = idle_times(path)
        source, target = (trace.scope(device=gpu).answer("idle").dicts() for gpu in (0, 1))
    staged = {row["host"]: row["time_ns"] for row in source}
    assert staged["staged copy"] == times_by_cause[0, "copy", "staged copy"]
    # The GPU that is read is out of scope: when the copy begins is unknown.
    waits = {row["host"]: row["time_ns"] for row in target}
    assert "launch latency" not in waits
    assert (
        waits["stream wait"]
        == times_by_cause[1, "copy", "staged copy"] + times_by_cause[1, "dependency", "stream wait"]
    )


def test_a_copy_that_waits_for_an_event_begins_at_an_unknown_time(capture, tmp_path):
    """Before each copy, its stream waits for an event: the idle time may be that wait."""
    path = tmp_path / "wait.sqlite"
    path.write_bytes(capture("staged").read_bytes())
    with sqlite3.connect(path) as file:
        copies = file.execute(
            """SELECT r.rowid, r.start, m.streamId, m.globalPid, m.contextId FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId) WHERE m.copyKind = 2"""
        ).fetchall()
        ((name,),) = file.execute("SELECT id FROM StringIds WHERE value LIKE 'cudaStreamWaitEvent%'").fetchall()
        for number, (call, start, stream, process, context) in enumerate(copies, 1_000_000):
            columns = [row[1] for row in file.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_RUNTIME)")]
            values = dict(zip(columns, file.execute(
                "SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE rowid = ?", (call,)
            ).fetchone(), strict=True))  # fmt: skip
            values |= {"start": start - 900, "end": start - 100, "correlationId": number, "nameId": name}
            file.execute(
                f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({', '.join('?' * len(columns))})",
                list(values.values()),
            )
            file.execute(
                """INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
                (start, "end", deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId)
                VALUES (?, ?, 0, ?, ?, ?, ?, 2, 1)""",
                (start - 900, start - 100, context, stream, number, process),
            )
    idle = idle_times(path)
    # The rest is from the last piece of the first half to that of the second half.
    assert {gpu for gpu, _, host in idle if host == "staged copy"} == {1}
    assert idle[1, "copy", "staged copy"] < 40_000 * len(copies)
    assert idle[0, "dependency", "launched before"] > 13_000_000


def test_a_stream_that_waits_for_another_gpu_is_no_late_launch(capture, find):
    path = capture("access")
    waits = sum_waits(path)
    idle = idle_times(path)
    assert idle[1, "dependency", "stream wait"] == waits[1] > 8_000_000
    assert (1, "launch", "launch latency") not in idle
    assert not find("access", "NSI101", "NSI104", "NSI305")
    with open_trace(path) as trace:
        assert [row["kind"] for row in trace.answer("copies").dicts()] == ["P2P"]
        assert not any("through host memory" in note for note in trace.answer("copies").notes)


def test_a_prefetch_is_a_call_and_no_touch_of_the_host(capture, find):
    path = capture("prefetch")
    idle = idle_times(path)
    api_ns = sum(ns for (_, cause, host), ns in idle.items() if (cause, host) == ("launch", "API calls"))
    managed_ns = sum(ns for (_, _, host), ns in idle.items() if host == "managed memory")
    ((called_ns,),) = read(
        path,
        """SELECT sum(r."end" - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON s.id = r.nameId
        WHERE s.value LIKE 'cudaMemPrefetchAsync%'""",
    )
    # Both GPUs wait in nearly all of these calls, and the GPU that is copied to is busy in some.
    assert called_ns * 0.8 < api_ns < 2 * called_ns
    assert managed_ns < 100_000
    with open_trace(path) as trace:
        assert {row["host"] for row in trace.answer("gaps").dicts()[:4]} == {"copy: cudaMemPrefetchAsync"}
    findings = find("prefetch", "cpu-work", "stall-place").values()
    assert not any("touches managed memory" in finding.evidence for finding in findings)


def test_what_nsys_failed_to_process_is_named(capture, find):
    finding = find("jax_nvtx", "NSI901")["NSI901"]
    assert "Cannot find string for an exterior index; unordered_map::at" in finding.evidence
    assert "without nvtx" in finding.action
    with open_trace(capture("jax_nvtx")) as trace:
        text = diagnose_with(trace, "NSI901").text(None)
    assert "without nvtx" in text
    assert "--duration" not in text


def test_the_diagnosis_of_a_rank_says_nothing_of_the_calls_of_the_others(capture):
    with open_trace(capture("symmetric")) as trace:
        text = diagnose_with(trace).text(None)
    assert "2 ranks" in text
    assert "did on a GPU" not in text


def test_a_step_that_launches_a_graph_gets_no_advice_to_do_so(capture, find):
    finding = find("reduce_overhead", "NSI101")["NSI101"]
    ((launches,),) = read(capture("reduce_overhead"), "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    assert launches == 40
    assert finding.values["graph_launches"] == pytest.approx(1)
    assert "launches a graph already" in finding.action
    assert "reduce-overhead" not in finding.action
