"""What `bench` says of planted series: how often it errs, what it sees, and what disturbs a measurement."""

from __future__ import annotations

import math
import random
from itertools import combinations, product
from statistics import fmean, median

import pytest

from nsys_insight.bench import statistics
from nsys_insight.bench.result import Series
from nsys_insight.bench.statistics import drift_pct_of, spread
from nsys_insight.bench.verdict import changed, decide, judge


class TestRanks:
    """Against what counting every case gives."""

    @pytest.mark.parametrize("count", [6, 7, 9])
    def test_the_interval_of_one_sample_is_what_the_signs_of_all_values_leave(self, count):
        draw = random.Random(count)  # noqa: S311
        values = [draw.gauss(3) for _ in range(count)]
        found = statistics.center(values)
        means = sorted((one + other) / 2 for at, one in enumerate(values) for other in values[at:])
        assert found.middle == pytest.approx(median(means))

        def p(middle):
            """How likely a rank sum as far out as that of these values is, were this the middle."""
            ordered = sorted((value - middle for value in values), key=abs)
            own = sum(rank for rank, value in enumerate(ordered, 1) if value > 0)
            sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=count)]
            return 2 * min(sum(one <= own for one in sums), sum(one >= own for one in sums)) / 2**count

        assert p(found.low - 1e-9) <= 0.05 < p(found.low + 1e-9)
        assert p(found.high + 1e-9) <= 0.05 < p(found.high - 1e-9)

    def test_the_interval_of_two_samples_is_what_all_ways_to_part_them_leave(self):
        draw = random.Random(1)  # noqa: S311
        old, new = ([draw.gauss(middle) for _ in range(6)] for middle in (0, 1))
        found = statistics.shift(old, new)
        wins = sorted(
            sum(one > other for one in chosen for other in set(range(12)) - set(chosen))
            for chosen in combinations(range(12), 6)
        )

        def p(shift):
            own = sum(one - shift > other for one in new for other in old)
            return 2 * min(sum(win <= own for win in wins), sum(win >= own for win in wins)) / len(wins)

        assert p(found.low - 1e-9) <= 0.05 < p(found.low + 1e-9)
        assert found.middle == pytest.approx(median(one - other for one in new for other in old))

    def test_five_values_tell_nothing_and_many_do(self):
        assert math.isinf(statistics.center([1, 2, 3, 4, 5]).reach)
        assert statistics.center([1.0] * 6) == statistics.Interval(1, 1, 1)
        # Where the normal distribution takes over, the interval goes on as it was.
        draw = random.Random(2)  # noqa: S311
        old, new = ([draw.gauss() for _ in range(51)] for _ in range(2))
        assert statistics.shift(old, new).reach == pytest.approx(statistics.shift(old[:49], new[:49]).reach, rel=0.2)


def planted(seed, kind, noise, effect, *, count=14, turns=True):
    """Two series of times of which the second is `effect` shorter, as a machine would measure them."""
    draw = random.Random(seed)  # noqa: S311
    sides = ([], [])
    for at, side in [(at, side) for at in range(count) for side in (0, 1)]:
        # In turns the order changes; apart, the second series begins when the first is over.
        time = (2 * at + (side if at % 2 == 0 else 1 - side)) / (2 * count) if turns else (at / count + side) / 2
        value = 100 * (1 - effect * side) * (1 + noise * draw.gauss())
        value *= {
            "drift": 1 + 0.04 * time, "warming": 1.04 - 0.04 * math.exp(-4 * time),
            "bimodal": 1.04 if draw.random() < 0.4 else 1.0, "outlier": 1.6 if (at, side) == (3, 1) else 1.0,
        }.get(kind, 1.0)  # fmt: skip
        sides[side].append(value)
    return [Series("step", "ms", "lower", tuple(values)) for values in sides]


def decisions(kind, noise, effect, count=60, **how):
    return [
        decide(judge(*planted(seed, kind, noise, effect, **how), turns=how.get("turns", True)), tests=True)
        for seed in range(count)
    ]


KINDS = ["plain", "drift", "warming", "bimodal", "outlier"]


