"""`gaps`: when the GPU was idle and what the host did meanwhile, against plain loops and planted truth."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import oracle
import pytest
from command_line import run
from opening import open_trace
from real_traces import FOREIGN, MORE_OF_SAMPLES, REAL, SAMPLES
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight.facts import gaps
from nsys_insight.ingest import row_search, sqlite_file, time_bounds


def ask(path, scope=None, **params):
    with open_trace(path, **scope or {}) as trace:
        answer = trace.answer("gaps", **params)
        return answer.frame().to_dicts(), answer.notes


@pytest.fixture(scope="module", params=REAL, ids=lambda path: path.stem)
def real(request):
    """Return all gaps of a real trace, and its tables."""
    return ask(request.param, min_gap_ns=1)[0], oracle.read(request.param)


def test_all_gaps_are_those_of_plain_loops_longest_first(real):
    rows, tables = real
    expected = [(gpu, *gap) for gpu, gaps in oracle.idle_gaps(tables).items() for gap in gaps]
    assert [(row["gpu_id"], row["start_ns"], row["end_ns"]) for row in rows] == sorted(
        expected, key=lambda gap: (gap[1] - gap[2], gap[1], gap[0])
    )


def test_busy_time_and_gaps_add_up_to_the_time_from_the_first_operation_to_the_last(real):
    rows, tables = real
    intervals = oracle.busy_intervals(tables)
    for gpu, busy in oracle.busy_ns(tables).items():
        idle = sum(row["duration_ns"] for row in rows if row["gpu_id"] == gpu)
        assert busy + idle == intervals[gpu][-1][1] - intervals[gpu][0][0]


def test_shares_are_of_the_wall_and_of_all_idle_time(real):
    rows, tables = real
    first, last = oracle.wall(tables)
    idle = sum(row["duration_ns"] for row in rows)
    for row in rows:
        assert row["wall_pct"] == pytest.approx(100 * row["duration_ns"] / (last - first))
        assert row["idle_pct"] == pytest.approx(100 * row["duration_ns"] / idle)


def test_without_a_threshold_the_thousand_longest_are_listed_and_a_note_sums_the_others(sample):
    all_rows, _ = ask(sample("decode_eager"), min_gap_ns=1)
    rows, (note,) = ask(sample("decode_eager"))
    assert rows == all_rows[:1000]
    assert f"add {sum(row['duration_ns'] for row in all_rows[1000:]) / 1e6:.1f} ms" in note


@pytest.mark.slow
def test_a_threshold_is_a_duration_and_a_note_sums_the_shorter_gaps(sample):
    all_rows, _ = ask(sample("decode_eager"), min_gap_ns=1)
    rows, (note,) = ask(sample("decode_eager"), min_gap_ns="20us")
    assert rows == [row for row in all_rows if row["duration_ns"] >= 20_000]
    assert f"add {sum(row['duration_ns'] for row in all_rows[len(rows) :]) / 1e6:.1f} ms" in note
    assert ask(sample("decode_eager"), min_gap_ns=1)[1] == ()


# What the host did ---------------------------------------------------------------------------------------------------


def correlation_key(work):
    return work["correlationId"] or 0


def explain_by_loops(tables, row):
    """Return everything that may explain a gap, with its time, by a loop over all calls."""
    work = [work for table in oracle.GPU_WORK for work in tables[table]]
    after = min((work for work in work if work["start"] == row["end_ns"]), key=correlation_key)
    before = min((work for work in work if work["end"] == row["start_ns"]), key=correlation_key)
    calls = oracle.outer_api_calls(tables)
    call = next(
        (c for c in calls if oracle.pid_of(c) == oracle.pid_of(after) and c["correlationId"] == after["correlationId"]),
        None,
    )
    if call is None:
        return {}
    if call["end"] <= row["start_ns"] or after["correlationId"] == before["correlationId"]:
        return {"launched before the gap": row["duration_ns"]}
    if call["start"] < row["start_ns"]:
        return {"launch call in progress": row["duration_ns"]}
    host_end_ns = min(call["end"], row["end_ns"])
    times, covered = Counter(), []
    strings = oracle.strings(tables)
    os_calls = [{**c, "name": "OS: " + strings[c["nameId"]]} for c in tables["OSRT_API"]]
    mpi_calls = [{**c, "name": "MPI: " + c["name"]} for c in oracle.mpi_calls(tables)]
    for other in [*mpi_calls, *calls, *os_calls]:
        start, end = max(other["start"], row["start_ns"]), min(other["end"], host_end_ns)
        if other["globalTid"] == call["globalTid"] and start < end:
            is_nested = any(a <= other["start"] and other["end"] <= b for a, b in covered)
            if not is_nested:
                times[other["name"]] += end - start
                covered.append((other["start"], other["end"]))
    times["CPU work"] = host_end_ns - row["start_ns"] - sum(times.values())
    times["launch latency"] = row["end_ns"] - host_end_ns
    return times


@pytest.mark.slow
@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_the_host_activity_is_the_longest_part_of_the_gap(name, sample):
    tables = oracle.read(sample(name))
    rows, _ = ask(sample(name))
    for row in rows[:25] + rows[-25:]:
        if row["host"].startswith("profiler"):
            continue
        times = explain_by_loops(tables, row)
        assert times[re.sub("^[a-z ]+: ", "", row["host"])] == row["host_ns"] == max(times.values()), row


def planted(tmp_path, *acts):
    """Return the gap of each act, which a process runs between `first` and `last` on a GPU of its own."""
    trace = Trace()
    for gpu, act in enumerate(acts):
        host = trace.thread(pid=100 + gpu, tid=100 + gpu, gpus=[gpu])
        # Idle from 11,100 on, back at 10,600.
        host.launch("first", api=1_000, queue=100, runs=10_000).sync("stream", waits=9_600)
        act(host)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"))
    gaps_by_gpu = {row["gpu_id"]: row for row in rows if row["after_name"] == "last"}
    return [gaps_by_gpu[gpu] for gpu in range(len(acts))]


def twice_malloc(host):
    """Allocate twice by one function, and once by another. The single call is the longest."""
    return (
        host.idle(1_000).malloc(8, takes=6_000).malloc(8, takes=9_000, api_name="cudaMallocHost").malloc(8, takes=6_000)
    )


def launch_in_call(host):
    host.kernel("busy", start=5_000, runs=3_000_000)
    host.call("cudaLaunchCooperativeKernelMultiDevice_v9000", start=11_000, takes=9_000_000)
    host.launch("last", start=4_000_000, api=1_000, queue=0, api_name="cuLaunchKernel")


def call_the_system_in_calls(host):
    start = host.idle(1_000).now
    host.malloc(8, takes=10_000).free(takes=9_000)
    host.osrt("ioctl", start=start + 1_000, takes=8_000).osrt("ioctl", start=start + 11_000, takes=7_000)
    host.launch("last", api=1_000)


def allocate_in_another_thread(host):
    host.trace.thread(pid=host.pid, tid=999, now=11_000).malloc(8, takes=30_000)
    host.idle(30_000).launch("last", api=1_000, queue=100)


def allocate_across(start_ns, takes, launch_at):
    """Allocate in or around a gap that starts at 1,005,000."""

    def act(host):
        host.kernel("busy", start=5_000, runs=1_000_000).malloc(8, start=start_ns, takes=takes)
        host.launch("last", start=launch_at, api=1_000, queue=0, api_name="cuLaunchKernel")

    return act


def test_the_activity_of_the_host_is_reported_with_its_time(tmp_path):
    cases = [
        # Idle from 11,100; launched at 40,600 for 1,000; starts 100 later.
        (lambda h: h.idle(30_000).launch("last", api=1_000, queue=100), "CPU work", 29_500),
        (lambda h: h.malloc(8, takes=20_000).idle(9_000).launch("last", api=1_000), "alloc: cudaMalloc", 19_500),
        (lambda h: h.idle(1_000).sync("device", waits=9_000).launch("last"), "sync: cudaDeviceSynchronize", 9_000),
        (lambda h: h.idle(1_000).launch("last", api=20_000), "launch: cudaLaunchKernel", 20_000),
        (lambda h: h.idle(1_000).launch("last", api=1_000, queue=50_000), "launch latency", 50_000),
        (lambda h: h.idle(1_000).osrt("poll", takes=30_000).launch("last", api=1_000), "OS: poll", 30_000),
        # Calls of one name add up.
        (lambda h: twice_malloc(h).launch("last"), "alloc: cudaMalloc", 12_000),
        # A long call counts once, although it spans many milliseconds.
        (lambda h: h.idle(1_000).malloc(8, takes=9_000_000).launch("last"), "alloc: cudaMalloc", 9_000_000),
        # The launch call returned before the gap: the kernel waited on the GPU.
        (lambda h: h.launch("last", start=2_000, api=1_000, queue=50_000, stream=13),
         "launched before the gap", 41_900),
        # A driver call inside a runtime call counts once.
        (lambda h: h.idle(900).launch("last", api=20_000, driver="cuLaunchKernel"), "launch: cudaLaunchKernel", 20_000),
        # A call around the launch call counts also if it began long before the gap.
        (launch_in_call, "launch: cudaLaunchCooperativeKernelMultiDevice", 4_001_000 - 3_005_000),
        # Calls are looked up by the millisecond. One ends and one begins in the gap.
        (allocate_across(900_000, 200_000, 1_150_000), "alloc: cudaMalloc", 1_100_000 - 1_005_000),
        (allocate_across(1_010_000, 995_000, 1_900_000), "alloc: cudaMalloc", 1_901_000 - 1_010_000),
        # Operating system calls inside CUDA calls do not count, nor do calls of another thread.
        (call_the_system_in_calls, "alloc: cudaMalloc", 10_000),
        (allocate_in_another_thread, "CPU work", 29_500),
        # Without the launch call the activity is unknown.
        (lambda h: h.kernel("last", start=50_000), None, None),
    ]  # fmt: skip
    rows = planted(tmp_path, *(act for act, *_ in cases))
    assert [(row["host"], row["host_ns"]) for row in rows] == [(host, ns) for _, host, ns in cases]
    assert {row["before_name"] for row in rows} == {"first", "busy"}
    assert [row["duration_ns"] for row in rows if row["thread_id"] is None] == [38_900]


def test_the_profiler_explains_a_gap_if_it_took_half_of_it(tmp_path):
    def flush(takes, call_takes):
        def act(thread):
            thread.idle(500).trace.overhead("CUPTI Buffer flush", thread.now, thread.now + takes, thread)
            thread.call("cudaFree_v3020", takes=call_takes).idle(5_000).launch("last", api=1_000, queue=100)

        return act

    rows = planted(tmp_path, flush(16_000, 20_000), flush(5_000, 20_000), flush(4_000_000, 5_000_000))
    assert [(row["host"], row["host_ns"]) for row in rows] == [
        ("profiler: CUPTI Buffer flush", 16_000),
        ("free: cudaFree", 20_000),
        ("profiler: CUPTI Buffer flush", 4_000_000),
    ]


def test_between_the_nodes_of_a_graph_the_host_is_not_late(tmp_path):
    trace = Trace()
    trace.thread().graph_launch(kernels=[("a", 1_000), ("b", 1_000)], api=50_000, queue=-40_000, gap=700)
    ((row,), _) = ask(trace.write(tmp_path / "trace.sqlite"))
    assert (row["duration_ns"], row["host"], row["host_ns"]) == (700, "launched before the gap", 700)


def test_a_gap_is_idle_on_all_streams_and_for_all_processes_of_the_gpu(tmp_path):
    trace = Trace()
    for pid, gpus in ((1, [0]), (2, [0]), (3, [1])):
        host = trace.thread(pid=pid, gpus=gpus)
        host.kernel("early", start=1_000 * pid, runs=1_500, stream=7).kernel(
            "late", start=10_000 + pid, runs=500, stream=13
        )
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"))
    assert {(row["gpu_id"], row["start_ns"], row["end_ns"]) for row in rows} == {(0, 3_500, 10_001), (1, 4_500, 10_003)}


def test_the_nvtx_path_is_where_the_thread_was_for_most_of_the_gap(tmp_path):
    def sample_for(ns):
        def act(host):
            with host.nvtx("sample"):
                host.idle(ns)
            with host.nvtx("forward"):
                host.idle(15_000).launch("last", api=1_000)

        return act

    assert [row["nvtx_path"] for row in planted(tmp_path, sample_for(30_000), sample_for(5_000))] == [
        "sample",
        "forward",
    ]


def test_under_nvtx_gaps_are_cut_to_the_ranges(tmp_path):
    trace = Trace()
    host = trace.thread()
    for step in range(2):
        step_start_ns = 100_000 * step
        host.range("step", step_start_ns, step_start_ns + 50_000)
        host.launch("a", start=step_start_ns + 1_000, api=1_000, queue=1_000, runs=10_000)
        host.launch("b", start=step_start_ns + 20_000, api=1_000, queue=1_000, runs=10_000)
    host.launch("between", start=60_000, api=1_000, queue=1_000, runs=10_000)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"), scope={"nvtx": "step"})
    assert [(row["start_ns"], row["end_ns"], row["before_name"], row["after_name"]) for row in rows] == [
        (32_000, 50_000, "b", "between"),
        (13_000, 22_000, "a", "b"),
        (113_000, 122_000, "a", "b"),
        (100_000, 103_000, "between", "a"),
    ]


@pytest.mark.slow
def test_work_outside_the_scope_still_keeps_the_gpu_busy(tmp_path):
    trace = Trace()
    host, other = trace.thread(), trace.thread(tid=7)
    host.range("mine", 0, 100_000)
    host.launch("a", start=1_000, api=1_000, queue=1_000, runs=7_000, stream=7)  # until 10,000
    other.launch("other", start=20_000, api=1_000, queue=1_000, runs=8_000, stream=8)  # until 30,000
    host.launch("b", start=48_000, api=1_000, queue=1_000, runs=10_000, stream=7)
    path = trace.write(tmp_path / "trace.sqlite")
    idle = [(22_000 - 10_000, "a", "other"), (50_000 - 30_000, "other", "b")]
    for scope in ({}, {"stream": 7}, {"from_ns": 5_000, "to_ns": 55_000}):
        rows, _ = ask(path, scope=scope)
        assert sorted((row["duration_ns"], row["before_name"], row["after_name"]) for row in rows) == idle, scope
    rows, _ = ask(path, scope={"nvtx": "mine"})
    assert {(row["duration_ns"], row["before_name"], row["after_name"]) for row in rows} == set(idle)


def test_gaps_are_those_of_the_gpus_that_the_scope_uses(tmp_path):
    trace = Trace()
    first, second = trace.thread(pid=1), trace.thread(pid=2)
    for host, device in ((first, 0), (second, 1)):
        host.launch("a", start=1_000, api=1_000, queue=1_000, runs=7_000, device=device)
        host.launch("b", start=48_000, api=1_000, queue=1_000, runs=10_000, device=device)
    path = trace.write(tmp_path / "trace.sqlite")
    assert {row["gpu_id"] for row in ask(path)[0]} == {0, 1}
    assert {row["gpu_id"] for row in ask(path, scope={"process": second.pid})[0]} == {1}


class TestLookingUp:
    """In a big export, rows around the gaps are looked up. These tests treat the samples as big."""

    @pytest.fixture(autouse=True)
    def _everything_is_big(self, monkeypatch):
        monkeypatch.setattr(time_bounds, "MIN_ROWS", 100)
        monkeypatch.setattr(row_search, "PROBE_COUNT", 50)

    @staticmethod
    def ask_with_lookup(path, scope=None, **params):
        with nsys_insight.open(path, use_cache=False).scope(**scope or {}) as trace:
            rows = trace.answer("gaps", **params).rows()
            tables = "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'near_%' ORDER BY ALL"
            return rows, [name for (name,) in trace.rows(tables)]

    @staticmethod
    def read(path, scope=None, **params):
        """Answer from a copy in DuckDB, with all rows read."""
        with nsys_insight.open(path, use_cache=True).scope(**scope or {}) as trace:
            return trace.answer("gaps", **params).rows()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "path",
        [*SAMPLES[1:4:2], *FOREIGN[:1], *sweep([*SAMPLES[0:5:2], *FOREIGN[1:]]), *MORE_OF_SAMPLES],
        ids=lambda path: path.stem,
    )
    def test_the_lookup_gives_the_same_answer(self, path):
        rows, tables = self.ask_with_lookup(path)
        assert rows == self.read(path)
        big = time_bounds.read_time_bounds(path, sqlite_file.read_sqlite_columns(path))
        assert ("near_CUPTI_ACTIVITY_KIND_RUNTIME" in tables) == ("CUPTI_ACTIVITY_KIND_RUNTIME" in big)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("scope", "params"),
        [
            ({"nvtx": "decode_step"}, {}),
            ({"device": 0, "from_ns": 30_000_000, "to_ns": 70_000_000}, {}),
            ({}, {"min_gap_ns": 20_000}),
        ],
    )
    def test_the_lookup_gives_the_same_answer_in_a_scope_and_with_a_threshold(self, sample, scope, params):
        path = sample("decode_eager")
        rows, tables = self.ask_with_lookup(path, scope, **params)
        assert rows == self.read(path, scope, **params)
        assert len(rows) > 10
        assert {"near_CUPTI_ACTIVITY_KIND_KERNEL", "near_CUPTI_ACTIVITY_KIND_RUNTIME"} <= set(tables)

    @pytest.mark.slow
    def test_rows_of_each_of_several_traces_are_looked_up_in_its_own_file(self, sample):
        paths = [sample("decode_eager"), sample("churn")]
        expected = {path.stem: self.read(path) for path in paths}
        with nsys_insight.open(paths, use_cache=False) as traces:
            rows = traces.answer("gaps").rows()
            tables = {name for (name,) in traces.rows("SELECT table_name FROM duckdb_tables()")}
        assert {name: [row[1:] for row in rows if row[0] == name] for name in expected} == expected
        assert "near_CUPTI_ACTIVITY_KIND_RUNTIME" in tables

    @pytest.mark.slow
    def test_operations_that_are_not_near_are_searched_in_all_rows(self, sample, monkeypatch):
        monkeypatch.setattr(gaps, "ROWS_BEFORE", 0)
        monkeypatch.setattr(gaps, "ROWS_AROUND_ID", -1)
        for name in ("decode_eager", "churn"):
            assert self.ask_with_lookup(sample(name))[0] == self.read(sample(name))

    @pytest.mark.slow
    def test_operations_of_other_gpus_are_skipped(self, tmp_path, monkeypatch):
        trace = Trace()
        host, other_host = trace.thread(pid=1, tid=1), trace.thread(pid=1, tid=2)
        host.launch("before", start=0, runs=1_000)
        for number in range(400):
            other_host.launch("other", start=10_000 * (number + 1), runs=2_000, device=1)
        host.launch("after", start=5_000_000, runs=1_000)
        path = trace.write(tmp_path / "t.sqlite")
        results = []
        fill_operations = gaps._Lookup.fill_operations
        monkeypatch.setattr(
            gaps._Lookup,
            "fill_operations",
            lambda *arguments: results.append(fill_operations(*arguments)) or results[-1],
        )
        rows, _ = self.ask_with_lookup(path)
        assert rows == self.read(path)
        assert results == [True]
        assert rows[0][7:9] == ("before", "after")

    @pytest.mark.slow
    def test_a_call_that_began_long_before_the_gap_is_found(self, tmp_path):
        trace = Trace()
        waiting, busy = trace.thread(pid=1, tid=1), trace.thread(pid=1, tid=2)
        waiting.launch("k", start=0, runs=3_500_000)
        waiting.call("cudaDeviceSynchronize", start=10_000, takes=5_000_000)
        for number in range(1_000):  # in order of start, as nsys writes them
            busy.call("cudaEventQuery", start=20_000 + 4_000 * number)
        waiting.launch("k", start=5_020_000, runs=1_000)
        path = trace.write(tmp_path / "t.sqlite")
        rows, tables = self.ask_with_lookup(path)
        assert rows == self.read(path)
        assert "near_CUPTI_ACTIVITY_KIND_RUNTIME" in tables
        assert [row[5] for row in rows] == ["sync: cudaDeviceSynchronize"]


def test_a_hidden_time_is_distinguished_from_the_shown_column_of_the_same_name():
    result = run("gaps", Path(__file__).parents[1] / "sample_traces" / "decode_eager.sqlite", env={"COLUMNS": "160"})
    (hidden,) = re.findall("More columns: (.*)", result.stdout)
    assert "  host  " in result.stdout
    assert "host (" in hidden
    assert "host" not in hidden.split(", ")
