"""`gaps`: when the GPU was idle and what the host did meanwhile, against plain loops and planted truth."""

from __future__ import annotations

import re
from collections import Counter

import oracle
import pytest
from opening import open_trace
from real_traces import FOREIGN, MORE, REAL, SAMPLES
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight.facts import gaps
from nsys_insight.ingest import extents, row_search, sqlite_file


def ask(path, scope=None, **params):
    with open_trace(path, **scope or {}) as trace:
        answer = trace.answer("gaps", **params)
        return answer.frame().to_dicts(), answer.notes


@pytest.fixture(scope="module", params=REAL, ids=lambda path: path.stem)
def real(request):
    """All gaps of a real trace, and its rows."""
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


def test_without_a_threshold_the_thousand_longest_are_listed_and_the_rest_is_told(sample):
    every, _ = ask(sample("decode_eager"), min_gap_ns=1)
    rows, (note,) = ask(sample("decode_eager"))
    assert rows == every[:1000]
    assert f"hold another {sum(row['duration_ns'] for row in every[1000:]) / 1e6:.1f} ms" in note


@pytest.mark.slow
def test_a_threshold_is_a_duration_and_what_is_below_it_is_told(sample):
    every, _ = ask(sample("decode_eager"), min_gap_ns=1)
    rows, (note,) = ask(sample("decode_eager"), min_gap_ns="20us")
    assert rows == [row for row in every if row["duration_ns"] >= 20_000]
    assert f"hold another {sum(row['duration_ns'] for row in every[len(rows) :]) / 1e6:.1f} ms" in note
    assert ask(sample("decode_eager"), min_gap_ns=1)[1] == ()


# What the host did ---------------------------------------------------------------------------------------------------


def by_call(work):
    return work["correlationId"] or 0


def explanations(tables, row):
    """Everything that may explain a gap, with its time, by a loop over all calls."""
    work = [work for table in oracle.GPU_WORK for work in tables[table]]
    after = min((work for work in work if work["start"] == row["end_ns"]), key=by_call)
    before = min((work for work in work if work["end"] == row["start_ns"]), key=by_call)
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
        return {"launch call under way": row["duration_ns"]}
    until = min(call["end"], row["end_ns"])
    times, covered = Counter(), []
    named = oracle.strings(tables)
    os_calls = [{**c, "name": "OS: " + named[c["nameId"]]} for c in tables["OSRT_API"]]
    for other in [*calls, *os_calls]:
        start, end = max(other["start"], row["start_ns"]), min(other["end"], until)
        if other["globalTid"] == call["globalTid"] and start < end:
            inside = any(a <= other["start"] and other["end"] <= b for a, b in covered)
            if not inside:
                times[other["name"]] += end - start
                covered.append((other["start"], other["end"]))
    times["CPU work"] = until - row["start_ns"] - sum(times.values())
    times["launch latency"] = row["end_ns"] - until
    return times


@pytest.mark.slow
@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_the_host_did_what_took_most_of_the_gap(name, sample):
    tables = oracle.read(sample(name))
    rows, _ = ask(sample(name))
    for row in rows[:25] + rows[-25:]:
        if row["host"].startswith("profiler"):
            continue
        times = explanations(tables, row)
        assert times[re.sub("^[a-z ]+: ", "", row["host"])] == row["host_ns"] == max(times.values()), row


def planted(tmp_path, does, **how):
    """The only gap, between `first` and `last`, of a thread that `does` something in between."""
    trace = Trace()
    host = trace.thread()
    host.launch("first", api=1_000, queue=100, runs=10_000).sync(
        "stream", waits=9_600
    )  # idle from 11,100 on, back at 10,600
    does(host)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite", **how))
    return next(row for row in rows if row["after_name"] == "last")


def twice_malloc(host):
    """Allocate twice, and once longer than each in another way."""
    return (
        host.idle(1_000).malloc(8, takes=6_000).malloc(8, takes=9_000, api_name="cudaMallocHost").malloc(8, takes=6_000)
    )


