"""What the CPU does while the GPU waits: planted time in functions, in system calls, and off the CPU."""

from __future__ import annotations

from collections import defaultdict

import pytest
from opening import open_trace
from synthetic import Trace

import nsys_insight
from nsys_insight.diagnose.diagnosis import diagnose
from nsys_insight.packs.step_options import parse_options

APP, LIBC, KERNEL = "/home/user/app", "/lib/x86_64-linux-gnu/libc.so.6", "[kernel.kallsyms]"
MAIN = ("main", APP)
FRAMES = {
    "formatting text and numbers": (("__printf_fp", LIBC), ("vfprintf", LIBC), ("log_line(double)", APP), MAIN),
    "code of app": (("sample_token(float const*)", APP), MAIN),
    "page faults": (("clear_page_erms", KERNEL), ("asm_exc_page_fault", KERNEL), ("grow(int)", APP), MAIN),
}
STEPS, PERIOD = 10, 100_000
# What the host does between two steps, in ns. The first three are detected by samples.
PLANTED = {
    "formatting text and numbers": 2_600_000,
    "code of app": 1_500_000,
    "page faults": 400_000,
    "OS call: read": 700_000,
    "OS call: nanosleep": 1_000_000,
    "OS call: pthread_mutex_lock": 500_000,
    "off the CPU": 300_000,
}
OFF = {"OS call: read": 0.5, "OS call: nanosleep": 1.0, "OS call: pthread_mutex_lock": 1.0, "off the CPU": 1.0}


def planted(*, period=PERIOD, off_cpu=True, osrt=True, steps_without_samples=(), chain_interval=1):
    """Return a loop with a GPU that waits while the host runs the planted activities in a range "IO".

    Only one of `chain_interval` samples has a call chain.
    """
    trace = Trace()
    host = trace.thread()
    due = 0  # CPU time until the next sample
    for step in range(STEPS):
        with host.nvtx("step"):
            for _ in range(3):
                host.launch("k", runs=50_000)
            host.sync("stream")
            with host.nvtx("IO"):
                for activity, ns in PLANTED.items():
                    start = host.now
                    if activity in FRAMES:
                        while due < ns:
                            number = len(trace.rows["COMPOSITE_EVENTS"])
                            frames = FRAMES[activity] if number % chain_interval == 0 else FRAMES[activity][:1]
                            if period and step not in steps_without_samples:
                                host.sample(start + due, *frames)
                            due += period or ns
                        due -= ns
                    elif osrt and activity.startswith("OS call: "):
                        host.osrt(activity.removeprefix("OS call: "), start=start, takes=ns)
                    if off_cpu and activity in OFF:
                        host.off_cpu(start, start + int(ns * OFF[activity]))
                    host.now = start + ns
    host.launch("k")
    return trace


def ask(trace, path, **params):
    with open_trace(trace.write(path / "trace.sqlite")) as session:
        answer = session.answer("cpu-work", **params)
        return answer.dicts(), answer.notes, session.answer("idle").dicts()


def rows_by_activity(rows, path="step/IO"):
    return {row["what"]: row for row in rows if row["nvtx_path"] == path}


@pytest.mark.slow
@pytest.mark.parametrize("chain_interval", [1, 4])
def test_each_planted_activity_is_found(tmp_path, chain_interval):
    rows, notes, _ = ask(planted(chain_interval=chain_interval), tmp_path)
    rows_by_name = rows_by_activity(rows)
    assert rows_by_name.keys() == PLANTED.keys()
    for activity, ns in PLANTED.items():
        # The error of a sampled share depends on the number of samples. Measured times are exact.
        tolerance_ns = (0.1 if chain_interval == 1 else 0.25) * 4_500_000
        assert rows_by_name[activity]["time_ns"] == pytest.approx(ns, abs=tolerance_ns if activity in FRAMES else 1)
        assert rows_by_name[activity]["off_cpu_ns"] == pytest.approx(ns * OFF.get(activity, 0), abs=1)
    assert rows_by_name["formatting text and numbers"]["function_name"] == "__printf_fp (libc.so.6)"
    assert any("a sample stands for 100 µs" in note for note in notes)


@pytest.mark.slow
def test_functions_have_exclusive_and_inclusive_time(tmp_path):
    exclusive, _, _ = ask(planted(), tmp_path, group_by="function")
    inclusive, _, _ = ask(planted(), tmp_path, group_by="inclusive")
    exclusive, inclusive = rows_by_activity(exclusive), rows_by_activity(inclusive)
    assert "main (app)" not in exclusive
    assert exclusive["__printf_fp (libc.so.6)"]["time_ns"] == pytest.approx(2_600_000, rel=0.1)
    assert inclusive["log_line (app)"]["time_ns"] == pytest.approx(2_600_000, rel=0.1)
    assert inclusive["main (app)"]["time_ns"] == pytest.approx(4_500_000, abs=300)  # and the ends of the range


