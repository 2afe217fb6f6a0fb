"""`diff`: planted changes get the right verdicts, and noise gets none."""

from __future__ import annotations

import random
from dataclasses import replace

import planted
import pytest
from opening import open_trace
from synthetic import Trace

from nsys_insight.compare import runs
from nsys_insight.compare.answer import answer, describe_decision, describe_detectable_difference, notes, tables
from nsys_insight.compare.comparison import SIGNIFICANT_VERDICTS, compare, explain_different_work
from nsys_insight.compare.kernel_identity import RunKernel as Kernel
from nsys_insight.compare.noise import Samples
from nsys_insight.compare.runs import Run
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.packs.step_options import parse_options

CHAIN = ("scale(float *)", "shift(float *)", "clamp(float *)")


def measure_decode(path, *, seed, steps=20, slow=1.0, syncs=1, fused=False, warm_up=0, jitter=0.01, registers=32):
    """Write a trace of decoded tokens whose times all vary by `jitter`, and measure it."""
    draw = random.Random(seed)  # noqa: S311

    def vary(ns):
        return round(ns * max(0.5, draw.gauss(1, jitter)))

    loop = planted.Loop(Trace(), nvtx="token #")
    for number in range(warm_up + steps):
        loop.step("warm-up" if number < warm_up else "steady")
        if number < warm_up:
            loop.malloc(1 << 20, 2_000_000)
        loop.launch("embed(float *)", vary(20_000))
        for _ in range(4):
            loop.launch("norm(float *)", vary(30_000), api=vary(4_000))
            loop.launch("gemm_64x64(float *)", vary(100_000 * slow), registers=registers)
        for name in ("fused_kernel(float *)",) if fused else CHAIN:
            loop.launch(name, vary(25_000 if fused else 20_000))
        loop.launch("argmax(float *)", vary(10_000))
        loop.copy("D2H", 8, vary(2_000))
        for _ in range(syncs):
            loop.sync(wakes=vary(5_000))
        loop.python(vary(20_000))
    planted.planted(loop.trace, loop).write(path)
    return measure_trace(path)


def measure_trace(path, **options):
    with open_trace(path) as trace:
        return runs.measure(trace, parse_options(options))


def significant_verdicts(comparison):
    return {row.name or row.metric: row.verdict for row in comparison.rows if row.verdict in SIGNIFICANT_VERDICTS}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return measure_decode(tmp_path_factory.mktemp("plain") / "before.sqlite", seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [20, 45])
@pytest.mark.parametrize("warm_up", [0, 3])
def test_different_lengths_and_warm_ups_are_noise(plain, tmp_path, steps, warm_up):
    comparison = compare([plain], [measure_decode(tmp_path / "after.sqlite", seed=2, steps=steps, warm_up=warm_up)])
    assert significant_verdicts(comparison) == {}
    assert comparison.decision == "indistinguishable"
    assert "would have been detected" in describe_detectable_difference(comparison)


@pytest.mark.slow
def test_only_the_kernel_that_got_5_percent_slower_is_detected(plain, tmp_path):
    comparison = compare([plain], [measure_decode(tmp_path / "after.sqlite", seed=2, slow=1.05)])
    slower = {row.name: row for row in comparison.rows if row.part == "kernel" and row.verdict in SIGNIFICANT_VERDICTS}
    assert {name: row.verdict for name, row in slower.items()} == {"gemm_64x64(float *)": "regressed"}
    assert slower["gemm_64x64(float *)"].delta_pct == pytest.approx(5, abs=1)
    assert comparison.decision == "revert"
    assert describe_decision(comparison).startswith("Regressed: wall")
    assert any("gemm_64x64" in note for note in notes(comparison))


@pytest.mark.slow
def test_a_faster_kernel_is_accepted_and_its_registers_are_named(plain, tmp_path):
    comparison = compare([plain], [measure_decode(tmp_path / "after.sqlite", seed=2, slow=0.8, registers=96)])
    assert comparison.decision == "accept"
    assert significant_verdicts(comparison)["gemm_64x64(float *)"] == "improved"
    assert any("gemm_64x64 32 → 96" in note for note in notes(comparison))


