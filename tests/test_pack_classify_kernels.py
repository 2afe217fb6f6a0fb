"""`classify-kernels`: against ncu's measurements of known kernels, and on planted samples."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from classified import (
    METRICS,
    PAGE,
    PERIOD,
    accepted_classes,
    add_sampled_kernel,
    add_samples,
    ask,
    classify_replayed_samples,
    classify_trace,
    format_table,
)
from opening import open_trace
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, Metric
from nsys_insight.ncu.data import NcuData

RULES = Path(__file__).parents[1] / "queries" / "catalog" / "kernel_bounds.toml"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


@pytest.fixture
def trace():
    return Trace()


def ask_one(trace, path, **params):
    (row,) = ask(trace.write(path), **params)
    return row


class TestAgainstNcu:
    """docs/evidence/classification.md shows the same, kernel by kernel."""

    def test_kernels_of_known_character_get_the_class_that_ncu_gives(self, path):
        comparisons = classify_replayed_samples(path)
        assert len(comparisons) > 60
        assert_mostly_right_and_never_confidently_wrong(comparisons)
        assert format_table(comparisons) in PAGE.read_text(encoding="utf-8")

    def test_a_real_trace_agrees_with_ncu_on_the_same_program(self, shared):
        comparisons = classify_trace(shared / "traces")
        assert len(comparisons) == 13
        assert_mostly_right_and_never_confidently_wrong(comparisons)
        assert format_table(comparisons) in PAGE.read_text(encoding="utf-8")
        (transpose,) = (row for row, _, _ in comparisons if row["family"] == "copy/cast")
        assert (transpose["bound"], transpose["confidence"]) == ("memory", "inferred")

    def test_kernels_too_short_to_be_sampled_are_inferred(self, shared):
        short = [row for row in ask(shared / "traces" / "zoo_a.25.sqlite") if row["avg_ns"] < 20_000]
        assert {row["confidence"] for row in short} == {"inferred"}


def assert_mostly_right_and_never_confidently_wrong(comparisons):
    judged_rows = [
        (row, accepted_classes(sm, memory)) for row, sm, memory in comparisons if accepted_classes(sm, memory)
    ]
    wrong = [row for row, accepted in judged_rows if row["bound"] not in accepted]
    assert len(wrong) <= 0.1 * len(judged_rows), wrong
    assert [row for row in wrong if row["evidence"] == "gpu_metrics" and row["bound"] != "unknown"] == []


BUSY = {"sms_active_pct": 99}
FULL = {"grid": (1320, 1, 1), "block": (256, 1, 1)}


FULL_AND_BUSY = FULL | BUSY
# Samples of a kernel and its launch shape; the bound, its confidence and its evidence.
DECISIONS = [
    ({**FULL_AND_BUSY, "issue_pct": 90, "dram_pct": 10}, ("compute", "high", "gpu_metrics")),
    ({**FULL_AND_BUSY, "issue_pct": 10, "tensor_pct": 85, "dram_pct": 10}, ("compute", "high", "gpu_metrics")),
    ({**FULL_AND_BUSY, "issue_pct": 10, "tensor_pct": 50, "dram_pct": 10}, ("compute", "medium", "gpu_metrics")),
    ({**FULL_AND_BUSY, "issue_pct": 10, "dram_pct": 45, "dram_write_pct": 40}, ("memory", "high", "gpu_metrics")),
    ({**FULL_AND_BUSY, "issue_pct": 10, "dram_pct": 45}, ("memory", "medium", "gpu_metrics")),
    ({**FULL_AND_BUSY, "issue_pct": 65, "dram_pct": 70}, ("balanced", "high", "gpu_metrics")),
    # With half of the issue slots busy, shared memory can be the bound. It is not measured.
    ({**FULL_AND_BUSY, "issue_pct": 50, "dram_pct": 10}, ("compute", "inferred", "launch shape")),
    ({**FULL_AND_BUSY, "issue_pct": 30, "dram_pct": 1}, ("compute", "inferred", "launch shape")),
    ({**FULL_AND_BUSY, "issue_pct": 1, "dram_pct": 30}, ("memory", "inferred", "launch shape")),
    # L1 and L2 are not sampled.
    ({**FULL_AND_BUSY, "issue_pct": 20, "dram_pct": 20}, ("memory", "inferred", "launch shape")),
    ({**FULL_AND_BUSY, "issue_pct": 50, "dram_pct": 45}, ("unknown", None, "gpu_metrics")),
    # SMs without work are a measured latency bound, and few warps are an inferred one.
    ({"grid": (20, 1, 1), "sms_active_pct": 15, "issue_pct": 5, "dram_pct": 3}, ("latency", "high", "gpu_metrics")),
    (
        {"grid": (132, 1, 1), "block": (32, 1, 1), **BUSY, "issue_pct": 15, "dram_pct": 3},
        ("latency", "inferred", "launch shape"),
    ),
]


@pytest.fixture(scope="module")
def decisions(tmp_path_factory):
    """Return the row of each case of `DECISIONS`: the kernel with its number."""
    trace = Trace()
    host = trace.thread()
    for number, (metrics, _) in enumerate(DECISIONS):
        add_sampled_kernel(trace, host, f"k{number}", **metrics)
    return {row["name"]: row for row in ask(trace.write(tmp_path_factory.mktemp("sampled") / "trace.sqlite"))}


class TestSamples:
    @pytest.mark.parametrize("number", range(len(DECISIONS)))
    def test_the_decision_tree(self, number, decisions):
        (metrics, decision), row = DECISIONS[number], decisions[f"k{number}"]
        assert (row["bound"], row["confidence"], row["evidence"]) == decision
        assert row["sm_pct"] == max(metrics["issue_pct"], metrics.get("tensor_pct", 0))
        assert row["memory_pct"] == metrics["dram_pct"] + metrics.get("dram_write_pct", 0)

    def test_a_name_breaks_a_tie_only_on_the_side_that_is_busier(self, trace, path):
        host = trace.thread()
        add_sampled_kernel(trace, host, "at::native::add_kernel", **FULL, **BUSY, issue_pct=45, dram_pct=55)
        add_sampled_kernel(trace, host, "at::native::mul_kernel", **FULL, **BUSY, issue_pct=55, dram_pct=45)
        answer = {row["name"]: (row["bound"], row["confidence"]) for row in ask(trace.write(path))}
        assert answer == {
            "at::native::add_kernel": ("memory", "inferred"), "at::native::mul_kernel": ("unknown", None)
        }  # fmt: skip

    @pytest.mark.slow
    def test_launches_are_pooled_and_a_few_samples_are_not_enough(self, trace, path):
        host = trace.thread()
        for _ in range(3):
            add_sampled_kernel(trace, host, "k", periods=1, **FULL, **BUSY, issue_pct=90)
        row = ask_one(trace, path)
        assert (row["samples"], row["bound"]) == (3, "unknown")
        row = ask_one(trace, path, min_samples=3)
        assert (row["bound"], row["sm_pct"]) == ("compute", 90)

    def test_an_interval_counts_for_the_kernel_that_fills_it_from_its_timestamp_on(self, trace, path):
        trace.thread().kernel("k", start=100_000, runs=40_000)
        for start_ns in range(0, 200_000, PERIOD):
            add_samples(trace, start_ns, issue_pct=80 if 100_000 <= start_ns < 140_000 else 7, **BUSY)
        row = ask_one(trace, path)
        assert (row["samples"], row["sm_pct"]) == (4, 80)

    def test_short_launches_back_to_back_fill_intervals_too(self, trace, path):
        host = trace.thread()
        for number in range(60):
            host.kernel("k", start=number * 1_000, runs=950)
        for start_ns in range(0, 60_000, PERIOD):
            add_samples(trace, start_ns, issue_pct=80, **BUSY)
        assert ask_one(trace, path)["samples"] == 5  # the last one's interval has no end

    @pytest.mark.slow
    @pytest.mark.parametrize("concurrent_work", ["kernel", "copy"])
    @pytest.mark.parametrize("scope", [{}, {"stream": 7}, {"nvtx": "mine"}])
    def test_concurrent_work_invalidates_a_sample_even_out_of_scope(self, trace, path, concurrent_work, scope):
        host = trace.thread()
        with host.nvtx("mine"):
            kernel = add_sampled_kernel(trace, host, "k", **FULL, **BUSY, issue_pct=90)
        if concurrent_work == "kernel":
            host.kernel("other", start=kernel["start"] + 15_000, runs=20_000, stream=13)
        else:
            host.copy("H2D", 1 << 20, runs=20_000, stream=13)
            trace.rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1].update(
                start=kernel["start"] + 15_000, end=kernel["start"] + 35_000
            )
        with open_trace(trace.write(path), **scope) as session:
            answer = {row["name"]: row for row in session.run("classify-kernels").to_dicts()}
        assert answer["k"]["samples"] == 3

    def test_two_streams_with_the_same_kernel_are_one_kernel(self, trace, path):
        host = trace.thread()
        kernel = add_sampled_kernel(trace, host, "k", **FULL, **BUSY, issue_pct=90)
        host.kernel("k", start=kernel["start"] + 10_000, runs=20_000, stream=13, **FULL)
        assert ask_one(trace, path)["samples"] == 6

    def test_each_gpu_has_its_samples(self, trace, path):
        host = trace.thread(gpus=(1, 0))
        for device, name in enumerate("ab"):
            host.kernel(name, start=0, runs=60_000, device=device)
        for start_ns in range(0, 70_000, PERIOD):
            for gpu, busy in enumerate((90, 10)):
                for metric, value in {"issue_pct": busy, "dram_pct": 100 - busy, "dram_write_pct": 0}.items():
                    trace.gpu_metric(METRICS[metric], time=start_ns, value=value, gpu=gpu)
        answer = {row["name"]: row["bound"] for row in ask(trace.write(path))}
        assert answer == {"a": "memory", "b": "compute"}

    def test_impossible_values_are_ignored(self, trace, path):
        kernel = add_sampled_kernel(trace, trace.thread(), "k", **FULL, **BUSY, issue_pct=90)
        for row in trace.rows["GPU_METRICS"]:
            if row["timestamp"] == kernel["start"]:
                row["value"] = 1_983_010_317
            elif row["timestamp"] == kernel["start"] + PERIOD:
                row["value"] = -34
        row = ask_one(trace, path)
        assert (row["samples"], row["sm_pct"]) == (4, 90)

    def test_after_a_pause_an_interval_is_no_longer_than_the_others(self, trace, path):
        host = trace.thread()
        for start_ns in (*range(0, 50_000, PERIOD), *range(500_000, 550_000, PERIOD)):
            add_samples(trace, start_ns, issue_pct=90, **BUSY)
        host.kernel("in the pause", start=60_000, runs=400_000)
        assert ask_one(trace, path)["samples"] == 0

    def test_metric_names_of_other_gpus(self, trace, path):
        host = trace.thread()
        host.kernel("k", start=0, runs=60_000)
        names = (
            "SM Instructions/SM Issue [Throughput %]",
            "SM Instructions/Tensor Active / FP16 Active [Throughput %]",
        )
        for start_ns in range(0, 70_000, PERIOD):
            for name in (
                *names,
                "DRAM Bandwidth/DRAM Read Throughput [Throughput %]",
                "DRAM Write Throughput [Throughput %]",
            ):
                trace.gpu_metric(name, time=start_ns, value=77 if "SM Issue" in name else 5)
            trace.gpu_metric("Compute Warps in Flight [Avg]", time=start_ns, value=30)
        row = ask_one(trace, path)
        assert (row["sm_pct"], row["memory_pct"], row["bound"]) == (77, 10, "compute")

    def test_without_dram_samples_prove_nothing(self, trace, path):
        host = trace.thread()
        host.kernel("k", start=0, runs=60_000, grid=(1_000, 1, 1))
        for start_ns in range(0, 70_000, PERIOD):
            trace.gpu_metric("SM Issue [Throughput %]", time=start_ns, value=90)
        assert ask_one(trace, path)["bound"] == "unknown"


class TestWithoutSamples:
    def test_shape_first_then_name(self, trace, path):
        # The names differ in their parameters only.
        cases = {
            ("k", 4_999, 1_000): ("latency", "inferred", "launch shape"),
            ("k(int)", 50_000, 52): ("latency", "inferred", "launch shape"),
            ("k(float)", 50_000, 53): ("unknown", None, None),
            ("at::native::layer_norm_kernel", 50_000, 1_000): ("memory", "inferred", "name"),
            ("layer_norm_kernel", 50_000, 1_000): ("unknown", None, None),
            ("ampere_sgemm_128x64_nn", 500_000, 132): ("compute", "inferred", "name"),
            ("ampere_sgemm_128x64_nn(int)", 50_000, 132): ("unknown", None, None),
            ("ampere_sgemm_128x64_nn(float)", 500_000, 100): ("unknown", None, None),
        }
        host = trace.thread()
        for name, duration, blocks in cases:
            host.launch(name, runs=duration, grid=(blocks, 1, 1))
        rows = {row["name"]: row for row in ask(trace.write(path))}
        for (name, *_), answer in cases.items():
            row = rows[name]
            assert (row["bound"], row["confidence"], row["evidence"]) == answer, name
            assert (row["samples"], row["sm_pct"], row["memory_pct"]) == (0, None, None)

    def test_every_name_rule_matches_its_examples(self, path):
        rules = tomllib.loads(RULES.read_text(encoding="utf-8"))["rules"]
        expected = {name: (rule["bound"], rule["because"]) for rule in rules for name in rule["examples"]}

        def classify(names):
            new_trace = Trace().gpu()
            host = new_trace.thread()
            for name in names:
                host.launch(name, runs=1_000_000, grid=(1_000, 1, 1))
            rows = ask(new_trace.write(path))
            return {row["name"]: (row["bound"], row["reason"]) for row in rows if row["bound"] != "unknown"}

        # A name says nothing of a kernel that no known library has.
        answer = classify(expected)
        pytorch_names = {f"at::native::{name}": name for name in expected.keys() - answer.keys()}
        answer |= {pytorch_names[name]: bound for name, bound in classify(pytorch_names).items()}
        assert answer == expected

    def test_a_note_says_how_to_measure(self, trace, path):
        trace.thread().launch("k")
        with open_trace(trace.write(path)) as session:
            (note,) = session.answer("classify-kernels").notes
        assert "--gpu-metrics-devices=all" in note

    def test_a_kernel_on_an_undescribed_gpu_is_still_classified(self, trace, path):
        trace.thread().launch("at::native::add_kernel", runs=50_000)
        (row,) = ask(trace.write(path, without_tables=("TARGET_INFO_GPU",)))
        assert (row["bound"], row["occupancy_pct"]) == ("memory", None)


SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


class TestNcu:
    """Measurements of ncu have precedence over everything else."""

    def ask(self, path, metrics_by_kernel):
        """Classify with ncu data for launches of 4 blocks of 128 threads: their metrics by name."""
        launches = [
            Launch("r", number, 1, "app", name, 1, 7, 0, "9.0", (4, 1, 1), (128, 1, 1),
                   {metric: Metric(value, "%") for metric, value in metrics.items()})
            for number, (name, metrics) in enumerate(metrics_by_kernel.items())
        ]  # fmt: skip
        ncu = store.write(launches, path.with_suffix(".ncu.duckdb"))
        with nsys_insight.open(path, ncu=ncu) as trace:
            return {row["name"]: row for row in trace.run("classify-kernels").to_dicts()}

    def test_it_joins_by_name_grid_and_block_for_all_spellings_of_a_name(self, trace, path):
        host = trace.thread()
        for name in ("void lib::f<(int)4>(float *)", "g(int)", "h"):
            host.launch(name, grid=(4, 1, 1))
        host.launch("h", grid=(5, 1, 1))
        metrics_by_kernel = {"void f<4>(float *)": {SM: 90, MEMORY: 30}, "g(int)": {SM: 10, MEMORY: 20}}
        answer = self.ask(trace.write(path), metrics_by_kernel)
        assert answer["void lib::f<(int)4>(float *)"]["bound"] == "compute"
        assert answer["g(int)"]["bound"] == "latency"
        assert {name: row["evidence"] for name, row in answer.items()} == {
            "void lib::f<(int)4>(float *)": "ncu",
            "g(int)": "ncu",
            "h": "launch shape",
        }

    @pytest.mark.slow
    def test_two_instances_of_a_template_are_distinguished_and_not_used_for_a_third(self, trace, path):
        host = trace.thread()
        for instance in "ABC":
            host.launch(f"void f<{instance}>(int)", grid=(4, 1, 1))
        metrics_by_kernel = {"void f<A>(int)": {SM: 90, MEMORY: 30}, "void f<B>(int)": {SM: 10, MEMORY: 80}}
        answer = self.ask(trace.write(path), metrics_by_kernel)
        assert {name[7]: (row["bound"], row["evidence"]) for name, row in answer.items()} == {
            "A": ("compute", "ncu"),
            "B": ("memory", "ncu"),
            "C": ("latency", "launch shape"),
        }

    @pytest.mark.slow
    def test_the_only_profiled_instance_is_used_for_the_others(self, trace, path):
        trace.thread().launch("void f<C>(int)", grid=(4, 1, 1))
        answer = self.ask(trace.write(path), {"void f<A>(int)": {SM: 90, MEMORY: 30}})
        assert answer["void f<C>(int)"]["evidence"] == "ncu"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("sm", "memory", "bound"),
        [
            # Evaluated from top to bottom: a difference of 20 points decides first, at any level of the two sides.
            (35, 5, "compute"),
            (5, 35, "memory"),
            (95, 65, "compute"),
            (65, 95, "memory"),
            (35, 15, "latency"),
            (39, 39, "latency"),
            (61, 61, "balanced"),
            (95, 75, "balanced"),
            (50, 50, "unknown"),
            (61, 41, "unknown"),
            (39, 59, "unknown"),
        ],
    )
    def test_the_decision_tree_is_the_same_in_both_views(self, trace, path, sm, memory, bound):
        trace.thread().launch("k", grid=(4, 1, 1))
        answer = self.ask(trace.write(path), {"k": {SM: sm, MEMORY: memory}})
        assert answer["k"]["bound"] == bound
        with NcuData(path.with_suffix(".ncu.duckdb")) as data:
            assert data.rows("SELECT bound FROM ncu_kernels") == [{"bound": bound}]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("metrics", "level"),
        [
            ({"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 75}, "DRAM"),
            (
                {
                    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 45,
                    "lts__t_sector_hit_rate.pct": 30,
                },
                "L2 misses",
            ),
            ({"l1tex__t_sector_hit_rate.pct": 5, "lts__t_sector_hit_rate.pct": 95}, "L2"),
            ({"l1tex__t_sector_hit_rate.pct": 5}, "L1"),
            ({}, None),
        ],
    )
    def test_the_memory_level_of_a_memory_bound_kernel(self, trace, path, metrics, level):
        trace.thread().launch("k", grid=(4, 1, 1))
        row = self.ask(trace.write(path), {"k": {SM: 10, MEMORY: 80, **metrics}})["k"]
        assert (row["bound"], row["memory_level"]) == ("memory", level)
        assert row["reason"].endswith(f"; bound by {level}") == (level is not None)

    def test_the_imported_zoo_has_the_classes_of_ncus_own_throughputs(self, shared):
        """The oracle is that of the samples without tolerance: the tree, evaluated from top to bottom."""
        folder = shared / "traces"
        with nsys_insight.open(folder / "zoo_a.25.sqlite", ncu=folder / "ncu" / "zoo_a.ncu.raw.csv") as session:
            rows = [row for row in session.run("classify-kernels").to_dicts() if row["evidence"] == "ncu"]
        assert len(rows) >= 13
        for row in rows:
            sm, memory = row["sm_pct"], row["memory_pct"]
            if abs(sm - memory) > 20:
                expected = "compute" if sm > memory else "memory"
            else:
                expected = "latency" if max(sm, memory) < 40 else "balanced" if min(sm, memory) > 60 else "unknown"
            assert row["bound"] == expected, row


def test_an_empty_trace_has_an_empty_answer(trace, path):
    assert ask(trace.write(path)) == []