@pytest.mark.slow
def test_rows_add_up_to_the_cpu_work_of_idle(tmp_path):
    for options in (
        {},
        {"off_cpu": False},
        {"osrt": False},
        {"period": None},
        {"steps_without_samples": {1, 2, 3, 4}},
        {"chain_interval": 4},
    ):
        rows, _, idle = ask(planted(**options), tmp_path)
        with open_trace(tmp_path / "trace.sqlite") as trace:
            per_step = trace.query(
                """SELECT sum(idle_ns) / (SELECT count(*) FROM steps WHERE phase = 'steady')
                   FROM step_idle WHERE host = 'CPU work'"""
            ).rows()[0][0]
        assert sum(row["time_ns"] for row in rows) == pytest.approx(per_step, rel=1e-9), options
        assert sum(row["work_pct"] for row in rows) == pytest.approx(100)
        assert [row for row in idle if row["host"] == "CPU work"]


def test_pieces_of_each_gap_add_up_to_it(tmp_path):
    trace = planted()
    with nsys_insight.open(trace.write(tmp_path / "trace.sqlite"), use_cache=False) as session:
        pieces = session.query(
            "SELECT gap_ns, sum(end_ns - start_ns)::BIGINT AS ns FROM _cpu_pieces GROUP BY ALL"
        ).rows()
    calls = trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    launch_calls = {call["correlationId"]: call for call in calls}
    expected, last_end = defaultdict(int), None
    for kernel in sorted(trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"], key=lambda row: row["start"]):
        work_end_ns = min(launch_calls[kernel["correlationId"]]["start"], kernel["start"])
        if last_end is not None and work_end_ns > last_end:
            call_ns = sum(max(0, min(call["end"], work_end_ns) - max(call["start"], last_end)) for call in calls)
            expected[last_end] = work_end_ns - last_end - call_ns
        last_end = max(last_end or 0, kernel["end"])
    assert dict(pieces) == {gap: ns for gap, ns in expected.items() if ns}


@pytest.mark.slow
def test_too_few_samples_are_counted_without_functions(tmp_path):
    rows, _, _ = ask(planted(period=6_000_000), tmp_path)
    rows_by_name = rows_by_activity(rows)
    assert rows_by_name["on the CPU, too few samples to tell"]["samples"] < 10
    assert not rows_by_name.keys() & FRAMES.keys()
    assert rows_by_name["OS call: nanosleep"]["time_ns"] == pytest.approx(1_000_000, abs=1)


@pytest.mark.slow
def test_the_time_of_gaps_without_samples_is_reported_as_not_sampled(tmp_path):
    rows, _, _ = ask(planted(steps_without_samples={2, 3, 4, 5, 6}), tmp_path)
    rows_by_name = rows_by_activity(rows)
    assert rows_by_name["not sampled"]["time_ns"] == pytest.approx(0.5 * 4_500_000, rel=0.2)
    assert rows_by_name["formatting text and numbers"]["time_ns"] == pytest.approx(0.5 * 2_600_000, rel=0.2)


@pytest.mark.slow
def test_samples_of_the_thread_that_holds_a_lock_are_not_attributed_to_the_waiting_thread(tmp_path):
    expected_rows, _, _ = ask(planted(), tmp_path)
    trace = planted()
    holder = trace.thread(tid=101, name="holder")
    for start_ns in range(0, trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["start"], 20 * PERIOD):
        holder.sample(start_ns, ("compress(char*)", APP), ("hold(void*)", APP))
    rows, _, _ = ask(trace, tmp_path)
    assert rows == expected_rows
    assert rows_by_activity(rows)["OS call: pthread_mutex_lock"]["off_cpu_ns"] == pytest.approx(500_000, abs=1)


@pytest.mark.slow
def test_without_samples_no_function_is_named(tmp_path):
    rows, notes, _ = ask(planted(period=None), tmp_path)
    rows_by_name = rows_by_activity(rows)
    assert not rows_by_name.keys() & FRAMES.keys()
    assert rows_by_name["outside of OS calls"]["samples"] is None
    assert any("--sample=process-tree" in note for note in notes)


@pytest.mark.slow
def test_without_context_switches_waiting_is_not_counted_as_computing(tmp_path):
    rows, _, _ = ask(planted(off_cpu=False, osrt=False), tmp_path)
    rows_by_name = rows_by_activity(rows)
    assert "off the CPU" not in rows_by_name
    waiting = sum(PLANTED[activity] for activity in OFF)
    assert rows_by_name["not sampled"]["time_ns"] == pytest.approx(waiting, rel=0.1)
    assert rows_by_name["not sampled"]["off_cpu_ns"] is None


def test_without_recorded_events_there_are_no_rows(tmp_path):
    rows, _, _ = ask(planted(period=None, off_cpu=False, osrt=False), tmp_path)
    assert rows == []


@pytest.mark.slow
def test_diagnose_reports_what_the_host_does_and_where(tmp_path):
    def evidence(trace):
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
            findings = [
                entry for finding in diagnose(session, parse_options({})).findings for entry in (finding, *finding.also)
            ]
        return next(finding.evidence for finding in findings if finding.name == "cpu-work")

    text = evidence(planted())
    assert "ms formatting text and numbers in IO" in text
    assert "1 ms in nanosleep() in IO" in text
    assert "formatting" not in evidence(planted(period=None))
    assert "formatting" not in evidence(planted(period=6_000_000))
