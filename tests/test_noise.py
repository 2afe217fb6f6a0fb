"""Noise and real differences: against series with a known difference, and against textbook figures."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import sweep

from nsys_insight.compare.noise import Samples, compute_differences, count_runs_needed, student_quantile


def correlated_series(draw, count, autocorrelation, spread=0.01):
    """Return steps around 1 that depend on the step before them: an autoregressive series."""
    value, values = draw.gauss(), []
    for _ in range(count):
        value = autocorrelation * value + (1 - autocorrelation**2) ** 0.5 * draw.gauss()
        values.append(1 + spread * value)
    return tuple(values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "autocorrelation", "rows"),
    [(8, 0.0, 20), *sweep([(32, 0.0, 10), (200, 0.7, 5)]), (32, 0.5, 10), (3, 0.0, 20)],
)
def test_at_most_one_in_twenty_comparisons_of_pure_noise_reports_a_difference(steps, autocorrelation, rows):
    alarms = 0
    for seed in range(40):
        draw = random.Random(seed)  # noqa: S311
        pairs = [
            tuple(Samples(correlated_series(draw, steps, autocorrelation), independent=steps == 3) for _ in range(2))
            for _ in range(rows)
        ]
        alarms += any(difference.is_real for difference in compute_differences(pairs))
    assert alarms <= 2


@pytest.mark.parametrize(("steps", "autocorrelation"), [(20, 0.0), (60, 0.5)])
def test_a_difference_of_five_standard_deviations_is_detected(steps, autocorrelation):
    draw = random.Random(7)  # noqa: S311
    pairs = [
        (
            Samples(correlated_series(draw, steps, autocorrelation)),
            Samples(tuple(1.05 * x for x in correlated_series(draw, steps, autocorrelation))),
        )
        for _ in range(20)
    ]
    assert all(difference.is_real for difference in compute_differences(pairs))


@pytest.mark.parametrize(("steps", "autocorrelation"), [(8, 0.0), (64, 0.9), *sweep([(12, 0.5), (20, 0.7)])])
def test_a_change_of_40_percent_with_a_deviation_of_4_is_detected_even_if_steps_are_correlated(steps, autocorrelation):
    detections = []
    for seed in range(10):
        draw = random.Random(seed)  # noqa: S311
        pairs = [
            (
                Samples(correlated_series(draw, steps, autocorrelation, 0.04)),
                Samples(tuple(1.4 * x for x in correlated_series(draw, steps, autocorrelation, 0.04))),
            )
            for _ in range(20)
        ]
        detections += [difference.is_real for difference in compute_differences(pairs)]
    assert sum(detections) >= 0.99 * len(detections)


def test_a_change_below_a_standard_deviation_is_noise_for_any_number_of_steps():
    draw = random.Random(3)  # noqa: S311
    before, after = correlated_series(draw, 2000, 0.0), tuple(x + 0.005 for x in correlated_series(draw, 2000, 0.0))
    (difference,) = compute_differences([(Samples(before), Samples(after))])
    assert difference.low > 0
    assert not difference.is_real
    assert count_runs_needed(difference) >= 3


def test_five_steps_show_that_a_program_became_seven_times_as_fast():
    before, after = Samples((38.1, 37.9, 36.8, 35.2, 34.6)), Samples((5.0, 5.1, 5.2, 5.9, 5.3))
    (difference,) = compute_differences([(before, after)])
    assert difference.is_real
    assert -before.mean <= difference.low < difference.delta < difference.high < -25


def test_a_quantity_that_is_never_negative_cannot_fall_by_more_than_it_is():
    (positive, signed) = compute_differences(
        [(Samples((9.0, 1.0)), Samples((0.5, 0.6))), (Samples((9.0, -1.0)), Samples((0.5, 0.6)))]
    )
    assert positive.low == -5
    assert signed.low < -4


def test_counts_that_never_vary_differ_by_one():
    (equal_counts, larger_counts) = compute_differences(
        [(Samples((2,) * 9), Samples((2,) * 7)), (Samples((2,) * 9), Samples((3,) * 7))]
    )
    assert (equal_counts.is_real, larger_counts.is_real) == (False, True)
    assert (larger_counts.low, larger_counts.high) == (1, 1)


def test_one_measurement_of_each_has_no_interval():
    (difference,) = compute_differences([(Samples((1.0,)), Samples((2.0,)))])
    assert (difference.delta, difference.low, difference.is_real) == (1, None, False)
    assert count_runs_needed(difference) is None


def test_a_value_that_one_side_lacks_has_no_difference():
    (difference,) = compute_differences([(None, Samples((2.0, 2.0)))])
    assert (difference.delta, difference.low, difference.is_real) == (None, None, False)


# Tables of Student's t: of a probability of 2.5% and 0.5% on one side.
@pytest.mark.parametrize(
    ("freedom", "two", "half"),
    [(1, 12.706, 63.657), (2, 4.303, 9.925), (5, 2.571, 4.032), (10, 2.228, 3.169), (30, 2.042, 2.750)],
)
def test_students_t_is_that_of_the_tables(freedom, two, half):
    assert student_quantile(0.025, freedom) == pytest.approx(two, rel=0.01)
    assert student_quantile(0.005, freedom) == pytest.approx(half, rel=0.02)


@given(st.lists(st.floats(1, 1e9), min_size=2, max_size=60), st.floats(0.1, 1e3))
def test_mean_and_deviation_equal_the_textbook_formulas_and_blocks_cover_all_values(values, scale):
    samples = Samples(tuple(values))
    assert samples.mean == pytest.approx(sum(values) / len(values))
    assert samples.stddev == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert min(values) - 1e-6 <= min(samples.blocks) <= max(samples.blocks) <= max(values) * (1 + 1e-9)
    # Another unit changes nothing.
    scaled = Samples(tuple(scale * value for value in values))
    differences, scaled_differences = (
        compute_differences([(samples, samples.add(samples))]),
        compute_differences([(scaled, scaled.add(scaled))]),
    )
    assert scaled_differences[0].high == pytest.approx(scale * differences[0].high, rel=1e-6, abs=1e-6 * scale)