@pytest.mark.parametrize(
    ("does", "host", "ns"),
    [
        # Idle from 11,100; launched at 40,600 for 1,000; starts 100 later.
        (lambda h: h.idle(30_000).launch("last", api=1_000, queue=100), "CPU work", 29_500),
        (lambda h: h.malloc(8, takes=20_000).idle(9_000).launch("last", api=1_000), "alloc: cudaMalloc", 19_500),
        (lambda h: h.idle(1_000).sync("device", waits=9_000).launch("last"), "sync: cudaDeviceSynchronize", 9_000),
        (lambda h: h.idle(1_000).launch("last", api=20_000), "launch: cudaLaunchKernel", 20_000),
        (lambda h: h.idle(1_000).launch("last", api=1_000, queue=50_000), "launch latency", 50_000),
        (lambda h: h.idle(1_000).osrt("poll", takes=30_000).launch("last", api=1_000), "OS: poll", 30_000),
        # Calls of one name add up.
        (lambda h: twice_malloc(h).launch("last"), "alloc: cudaMalloc", 12_000),
        # Long ones count once, however many milliseconds they touch.
        (lambda h: h.idle(1_000).malloc(8, takes=9_000_000).launch("last"), "alloc: cudaMalloc", 9_000_000),
        # The launch call returned before the gap: the kernel waited on the GPU.
        (lambda h: h.launch("last", at=2_000, api=1_000, queue=50_000, stream=13), "launched before the gap", 41_900),
    ],
)  # fmt: skip
def test_what_the_host_did_is_told_with_its_time(does, host, ns, tmp_path):
    row = planted(tmp_path, does)
    assert (row["before_name"], row["host"], row["host_ns"]) == ("first", host, ns)


def test_a_driver_call_inside_a_runtime_call_counts_once(tmp_path):
    row = planted(tmp_path, lambda h: h.idle(900).launch("last", api=20_000, driver="cuLaunchKernel"))
    assert (row["host"], row["host_ns"]) == ("launch: cudaLaunchKernel", 20_000)


def test_a_call_around_the_launch_call_counts_also_when_it_began_long_before_the_gap(tmp_path):
    def inside(host):
        host.kernel("busy", at=5_000, runs=3_000_000)
        host.call("cudaLaunchCooperativeKernelMultiDevice_v9000", at=11_000, takes=9_000_000)
        host.launch("last", at=4_000_000, api=1_000, queue=0, api_name="cuLaunchKernel")

    row = planted(tmp_path, inside)
    assert (row["host"], row["host_ns"]) == ("launch: cudaLaunchCooperativeKernelMultiDevice", 4_001_000 - 3_005_000)


@pytest.mark.parametrize(
    ("at", "takes", "launch_at", "ns"),
    # Calls are looked up by the millisecond: here one ends, one begins in the gap, from 1,005,000 on.
    [(900_000, 200_000, 1_150_000, 1_100_000 - 1_005_000), (1_010_000, 995_000, 1_900_000, 1_901_000 - 1_010_000)],
)
def test_calls_at_the_border_of_a_millisecond_count(at, takes, launch_at, ns, tmp_path):
    def across(host):
        host.kernel("busy", at=5_000, runs=1_000_000).malloc(8, at=at, takes=takes)
        host.launch("last", at=launch_at, api=1_000, queue=0, api_name="cuLaunchKernel")

    row = planted(tmp_path, across)
    assert (row["host"], row["host_ns"]) == ("alloc: cudaMalloc", ns)


def test_calls_of_the_operating_system_inside_api_calls_do_not_count(tmp_path):
    def allocate_twice(host):
        start = host.idle(1_000).now
        host.malloc(8, takes=10_000).free(takes=9_000)
        host.osrt("ioctl", at=start + 1_000, takes=8_000).osrt("ioctl", at=start + 11_000, takes=7_000)
        host.launch("last", api=1_000)

    row = planted(tmp_path, allocate_twice)
    assert (row["host"], row["host_ns"]) == ("alloc: cudaMalloc", 10_000)


@pytest.mark.parametrize(
    ("takes", "call_takes", "host", "ns"),
    [
        (16_000, 20_000, "profiler: CUPTI Buffer flush", 16_000),
        (5_000, 20_000, "free: cudaFree", 20_000),
        (4_000_000, 5_000_000, "profiler: CUPTI Buffer flush", 4_000_000),
    ],
)
def test_the_profiler_explains_a_gap_of_which_it_took_half(takes, call_takes, host, ns, tmp_path):
    def flush(thread):
        thread.idle(500).trace.overhead("CUPTI Buffer flush", thread.now, thread.now + takes, thread)
        thread.call("cudaFree_v3020", takes=call_takes).idle(5_000).launch("last", api=1_000, queue=100)

    row = planted(tmp_path, flush)
    assert (row["host"], row["host_ns"]) == (host, ns)


def test_between_the_nodes_of_a_graph_the_host_is_not_late(tmp_path):
    trace = Trace()
    trace.thread().graph_launch(kernels=[("a", 1_000), ("b", 1_000)], api=50_000, queue=-40_000, gap=700)
    ((row,), _) = ask(trace.write(tmp_path / "trace.sqlite"))
    assert (row["duration_ns"], row["host"], row["host_ns"]) == (700, "launched before the gap", 700)


