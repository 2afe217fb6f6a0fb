"""Unexpected behavior in real captures (tests/data/odd): what reports and findings say about it."""

from __future__ import annotations

import itertools
import lzma
import sqlite3
from typing import TYPE_CHECKING

import pytest
from command_line import run
from opening import evaluate_rules, open_trace

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

CAPTURES = REPOSITORY / "tests" / "data" / "odd"
SAMPLES = REPOSITORY / "sample_traces"


def ask(path: Path, report: str, **parameters):
    """Return the rows of a report, and its notes."""
    with open_trace(path) as trace:
        answer = trace.answer(report, **parameters)
        return answer.dicts(), answer.notes


def count(path: Path, query: str) -> int:
    """Count in the file itself."""
    with sqlite3.connect(path) as file:
        return file.execute(query).fetchone()[0]


# A green context.


@pytest.mark.parametrize("report", ["occupancy", "launch-configs"])
def test_waves_of_a_green_context_are_unknown(capture, report):
    path = capture("green_both")
    rows, notes = ask(path, report)
    waves = {row["name"].split("(")[0]: row["waves_per_sm"] for row in rows}
    # Both kernels have 264 blocks of 8 per SM. `layer` had 32 of the 132 SMs: 1.03 waves, not 0.25.
    assert waves == {"layer": None, "relax": 0.25}
    green = count(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE greenContextId > 0")
    assert green == 16
    assert any(f"{green} kernels ran in green contexts" in note for note in notes)
    assert not any("limits of the GPU" in note for note in notes)


def test_waves_without_green_contexts_are_known(capture):
    assert not any("green" in note for note in ask(capture("copies"), "occupancy")[1])
    rows, notes = ask(SAMPLES / "churn.sqlite", "occupancy")
    assert all(row["waves_per_sm"] is not None for row in rows)
    assert not any("green" in note for note in notes)


# Polls.


def test_polls_are_not_counted_as_waits(capture):
    path = capture("poll")
    events = {row["metric"]: row["value"] for row in ask(path, "info")[0] if row["section"] == "events"}
    # The program made 115 queries, and waited six times each for a stream, an event and the device; nsys records no
    # row for those of the device, but one for the end of the capture.
    assert (events["syncs"], events["polls"]) == (13, 115)
    assert events["syncs"] + events["polls"] == count(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")


def test_a_wait_whose_call_is_outside_the_scope_is_no_poll(capture):
    with open_trace(capture("poll")) as trace:
        waits = trace.sql("SELECT start_ns, end_ns FROM syncs WHERE sync_type = 'stream'").to_dicts()
    first = waits[0]
    with open_trace(capture("poll"), from_ns=first["start_ns"], to_ns=first["end_ns"]) as trace:
        types = [row["sync_type"] for row in trace.sql("SELECT sync_type FROM syncs").to_dicts()]
    assert types == ["stream"]


def test_a_trace_without_queries_has_no_polls():
    rows = ask(SAMPLES / "decode_graph_node.sqlite", "info")[0]
    assert not [row for row in rows if row["metric"] == "polls"]


# Copies from and into pageable memory.


def test_the_note_says_which_pageable_copies_block(capture):
    path = capture("copies")
    waiting = count(
        path,
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"
        ' WHERE 0 IN (m.srcKind, m.dstKind) AND r."end" >= m."end"',
    )
    assert waiting == 46
    note = next(note for note in ask(path, "copies")[1] if "pageable" in note)
    assert note.startswith("92 asynchronous copies use pageable memory; the CPU is in their calls for 63.9 ms; ")
    assert "46 calls return after the copy and 46 before, when the driver has the data" in note


def test_no_early_return_is_reported_where_all_pageable_copies_block():
    note = next(note for note in ask(SAMPLES / "churn.sqlite", "copies")[1] if "pageable" in note)
    assert "20 calls return after the copy; pin the host buffer" in note


# Programmatic dependent launch.


def test_the_overlap_of_kernels_of_one_stream_is_reported(capture):
    path = capture("pdl")
    with sqlite3.connect(path) as file:
        rows = file.execute('SELECT start, "end" FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start').fetchall()
    latest, shared = 0, 0
    for start, end in rows:
        shared += max(0, min(end, latest) - start)
        latest = max(latest, end)
    with open_trace(path) as trace:
        (row,) = trace.sql("FROM _waiting_kernels").to_dicts()
    assert row["overlap_ns"] == shared
    assert shared > 0.8 * sum(end - start for start, end in rows)
    for report in ("top", "classify-kernels"):
        assert any(f"{row['kernels']} kernels began before the one before" in note for note in ask(path, report)[1])


def test_no_overlap_is_reported_of_kernels_in_sequence(capture):
    assert not any("began before" in note for note in ask(capture("plain"), "top")[1])


def test_kernels_of_a_graph_that_overlap_are_not_long(capture):
    path = capture("captured_node")
    # Twenty kernels of one stream that the graph starts at once; each ends 5 µs after the one before it.
    assert count(path, 'SELECT avg("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL') > 40_000
    assert count(path, "SELECT count(DISTINCT streamId) FROM CUPTI_ACTIVITY_KIND_KERNEL") == 1
    with open_trace(path) as trace:
        diagnosis = trace.diagnose()
        (row,) = trace.sql("FROM _waiting_kernels").to_dicts()
        (step,) = trace.sql("SELECT 100 * busy_ns / wall_ns AS busy_pct FROM _step_totals").to_dicts()
    assert row["kernels"] == 570
    assert any("570 kernels began before the one before" in note for note in ask(path, "top")[1])
    # A kernel that takes the GPU for 5 µs is too short to be split, and none takes it longer than it is busy.
    findings = {finding.code: finding for finding in diagnosis.findings}
    assert "NSI421" not in findings
    assert findings["NSI401"].wall_pct == pytest.approx(step["busy_pct"])


def test_fusing_kernels_that_overlap_saves_no_more_than_the_step(capture):
    with open_trace(capture("pdl")) as trace:
        (candidate,) = trace.answer("fusion").dicts()
        (step,) = trace.sql("FROM fusion_step").to_dicts()
    assert candidate["saved_high_ns"] < step["wall_ns"]
    # Without the overlap, the replay takes as long as the step.
    assert step["replayed_ns"] == pytest.approx(step["wall_ns"], rel=0.1)


# The clock under ncu.


@pytest.mark.parametrize(("clock", "is_lower"), [("base", True), ("none", False)])
def test_a_report_of_ncu_says_that_the_clock_was_lower(clock, is_lower, tmp_path):
    path = tmp_path / f"clock_{clock}.raw.csv"
    path.write_bytes(lzma.decompress((CAPTURES / f"{path.name}.xz").read_bytes()))
    text = " ".join(run("ncu", "report", path).stdout.split())
    # The compute-bound kernel took 936 µs at the base clock and 709 µs without clock control: 1.32 times as long.
    assert ("The SMs ran at 1.49 GHz under ncu, and can run at 1.98 GHz" in text) == is_lower
    assert ("up to 1.33 times as long" in text) == is_lower


# The body of a conditional graph node, which the graph launches on the device.


def test_iterations_of_a_while_node_are_not_missing_from_the_capture(capture):
    path = capture("while_node")
    # 120 iterations of two kernels, without a launch call.
    assert count(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId = 0") == 240
    causes = {row["cause"] for row in ask(path, "idle")[0]}
    assert "unknown" not in causes
    gaps = ask(path, "gaps")[0]
    into_body = [row for row in gaps if row["after_name"].startswith(("relax", "converged"))]
    assert len(into_body) == 240
    assert {(row["cause"], row["host"]) for row in into_body} == {("dependency", "launched before the gap")}
    # The first kernel of a launch still waits for the host.
    assert {row["cause"] for row in gaps if row["after_name"].startswith("start")} == {"launch"}
    with open_trace(path) as trace:
        assert not evaluate_rules(trace, ["capture-problem"])


def test_a_body_whose_graph_was_launched_in_the_gap_has_an_unknown_cause(capture, tmp_path):
    path = tmp_path / "late.sqlite"
    path.write_bytes(capture("while_node").read_bytes())
    # The graph is then the WHILE node alone, and the host launches it again after the last iteration.
    with sqlite3.connect(path) as file:
        file.execute(
            "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId > 0"
            " AND correlationId > (SELECT min(correlationId) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId > 0)"
        )
    gaps = ask(path, "gaps")[0]
    # One gap for each of the five later launches.
    assert sum(row["cause"] == "unknown" for row in gaps) == 5


# Tracing of graphs by node.


def test_the_cost_of_tracing_by_node_is_reported_for_such_traces(capture):
    def read_notes(path):
        return [note for note in ask(path, "classify")[1] if "short kernels or many branches take up to" in note]

    assert read_notes(capture("loop_node"))
    assert not read_notes(SAMPLES / "decode_graph_whole.sqlite")
    assert not read_notes(capture("plain"))


# Two processes on one GPU.


def test_turns_of_two_processes_are_reported(capture):
    path = capture("share_two")
    with sqlite3.connect(path) as file:
        order = [row[0] for row in file.execute("SELECT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")]
    turns = sum(before != after for before, after in itertools.pairwise(order))
    assert turns == 80
    notes = ask(path, "classify")[1]
    assert any(f"2 processes take turns on GPU 0, {turns} times" in note for note in notes)


def test_processes_that_run_one_after_another_take_no_turns(capture, tmp_path):
    path = tmp_path / "one_after_another.sqlite"
    path.write_bytes(capture("share_two").read_bytes())
    with sqlite3.connect(path) as file:
        later = "WHERE globalPid = (SELECT max(globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL)"
        for table in ("KERNEL", "SYNCHRONIZATION"):
            file.execute(
                f'UPDATE CUPTI_ACTIVITY_KIND_{table} SET start = start + 1000000000, "end" = "end" + 1000000000 {later}'
            )
    assert not any("take turns" in note for note in ask(path, "classify")[1])


# A pool that gives its memory back.


def test_the_wait_in_which_a_pool_gives_memory_back_counts(capture):
    with open_trace(capture("pool_0")) as trace:
        finding = evaluate_rules(trace, ["allocation"])["allocation"]
    # A step took 306 µs, and 52 µs with a release threshold (pool_max): 254 µs less.
    assert 0.8 * 254_000 < finding.recoverable_ns < 254_000
    assert "synchronizations return 136 µs after the GPU has finished" in finding.evidence
    assert "other-wait" in finding.explains


def test_a_pool_that_keeps_its_memory_gives_none_back(capture):
    with open_trace(capture("pool_max")) as trace:
        finding = evaluate_rules(trace, ["allocation"])["allocation"]
    assert "after the GPU has finished" not in finding.evidence
    assert finding.recoverable_ns < 5_000


# Plans that cuDNN keeps by thread.


@pytest.mark.parametrize(("name", "is_by_thread"), [("attention_threads", True), ("attention_lengths", False)])
def test_new_threads_and_new_shapes_have_different_cures(capture, name, is_by_thread):
    with open_trace(capture(name)) as trace:
        finding = evaluate_rules(trace, ["compile-in-loop"])["compile-in-loop"]
    assert ("each of the 5 threads that load code does so in one step only" in finding.evidence) == is_by_thread
    assert finding.action.startswith("Run the steps in the same thread" if is_by_thread else "Pad or bucket the sizes")


def test_the_priority_of_a_stream_has_its_sign(capture):
    rows, _ = ask(capture("launches"), "streams")
    # The program made one stream of the least and one of the greatest priority, and printed the range as 0 to -5.
    assert {row["stream_id"]: row["priority"] for row in rows} == {7: 0, 13: 0, 14: -5}


def test_a_wait_after_a_launch_does_not_create_the_context(capture):
    path = capture("range_within_kernel")
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON s.id = r.nameId"
    query = f"SELECT min(start) FROM {calls} WHERE value LIKE"
    assert count(path, f"{query} 'cudaLaunchKernel%'") < count(path, f"{query} 'cudaDeviceSynchronize%'")
    with open_trace(path) as trace:
        finding = evaluate_rules(trace, ["idle-at-start"])["idle-at-start"]
    assert "creation of the context" not in finding.action


# A pool that is trimmed after each step.


def test_a_trim_counts_as_a_release_that_makes_allocations_slow(capture):
    path = capture("trim")
    with open_trace(path) as trace:
        diagnosis = trace.diagnose()
        (step,) = trace.sql("FROM _step_totals").to_dicts()
    finding = diagnosis.findings[0]
    assert finding.code == "NSI301"
    assert "Do not trim the pool in the loop" in finding.action
    # A step takes 82 µs under nsys without the trim, as the program measured it.
    assert finding.saving_low_ns <= step["wall_ns"] - 82_000 <= finding.recoverable_ns
    assert not any("pools" in entry.title for top in diagnosis.findings for entry in (top, *top.also))