@pytest.mark.slow
def test_an_additional_sync_per_step_is_detected(plain, tmp_path):
    comparison = compare([plain], [measure_decode(tmp_path / "after.sqlite", seed=2, syncs=2)])
    verdicts = significant_verdicts(comparison)
    assert (verdicts["sync_calls"], verdicts["sync_points"]) == ("regressed", "regressed")
    assert not any(row.verdict in SIGNIFICANT_VERDICTS for row in comparison.rows if row.part == "kernel")
    (row,) = [row for row in comparison.rows if row.metric == "sync_points"]
    assert (row.before, row.after) == (1, 2)


@pytest.mark.slow
def test_a_fused_chain_is_paired_with_its_replacement(plain, tmp_path):
    comparison = compare([plain], [measure_decode(tmp_path / "after.sqlite", seed=2, fused=True)])
    (row,) = [row for row in comparison.rows if row.match == "guess"]
    assert row.verdict == "improved"
    assert row.calls == (3, 1)
    assert row.delta_pct == pytest.approx(100 * (25 - 60) / 60, abs=2)
    assert not any(row.verdict in ("new", "gone") for row in comparison.rows if row.part == "kernel")
    assert (significant_verdicts(comparison)["launch_calls"], significant_verdicts(comparison)["kernels"]) == (
        "improved",
        "improved",
    )


def measure_small_kernels(folder, *, seed, attention_ns, others_ns):
    """Write a trace of steps of a large kernel and six small ones, and measure it."""
    draw = random.Random(seed)  # noqa: S311
    loop = planted.Loop(Trace(), nvtx="token #")
    for _ in range(20):
        loop.step()
        loop.launch("attention(float *)", round(attention_ns * draw.gauss(1, 0.002)))
        for name in "abcdef":
            loop.launch(f"small_{name}(float *)", round(others_ns * draw.gauss(1, 0.002)))
        loop.copy("D2H", 8, 2_000)
        loop.sync()
    planted.planted(loop.trace, loop).write(folder / f"{seed}.sqlite")
    return measure_trace(folder / f"{seed}.sqlite")


@pytest.mark.slow
def test_changes_below_a_percent_of_the_step_do_not_hide_an_improvement(tmp_path):
    # Each small kernel got 10% slower: 300 ns of a step of a millisecond.
    before = measure_small_kernels(tmp_path, seed=1, attention_ns=1_000_000, others_ns=3_000)
    comparison = compare([before], [measure_small_kernels(tmp_path, seed=2, attention_ns=600_000, others_ns=3_300)])
    assert comparison.decision == "accept"
    rows = {row.name: row.verdict for row in comparison.rows if row.part == "kernel"}
    assert rows.pop("attention(float *)") == "improved"
    assert set(rows.values()) == {"negligible"}
    assert not any("slower" in note for note in notes(comparison))


@pytest.mark.slow
def test_small_kernels_that_dominate_the_step_still_regress(tmp_path):
    before = measure_small_kernels(tmp_path, seed=1, attention_ns=20_000, others_ns=30_000)
    comparison = compare([before], [measure_small_kernels(tmp_path, seed=2, attention_ns=20_000, others_ns=36_000)])
    assert {row.verdict for row in comparison.rows if (row.name or "").startswith("small")} == {"regressed"}


@pytest.mark.slow
def test_a_replacement_kernel_is_not_a_regression(tmp_path):
    # Two kernels and a pass over memory become one kernel, which takes longer than the kernel that it replaces.
    sides = []
    for names in (
        [("embed", 50_000), ("old_norm", 30_000), ("head", 50_000), ("argmax", 90_000)],
        [("embed", 50_000), ("fused_everything", 60_000), ("head", 50_000), ("argmax", 20_000)],
    ):
        loop = planted.Loop(Trace(), nvtx="token #")
        for _ in range(12):
            loop.step()
            for name, takes in names:
                loop.launch(f"{name}(float *)", takes)
            loop.copy("D2H", 8, 2_000)
            loop.sync()
        path = tmp_path / f"{names[1][0]}.sqlite"
        planted.planted(loop.trace, loop).write(path)
        sides.append(measure_trace(path))
    comparison = compare([sides[0]], [sides[1]])
    (row,) = [row for row in comparison.rows if row.match == "guess"]
    assert row.verdict == "changed"
    assert not any(row.verdict == "regressed" for row in comparison.rows if row.part == "kernel")