def test_without_the_launch_call_in_the_trace_nothing_is_known_of_the_host(tmp_path):
    row = planted(tmp_path, lambda h: h.kernel("last", at=50_000))
    assert (row["duration_ns"], row["host"], row["host_ns"], row["thread_id"]) == (38_900, None, None, None)


def test_another_thread_s_calls_do_not_explain_a_gap(tmp_path):
    def two_threads(host):
        host.trace.thread(tid=101, now=11_000).malloc(8, takes=30_000)
        host.idle(30_000).launch("last", api=1_000, queue=100)

    assert planted(tmp_path, two_threads)["host"] == "CPU work"


def test_a_gap_is_idle_on_all_streams_and_for_all_processes_of_the_gpu(tmp_path):
    trace = Trace()
    for pid, gpus in ((1, [0]), (2, [0]), (3, [1])):
        host = trace.thread(pid=pid, gpus=gpus)
        host.kernel("early", at=1_000 * pid, runs=1_500, stream=7).kernel("late", at=10_000 + pid, runs=500, stream=13)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"))
    assert {(row["gpu_id"], row["start_ns"], row["end_ns"]) for row in rows} == {(0, 3_500, 10_001), (1, 4_500, 10_003)}


@pytest.mark.parametrize(("sampling", "path"), [(30_000, "sample"), (5_000, "forward")])
def test_the_nvtx_path_is_where_the_thread_was_for_most_of_the_gap(sampling, path, tmp_path):
    def in_ranges(host):
        with host.nvtx("sample"):
            host.idle(sampling)
        with host.nvtx("forward"):
            host.idle(15_000).launch("last", api=1_000)

    assert planted(tmp_path, in_ranges)["nvtx_path"] == path


def test_under_nvtx_gaps_are_cut_to_the_ranges(tmp_path):
    trace = Trace()
    host = trace.thread()
    for step in range(2):
        at = 100_000 * step
        host.range("step", at, at + 50_000)
        host.launch("a", at=at + 1_000, api=1_000, queue=1_000, runs=10_000)
        host.launch("b", at=at + 20_000, api=1_000, queue=1_000, runs=10_000)
    host.launch("between", at=60_000, api=1_000, queue=1_000, runs=10_000)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"), scope={"nvtx": "step"})
    assert [(row["start_ns"], row["end_ns"], row["before_name"], row["after_name"]) for row in rows] == [
        (32_000, 50_000, "b", "between"),
        (13_000, 22_000, "a", "b"),
        (113_000, 122_000, "a", "b"),
        (100_000, 103_000, "between", "a"),
    ]


@pytest.mark.slow
def test_what_a_scope_leaves_out_keeps_the_gpu_busy_all_the_same(tmp_path):
    trace = Trace()
    host, other = trace.thread(), trace.thread(tid=7)
    host.range("mine", 0, 100_000)
    host.launch("a", at=1_000, api=1_000, queue=1_000, runs=7_000, stream=7)  # until 10,000
    other.launch("other", at=20_000, api=1_000, queue=1_000, runs=8_000, stream=8)  # until 30,000
    host.launch("b", at=48_000, api=1_000, queue=1_000, runs=10_000, stream=7)
    path = trace.write(tmp_path / "trace.sqlite")
    idle = [(22_000 - 10_000, "a", "other"), (50_000 - 30_000, "other", "b")]
    for scope in ({}, {"stream": 7}, {"from_ns": 5_000, "to_ns": 55_000}):
        rows, _ = ask(path, scope=scope)
        assert sorted((row["duration_ns"], row["before_name"], row["after_name"]) for row in rows) == idle, scope
    rows, _ = ask(path, scope={"nvtx": "mine"})
    assert {(row["duration_ns"], row["before_name"], row["after_name"]) for row in rows} == set(idle)


def test_gaps_are_of_the_gpus_that_the_scope_uses(tmp_path):
    trace = Trace()
    mine, theirs = trace.thread(pid=1), trace.thread(pid=2)
    for host, device in ((mine, 0), (theirs, 1)):
        host.launch("a", at=1_000, api=1_000, queue=1_000, runs=7_000, device=device)
        host.launch("b", at=48_000, api=1_000, queue=1_000, runs=10_000, device=device)
    path = trace.write(tmp_path / "trace.sqlite")
    assert {row["gpu_id"] for row in ask(path)[0]} == {0, 1}
    assert {row["gpu_id"] for row in ask(path, scope={"process": theirs.pid})[0]} == {1}


