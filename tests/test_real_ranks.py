"""Two ranks on two GPUs: what is said of them is what the program itself measured (tests/data/ranks/README.md)."""

from __future__ import annotations

import pytest

import nsys_insight
from tests.conftest import REPOSITORY

# By events on the GPU of the rank that waits, while nsys recorded; the all-reduce itself takes 0.08 ms of it.
MEASURED_MS = {4: 12.56, 9: 13.02, 14: 13.19, 19: 12.80, 24: 12.64, 29: 12.84}


@pytest.fixture
def run():
    """Open both ranks of a variant."""
    return lambda variant: nsys_insight.open(
        [REPOSITORY / "tests" / "data" / "ranks" / f"ddp_{variant}_rank{rank}.sqlite" for rank in (0, 1)],
        use_cache=False,
    )


def test_the_late_rank_is_named_with_its_steps_and_its_place(run):
    with run("a") as trace:
        said = trace.diagnose().run.sentence
        waited = {row.step: row.waiting_ns / 1e6 for row in trace.rows("FROM rank_steps WHERE rank = 0")}
    assert said.startswith("2 ranks: rank 1 is late in 6 of 29 steps (4, 9, 14, 19, 24, 29) by 12.9 ms, and in ")
    assert ": CPU work in data; " in said
    for step, measured in MEASURED_MS.items():
        assert waited[step] == pytest.approx(measured, abs=0.6), "three more all-reduces wait a little"
    assert all(waited[step] < 2 for step in waited.keys() - MEASURED_MS.keys())


def test_a_rank_with_more_to_compute_is_no_late_host(run):
    with run("b") as trace:
        said = trace.diagnose().run.sentence
        (waited,) = trace.rows("SELECT median(waiting_ns) / 1e6 AS ms FROM rank_steps WHERE rank = 0")
    assert said.startswith("2 ranks: rank 1 is late in 29 of 29 steps by 2.52 ms: its GPU works 3.4 times as long; ")
    assert waited.ms == pytest.approx(2.66 - 0.08, abs=0.15)