@pytest.mark.slow
def test_more_noise_hides_a_change(tmp_path):
    before, after = (
        measure_decode(tmp_path / f"{slow}.sqlite", seed=seed, slow=slow, jitter=0.3)
        for seed, slow in ((1, 1.0), (2, 1.05))
    )
    assert compare([before], [after]).decision == "indistinguishable"


@pytest.mark.slow
def test_exports_of_two_versions_of_nsys_do_not_differ(tmp_path):
    truth = planted.sync_bound(nvtx="token #")
    old, new = (
        measure_trace(truth.write(tmp_path / f"{version}.sqlite", version=version)) for version in ("2023.4", "2025.3")
    )
    comparison = compare([old], [new])
    assert {row.difference.delta for row in comparison.rows} == {0}
    assert significant_verdicts(comparison) == {}


@pytest.mark.slow
def test_several_runs_are_compared_by_their_spread(tmp_path):
    sides = [
        [measure_decode(tmp_path / f"{slow}{seed}.sqlite", seed=seed, steps=8, slow=slow) for seed in seeds]
        for slow, seeds in ((1.0, (1, 2, 3)), (1.3, (4, 5, 6)))
    ]
    comparison = compare(*sides)
    assert comparison.by_run
    assert comparison.decision == "revert"
    assert len(comparison.headline[0].difference.before.values) == 3
    assert any("3 runs against 3 runs" in note for note in notes(comparison))


@pytest.mark.slow
def test_at_most_one_in_twenty_random_pairs_raises_an_alarm():
    # The times of consecutive steps are correlated, kernels follow the clock, and counts are constant.
    def run(draw):
        steps, slow = 24, 0.0
        columns = {name: [] for name in ("wall_ns", "gpu_busy_ns", "idle_launch_ns", "api_ns", "gemm", "norm", "head")}
        for _ in range(steps):
            slow = 0.4 * slow + 0.92 * draw.gauss()
            kernels = [1e5 * (1 + 0.01 * draw.gauss()) for _ in range(3)]
            idle = 4e5 * (1 + 0.02 * slow)
            api = 3e5 * (1 + 0.02 * slow + 0.01 * draw.gauss())
            for column, value in zip(
                columns.values(), [sum(kernels) + idle, sum(kernels), idle, api, *kernels], strict=True
            ):
                column.append(value)
        samples = {name: Samples(tuple(values)) for name, values in columns.items()}
        names = ("gemm", "norm", "head")
        metrics = {name: value for name, value in samples.items() if name not in names}
        metrics["launch_calls"] = Samples((3.0,) * steps)
        return Run(
            "run", "step", steps, "", metrics, {name: Kernel(name, 1) for name in names},
            {name: samples[name] for name in names},
        )  # fmt: skip

    alarms = 0
    for seed in range(40):
        draw = random.Random(seed)  # noqa: S311
        comparison = compare([run(draw)], [run(draw)])
        alarms += bool(significant_verdicts(comparison)) or comparison.decision != "indistinguishable"
    assert alarms <= 2


