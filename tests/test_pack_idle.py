"""`idle`: every nanosecond of wall time is busy or idle for one cause, against a plain loop and planted causes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from itertools import pairwise

import oracle
import planted as plans
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opening import open_trace, planted_path
from real_traces import REAL
from strategies import traces
from sweeps import sweep
from synthetic import Trace

from nsys_insight.facts import idle


def ask(path, **scope):
    """Return nanoseconds by GPU, cause and host."""
    with open_trace(path, **scope) as trace:
        rows = trace.sql(
            "SELECT gpu_id, cause, host, idle_ns FROM gpu_idle"
            " UNION ALL SELECT gpu_id, 'busy', NULL, busy_ns FROM used_gpus, wall WHERE wall.duration_ns > 0"
        ).rows()
    return {(gpu, cause, host): ns for gpu, cause, host, ns in rows}


def classify_call(name):
    """Classify an API call of a thread as a cause of idle GPU time."""
    if name.endswith("Synchronize"):
        return "sync", "sync calls"
    if name.startswith(("cudaMalloc", "cudaHostAlloc", "cudaFree", "cuMemAlloc", "cuMemFree")):
        return "allocation", "allocation"
    return "launch", "API calls"


class Threads:
    """The calls, profiler overheads and edges of each thread."""

    def __init__(self, tables):
        self.calls, self.overheads, self.edges = defaultdict(list), defaultdict(list), {}
        self.blocking = oracle.blocking_copies(tables)
        for call in oracle.outer_api_calls(tables):
            self.calls[call["globalTid"]].append(call)
        for row in oracle.profiler_overheads(tables):
            self.overheads[row["globalTid"]].append((row["start"], row["end"]))
        self.mpi_times = defaultdict(list)
        for row in oracle.mpi_calls(tables):
            self.mpi_times[row["globalTid"]].append((row["start"], row["end"]))
        for thread, calls in self.calls.items():
            self.edges[thread] = sorted(
                {edge for call in calls for edge in (call["start"], call["end"])}
                | {edge for times in (*self.overheads[thread], *self.mpi_times[thread]) for edge in times}
            )
        self.starts = {thread: [call["start"] for call in calls] for thread, calls in self.calls.items()}

    def classify_late_gap(self, start, end, launch):
        """Classify each piece of a gap with a late launch: no call begins or ends inside a piece."""
        thread = launch["globalTid"]
        edges = self.edges[thread]
        inner_edges = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        inner_edges += [edge for edge in (launch["start"], launch["end"]) if start < edge < end]
        for a, b in pairwise([start, *sorted(set(inner_edges)), end]):
            yield *self.classify_piece(thread, a, b, launch), b - a

    def classify_piece(self, thread, a, b, launch):
        if any(start <= a and b <= end for start, end in self.overheads[thread]):
            return "profiler", "profiler"
        if a >= launch["start"]:
            if a < launch["end"] and call_key(launch) in self.blocking:
                return "copy", "blocking copies"
            return "launch", "launch latency" if a >= launch["end"] else "launch call"
        if any(start <= a and b <= end for start, end in self.mpi_times[thread]):
            return "launch", "MPI calls"
        last = bisect_right(self.starts[thread], a) - 1
        if last >= 0 and self.calls[thread][last]["end"] >= b:
            call = self.calls[thread][last]
            return ("copy", "blocking copies") if call_key(call) in self.blocking else classify_call(call["name"])
        return "launch", "CPU work"


def call_key(row):
    return oracle.pid_of(row), row["correlationId"]


def nulls_last(value):
    return value is None, value or 0


def classify_gap(threads, start, op, before, launch):
    """Classify a gap that ends with an operation: cause, host and time of each piece."""
    duration = op["start"] - start
    if before is None:
        yield "start-up and end", "before the first operation", duration
    elif call_key(before) == call_key(op) and op["correlationId"] is not None:
        yield "dependency", "same launch call", duration
    elif launch is None:
        yield "unknown", "not in the trace", duration
    elif launch["start"] < start < launch["end"] and threads.blocking.get(call_key(launch)):
        yield "copy", "blocking copies", duration
    elif launch["start"] < start:
        is_done = launch["end"] <= start
        yield (
            ("dependency", "launched before", duration) if is_done else ("launch", "launch call in progress", duration)
        )
    else:
        yield from threads.classify_late_gap(start, op["start"], launch)


def plain_idle(tables):
    """Return the same as `ask`, gap by gap and piece by piece."""
    threads, idle_ns = Threads(tables), Counter()
    launches = {}
    for call in oracle.api_calls(tables):
        if call["correlationId"] is None:
            continue
        known_call = launches.get(call_key(call), call)
        launches[call_key(call)] = {
            **call,
            "start": min(call["start"], known_call["start"]),
            "end": max(call["end"], known_call["end"]),
        }
    first, last = oracle.wall(tables) or (0, 0)
    for gpu, work in oracle.work_of_gpus(tables).items():
        work.sort(key=lambda op: (op["start"], *nulls_last(op["correlationId"]), oracle.pid_of(op)))
        reached_ns, before = first, None
        for op in work:
            if op["start"] > reached_ns:
                for cause, host, ns in classify_gap(threads, reached_ns, op, before, launches.get(call_key(op))):
                    idle_ns[gpu, cause, host] += ns
            # A GPU is busy until the latest end so far.
            idle_ns[gpu, "busy", None] += max(0, max(op["end"], op["start"]) - max(reached_ns, op["start"]))
            reached_ns, before = max(reached_ns, op["end"], op["start"]), op
        idle_ns[gpu, "start-up and end", "after the last operation"] += last - reached_ns
    return {key: ns for key, ns in idle_ns.items() if ns or key[1] == "busy"}


@pytest.fixture(scope="module", params=REAL, ids=lambda path: path.stem)
def real(request):
    """Return the answer for a real trace, and its tables."""
    return ask(request.param), oracle.read(request.param)


def test_every_nanosecond_is_classified_as_by_a_plain_loop(real):
    idle_by_cause, tables = real
    assert idle_by_cause == plain_idle(tables)


def test_busy_and_idle_add_up_to_the_wall_of_each_gpu(real):
    idle_by_cause, tables = real
    first, last = oracle.wall(tables)
    for gpu in {gpu for gpu, _, _ in idle_by_cause}:
        assert sum(ns for (other, _, _), ns in idle_by_cause.items() if other == gpu) == last - first


@pytest.mark.slow
@given(
    trace=traces(),
    window_size=st.sampled_from([2, 10, idle.OPERATIONS_PER_WINDOW]),
    long_ns=st.sampled_from([1, 20, idle.LONG_NS]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_trace_is_split_as_a_plain_loop_splits_it(tmp_path, monkeypatch, trace, window_size, long_ns):
    """The window size does not matter: a gap, or a call, may begin long before a window."""
    monkeypatch.setattr(idle, "OPERATIONS_PER_WINDOW", window_size)
    monkeypatch.setattr(idle, "LONG_NS", long_ns)
    path = trace.write(tmp_path / "trace.sqlite")
    tables = oracle.read(path)
    wall = oracle.wall(tables)
    assert ask(path) == (plain_idle(tables) if wall and wall[1] > wall[0] else {})


@pytest.mark.parametrize("name", ["decode_eager", "churn"])
def test_small_windows_give_the_same_gaps(name, sample, monkeypatch):
    idle_by_cause = ask(sample(name))
    monkeypatch.setattr("nsys_insight.facts.idle.OPERATIONS_PER_WINDOW", 100)
    monkeypatch.setattr("nsys_insight.facts.idle.LONG_NS", 5_000)
    assert ask(sample(name)) == idle_by_cause


def test_windows_that_partition_the_trace_add_up_to_it(sample):
    path = sample("decode_eager")
    first, last = oracle.wall(oracle.read(path))
    cuts = [first, first + (last - first) // 3, first + (last - first) // 2, last]
    sums = Counter()
    for start, end in pairwise(cuts):
        sums.update(ask(path, from_ns=start, to_ns=end))
    assert sums == ask(path)


def test_busy_and_idle_time_in_nvtx_ranges_add_up_to_their_wall(sample):
    with open_trace(sample("decode_eager"), nvtx="decode_step") as trace:
        rows = trace.idle().to_dicts()
        wall = trace.sql("SELECT sum(duration_ns)::BIGINT FROM wall").item()
    assert sum(row["time_ns"] for row in rows) == wall
    assert sum(row["wall_pct"] for row in rows) == pytest.approx(100)


@pytest.mark.parametrize("name", plans.ALL)
def test_planted_loops_are_idle_for_the_planted_causes(name):
    truth = plans.ALL[name]()
    expected = Counter()
    for gap in truth.gaps:
        expected[gap.gpu_id, gap.cause] += gap.duration_ns
    idle_by_cause = Counter()
    for (gpu, cause, _), ns in ask(planted_path(name)).items():
        if cause != "busy":
            idle_by_cause[gpu, cause] += ns
    assert idle_by_cause == expected


@pytest.mark.parametrize("name", ["launch bound", "sync bound", "copy bound", "allocating", "profiled", "dependent"])
def test_every_step_is_idle_for_its_own_causes(name):
    truth = plans.ALL[name]()
    with open_trace(planted_path(name)) as trace:
        rows = trace.sql(
            "SELECT s.start_ns, i.cause, sum(i.idle_ns)::BIGINT AS ns FROM steps AS s JOIN step_idle AS i USING (step)"
            " WHERE s.phase = 'steady' GROUP BY ALL"
        ).rows()
    expected = {
        (step.start_ns, cause, ns)
        for step in truth.steps
        for cause, ns in step.idle_ns.items()
        if ns and cause != "start-up and end"
    }
    assert rows
    assert {row for row in rows if row[1] != "start-up and end"} <= expected
    steady_starts = {start for start, _, _ in rows}
    assert set(rows) >= {row for row in expected if row[0] in steady_starts}


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "decode_graph_whole", "churn"])
def test_the_causes_of_a_step_add_up_to_its_idle_time(name, sample):
    with open_trace(sample(name)) as trace:
        rows = trace.sql(
            "SELECT g.idle_ns, sum(i.idle_ns)::BIGINT FROM step_gpus AS g JOIN step_idle AS i USING (step, gpu_id)"
            " WHERE g.phase = 'steady' GROUP BY g.step, g.gpu_id, g.idle_ns"
        ).rows()
    assert rows
    assert all(idle_ns == sum_ns for idle_ns, sum_ns in rows)


@pytest.mark.parametrize("name", ["decode_eager", *sweep(["decode_graph_node", "churn"])])
def test_idle_and_classify_give_one_number_for_each_cause(name, sample):
    with open_trace(sample(name), steady=True) as trace:
        idle_ns, budget_ns = Counter(), Counter()
        for row in trace.idle().to_dicts():
            idle_ns[row["cause"]] += row["time_ns"]
        for part, ns in trace.sql("SELECT part, time_ns FROM step_budget").rows():
            budget_ns["busy" if part in ("gpu", "communication") else part] += ns
        copies_ns = trace.sql("SELECT sum(time_ns) FROM step_budget WHERE part = 'copy' AND host IS NULL").item() or 0
    budget_ns += Counter(busy=int(copies_ns))
    budget_ns -= Counter(copy=int(copies_ns))
    assert +idle_ns == +budget_ns


# Planted -------------------------------------------------------------------------------------------------------------


def planted(tmp_path, act, **scope):
    """Return the idle time between `first`, which ends at 11,100, and `last`. The thread runs `act` in between."""
    trace = Trace()
    host = trace.thread()
    host.launch("first", api=1_000, queue=100, runs=10_000)
    act(host)
    idle_ns = ask(trace.write(tmp_path / "trace.sqlite"), **scope)
    return {(cause, host): ns for (_, cause, host), ns in idle_ns.items() if cause not in ("busy", "start-up and end")}


def test_a_late_launch_starves_the_gpu(tmp_path):
    assert planted(tmp_path, lambda h: h.launch("last", start=40_000, api=1_000, queue=300)) == {
        ("launch", "CPU work"): 40_000 - 11_100,
        ("launch", "launch call"): 1_000,
        ("launch", "launch latency"): 300,
    }


def test_a_host_in_a_sync_is_blocked_until_it_returns(tmp_path):
    def act(host):
        host.sync("stream", waits=19_000)  # from 1,000 to 20,000
        host.launch("last", start=25_000, api=1_000, queue=300)

    assert planted(tmp_path, act) == {
        ("sync", "sync calls"): 20_000 - 11_100,
        ("launch", "CPU work"): 5_000,
        ("launch", "launch call"): 1_000,
        ("launch", "launch latency"): 300,
    }


def test_an_allocation_in_a_gap_is_attributed_its_own_time(tmp_path):
    def act(host):
        host.idle(12_000).malloc(8, takes=7_000)  # from 13,000 to 20,000
        host.launch("last", start=25_000, api=1_000, queue=300)

    assert planted(tmp_path, act) == {
        ("allocation", "allocation"): 7_000,
        ("launch", "CPU work"): 25_000 - 11_100 - 7_000,
        ("launch", "launch call"): 1_000,
        ("launch", "launch latency"): 300,
    }


@pytest.mark.parametrize(("start_ns", "blocked"), [(2_000, 43_000 - 11_100), (20_000, 61_000 - 20_000)])
def test_a_host_in_a_copy_into_pageable_memory_is_blocked_even_if_the_copy_is_async(start_ns, blocked, tmp_path):
    def act(host):
        host.copy("D2H", 64, start=start_ns, api=45_000, queue=-4_000, runs=2_000, target="pageable")

    idle_by_cause = planted(tmp_path, act)
    assert idle_by_cause.pop(("copy", "blocking copies")) == blocked
    assert idle_by_cause == ({} if start_ns < 11_100 else {("launch", "CPU work"): start_ns - 11_100})


def test_the_time_in_an_earlier_copy_into_pageable_memory_is_blocked(tmp_path):
    def act(host):
        host.copy("D2H", 64, start=500, api=20_500, queue=-20_000, runs=500, target="pageable")  # returns at 21,000
        host.launch("last", start=30_000, api=1_000, queue=0)

    assert planted(tmp_path, act)["copy", "blocking copies"] == 21_000 - 11_100


def test_a_copy_into_pinned_memory_does_not_block(tmp_path):
    idle_by_cause = planted(
        tmp_path, lambda h: h.copy("D2H", 64, start=20_000, api=45_000, queue=-4_000, target="pinned")
    )
    assert idle_by_cause == {("launch", "CPU work"): 20_000 - 11_100, ("launch", "launch call"): 41_000}


def test_a_copy_between_memory_of_gpus_does_not_block(tmp_path):
    idle_by_cause = planted(
        tmp_path, lambda h: h.copy("D2D", 64, start=20_000, api=45_000, queue=-4_000, blocking=True)
    )
    assert idle_by_cause == {("launch", "CPU work"): 20_000 - 11_100, ("launch", "launch call"): 41_000}


def test_a_kernel_launched_in_time_waits_for_earlier_gpu_work(tmp_path):
    assert planted(tmp_path, lambda h: h.launch("last", start=2_000, api=1_000, queue=30_000)) == {
        ("dependency", "launched before"): 33_000 - 11_100
    }


def test_the_profiler_has_precedence_over_the_calls_of_a_thread(tmp_path):
    def act(host):
        host.sync("stream", waits=19_000)  # from 1,000 to 20,000
        host.launch("last", start=25_000, api=1_000, queue=300)
        host.trace.row(
            "PROFILER_OVERHEAD", start=15_000, end=22_000, nameId="flush", globalTid=host.global_tid, correlationId=0
        )

    assert planted(tmp_path, act) == {
        ("profiler", "profiler"): 7_000,
        ("sync", "sync calls"): 15_000 - 11_100,
        ("launch", "CPU work"): 3_000,
        ("launch", "launch call"): 1_000,
        ("launch", "launch latency"): 300,
    }


def test_without_its_launch_call_the_cause_is_unknown(tmp_path):
    trace = Trace()
    trace.thread().launch("first", api=1_000, queue=100, runs=10_000).launch("last", start=40_000, api=1_000, queue=0)
    del trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]
    idle_by_cause = ask(trace.write(tmp_path / "trace.sqlite"))
    assert idle_by_cause[0, "unknown", "not in the trace"] == 41_000 - 11_100
