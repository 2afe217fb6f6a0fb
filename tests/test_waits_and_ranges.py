"""Captures of waits that no CUDA call shows, contexts that share a GPU, and NVTX (tests/data/odd): what reports say."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from itertools import pairwise
from statistics import fmean, median

import pytest
from command_line import REPOSITORY, run
from opening import evaluate_rules, open_trace, unpack
from synthetic import Trace

STEPS = 40


def read(path, query: str):
    with sqlite3.connect(path) as file:
        return file.execute(query).fetchall()


def list_notes(path, report: str) -> str:
    with open_trace(path) as trace:
        return " ".join(trace.answer(report).notes)


# A range that the program forgets to close in one of ten steps, and each range around it with it.


def test_a_forgotten_pop_ends_a_step_where_the_next_one_begins(capture):
    path = capture("missing_pop")
    starts = [start for (start,) in read(path, "SELECT start FROM NVTX_EVENTS WHERE text = 'step' ORDER BY start")]
    with open_trace(path) as trace:
        steps = trace.answer("steps").dicts()
    assert [row["start_ns"] for row in steps] == starts
    assert len(starts) == STEPS
    assert [row["kernels"] for row in steps] == [2] * STEPS


def test_the_host_time_of_a_range_that_stays_open_is_unknown(capture):
    path = capture("missing_pop")
    ((capture_end,),) = read(path, "SELECT duration FROM ANALYSIS_DETAILS")
    closed = read(path, f'SELECT "end" - start FROM NVTX_EVENTS WHERE text = \'step\' AND "end" < {capture_end}')
    with open_trace(path) as trace:
        answer = trace.answer("nvtx")
        (row,) = [row for row in answer.dicts() if row["name"] == "step"]
    assert len(closed) == STEPS - 4
    assert (row["calls"], row["host_ns"]) == (STEPS, sum(time for (time,) in closed))
    assert any("4 ranges were still open when the capture ended" in note for note in answer.notes)


# Two contexts of one process.


@pytest.mark.slow
def test_contexts_that_take_turns_are_named(capture):
    path = capture("two_contexts")
    contexts = [row for (row,) in read(path, "SELECT contextId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")]
    turns = sum(before != after for before, after in pairwise(contexts))
    note = f"{len(Counter(contexts))} CUDA contexts of one process take turns on GPU 0, {turns} times"
    assert note in list_notes(path, "classify")
    text = " ".join(run("diagnose", str(path)).stdout.split())
    assert "2 CUDA contexts take turns on the GPU: the operation may wait for its turn" in text
    assert "waits for another GPU or process" not in text


def test_contexts_that_follow_each_other_do_not_take_turns(capture, tmp_path):
    path = tmp_path / "trace.sqlite"
    path.write_bytes(capture("two_contexts").read_bytes())
    with sqlite3.connect(path) as file:
        file.execute(
            """UPDATE CUPTI_ACTIVITY_KIND_KERNEL
            SET contextId = 2 + (start > (SELECT avg(start) FROM CUPTI_ACTIVITY_KIND_KERNEL))"""
        )
    assert len(read(path, "SELECT DISTINCT contextId FROM CUPTI_ACTIVITY_KIND_KERNEL")) == 2
    assert "take turns" not in list_notes(path, "classify")


# A function on the host that wakes the thread that launches.


@pytest.mark.slow
def test_functions_on_the_host_end_steps(capture):
    path = capture("callback")
    calls = read(
        path,
        """SELECT r.start FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON s.id = r.nameId
        WHERE s.value LIKE 'cudaLaunchHostFunc%' ORDER BY r.start""",
    )
    assert len(calls) == STEPS
    period = fmean(after - before for (before,), (after,) in pairwise(calls[5:]))
    with open_trace(path) as trace:
        steps = [row for row in trace.answer("steps").dicts() if row["phase"] == "steady"]
        findings = trace.diagnose().findings
    assert {row["kernels"] for row in steps} == {4}
    assert fmean(row["duration_ns"] for row in steps[4:]) == pytest.approx(period, rel=0.05)
    (finding,) = [finding for finding in findings if finding.code == "NSI105"]
    assert "runs functions on the host (cudaLaunchHostFunc) in each step" in finding.evidence
    assert "cudaEventSynchronize" in finding.cure.text


def test_functions_that_xla_runs_on_the_host_are_not_the_programs():
    with open_trace(unpack(REPOSITORY / "benchmarks" / "clinic6" / "traces" / "quake_ailing.sqlite.xz")) as trace:
        ((calls,),) = trace.sql("SELECT sum(calls) FROM _call_counts WHERE name LIKE 'cuLaunchHostFunc%'").rows()
        finding = evaluate_rules(trace, ["cpu-work"])["cpu-work"]
    assert calls > 0
    assert "cudaLaunchHostFunc" not in f"{finding.evidence} {finding.action}"


# A stream with a name.


def test_a_stream_has_the_name_that_the_program_gives_to_it(capture):
    path = capture("domains")
    ((stream,),) = read(path, "SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_MEMCPY")
    with open_trace(path) as trace:
        names = {row["stream_id"]: row["stream_name"] for row in trace.answer("streams").dicts()}
    assert names.pop(stream) == "copies"
    assert set(names.values()) == {None}


# The GPU's clock falls in the first 100 ms of products without a pause.


def test_steps_whose_work_takes_longer_and_longer_are_named(capture):
    path = capture("products")
    times = [time for (time,) in read(path, 'SELECT "end" - start FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start')]
    times_of_note = re.search(
        r"busy for (.*) ms in each of the first 39 steps and for (.*) ms in", list_notes(path, "steps")
    )
    assert times_of_note
    # A memset of each step is busy time, too.
    assert [float(time) for time in times_of_note.groups()] == pytest.approx(
        [median(times[:39]) / 1e6, median(times[-39:]) / 1e6], rel=0.01
    )
    assert median(times[-39:]) > 1.15 * median(times[:39])


@pytest.mark.parametrize(("growth", "is_named"), [(300, False), (1_500, True), (-1_500, True)])
def test_a_drift_is_one_of_a_tenth_or_more(growth, is_named, tmp_path):
    trace = Trace()
    host = trace.thread()
    for step in range(60):
        host.launch("a", runs=100_000 + growth * step).launch("b", runs=100_000).sync("stream")
    path = trace.write(tmp_path / "trace.sqlite")
    assert ("in each of the first" in list_notes(path, "steps")) is is_named


# A training step in a CUDA graph: PyTorch fills the seed and the offset of the random numbers before each replay.


@pytest.mark.slow
def test_a_sequence_names_its_graph_too(capture):
    with open_trace(capture("dropout")) as trace:
        findings = [member for finding in trace.diagnose().findings for member in (finding, *finding.also)]
    (evidence,) = [finding.evidence for finding in findings if "equal sequences" in finding.evidence]
    assert "(vectorized_elementwise_kernel, a CUDA graph)" in evidence


# Plans for transforms whose code nsys makes slow to load: 5.24 ms per step without it.


@pytest.mark.slow
def test_loading_of_code_takes_longer_under_nsys(capture):
    path = capture("lengths")
    assert "loading of code, which took up to 11 times as long under nsys" in list_notes(path, "classify")
    text = " ".join(run("diagnose", str(path)).stdout.split())
    assert "Savings of loads of code are of the run under nsys, and smaller without it" in text


@pytest.mark.slow
def test_no_saving_is_more_than_the_measured_step(capture):
    with open_trace(capture("lengths")) as trace:
        findings = trace.diagnose(step_time_ns=5_240_000).findings
    (loads,) = [finding for finding in findings if finding.code == "NSI115"]
    assert loads.recoverable_ns == 5_240_000
    assert loads.profiled_ns > 40_000_000
    assert loads.wall_pct == pytest.approx(100)
