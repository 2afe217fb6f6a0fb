"""A program that measured what it did while its GPU waited (tests/data/chains): the table finds each within a tenth."""

from __future__ import annotations

import lzma

import pytest
from opening import open_trace

from tests.conftest import REPOSITORY

CHAINS = REPOSITORY / "tests" / "data" / "chains"
MEASURED_MS = {"format": 6.2717, "sleep": 3.0860, "lock": 4.0329, "file": 2.4879, "busy": 4.0073, "pages": 13.7273}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Give the time a step by what the host was at, in ms, by activity and by function."""
    path = tmp_path_factory.mktemp("known") / "why_host.sqlite"
    path.write_bytes(lzma.decompress((CHAINS / "why_host.sqlite.xz").read_bytes()))
    with open_trace(path) as trace:
        answers = {by: trace.answer("cpu-work", group_by=by) for by in ("activity", "function")}
        rows = {by: {row["what"]: row["time_ns"] / 1e6 for row in answer.dicts()} for by, answer in answers.items()}
        return rows["activity"], rows["function"], answers["activity"].notes


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
    activities, functions, _ = found
    touched = {"touch_pages": functions["touch_pages (why_host)"]}
    assert sum((activities | touched)[name] for name in told) == pytest.approx(MEASURED_MS[what], rel=0.1)


def test_a_busy_loop_is_found_by_its_function(found):
    assert found[1]["busy_loop (why_host)"] == pytest.approx(MEASURED_MS["busy"], rel=0.1)


def test_all_of_it_adds_up_to_what_the_program_measured(found):
    for rows in found[:2]:
        assert sum(rows.values()) == pytest.approx(sum(MEASURED_MS.values()), rel=0.03)


def test_that_the_kernel_was_not_sampled_is_said(found):
    assert [note for note in found[2] if "in the kernel" in note]
