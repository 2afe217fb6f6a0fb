"""Verdicts of `bench` on planted series: error rates, detected changes, and disturbances of a measurement."""

from __future__ import annotations

import math
import random
from itertools import combinations, product
from statistics import fmean, median

import pytest

from nsys_insight.bench import statistics
from nsys_insight.bench.result import Series
from nsys_insight.bench.statistics import describe_spread, estimate_drift_pct
from nsys_insight.bench.verdict import estimate_change, judge_metric
from nsys_insight.compare.verdict import decide


class TestRanks:
    """Compare the intervals with a count of all cases."""

    @pytest.mark.parametrize("count", [6, 7, 9])
    def test_the_interval_of_one_sample_is_that_of_all_signs(self, count):
        draw = random.Random(count)  # noqa: S311
        values = [draw.gauss(3) for _ in range(count)]
        interval = statistics.estimate_center(values)
        means = sorted((first + second) / 2 for index, first in enumerate(values) for second in values[index:])
        assert interval.estimate == pytest.approx(median(means))

        def p_value(middle):
            """Return the probability of a rank sum at least as extreme as the observed one, for this middle."""
            ordered = sorted((value - middle for value in values), key=abs)
            observed_sum = sum(rank for rank, value in enumerate(ordered, 1) if value > 0)
            sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=count)]
            return 2 * min(sum(n <= observed_sum for n in sums), sum(n >= observed_sum for n in sums)) / 2**count

        assert p_value(interval.low - 1e-9) <= 0.05 < p_value(interval.low + 1e-9)
        assert p_value(interval.high + 1e-9) <= 0.05 < p_value(interval.high - 1e-9)

    def test_the_interval_of_two_samples_is_that_of_all_splits(self):
        draw = random.Random(1)  # noqa: S311
        old, new = ([draw.gauss(middle) for _ in range(6)] for middle in (0, 1))
        interval = statistics.estimate_shift(old, new)
        wins = sorted(
            sum(first > second for first in first_group for second in set(range(12)) - set(first_group))
            for first_group in combinations(range(12), 6)
        )

        def p_value(shift):
            observed_wins = sum(later - shift > earlier for later in new for earlier in old)
            return (
                2
                * min(sum(win <= observed_wins for win in wins), sum(win >= observed_wins for win in wins))
                / len(wins)
            )

        assert p_value(interval.low - 1e-9) <= 0.05 < p_value(interval.low + 1e-9)
        assert interval.estimate == pytest.approx(median(later - earlier for later in new for earlier in old))

    def test_five_values_have_no_interval_and_six_have_one(self):
        assert math.isinf(statistics.estimate_center([1, 2, 3, 4, 5]).half_width)
        assert statistics.estimate_center([1.0] * 6) == statistics.Interval(1, 1, 1)
        # For large samples the normal distribution is used; the interval changes little.
        draw = random.Random(2)  # noqa: S311
        old, new = ([draw.gauss() for _ in range(51)] for _ in range(2))
        assert statistics.estimate_shift(old, new).half_width == pytest.approx(
            statistics.estimate_shift(old[:49], new[:49]).half_width, rel=0.2
        )


def planted(seed, kind, noise, effect, *, count=14, turns=True):
    """Return two series of times with the disturbances of a machine. The second is shorter by `effect`."""
    draw = random.Random(seed)  # noqa: S311
    sides = ([], [])
    for index, side in [(index, side) for index in range(count) for side in (0, 1)]:
        # With turns the order alternates; without, the second series begins after the first.
        time = (
            (2 * index + (side if index % 2 == 0 else 1 - side)) / (2 * count) if turns else (index / count + side) / 2
        )
        value = 100 * (1 - effect * side) * (1 + noise * draw.gauss())
        value *= {
            "drift": 1 + 0.04 * time, "warming": 1.04 - 0.04 * math.exp(-4 * time),
            "bimodal": 1.04 if draw.random() < 0.4 else 1.0, "outlier": 1.6 if (index, side) == (3, 1) else 1.0,
        }.get(kind, 1.0)  # fmt: skip
        sides[side].append(value)
    return [Series("step", "ms", "lower", tuple(values)) for values in sides]


def decide_by(change, *, tests_passed=True):
    return decide([(change.verdict, change.change_pct)], tests_passed=tests_passed)


def decisions(kind, noise, effect, count=60, **options):
    return [
        decide_by(judge_metric(*planted(seed, kind, noise, effect, **options), turns=options.get("turns", True)))
        for seed in range(count)
    ]


KINDS = ["plain", "drift", "warming", "bimodal", "outlier"]