class TestVerdicts:
    @pytest.mark.slow
    @pytest.mark.parametrize("turns", [True, False])
    @pytest.mark.parametrize("kind", KINDS)
    def test_of_changes_that_change_nothing_less_than_one_in_twenty_is_accepted(self, kind, turns):
        found = [word for noise in (0.005, 0.02, 0.04, 0.1) for word in decisions(kind, noise, 0, turns=turns)]
        assert found.count("accept") < 0.02 * len(found)
        assert found.count("accept") + found.count("small") + found.count("revert") <= 0.05 * len(found)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_gain_of_one_percent_is_not_accepted_as_one_of_three(self, kind):
        found = [word for noise in (0.005, 0.02, 0.04) for word in decisions(kind, noise, 0.01)]
        assert found.count("accept") <= 0.05 * len(found)
        assert found.count("revert") <= 0.02 * len(found)

    @pytest.mark.slow
    @pytest.mark.parametrize(("kind", "noise"), [("plain", 0.005), ("plain", 0.02), ("drift", 0.02), ("warming", 0.02)])
    def test_a_gain_of_ten_percent_is_accepted_and_a_loss_reverted(self, kind, noise):
        assert set(decisions(kind, noise, 0.10)) == {"accept"}
        assert set(decisions(kind, noise, -0.10)) == {"revert"}

    def test_three_percent_in_noise_of_half_a_percent_are_seen(self):
        assert set(decisions("plain", 0.005, 0.03)) == {"accept", "small"}
        assert set(decisions("plain", 0.005, -0.03)) == {"revert"}

    def test_noise_of_ten_percent_has_no_verdict(self):
        assert set(decisions("plain", 0.1, 0.1)) == {"refused"}

    def test_an_outlier_is_named_and_refused(self):
        verdict = judge(*planted(0, "outlier", 0.005, 0.1), turns=True)
        assert verdict.word == "refused"
        assert "repetition 4 is an outlier" in verdict.reason

    def test_the_rule(self):
        before = Series("rate", "tok/s", "higher", tuple(100 + at / 10 for at in range(10)))

        def after(factor, better="higher"):
            return Series("rate", "tok/s", better, tuple(factor * value for value in before.values))

        for factor, tests, word in (
            (1.10, True, "accept"), (1.10, None, "unchecked"), (1.10, False, "revert"), (1.02, True, "small"),
            (0.98, True, "revert"), (1.0, True, "indistinguishable"), (1.0, False, "revert"),
        ):  # fmt: skip
            assert decide(judge(before, after(factor), turns=True), tests=tests) == word
        assert decide(judge(before, after(1.1, None), turns=True), tests=True) == "unknown"
        few = [Series("rate", "", "higher", series.values[:5]) for series in (before, after(1.1))]
        assert judge(*few, turns=True).word == "unknown"

    def test_negative_values_and_zeros_have_a_change_too(self):
        assert changed([-10.0] * 6, [-5.0] * 6, turns=True).middle == 0.5
        assert changed([0.0] * 6, [0.0] * 6, turns=True) is None


class TestSpread:
    def test_what_a_series_looks_like_is_named(self):
        draw = random.Random(4)  # noqa: S311
        calm = [100 + draw.gauss(0, 0.5) for _ in range(20)]
        assert spread(calm).causes == ()
        drifting = [value * (1 + at / 100) for at, value in enumerate(calm)]
        (said,) = spread(drifting).causes
        assert said.startswith("drift: +17.")
        (said,) = spread([*calm[:7], 140.0, *calm[7:]]).causes
        assert said.startswith("outlier: repetition 8 is an outlier; without, the coefficient of variation is 0.")
        (said,) = spread([value * (1.1 if at % 3 == 0 else 1) for at, value in enumerate(calm)]).causes
        assert said.startswith("bimodal: 35% of the repetitions are around 110.1, the others around 100")
        clocks = [1980 - 30 * (at % 5) for at in range(20)]
        (said,) = spread([value * clock / 1980 for value, clock in zip(calm, clocks, strict=True)], clocks).causes
        assert said == "clock: the SM clock was between 1860 and 1980 MHz, and the metric followed it"
        assert spread(calm, clocks).causes == ()  # the clock moved, and the metric did not follow

    def test_nothing_is_named_of_noise(self):
        named = 0
        for seed in range(200):
            draw = random.Random(seed)  # noqa: S311
            named += bool(spread([100 + draw.gauss(0, 3) for _ in range(12)]).causes)
        assert named <= 10

    def test_one_value_and_equal_ones(self):
        assert spread([3.0]).cv_pct is None
        assert spread([3.0] * 9).causes == ()
        assert spread([3.0] * 9).cv_pct == 0
        assert spread([0.0, 0.0]).cv_pct is None

    def test_how_far_a_series_moved(self):
        assert drift_pct_of([100 + at for at in range(11)]) == pytest.approx(100 * 10 / fmean(range(100, 111)))
