"""Behavior that nobody would guess, on real captures (tests/data/odd): what reports and findings say about it."""

from __future__ import annotations

import lzma
import sqlite3
from functools import cache
from typing import TYPE_CHECKING

import pytest
from command_line import run
from opening import open_trace

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CAPTURES = REPOSITORY / "tests" / "data" / "odd"
SAMPLES = REPOSITORY / "sample_traces"


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Callable[[str], Path]:
    """Give a function that unpacks a capture."""
    folder = tmp_path_factory.mktemp("odd")

    @cache
    def unpack(name: str) -> Path:
        path = folder / f"{name}.sqlite"
        path.write_bytes(lzma.decompress((CAPTURES / f"{path.name}.xz").read_bytes()))
        return path

    return unpack


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


def test_nothing_is_said_of_green_contexts_where_there_are_none(capture):
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
        'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)'
        ' WHERE 0 IN (m.srcKind, m.dstKind) AND r."end" >= m."end"',
    )
    assert waiting == 46
    note = next(note for note in ask(path, "copies")[1] if "pageable" in note)
    assert note.startswith("92 asynchronous copies use pageable memory; the CPU is in their calls for 63.9 ms; ")
    assert "46 calls return after the copy and 46 before, when the driver has the data" in note


def test_pageable_copies_that_all_block_are_not_said_to_return_early():
    note = next(note for note in ask(SAMPLES / "churn.sqlite", "copies")[1] if "pageable" in note)
    assert "20 calls return after the copy; pin the host buffer" in note


# Programmatic dependent launch.


def test_kernels_that_wait_for_the_one_before_are_said_to_overlap(capture):
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


def test_kernels_that_run_one_after_another_are_not_said_to_overlap(capture):
    assert not any("began before" in note for note in ask(capture("plain"), "top")[1])


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
    text = run("ncu", "report", path).stdout
    # The compute-bound kernel took 936 µs at the base clock and 709 µs without clock control: 1.32 times as long.
    assert ("The SMs ran at 1.49 GHz under ncu, and can run at 1.98 GHz" in text) == is_lower
    assert ("up to 1.33 times as long" in " ".join(text.split())) == is_lower