class TestSamples:
    def test_a_trace_against_itself_is_all_noise(self, sample):
        run = measure_trace(sample("decode_eager"))
        comparison = compare([run], [run])
        assert {row.verdict for row in comparison.rows if row.name not in ("prefill", "requests")} == {"noise"}
        # There is only one prefill, so its noise is unknown.
        assert {row.verdict for row in comparison.rows if row.name == "prefill"} == {None}
        assert comparison.decision == "indistinguishable"

    @pytest.mark.slow
    def test_a_cuda_graph_removes_launches_and_keeps_kernels(self, sample):
        comparison = compare([measure_trace(sample("decode_eager"))], [measure_trace(sample("decode_graph_node"))])
        rows = {row.metric: row for row in comparison.rows if row.part == "run"}
        # One launch of the graph, and one of the sampling kernel outside it.
        assert (rows["launch_calls"].before, rows["launch_calls"].after) == (196, 2)
        assert rows["graph_launches"].after == 1
        assert rows["graph_launches"].verdict == "changed"
        assert comparison.decision == "accept"
        kernels = [row for row in comparison.rows if row.part == "kernel"]
        assert [row.verdict for row in kernels].count("gone") == 0
        # The step counter of the graph; the eager run counts on the host.
        (new,) = [row for row in kernels if row.verdict == "new"]
        assert "CUDAFunctorOnSelf_add<long>" in new.name
        assert all(row.match == "name" for row in kernels if row is not new)

    @pytest.mark.slow
    def test_the_phase_of_the_steps_lasts_as_long_as_their_ranges(self, sample):
        comparison = compare([measure_trace(sample("decode_eager"))], [measure_trace(sample("decode_graph_node"))])
        full_run, phase = (
            next(row for row in comparison.rows if (row.part, row.name, row.metric) == (*part_and_name, "wall_ns"))
            for part_and_name in (("run", None), ("phase", "decode"))
        )
        # A step lasts to the start of the next one, and so a few microseconds longer; a phase has its warm-up, too.
        assert (phase.before, phase.after) == pytest.approx((full_run.before, full_run.after), rel=0.01)

    @pytest.mark.slow
    def test_kernels_hidden_in_a_graph_are_not_gone(self, sample):
        comparison = compare([measure_trace(sample("decode_eager"))], [measure_trace(sample("decode_graph_whole"))])
        assert not any(row.part in ("kernel", "family") for row in comparison.rows)
        (row,) = [row for row in comparison.rows if row.metric == "kernels"]
        assert (row.before, row.after, row.verdict) == (196, None, None)
        assert any("--cuda-graph-trace=node" in note for note in notes(comparison))

    def test_two_captures_of_one_program_do_not_differ(self, shared):
        paths = [shared / "traces" / f"decode_eager.{version}.sqlite" for version in ("23", "25")]
        comparison = compare(*([measure_trace(path)] for path in paths))
        assert significant_verdicts(comparison) == {}

    @pytest.mark.slow
    def test_the_kernels_of_steps_add_up_to_their_budget(self, sample):
        for name in ("decode_eager", "decode_graph_node", "churn"):
            run = measure_trace(sample(name), tokens_per_step=2)
            assert sum(kernel.calls for kernel in run.kernels.values()) == pytest.approx(run.metrics["kernels"].mean)
            total = sum(samples.mean for samples in run.kernel_ns.values())
            assert total == pytest.approx(run.metrics["kernel_ns"].mean)


def test_a_saved_run_is_read_unchanged(plain, tmp_path):
    assert runs.from_json(runs.json.loads(runs.to_json(plain)), tmp_path) == plain


def test_traces_without_steps_have_no_noise_estimate(tmp_path):
    trace = Trace()
    host = trace.thread()
    for number in range(4):
        host.launch(f"k{number}")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as trace_session:
        assert runs.measure(trace_session) is None
        run = runs.measure_full_scope(trace_session)
    comparison = compare([run], [run])
    assert (run.unit, comparison.decision) == ("trace", "unknown")
    assert {row.verdict for row in comparison.rows} == {None}
    assert "give several runs" in describe_detectable_difference(comparison)


def test_without_cuda_events_there_is_nothing_to_measure(tmp_path):
    with open_trace(Trace().write(tmp_path / "nothing.sqlite")) as trace, pytest.raises(TraceError):
        runs.measure(trace)


def test_steps_and_traces_are_not_compared(plain):
    with pytest.raises(UsageError, match="per step and per trace"):
        compare([plain], [Run("whole", "trace", 1, "", {})])


def test_a_step_that_is_a_layer_is_not_compared_with_a_token(plain):
    calls = {name: Kernel(kernel.family, kernel.calls / 4) for name, kernel in plain.kernels.items()}
    with pytest.raises(UsageError, match="the same kernels run 4 times as often in a step of"):
        compare([plain], [replace(plain, kernels=calls)])


