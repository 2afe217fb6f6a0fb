"""The planted facts against plain sums over the written rows, and against sums by hand."""

from __future__ import annotations

from itertools import pairwise

import oracle
import planted
import pytest
from opening import planted_path


@pytest.mark.parametrize("name", planted.ALL)
def test_busy_and_gaps_add_up_to_the_wall_of_every_gpu(name):
    truth = planted.ALL[name]()
    tables = oracle.read(planted_path(name))
    first, last = oracle.wall(tables)
    for loop in truth.loops:
        pieces = sorted([*loop.busy, *((gap.start_ns, gap.end_ns) for gap in loop.gaps)])
        assert pieces[0][0] == first
        assert pieces[-1][1] == last
        assert all(end == start for (_, end), (start, _) in pairwise(pieces))
    assert oracle.busy_ns(tables) == {loop.gpu: sum(end - start for start, end in loop.busy) for loop in truth.loops}


@pytest.mark.parametrize("name", planted.ALL)
def test_the_counts_of_the_steps_are_those_of_the_trace(name):
    truth = planted.ALL[name]()
    tables = oracle.read(planted_path(name))
    steps = [step for loop in truth.loops for step in loop.steps]
    assert sum(step.counts["kernels"] for step in steps) == len(tables[oracle.KERNEL])
    for step in steps:
        assert step.busy_ns + sum(step.idle_ns.values()) == step.wall_ns


@pytest.mark.parametrize(
    ("name", "idle"),
    [
        # 9 kernels of 2 µs; from the end of one: 2 µs Python, 4 µs launch call, 1 µs on the way.
        ("launch bound", {"launch": 9 * 7_000}),
        ("deep queue", {}),
        # After the copy: 20 µs asleep, 10 µs Python, 4 + 1 µs for the launch.
        ("sync bound", {"sync": 20_000, "launch": 15_000}),
        # 16 µs before each copy, and 5 µs before the first kernel; the others are launched in time.
        ("copy bound", {"copy": 32_000, "launch": 5_000}),
        # Malloc and free take 30 µs each; then 10 times 7 µs as above, but 1 µs less Python in the last.
        ("allocating", {"allocation": 60_000, "launch": 9 * 7_000 + 6_000}),
        ("dependent", {"dependency": 6_000, "launch": 5_000}),
    ],
)
def test_the_idle_time_of_a_step(name, idle):
    step = planted.ALL[name]().steps[3]
    assert step.idle_ns == idle
