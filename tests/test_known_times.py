"""A program that measured what it did while its GPU waited (tests/data/chains): the table finds each within a tenth."""

from __future__ import annotations

import lzma

import pytest
from opening import open_trace

from nsys_insight.page.flame import flame
from tests.conftest import REPOSITORY

CHAINS = REPOSITORY / "tests" / "data" / "chains"
MEASURED_MS = {"format": 6.2717, "sleep": 3.0860, "lock": 4.0329, "file": 2.4879, "busy": 4.0073, "pages": 13.7273}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Give the time a step by what the host was at, in ms, by activity and by function."""
    path = tmp_path_factory.mktemp("known") / "why_host.sqlite"
    path.write_bytes(lzma.decompress((CHAINS / "why_host.sqlite.xz").read_bytes()))
    with open_trace(path) as trace:
        answers = {by: trace.answer("cpu-work", group_by=by) for by in ("activity", "function", "stack")}
        rows = {by: {row["what"]: row["time_ns"] / 1e6 for row in answer.dicts()} for by, answer in answers.items()}
        return rows["activity"], rows["function"], answers["activity"].notes, rows["stack"], flame(answers["stack"])


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("format", ["formatting text and numbers"]),
        ("sleep", ["OS call: usleep"]),
        ("lock", ["OS call: pthread_mutex_lock"]),
        # The wait for the disk; nsys does not trace pread in C programs.
        ("file", ["off the CPU", "reading and writing files"]),
        # New pages are made in the kernel, of which there are no samples.
        ("pages", ["not sampled", "OS call: munmap", "OS call: mmap", "touch_pages"]),
    ],
)
def test_what_the_program_measured_is_found(found, what, told):
    activities, functions, *_ = found
    touched = {"touch_pages": functions["touch_pages (why_host)"]}
    assert sum((activities | touched)[name] for name in told) == pytest.approx(MEASURED_MS[what], rel=0.1)


def test_a_busy_loop_is_found_by_its_function(found):
    assert found[1]["busy_loop (why_host)"] == pytest.approx(MEASURED_MS["busy"], rel=0.1)


def test_all_of_it_adds_up_to_what_the_program_measured(found):
    for rows in (found[0], found[1], found[3]):
        assert sum(rows.values()) == pytest.approx(sum(MEASURED_MS.values()), rel=0.03)


def test_that_the_kernel_was_not_sampled_is_said(found):
    assert [note for note in found[2] if "in the OS kernel" in note]


def test_stacks_have_the_caller_before_what_it_calls(found):
    called = [what.split(";") for what in found[3] if ";" in what]
    formatting = sum(ns for what, ns in found[3].items() if ";format_numbers (why_host);" in what)
    assert all(chain[0] == "_start (why_host)" for chain in called if "main (why_host)" in chain)
    assert formatting == pytest.approx(MEASURED_MS["format"], rel=0.1)


def test_the_picture_has_what_is_called_under_its_caller_and_nothing_overlaps(found):
    picture = found[4]
    (root,) = picture.rows[0]
    assert (root.left, root.width) == (0, 100)
    for above, row in zip(picture.rows, picture.rows[1:], strict=False):
        ordered = sorted(row, key=lambda bar: bar.left)
        ends = [bar.left + bar.width for bar in ordered]
        assert all(end <= after.left + 1e-9 for end, after in zip(ends, ordered[1:], strict=False))
        for bar in row:
            assert any(
                one.left - 1e-9 <= bar.left and bar.left + bar.width <= one.left + one.width + 1e-9 for one in above
            )
    widths = {bar.label: bar.width for row in picture.rows for bar in row}
    assert widths["busy_loop (why_host)"] == pytest.approx(
        100 * MEASURED_MS["busy"] / sum(MEASURED_MS.values()), rel=0.1
    )
    assert min(widths.values()) >= 0.4


def test_without_chains_there_is_no_picture():
    with open_trace(REPOSITORY / "sample_traces" / "decode_fresh.sqlite") as trace:
        assert flame(trace.answer("cpu-work", group_by="stack")) is None
