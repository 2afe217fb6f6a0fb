"""`nvtx --instances`: each occurrence of a range with its GPU work, against plain loops over the tables of the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from opening import open_trace
from real_traces import SAMPLES
from synthetic import Trace

from nsys_insight.errors import UsageError

MS = 1_000_000
OPERATIONS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "kernel", "CUPTI_ACTIVITY_KIND_MEMCPY": "copy",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memset", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "graph",
}  # fmt: skip
LAUNCHES = ("Launch", "Memcpy", "Memset")


def read(database, table, columns):
    names = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    return database.execute(f"SELECT {columns} FROM {table}").fetchall() if table in names else []


def loop_over_tables(path, name):
    """Compute the rows with loops: for each occurrence, all calls of its thread, and all operations of each call."""
    with closing(sqlite3.connect(path)) as database:
        strings = dict(database.execute("SELECT id, value FROM StringIds"))
        ranges = [
            (start, end, thread)
            for start, end, thread, text, text_id in database.execute(
                'SELECT start, "end", globalTid, text, textId FROM NVTX_EVENTS WHERE eventType = 59'
            )
            if (text or strings.get(text_id)) == name
        ]
        calls = [
            (start, thread, correlation)
            for start, thread, correlation, name_id in read(
                database, "CUPTI_ACTIVITY_KIND_RUNTIME", "start, globalTid, correlationId, nameId"
            )
            if any(word in strings[name_id] for word in LAUNCHES)
        ]
        operations = [
            (kind, *row)
            for table, kind in OPERATIONS.items()
            for row in read(database, table, 'start, "end", correlationId')
        ]
    busy = merge((start, end) for _, start, end, _ in operations)
    for start, end, thread in sorted(ranges):
        call_ids = {call for call_start, caller, call in calls if caller == thread and start <= call_start < end}
        own_work = [operation for operation in operations if operation[3] in call_ids]
        busy_ns = sum(max(0, min(end, last) - max(start, first)) for first, last in busy)
        yield {
            "start_ns": start, "host_ns": end - start, "gpu_ns": sum(last - first for _, first, last, _ in own_work),
            "gpu_busy_during_ns": busy_ns, "gpu_idle_during_ns": end - start - busy_ns,
            "projected_ns": max(o[2] for o in own_work) - min(o[1] for o in own_work) if own_work else None,
            "kernels": sum(kind == "kernel" for kind, *_ in own_work), "operations": len(own_work),
            "first_start_ns": min((o[1] for o in own_work), default=None),
            "last_end_ns": max((o[2] for o in own_work), default=None),
        }  # fmt: skip


def merge(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@pytest.mark.parametrize("path", [path for path in SAMPLES if "decode" in path.stem], ids=lambda path: path.stem)
@pytest.mark.parametrize("name", ["decode_step", "prefill"])
def test_occurrences_equal_a_plain_loop(path, name):
    expected = list(loop_over_tables(path, name))
    with open_trace(path) as trace:
        rows = trace.nvtx(instances=name).to_dicts()
    assert expected
    assert [{key: row[key] for key in values} for row, values in zip(rows, expected, strict=True)] == expected


def plant_steps():
    """Three steps: the second waits for the host for 5 ms, and the third launches nothing."""
    trace = Trace()
    host = trace.thread()
    for number in range(3):
        with host.nvtx(f"step {number}"):
            if number < 2:
                host.launch("first", runs=MS)
                host.idle(5 * MS if number else 0)
                host.launch("last", runs=2 * MS).sync("device")
    return trace


def test_occurrences_name_their_first_and_last_operation_and_the_distribution(tmp_path):
    with open_trace(plant_steps().write(tmp_path / "trace.sqlite")) as trace:
        answer = trace.answer("nvtx", instances="step #")
        rows = answer.dicts()
        assert [row["name"] for row in trace.answer("nvtx", instances="step 1").dicts()] == ["step 1"]
    assert answer.report == "nvtx-instances"
    assert [(row["first_name"], row["last_name"], row["kernels"], row["gpu_ns"]) for row in rows] == [
        ("first", "last", 2, 3 * MS), ("first", "last", 2, 3 * MS), (None, None, 0, 0),
    ]  # fmt: skip
    assert rows[1]["gpu_idle_during_ns"] - rows[0]["gpu_idle_during_ns"] == pytest.approx(4 * MS, rel=0.01)
    assert "3 occurrences: host time" in answer.notes[0]
    assert any("1 occurrence takes more than 1.5 times the median on the host: 2" in note for note in answer.notes)


def test_work_of_another_thread_and_of_a_queue_belongs_to_who_launched_it(tmp_path):
    trace = Trace()
    host, other = trace.thread(), trace.thread(tid=101)
    with host.nvtx("outer"):
        host.launch("mine", runs=50 * MS)
    other.launch("theirs", start=1_000, runs=MS)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        (row,) = session.nvtx(instances="outer").to_dicts()
    assert (row["kernels"], row["gpu_ns"]) == (1, 50 * MS)
    assert row["projected_ns"] > row["host_ns"]


def test_other_parameters_of_nvtx_do_not_go_with_it(tmp_path):
    error = pytest.raises(UsageError, match="by does not go with")
    with open_trace(plant_steps().write(tmp_path / "trace.sqlite")) as trace, error:
        trace.nvtx(instances="step #", by="path")
