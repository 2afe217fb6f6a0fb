"""Processes with the same pid, in containers or on several hosts, are different processes in every join."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from command_line import run
from conversions import without_most_facts
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest import processes
from nsys_insight.model import views

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "decode_eager.sqlite"
BELOW_HOST = (1 << 56) - 1
# Views with one row for each event of the trace, of a process: twice as many events are twice as many rows.
EVENT_VIEWS = [
    "kernels", "kernel_events", "launches", "kernels_in_nvtx", "gpu_ops", "gpu_ops_in_nvtx", "api_calls", "memcpys",
    "memsets", "syncs", "sync_events", "nvtx_ranges", "nvtx_nesting", "outer_api_calls", "os_calls", "waits",
]  # fmt: skip


def copy_to_second_host(path, host=9):
    """Add every row of a process again under another host: the pids stay equal."""
    with sqlite3.connect(path) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            names = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            if table == "DIAGNOSTIC_EVENT" or not {"globalPid", "globalTid"} & set(names):
                continue
            cells = (
                f'("{name}" & {BELOW_HOST}) | {host << 56}' if name in ("globalPid", "globalTid") else f'"{name}"'
                for name in names
            )
            database.execute(f'INSERT INTO "{table}" SELECT {", ".join(cells)} FROM "{table}"')
    database.close()
    return path


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    path = tmp_path_factory.mktemp("pids") / "doubled.sqlite"
    shutil.copyfile(SAMPLE, path)
    return copy_to_second_host(path)


@pytest.fixture(scope="module")
def pair_of_traces(doubled):
    with nsys_insight.open(SAMPLE) as single_trace, nsys_insight.open(doubled) as doubled_trace:
        yield single_trace, doubled_trace


@pytest.mark.parametrize("view", EVENT_VIEWS)
def test_a_view_has_each_event_once(pair_of_traces, view):
    single, twice = (trace.sql(f"SELECT count(*) FROM {view}").item() for trace in pair_of_traces)
    assert twice == 2 * single


@pytest.mark.slow
def test_no_view_has_more_rows_than_twice_those_of_one_process(pair_of_traces):
    for view, definition in views.definitions().items():
        if not definition.create.startswith("CREATE VIEW"):
            continue
        single, twice = (trace.sql(f"SELECT count(*) FROM {view}").item() for trace in pair_of_traces)
        allowed = {"_other_processes"}  # there is another process
        assert twice <= 2 * single or view in allowed, view


def test_joined_rows_are_those_that_a_loop_counts(doubled):
    with sqlite3.connect(doubled) as database:
        calls = Counter(
            database.execute("SELECT globalTid >> 24, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchall()
        )
        kernels = database.execute("SELECT globalPid >> 24, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
    with nsys_insight.open(doubled) as trace:
        (row,) = trace.rows("SELECT count(*) AS rows, count(api_start_ns) AS with_call FROM launches")
    assert row.rows == len(kernels)
    assert row.with_call == sum(calls[key] for key in kernels)


def test_the_gpu_time_in_ranges_is_twice_that_of_one_process(pair_of_traces):
    single, twice = (dict(trace.answer("nvtx").frame().select("name", "gpu_ns").rows()) for trace in pair_of_traces)
    assert twice == {name: 2 * gpu_ns for name, gpu_ns in single.items()}


def test_the_answers_about_a_process_do_not_change(doubled):
    (pid,) = {row.process_id for row in nsys_insight.open(SAMPLE).rows("SELECT DISTINCT process_id FROM kernels")}
    with nsys_insight.open(doubled) as trace:
        numbers = [row.process_id for row in trace.rows("SELECT DISTINCT process_id FROM kernels ORDER BY ALL")]
    assert len(numbers) == 2
    assert pid not in numbers
    for report in ("top", "nvtx", "launches"):
        expected = json.loads(run(report, SAMPLE, "--format", "json").stdout)["rows"]
        for number in numbers:
            result = run(report, doubled, "--process", number, "--format", "json")
            assert json.loads(result.stdout)["rows"] == expected


def test_the_pid_of_several_processes_is_ambiguous(doubled):
    result = run("top", doubled, "--process", 358)
    assert result.returncode == 2
    assert "2 processes of the trace have the process id 358" in result.stderr
    flags = [word for word in result.stderr.split() if word.isdigit() and int(word) > 1 << 23]
    assert len(set(flags)) == 2
    assert all(run("top", doubled, "--process", flag).returncode == 0 for flag in flags)


@pytest.mark.parametrize("command", ["diff"])
def test_the_pid_of_several_processes_is_ambiguous_in_a_comparison(doubled, command):
    result = run(command, doubled, doubled, "--process", 358)
    assert result.returncode == 2
    assert "2 processes of the trace have the process id 358" in result.stderr
    flag = next(word for word in result.stderr.split() if word.isdigit() and int(word) > 1 << 23)
    assert run(command, doubled, doubled, "--process", flag).returncode == 0


def test_an_answer_shows_the_pid(doubled):
    result = run("sql", doubled, "SELECT process_id, count(*) AS n FROM kernels GROUP BY process_id", "--format", "csv")
    assert result.stdout.split() == ["process_id,n", "358,6469", "358,6469"]
    assert "358 is " in result.stderr


@pytest.mark.parametrize("suffix", ["duckdb", *sweep(["parquet"])])
def test_a_converted_trace_has_each_event_once(doubled, tmp_path, suffix):
    output = tmp_path / f"t.{suffix}"
    with without_most_facts():
        assert run("convert", doubled, "-o", output).returncode == 0
    with nsys_insight.open(output) as trace:
        assert trace.sql("SELECT count(*) FROM launches").item() == 2 * 6469


def test_rows_in_the_middle_of_a_big_table_name_the_machine(tmp_path, monkeypatch):
    trace = Trace()
    first, last = trace.thread(pid=100), None
    for number in range(60):
        if number == 30:
            last = trace.thread(pid=100, now=first.now)
            last.global_pid |= 3 << 56
            last.global_tid |= 3 << 56
        host = last if last is not None and number < 40 else first
        host.now = number * 10_000
        host.launch("k", runs=100)
    trace.rows["ThreadNames"].clear()
    monkeypatch.setattr(processes, "_EDGE_ROWS", 5)
    with nsys_insight.open(trace.write(tmp_path / "t.sqlite")) as reader:
        assert reader.sql("SELECT count(DISTINCT process_id) FROM launches").item() == 2


def test_processes_of_one_machine_keep_their_pids(tmp_path):
    trace = Trace()
    trace.thread(pid=100).launch("k")
    trace.thread(pid=101).launch("k")
    notes: list[str] = []
    with nsys_insight.open(trace.write(tmp_path / "t.sqlite"), note=notes.append) as reader:
        assert reader.sql("SELECT process_id FROM launches ORDER BY ALL").rows() == [(100,), (101,)]
    assert notes == []
