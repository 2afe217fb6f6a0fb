"""What the CPU does while the GPU waits: planted time in functions, in calls of the system, and off the CPU."""

from __future__ import annotations

from collections import defaultdict

import pytest
from opening import open_trace
from synthetic import Trace

import nsys_insight
from nsys_insight.diagnose.diagnosis import diagnose
from nsys_insight.packs.step_options import checked

APP, LIBC, KERNEL = "/home/user/app", "/lib/x86_64-linux-gnu/libc.so.6", "[kernel.kallsyms]"
MAIN = ("main", APP)
FRAMES = {
    "formatting text and numbers": (("__printf_fp", LIBC), ("vfprintf", LIBC), ("log_line(double)", APP), MAIN),
    "code of app": (("sample_token(float const*)", APP), MAIN),
    "page faults": (("clear_page_erms", KERNEL), ("asm_exc_page_fault", KERNEL), ("grow(int)", APP), MAIN),
}
STEPS, PERIOD = 10, 100_000
# What the host does between two steps, in ns; the first three are told by samples.
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


def planted(*, period=PERIOD, off=True, osrt=True, blind=(), own_every=1):
    """Give a loop whose GPU waits while its host does what is planted, in a range "IO".

    `blind` are steps without samples; of `own_every` samples only one has a call chain.
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
                for what, ns in PLANTED.items():
                    start = host.now
                    if what in FRAMES:
                        while due < ns:
                            number = len(trace.rows["COMPOSITE_EVENTS"])
                            frames = FRAMES[what] if number % own_every == 0 else FRAMES[what][:1]
                            if period and step not in blind:
                                host.sample(start + due, *frames)
                            due += period or ns
                        due -= ns
                    elif osrt and what.startswith("OS call: "):
                        host.osrt(what.removeprefix("OS call: "), at=start, takes=ns)
                    if off and what in OFF:
                        host.off_cpu(start, start + int(ns * OFF[what]))
                    host.now = start + ns
    host.launch("k")
    return trace


def asked(trace, path, **how):
    with open_trace(trace.write(path / "trace.sqlite")) as opened:
        answer = opened.answer("cpu-work", **how)
        return answer.dicts(), answer.notes, opened.answer("idle").dicts()


def by_what(rows, path="step/IO"):
    return {row["what"]: row for row in rows if row["nvtx_path"] == path}


@pytest.mark.slow
@pytest.mark.parametrize("own_every", [1, 4])
def test_each_planted_activity_is_found(tmp_path, own_every):
    rows, notes, _ = asked(planted(own_every=own_every), tmp_path)
    found = by_what(rows)
    assert found.keys() == PLANTED.keys()
    for what, ns in PLANTED.items():
        # A share of so many samples is as exact as they are many; what is measured is exact.
        sampled = (0.1 if own_every == 1 else 0.25) * 4_500_000
        assert found[what]["time_ns"] == pytest.approx(ns, abs=sampled if what in FRAMES else 1)
        assert found[what]["off_cpu_ns"] == pytest.approx(ns * OFF.get(what, 0), abs=1)
    assert found["formatting text and numbers"]["function_name"] == "__printf_fp (libc.so.6)"
    assert any("a sample stands for 100 µs" in note for note in notes)


@pytest.mark.slow
def test_functions_are_counted_alone_and_with_what_they_call(tmp_path):
    own, _, _ = asked(planted(), tmp_path, group_by="function")
    inclusive, _, _ = asked(planted(), tmp_path, group_by="inclusive")
    own, inclusive = by_what(own), by_what(inclusive)
    assert "main (app)" not in own
    assert own["__printf_fp (libc.so.6)"]["time_ns"] == pytest.approx(2_600_000, rel=0.1)
    assert inclusive["log_line (app)"]["time_ns"] == pytest.approx(2_600_000, rel=0.1)
    assert inclusive["main (app)"]["time_ns"] == pytest.approx(4_500_000, abs=300)  # and the ends of the range


@pytest.mark.slow
def test_rows_add_up_to_the_cpu_work_of_idle(tmp_path):
    for how in ({}, {"off": False}, {"osrt": False}, {"period": None}, {"blind": {1, 2, 3, 4}}, {"own_every": 4}):
        rows, _, idle = asked(planted(**how), tmp_path)
        with open_trace(tmp_path / "trace.sqlite") as trace:
            per_step = trace.query(
                """SELECT sum(idle_ns) / (SELECT count(*) FROM steps WHERE phase = 'steady')
                   FROM step_idle WHERE host = 'CPU work'"""
            ).rows()[0][0]
        assert sum(row["time_ns"] for row in rows) == pytest.approx(per_step, rel=1e-9), how
        assert sum(row["work_pct"] for row in rows) == pytest.approx(100)
        assert [row for row in idle if row["host"] == "CPU work"]


def test_pieces_of_each_gap_add_up_to_it(tmp_path):
    trace = planted()
    with nsys_insight.open(trace.write(tmp_path / "trace.sqlite"), use_cache=False) as opened:
        pieces = opened.query(
            "SELECT gap_ns, sum(end_ns - start_ns)::BIGINT AS ns FROM _cpu_pieces GROUP BY ALL"
        ).rows()
    calls = trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    launched = {call["correlationId"]: call for call in calls}
    expected, last_end = defaultdict(int), None
    for kernel in sorted(trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"], key=lambda row: row["start"]):
        until = min(launched[kernel["correlationId"]]["start"], kernel["start"])
        if last_end is not None and until > last_end:
            inside = sum(max(0, min(call["end"], until) - max(call["start"], last_end)) for call in calls)
            expected[last_end] = until - last_end - inside
        last_end = max(last_end or 0, kernel["end"])
    assert dict(pieces) == {gap: ns for gap, ns in expected.items() if ns}


@pytest.mark.slow
def test_too_few_samples_are_counted_and_not_told(tmp_path):
    rows, _, _ = asked(planted(period=6_000_000), tmp_path)
    found = by_what(rows)
    assert found["on the CPU, too few samples to tell"]["samples"] < 10
    assert not found.keys() & FRAMES.keys()
    assert found["OS call: nanosleep"]["time_ns"] == pytest.approx(1_000_000, abs=1)


@pytest.mark.slow
def test_samples_missing_in_some_gaps_leave_their_time_untold(tmp_path):
    rows, _, _ = asked(planted(blind={2, 3, 4, 5, 6}), tmp_path)
    found = by_what(rows)
    assert found["not sampled"]["time_ns"] == pytest.approx(0.5 * 4_500_000, rel=0.2)
    assert found["formatting text and numbers"]["time_ns"] == pytest.approx(0.5 * 2_600_000, rel=0.2)


@pytest.mark.slow
def test_what_the_thread_that_holds_a_lock_does_is_not_taken_for_the_waiting_ones(tmp_path):
    alone, _, _ = asked(planted(), tmp_path)
    trace = planted()
    holder = trace.thread(tid=101, name="holder")
    for at in range(0, trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["start"], 20 * PERIOD):
        holder.sample(at, ("compress(char*)", APP), ("hold(void*)", APP))
    rows, _, _ = asked(trace, tmp_path)
    assert rows == alone
    assert by_what(rows)["OS call: pthread_mutex_lock"]["off_cpu_ns"] == pytest.approx(500_000, abs=1)


@pytest.mark.slow
def test_without_samples_no_function_is_named(tmp_path):
    rows, notes, _ = asked(planted(period=None), tmp_path)
    found = by_what(rows)
    assert not found.keys() & FRAMES.keys()
    assert found["outside of OS calls"]["samples"] is None
    assert any("--sample=process-tree" in note for note in notes)


@pytest.mark.slow
def test_without_switches_waiting_is_not_taken_for_computing(tmp_path):
    rows, _, _ = asked(planted(off=False, osrt=False), tmp_path)
    found = by_what(rows)
    assert "off the CPU" not in found
    waiting = sum(PLANTED[what] for what in OFF)
    assert found["not sampled"]["time_ns"] == pytest.approx(waiting, rel=0.1)
    assert found["not sampled"]["off_cpu_ns"] is None


def test_nothing_recorded_is_no_row(tmp_path):
    rows, _, _ = asked(planted(period=None, off=False, osrt=False), tmp_path)
    assert rows == []


@pytest.mark.slow
def test_diagnose_says_what_the_host_is_at_and_where(tmp_path):
    def evidence(trace):
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
            found = [one for finding in diagnose(opened, checked({})).findings for one in (finding, *finding.also)]
        return next(finding.evidence for finding in found if finding.name == "cpu-work")

    said = evidence(planted())
    assert "ms formatting text and numbers in IO" in said
    assert "1 ms in nanosleep() in IO" in said
    assert "formatting" not in evidence(planted(period=None))
    assert "formatting" not in evidence(planted(period=6_000_000))
