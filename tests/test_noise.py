"""What is noise and what is not: against series whose truth is known, and against textbook figures."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import sweep

from nsys_insight.compare.noise import Samples, differences, runs_needed, student


def related(draw, count, neighbour, spread=0.01):
    """Steps around 1 of which each is like the one before it, as an autoregressive series."""
    at, values = draw.gauss(), []
    for _ in range(count):
        at = neighbour * at + (1 - neighbour**2) ** 0.5 * draw.gauss()
        values.append(1 + spread * at)
    return tuple(values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "neighbour", "rows"),
    [(8, 0.0, 20), *sweep([(32, 0.0, 10), (200, 0.7, 5)]), (32, 0.5, 10), (3, 0.0, 20)],
)
def test_of_pairs_of_pure_noise_one_in_twenty_at_most_is_called_a_difference(steps, neighbour, rows):
    alarms = 0
    for seed in range(40):
        draw = random.Random(seed)  # noqa: S311
        pairs = [
            tuple(Samples(related(draw, steps, neighbour), independent=steps == 3) for _ in range(2))
            for _ in range(rows)
        ]
        alarms += any(difference.is_real for difference in differences(pairs))
    assert alarms <= 2


@pytest.mark.parametrize(("steps", "neighbour"), [(20, 0.0), (60, 0.5)])
def test_a_difference_of_five_standard_deviations_is_seen(steps, neighbour):
    draw = random.Random(7)  # noqa: S311
    pairs = [
        (Samples(related(draw, steps, neighbour)), Samples(tuple(1.05 * x for x in related(draw, steps, neighbour))))
        for _ in range(20)
    ]
    assert all(difference.is_real for difference in differences(pairs))


@pytest.mark.parametrize(("steps", "neighbour"), [(8, 0.0), (12, 0.5), (20, 0.7), (64, 0.9)])
def test_a_change_of_40_percent_with_a_deviation_of_4_is_seen_however_related_the_steps(steps, neighbour):
    seen = []
    for seed in range(10):
        draw = random.Random(seed)  # noqa: S311
        pairs = [
            (
                Samples(related(draw, steps, neighbour, 0.04)),
                Samples(tuple(1.4 * x for x in related(draw, steps, neighbour, 0.04))),
            )
            for _ in range(20)
        ]
        seen += [difference.is_real for difference in differences(pairs)]
    assert sum(seen) >= 0.99 * len(seen)


def test_what_is_less_than_a_standard_deviation_is_noise_however_many_the_steps():
    draw = random.Random(3)  # noqa: S311
    before, after = related(draw, 2000, 0.0), tuple(x + 0.005 for x in related(draw, 2000, 0.0))
    (found,) = differences([(Samples(before), Samples(after))])
    assert found.low > 0
    assert not found.is_real
    assert runs_needed(found) >= 3


def test_counts_that_never_vary_differ_by_one():
    (same, more) = differences([(Samples((2,) * 9), Samples((2,) * 7)), (Samples((2,) * 9), Samples((3,) * 7))])
    assert (same.is_real, more.is_real) == (False, True)
    assert (more.low, more.high) == (1, 1)


def test_one_measurement_of_each_has_no_interval():
    (found,) = differences([(Samples((1.0,)), Samples((2.0,)))])
    assert (found.delta, found.low, found.is_real) == (1, None, False)
    assert runs_needed(found) is None


def test_what_one_side_lacks_has_no_difference():
    (found,) = differences([(None, Samples((2.0, 2.0)))])
    assert (found.delta, found.low, found.is_real) == (None, None, False)


# Tables of Student's t: of a probability of 2.5 % and 0.5 % on one side.
@pytest.mark.parametrize(
    ("freedom", "two", "half"),
    [(1, 12.706, 63.657), (2, 4.303, 9.925), (5, 2.571, 4.032), (10, 2.228, 3.169), (30, 2.042, 2.750)],
)
def test_students_t_is_that_of_the_tables(freedom, two, half):
    assert student(0.025, freedom) == pytest.approx(two, rel=0.01)
    assert student(0.005, freedom) == pytest.approx(half, rel=0.02)


@given(st.lists(st.floats(1, 1e9), min_size=2, max_size=60), st.floats(0.1, 1e3))
def test_mean_and_deviation_are_the_plain_ones_and_blocks_hold_all_values(values, scale):
    samples = Samples(tuple(values))
    assert samples.mean == pytest.approx(sum(values) / len(values))
    assert samples.stddev == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert min(values) - 1e-6 <= min(samples.blocks) <= max(samples.blocks) <= max(values) * (1 + 1e-9)
    # Another unit changes nothing.
    scaled = Samples(tuple(scale * value for value in values))
    one, other = differences([(samples, samples.plus(samples))]), differences([(scaled, scaled.plus(scaled))])
    assert other[0].high == pytest.approx(scale * one[0].high, rel=1e-6, abs=1e-6 * scale)
