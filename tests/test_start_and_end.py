"""What the CPU does before the first and after the last operation on the GPU, and a program that has nothing to do."""

from __future__ import annotations

import pytest
from opening import diagnose_with, evaluate_rules, open_trace, read_headline_of
from synthetic import Trace

PARSE = (("parse_mesh", "app"), ("load_case", "app"), ("main", "app"))
MS = 1_000_000


def solve(*, sampled):
    """Return 20 kernels with 500 ms before and after them; `sampled` says where CPU samples are."""
    trace = Trace().gpu()
    host = trace.thread().call("cudaMalloc_v3020", takes=100_000)
    host.idle(500 * MS)
    for _ in range(20):
        host.launch("solve", runs=2 * MS).sync("device")
    end = host.now
    host.idle(500 * MS).call("cudaFree_v3020")
    times = {"start": range(2 * MS, 400 * MS, 4 * MS), "end": range(end + MS, end + 400 * MS, 4 * MS)}
    for time in times[sampled]:
        host.sample(time, *PARSE)
    return trace


@pytest.mark.parametrize("sampled", ["start", "end"])
def test_functions_at_the_start_and_the_end_are_named(sampled, tmp_path):
    with open_trace(solve(sampled=sampled).write(tmp_path / "trace.sqlite")) as trace:
        findings = evaluate_rules(trace, ["idle-at-start", "idle-at-end"])
        notes = "\n".join(trace.answer("cpu-work").notes)
    for edge, words in (("start", "before the first"), ("end", "after the last")):
        evidence = findings[f"idle-at-{edge}"].evidence
        assert ("100.0% in parse_mesh (app) (called by load_case (app), main (app))" in evidence) == (sampled == edge)
        assert (f"{words} operation on the GPU" in notes) == (sampled == edge)


def serve(call, *, samples=0):
    """Return a server that waits 50 ms in a call before each request of 2 ms."""
    trace = Trace().gpu()
    host = trace.thread()
    for request in range(20):
        host.osrt(call, takes=50 * MS)
        host.launch(f"infer_{request % 3}", runs=2 * MS).sync("device")
    worker = trace.thread(tid=101)
    for time in range(MS, samples * MS, MS):
        worker.sample(time, *PARSE)
    return trace


@pytest.mark.parametrize(
    ("call", "work_pct", "samples", "is_waiting"),
    [
        ("epoll_wait", 51.0, 0, True),
        ("epoll_wait", 50.0, 0, False),
        ("poll", 51.0, 900, True),
        ("accept4", 51.0, 0, True),
        ("recvfrom", 51.0, 0, True),
        ("read", 99.0, 0, False),
        ("futex", 99.0, 0, False),
        # A thread that waits for another one. Only samples show that this one hardly computes.
        ("pthread_cond_wait", 99.0, 99, True),
        ("pthread_cond_wait", 99.0, 100, False),
        ("sem_timedwait", 99.0, 99, True),
        ("sem_timedwait", 99.0, None, False),
    ],
)
def test_a_server_that_waits_for_requests(call, work_pct, samples, is_waiting, run_rule):
    rows = run_rule(
        "_event_waits", _cpu_work=[{"what": f"OS call: {call}", "work_pct": work_pct, "counted_by": "activity"}],
        _sample_period=[{"samples": samples, "period_ns": MS}], wall=[{"duration_ns": 1_000 * MS}],
    )  # fmt: skip
    assert [(row["wait_call"], row["work_pct"]) for row in rows] == [(call, work_pct)] * is_waiting


def test_a_server_whose_worker_computes_is_host_bound(tmp_path):
    with open_trace(serve("pthread_cond_wait", samples=900).write(tmp_path / "trace.sqlite")) as trace:
        assert read_headline_of(trace).verdict == "host-bound"


def test_a_server_without_requests_has_nothing_to_launch(tmp_path):
    with open_trace(serve("epoll_wait").write(tmp_path / "trace.sqlite")) as trace:
        diagnosis = diagnose_with(trace)
    assert diagnosis.verdict == "waiting for events"
    assert "has nothing to launch" in diagnosis.text(None)


@pytest.mark.parametrize(("before", "is_small"), [(2_000 * MS, True), (20 * MS, False)])
def test_a_verdict_on_a_small_part_of_the_trace_says_so(before, is_small, tmp_path):
    trace = Trace().gpu()
    host = trace.thread().call("cudaMalloc_v3020", takes=100_000)
    host.idle(before)
    for _ in range(20):
        host.launch("solve", runs=5 * MS)
    host.sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        first_line = diagnose_with(session).text(None).partition("\n")[0]
    assert ("GPU-bound" in first_line, " in the steps, 4." in first_line) == (True, is_small)
