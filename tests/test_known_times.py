"""A program measured its CPU work while its GPU waited (tests/data/chains): reports agree to 10%."""

from __future__ import annotations

import lzma

import pytest
from opening import open_trace

from nsys_insight.page.flame import draw_flame
from tests.conftest import REPOSITORY

CHAINS = REPOSITORY / "tests" / "data" / "chains"
MEASURED_MS = {"format": 6.2717, "sleep": 3.0860, "lock": 4.0329, "file": 2.4879, "busy": 4.0073, "pages": 13.7273}


@pytest.fixture(scope="module")
def times(tmp_path_factory):
    """Give the time per step in ms by activity, function and stack, with the notes and the flame graph."""
    path = tmp_path_factory.mktemp("known") / "why_host.sqlite"
    path.write_bytes(lzma.decompress((CHAINS / "why_host.sqlite.xz").read_bytes()))
    with open_trace(path) as trace:
        answers = {
            grouping: trace.answer("cpu-work", group_by=grouping) for grouping in ("activity", "function", "stack")
        }
        rows = {
            grouping: {row["what"]: row["time_ns"] / 1e6 for row in answer.dicts()}
            for grouping, answer in answers.items()
        }
        return (
            rows["activity"],
            rows["function"],
            answers["activity"].notes,
            rows["stack"],
            draw_flame(answers["stack"]),
        )


@pytest.mark.parametrize(
    ("activity", "labels"),
    [
        ("format", ["formatting text and numbers"]),
        ("sleep", ["OS call: usleep"]),
        ("lock", ["OS call: pthread_mutex_lock"]),
        # The wait for the disk. nsys does not trace pread in C programs.
        ("file", ["off the CPU", "reading and writing files"]),
        # The OS kernel creates new pages, and is not sampled.
        ("pages", ["not sampled", "OS call: munmap", "OS call: mmap", "touch_pages"]),
    ],
)
def test_activities_take_the_time_that_the_program_measured(times, activity, labels):
    activities, functions, *_ = times
    touch_time = {"touch_pages": functions["touch_pages (why_host)"]}
    assert sum((activities | touch_time)[name] for name in labels) == pytest.approx(MEASURED_MS[activity], rel=0.1)


def test_a_busy_loop_is_found_by_its_function_name(times):
    assert times[1]["busy_loop (why_host)"] == pytest.approx(MEASURED_MS["busy"], rel=0.1)


def test_the_sum_is_the_time_that_the_program_measured(times):
    for rows in (times[0], times[1], times[3]):
        assert sum(rows.values()) == pytest.approx(sum(MEASURED_MS.values()), rel=0.03)


def test_a_note_reports_that_the_os_kernel_was_not_sampled(times):
    assert [note for note in times[2] if "in the OS kernel" in note]


def test_stacks_have_callers_before_callees(times):
    chains = [stack.split(";") for stack in times[3] if ";" in stack]
    formatting_ms = sum(time_ms for stack, time_ms in times[3].items() if ";format_numbers (why_host);" in stack)
    assert all(chain[0] == "_start (why_host)" for chain in chains if "main (why_host)" in chain)
    assert formatting_ms == pytest.approx(MEASURED_MS["format"], rel=0.1)


def test_the_picture_has_callees_below_their_callers_and_no_overlaps(times):
    picture = times[4]
    (root,) = picture.rows[0]
    assert (root.left, root.width) == (0, 100)
    for callers, row in zip(picture.rows, picture.rows[1:], strict=False):
        ordered = sorted(row, key=lambda bar: bar.left)
        ends = [bar.left + bar.width for bar in ordered]
        assert all(end <= next_bar.left + 1e-9 for end, next_bar in zip(ends, ordered[1:], strict=False))
        for bar in row:
            assert any(
                caller.left - 1e-9 <= bar.left and bar.left + bar.width <= caller.left + caller.width + 1e-9
                for caller in callers
            )
    widths = {bar.label: bar.width for row in picture.rows for bar in row}
    assert widths["busy_loop (why_host)"] == pytest.approx(
        100 * MEASURED_MS["busy"] / sum(MEASURED_MS.values()), rel=0.1
    )
    assert min(widths.values()) >= 0.4


def test_without_call_stacks_there_is_no_picture():
    with open_trace(REPOSITORY / "sample_traces" / "decode_fresh.sqlite") as trace:
        assert draw_flame(trace.answer("cpu-work", group_by="stack")) is None
