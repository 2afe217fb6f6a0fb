"""The step is what the program repeats: cut by rare work, varied, paused, in layers, on two devices."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import run
from opening import diagnose_with, evaluate_rules, open_trace
from planted_steps import plant_step
from sweeps import sweep
from synthetic import Trace

from nsys_insight.facts.loops.branches import find_branches
from nsys_insight.facts.loops.lanes import find_loops
from nsys_insight.facts.loops.nest import LoopNest
from nsys_insight.facts.steps.choice import choose_loop, judge_loop


def find_step(planted):
    """Return the chosen loop, the confidence, and when its iterations start on the host."""
    columns = planted.columns()
    classes = dict(zip(columns["token"].tolist(), columns["class"].tolist(), strict=True))
    tables = find_loops(columns, classes, process=1)
    names, values = zip(*tables["loops"].items(), strict=True)
    rows = [
        SimpleNamespace(**{name: None if value != value else value for name, value in zip(names, row, strict=True)})  # noqa: PLR0124 - NaN
        for row in zip(*(column.tolist() for column in values), strict=True)
    ]
    rows.sort(key=lambda row: (-row.gpu_share, row.loop))
    loop = choose_loop(rows, "auto")
    iterations = tables["loop_iterations"]
    starts = np.sort(iterations["host_start_ns"][iterations["loop"] == (loop and loop.loop)])
    return loop, loop and judge_loop(loop, rows), starts


def is_right(starts, planted):
    """Return whether nearly all planted steps have one start in each, and there are not many more."""
    truth = np.array(planted.starts_ns)
    per_step = np.bincount(np.searchsorted(truth, starts, side="right"), minlength=len(truth) + 1)[1:]
    return abs(len(starts) - len(truth)) <= max(1, 0.05 * len(truth)) and np.mean(per_step == 1) >= 0.9


@pytest.mark.parametrize("seeds", [range(60), *sweep([range(60, 400)])])
def test_planted_steps_are_found_and_wrong_ones_have_no_high_confidence(seeds):
    outcomes = Counter()
    wrong = []
    for seed in seeds:
        planted = plant_step(seed)
        _, confidence, starts = find_step(planted)
        right = is_right(starts, planted)
        outcomes[confidence, right] += 1
        wrong += [] if right else [(seed, planted.kind, confidence)]
    assert len(wrong) <= 0.03 * len(seeds), wrong
    assert outcomes["high", False] <= 0.01 * len(seeds), wrong
    assert outcomes["high", True] >= 0.6 * len(seeds)


CLASSES = {name: name // 10 for name in range(100)}


class TestVariants:
    @staticmethod
    def count(operations, classes=None):
        nest = LoopNest(np.array(operations), classes=classes and dict(classes))
        return [len(loop.iterations) for loop in nest.loops_of(nest.terms)]

    BODY = (10, 20, 30, 40, 50, 60)

    @pytest.mark.parametrize("period", [2, 3, 4, 8])
    def test_another_kernel_of_the_class_in_each_nth_iteration_makes_no_outer_loop(self, period):
        operations = [self.BODY[:2] + ((31,) if i % period == 1 else (30,)) + self.BODY[3:] for i in range(24)]
        (count,) = self.count(sum(operations, ()), CLASSES)
        assert count >= 23  # the first one may be cut

    def test_another_kernel_of_another_class_is_another_body(self):
        operations = [(*self.BODY[:2], 71, *self.BODY[3:]) if i % 2 else self.BODY for i in range(24)]
        assert self.count(sum(operations, ()), CLASSES) == [12]

    def test_two_kernels_in_turn_are_one_iteration(self):
        assert self.count([10, 11] * 12, CLASSES) == [12]

    def test_a_reduction_after_a_split_product_comes_and_goes(self):
        split = (10, 20, 31, 80, 40, 50, 60)
        operations = [split if i % 4 == 1 else self.BODY for i in range(24)]
        (count,) = self.count(sum(operations, ()), {**CLASSES, 80: -1})
        assert count >= 22


def train(host, *, kernels=8, reads=True):
    for kernel in range(kernels):
        host.launch(f"part_{'abcdefghij'[kernel]}(float *)", runs=30_000)
    if reads:
        host.copy("D2H", 4, runs=1_000, blocking=True)


def evaluate(host):
    for kernel in "vwxyz":
        host.launch(f"eval_{kernel}(float *)", runs=20_000)
    host.copy("D2H", 8, runs=1_000, blocking=True)


def interrupted(steps=60, after=(), pause_after=()):
    trace = Trace()
    host = trace.thread()
    for step in range(steps):
        train(host)
        host.idle(2_000)
        if step in after:
            evaluate(host)
        if step in pause_after:
            host.idle(20_000_000)
    return trace


def find_method(trace, tmp_path):
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        (row,) = opened_trace.sql("FROM step_method").to_dicts()
        row["launches"] = opened_trace.sql(
            "SELECT median(launch_calls)::BIGINT FROM steps WHERE phase = 'steady'"
        ).item()
    return row


class TestInterruptions:
    @pytest.mark.parametrize(
        "after",
        [(19, 40), (3, 11, 12, 30, 47, 51), *sweep([((14, 29, 44),), (range(14, 60, 15),), (range(19, 60, 20),)])],
    )
    def test_an_evaluation_does_not_make_or_end_a_step(self, tmp_path, after):
        method = find_method(interrupted(after=set(after)), tmp_path)
        assert (method["step_count"], method["launches"], method["unit"]) == (60, 8, "step")

    def test_interruptions_are_named_with_their_number_and_duration(self, tmp_path):
        with open_trace(interrupted(after={19, 40}).write(tmp_path / "trace.sqlite")) as trace:
            text = diagnose_with(trace).text(None)
            rows = trace.sql("SELECT operations, operation, duration_ns FROM step_interruptions").rows()
            steps = trace.sql("SELECT duration_ns FROM steps WHERE step IN (18, 19, 20)").to_series().to_list()
        assert [(operations, operation) for operations, operation, _ in rows] == [(6, "eval_z(float *)")] * 2
        assert "The steps are interrupted 2 times, for " in text
        assert "by 6 operations, mostly eval_z." in text
        assert max(steps) == pytest.approx(min(steps), rel=0.05)

    def test_a_pause_after_each_tenth_step_makes_no_longer_step(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for step in range(100):
            for _ in range(20):
                host.launch("work(float *)", runs=50_000)
            host.sync("stream").idle(20_000_000 if step % 10 == 9 else 2_000)
        method = find_method(trace, tmp_path)
        assert (method["step_count"], method["launches"], method["outlier_count"]) == (100, 20, 9)

    def test_runs_of_different_work_stay_different_loops(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for runs in (20_000, 60_000):
            for _ in range(20):
                host.launch("solve(int *)", runs=runs).launch("check(int *)", runs=runs).copy("D2H", 8, blocking=True)
            evaluate(host)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            assert [row["iterations"] for row in opened_trace.run("loops").to_dicts()] == [20, 20]

    def test_two_steps_in_one_range_are_no_outlier(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for step in range(12):
            with host.nvtx("step"):
                for _ in range(2 if step == 6 else 1):
                    train(host)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            assert opened_trace.sql("SELECT outlier_count FROM step_method").item() == 1
            assert not evaluate_rules(opened_trace, ["outlier-steps"])


class TestDoubt:
    def test_calls_of_attention_without_a_mark_are_named(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(32):
            host.launch("copy_heads(half *)", runs=200_000)
            host.launch("flash_fwd_splitkv_kernel(half *)", runs=90_000)
        host.sync("device")
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            text = diagnose_with(opened_trace).text(None)
        assert "per call of attention" in text
        assert "steps/s" not in text
        assert "no input, result or wait marks them" in text

    def test_layers_and_what_reads_the_token_are_a_step_and_no_doubt_is_left(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(10):
            host.launch("embed(half *)", runs=9_000)
            for _ in range(24):
                for kernel in ("norm", "qkv", "attention", "mlp", "add"):
                    host.launch(f"{kernel}_layer(half *)", runs=20_000)
            host.launch("head(half *)", runs=30_000).copy("D2H", 8, blocking=True)
        method = find_method(trace, tmp_path)
        assert (method["step_count"], method["doubt"], method["confidence"]) == (10, None, "high")

    def test_a_part_of_the_nest_that_is_as_likely_is_named(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(8):
            host.launch("prepare(float *)", runs=3_000)
            for _ in range(12):
                host.launch("factor(float *)", runs=30_000).launch("solve(float *)", runs=20_000)
                host.copy("D2H", 1, blocking=True)
        method = find_method(trace, tmp_path)
        assert (method["step_count"], method["confidence"]) == (8, "medium")
        assert method["doubt"] == "each has 12 iterations of loop 1.1, which may be the step"


class TestKindsOfPublicPrograms:
    def test_a_check_after_each_hundredth_sweep_leaves_a_doubt(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(30):
            for _ in range(100):
                host.launch("sweep(double *)", runs=5_000)
            host.launch("subtract(double *)", runs=4_000).launch("largest(double *)", runs=3_000)
            host.copy("D2H", 8, runs=1_000, blocking=True)
        method = find_method(trace, tmp_path)
        assert (method["step_count"], method["unit"], method["confidence"]) == (3_000, "iteration", "medium")
        assert method["doubt"] == "100 of these are in each iteration of loop 1, which may be the step"

    @pytest.mark.parametrize(("setup_ns", "steps"), [(8_000_000, 40), (40_000_000, 0)])
    def test_setup_hides_the_loop_with_most_launches_only_if_it_takes_much_longer(self, tmp_path, setup_ns, steps):
        trace = Trace()
        host = trace.thread()
        host.launch("seed_random_numbers(State *)", runs=setup_ns)
        for _ in range(40):
            host.launch("mutate(float *)", runs=60_000).launch("evaluate(float *)", runs=50_000)
            host.copy("D2H", 4, runs=1_000, blocking=True)
        assert find_method(trace, tmp_path)["step_count"] == steps

    def test_iterations_that_take_one_of_two_branches_are_one_loop(self, tmp_path):
        rng = random.Random(1)  # noqa: S311
        trace = Trace()
        host = trace.thread()
        for _ in range(200):
            host.launch("update(int *)", runs=3_000)
            for _ in range(rng.randint(2, 12)):
                host.launch("reset(int *)", runs=2_000).launch("relax(int *)", runs=9_000)
                host.copy("D2H", 4, runs=1_000, blocking=True)
            host.launch("check(int *)", runs=3_000).copy("D2H", 4, runs=1_000, blocking=True)
            for kernel in ("cycle", "flip") if rng.random() < 0.4 else ("least", "finish", "duals", "improve"):
                host.launch(f"{kernel}(float *)", runs=12_000)
        assert find_method(trace, tmp_path)["step_count"] in (199, 200)

    def test_branches_that_take_turns_are_one_body(self):
        branches = ([1, 2, 3, 4, 5], [1, 2, 3, 6, 7, 8])
        terms = np.array([name for i in range(60) for name in branches[i % 2]])
        assert find_branches(terms, np.arange(len(terms)), np.ones(len(terms), bool)) is None

    def test_a_layer_and_the_end_of_a_step_are_no_branches(self):
        terms = np.array(([1, 2, 3, 4] * 3 + [5, 6, 7]) * 20)
        assert find_branches(terms, np.arange(len(terms)), np.ones(len(terms), bool)) is None


class TestDevices:
    def test_ping_pong_between_two_devices_is_one_iteration(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(20):
            for device in (0, 1):
                host.launch("left(float *)", runs=9_000, device=device)
                host.launch("right(float *)", runs=9_000, device=device)
        method = find_method(trace, tmp_path)
        assert (method["step_count"], method["launches"]) == (20, 4)


def test_another_level_than_saved_is_no_regression(tmp_path):
    before = interrupted().write(tmp_path / "before.sqlite")
    baseline_path = tmp_path / "saved.json"
    assert run("baseline", "save", before, "-o", baseline_path).returncode == 0
    trace = Trace()
    host = trace.thread()
    for _ in range(15):
        with host.nvtx("epoch"):
            for _ in range(4):
                train(host)
    result = run("check", trace.write(tmp_path / "epochs.sqlite"), "--baseline", baseline_path)
    assert result.returncode == 2
    assert "another level than saved" in result.stderr
    assert "4 times as often" in result.stderr


@pytest.fixture(scope="module")
def without_interruptions(tmp_path_factory):
    return interrupted().write(tmp_path_factory.mktemp("steps") / "trace.sqlite")


@pytest.mark.parametrize(
    ("step", "code", "text"),
    [
        ("part_a = 1", 0, "limits met"),
        ("part_a = 4", 2, "a step is another level than in the budget: part_a runs 1 times in it, not 4"),
        ("part_z = 1", 2, "part_z runs 0 times in it, not 1"),
        ("part_a = 0", 2, "takes a number above 0"),
    ],
)
def test_a_budget_says_which_level_its_limits_are_of(tmp_path, step, code, text, without_interruptions):
    budget = tmp_path / "budget.toml"
    budget.write_text(f"[step]\n{step}\n[max]\nlaunches_per_step = 8\nsyncs_per_step = 1\n")
    result = run("check", without_interruptions, "--budget", budget)
    assert (result.returncode, text in result.stdout + result.stderr) == (code, True), result.stderr