class TestVerdicts:
    @pytest.mark.slow
    @pytest.mark.parametrize("turns", [True, False])
    @pytest.mark.parametrize("kind", KINDS)
    def test_less_than_one_in_twenty_changes_without_effect_is_accepted(self, kind, turns):
        words = [word for noise in (0.005, 0.02, 0.04, 0.1) for word in decisions(kind, noise, 0, turns=turns)]
        assert words.count("accept") < 0.02 * len(words)
        assert words.count("accept") + words.count("small") + words.count("revert") <= 0.05 * len(words)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_gain_of_one_percent_is_not_accepted(self, kind):
        words = [word for noise in (0.005, 0.02, 0.04) for word in decisions(kind, noise, 0.01)]
        assert words.count("accept") <= 0.05 * len(words)
        assert words.count("revert") <= 0.02 * len(words)

    @pytest.mark.slow
    @pytest.mark.parametrize(("kind", "noise"), [("plain", 0.005), ("plain", 0.02), ("drift", 0.02), ("warming", 0.02)])
    def test_a_gain_of_ten_percent_is_accepted_and_a_loss_reverted(self, kind, noise):
        assert set(decisions(kind, noise, 0.10)) == {"accept"}
        assert set(decisions(kind, noise, -0.10)) == {"revert"}

    def test_three_percent_in_noise_of_half_a_percent_are_detected(self):
        assert set(decisions("plain", 0.005, 0.03)) == {"accept", "small"}
        assert set(decisions("plain", 0.005, -0.03)) == {"revert"}

    def test_noise_of_ten_percent_has_no_verdict(self):
        assert set(decisions("plain", 0.1, 0.1)) == {"refused"}

    def test_an_outlier_is_named_and_refused(self):
        verdict = judge_metric(*planted(0, "outlier", 0.005, 0.1), turns=True)
        assert verdict.verdict == "refused"
        assert "repetition 4 is an outlier" in verdict.reason

    def test_the_decision_rule(self):
        before = Series("rate", "tok/s", "higher", tuple(100 + index / 10 for index in range(10)))

        def after(factor, better="higher"):
            return Series("rate", "tok/s", better, tuple(factor * value for value in before.values))

        for factor, tests, word in (
            (1.10, True, "accept"), (1.10, None, "unchecked"), (1.10, False, "revert"), (1.02, True, "small"),
            (0.98, True, "revert"), (1.0, True, "indistinguishable"), (1.0, False, "revert"),
        ):  # fmt: skip
            assert decide_by(judge_metric(before, after(factor), turns=True), tests_passed=tests) == word
        assert decide_by(judge_metric(before, after(1.1, None), turns=True)) == "unknown"
        short_series = [Series("rate", "", "higher", series.values[:5]) for series in (before, after(1.1))]
        assert judge_metric(*short_series, turns=True).verdict == "unknown"

    def test_negative_values_and_zeros_have_a_change_too(self):
        assert estimate_change([-10.0] * 6, [-5.0] * 6, turns=True).estimate == 0.5
        assert estimate_change([0.0] * 6, [0.0] * 6, turns=True) is None


class TestSpread:
    def test_the_cause_of_a_spread_is_named(self):
        draw = random.Random(4)  # noqa: S311
        calm = [100 + draw.gauss(0, 0.5) for _ in range(20)]
        assert describe_spread(calm).causes == ()
        drifting = [value * (1 + index / 100) for index, value in enumerate(calm)]
        (cause,) = describe_spread(drifting).causes
        assert cause.startswith("drift: +17.")
        (cause,) = describe_spread([*calm[:7], 140.0, *calm[7:]]).causes
        assert cause.startswith("outlier: repetition 8 is an outlier; without, the coefficient of variation is 0.")
        (cause,) = describe_spread([value * (1.1 if index % 3 == 0 else 1) for index, value in enumerate(calm)]).causes
        assert cause.startswith("bimodal: 35% of the repetitions are around 110.1, the others around 100")
        clocks = [1980 - 30 * (index % 5) for index in range(20)]
        (cause,) = describe_spread(
            [value * clock / 1980 for value, clock in zip(calm, clocks, strict=True)], clocks
        ).causes
        assert cause == "clock: the SM clock was between 1860 and 1980 MHz, and the metric followed it"
        assert describe_spread(calm, clocks).causes == ()  # the clock changed, and the metric did not

    def test_noise_has_no_cause(self):
        reports = 0
        for seed in range(200):
            draw = random.Random(seed)  # noqa: S311
            reports += bool(describe_spread([100 + draw.gauss(0, 3) for _ in range(12)]).causes)
        assert reports <= 10

    def test_one_value_and_equal_ones(self):
        assert describe_spread([3.0]).cv_pct is None
        assert describe_spread([3.0] * 9).causes == ()
        assert describe_spread([3.0] * 9).cv_pct == 0
        assert describe_spread([0.0, 0.0]).cv_pct is None

    def test_the_drift_of_a_series(self):
        assert estimate_drift_pct([100 + index for index in range(11)]) == pytest.approx(
            100 * 10 / fmean(range(100, 111))
        )