def test_work_that_is_divided_into_chunks_is_the_same_step(plain):
    names = sorted(plain.kernels)
    chunked = {
        name: Kernel(kernel.family, kernel.calls * (2 if name in names[: len(names) * 2 // 3] else 1))
        for name, kernel in plain.kernels.items()
    }
    assert explain_different_work([plain], [replace(plain, kernels=chunked)]) is None


def test_steps_without_common_kernels_are_not_compared(plain):
    with pytest.raises(UsageError, match="no kernel is in both"):
        compare([plain], [replace(plain, kernels={"solve": Kernel("other", 2.0)}, kernel_ns={})])


@pytest.mark.slow
def test_a_few_different_kernels_are_the_same_work(plain, tmp_path):
    assert explain_different_work([plain], [measure_decode(tmp_path / "after.sqlite", seed=2, fused=True)]) is None


@pytest.mark.slow
def test_the_command_compares_totals_if_steps_have_different_work(tmp_path, capsys):
    from nsys_insight.cli.main import app

    for name, layers in (("before", 8), ("after", 2)):
        loop = planted.Loop(Trace(), nvtx="token #")
        for _ in range(8):
            loop.step()
            for _ in range(layers):
                loop.launch("norm(float *)", 30_000)
                loop.launch("gemm(float *)", 90_000)
        planted.planted(loop.trace, loop).write(tmp_path / f"{name}.sqlite")
    app(["diff", str(tmp_path / "before.sqlite"), str(tmp_path / "after.sqlite"), "--no-cache"], standalone_mode=False)
    output = capsys.readouterr()
    assert "the same kernels run 4 times as often in a step of before.sqlite" in output.err
    assert "per trace" in output.out


@pytest.mark.slow
def test_the_answer_is_one_table_with_the_decision_first(plain):
    full_answer = answer(compare([plain], [plain]))
    rows = full_answer.frame().to_dicts()
    assert (rows[0]["part"], rows[0]["metric"], rows[0]["verdict"]) == ("decision", "wall_ns", "indistinguishable")
    assert [row["part"] for row in rows] == sorted(
        (row["part"] for row in rows), key=["decision", "run", "family", "kernel"].index
    )
    decision_tables = tables(compare([plain], [plain]))
    assert sum(table.row_count for table in decision_tables) == len(rows) - 1


def test_times_at_different_clocks_are_not_judged(plain):
    slower = replace(
        plain, metrics={**plain.metrics, "wall_ns": Samples(tuple(2 * n for n in plain.metrics["wall_ns"].values))}
    )
    assert compare([plain], [slower]).decision == "revert"
    throttled = compare([replace(plain, clock_hz=1.98e9)], [replace(slower, clock_hz=1.2e9)])
    assert throttled.decision == "unknown"
    assert {row.verdict for row in throttled.rows if row.metric.endswith("_ns")} == {None}
    assert any("the SMs ran at 1.98 GHz before and at 1.20 GHz after" in note for note in notes(throttled))
    similar = compare([replace(plain, clock_hz=1.98e9)], [replace(slower, clock_hz=1.97e9)])
    assert similar.decision == "revert"


def test_inputs_of_different_sizes_are_not_judged(plain):
    slower = replace(
        plain, metrics={**plain.metrics, "wall_ns": Samples(tuple(2 * n for n in plain.metrics["wall_ns"].values))}
    )

    def enlarge(names, factor=1.2):
        kernels = {
            name: replace(kernel, threads=kernel.threads * (factor if name in names else 1))
            for name, kernel in plain.kernels.items()
        }
        return replace(slower, kernels=kernels)

    names = list(plain.kernels)
    assert {kernel.threads for kernel in plain.kernels.values()} == {128}
    larger = compare([plain], [enlarge(names)])
    assert larger.decision == "unknown"
    assert not {row.verdict for row in larger.rows} & {"improved", "regressed"}
    (note,) = (note for note in notes(larger) if "inputs have different sizes" in note)
    assert "7 of 7 kernels that run equally often have 1.2 times as many threads in before.sqlite as in before" in note
    # A change of the program: of few kernels, by little, or of the kernels of a budget.
    assert compare([plain], [enlarge(names[:5])]).decision == "revert"
    assert compare([plain], [enlarge(names, 1.19)]).decision == "revert"
    assert compare([plain], [enlarge(names)], has_same_input=True).decision == "revert"
    small_runs = [
        replace(run, kernels={name: run.kernels[name] for name in names[:3]}) for run in (plain, enlarge(names))
    ]
    assert compare(small_runs[:1], small_runs[1:]).decision == "revert"


@pytest.mark.slow
def test_the_clock_of_a_run_is_that_of_its_samples(tmp_path):
    loop = planted.Loop(Trace(), nvtx="token #")
    for _ in range(8):
        loop.step()
        loop.launch("scale(float *)", 50_000)
        loop.sync()
    for time in range(0, 400_000, 10_000):
        loop.trace.gpu_metric("GPC Clock Frequency [MHz]", time=time, value=1_200_000_000)
    planted.planted(loop.trace, loop).write(tmp_path / "sampled.sqlite")
    assert measure_trace(tmp_path / "sampled.sqlite").clock_hz == 1.2e9