def test_nothing_ran_so_there_are_no_gaps(tmp_path):
    assert ask(Trace().write(tmp_path / "trace.sqlite")) == ([], ())


class TestLookingUp:
    """In a big export, what lies around the gaps is looked up; samples are big for these tests."""

    @pytest.fixture(autouse=True)
    def _everything_is_big(self, monkeypatch):
        monkeypatch.setattr(extents, "BIG", 100)
        monkeypatch.setattr(row_search, "PROBES", 50)

    @staticmethod
    def looked_up(path, scope=None, **params):
        with nsys_insight.open(path, use_cache=False).scope(**scope or {}) as trace:
            rows = trace.answer("gaps", **params).rows()
            tables = "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'near_%' ORDER BY ALL"
            return rows, [name for (name,) in trace.rows(tables)]

    @staticmethod
    def read(path, scope=None, **params):
        """The answer over a copy in DuckDB, all of whose rows are read."""
        with nsys_insight.open(path, use_cache=True).scope(**scope or {}) as trace:
            return trace.answer("gaps", **params).rows()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "path",
        [*SAMPLES[1:4:2], *FOREIGN[:1], *sweep([*SAMPLES[0:5:2], *FOREIGN[1:]]), *MORE],
        ids=lambda path: path.stem,
    )
    def test_it_gives_the_same_answer(self, path):
        rows, tables = self.looked_up(path)
        assert rows == self.read(path)
        big = extents.known(path, sqlite_file.sqlite_columns(path))
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
    def test_in_a_scope_and_for_a_length_too(self, sample, scope, params):
        path = sample("decode_eager")
        rows, tables = self.looked_up(path, scope, **params)
        assert rows == self.read(path, scope, **params)
        assert len(rows) > 10
        assert {"near_CUPTI_ACTIVITY_KIND_KERNEL", "near_CUPTI_ACTIVITY_KIND_RUNTIME"} <= set(tables)

    @pytest.mark.slow
    def test_of_several_traces_each_is_looked_up_in_its_own_file(self, sample):
        paths = [sample("decode_eager"), sample("churn")]
        expected = {path.stem: self.read(path) for path in paths}
        with nsys_insight.open(paths, use_cache=False) as several:
            rows = several.answer("gaps").rows()
            tables = {name for (name,) in several.rows("SELECT table_name FROM duckdb_tables()")}
        assert {name: [row[1:] for row in rows if row[0] == name] for name in expected} == expected
        assert "near_CUPTI_ACTIVITY_KIND_RUNTIME" in tables

    @pytest.mark.slow
    def test_what_is_not_near_is_looked_for_among_all_rows(self, sample, monkeypatch):
        monkeypatch.setattr(gaps, "BEFORE", 0)
        monkeypatch.setattr(gaps, "ABOUT", -1)
        for name in ("decode_eager", "churn"):
            assert self.looked_up(sample(name))[0] == self.read(sample(name))

    @pytest.mark.slow
    def test_what_other_gpus_did_meanwhile_is_passed_over(self, tmp_path, monkeypatch):
        trace = Trace()
        here, there = trace.thread(pid=1, tid=1), trace.thread(pid=1, tid=2)
        here.launch("before", at=0, runs=1_000)
        for number in range(400):
            there.launch("other", at=10_000 * (number + 1), runs=2_000, device=1)
        here.launch("after", at=5_000_000, runs=1_000)
        path = trace.write(tmp_path / "t.sqlite")
        found = []
        looks = gaps._Lookup.finds_operations
        monkeypatch.setattr(gaps._Lookup, "finds_operations", lambda *all_: found.append(looks(*all_)) or found[-1])
        rows, _ = self.looked_up(path)
        assert rows == self.read(path)
        assert found == [True]
        assert rows[0][7:9] == ("before", "after")

    @pytest.mark.slow
    def test_a_call_that_began_long_before_the_gap_is_found(self, tmp_path):
        trace = Trace()
        waiting, busy = trace.thread(pid=1, tid=1), trace.thread(pid=1, tid=2)
        waiting.launch("k", at=0, runs=3_500_000)
        waiting.call("cudaDeviceSynchronize", at=10_000, takes=5_000_000)
        for number in range(1_000):  # in order of start, as nsys writes them
            busy.call("cudaEventQuery", at=20_000 + 4_000 * number)
        waiting.launch("k", at=5_020_000, runs=1_000)
        path = trace.write(tmp_path / "t.sqlite")
        rows, tables = self.looked_up(path)
        assert rows == self.read(path)
        assert "near_CUPTI_ACTIVITY_KIND_RUNTIME" in tables
        assert [row[5] for row in rows] == ["sync: cudaDeviceSynchronize"]
