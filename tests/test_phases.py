"""Phases: which NVTX ranges name prefill, decode and both, and when requests get their tokens."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict

import pytest
from conftest import REPOSITORY
from opening import open_trace
from serving import LENGTHS, serve
from synthetic import Trace

import nsys_insight
from nsys_insight.compare.answer import notes
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.runs import from_json, measure, to_json
from nsys_insight.errors import UsageError
from nsys_insight.ingest.scope import Scope
from nsys_insight.session import open_strategies


@pytest.fixture(scope="module")
def served():
    return serve()


@pytest.fixture(scope="module")
def path(served, tmp_path_factory):
    return served.trace.write(tmp_path_factory.mktemp("served") / "trace.sqlite")


def group_steps(steps):
    """Group planted steps as the report does."""
    steps_by_class = defaultdict(list)
    for step in steps:
        steps_by_class[step.phase, step.batch_size, step.graph].append(step)
    return steps_by_class


def nearest_rank(values, percent):
    """Return the smallest value that this percentage of all values does not exceed, or None if it is the largest."""
    position = math.ceil(percent / 100 * len(values))
    return sorted(values)[position - 1] if position < len(values) else None


def read_values(latency):
    """Return the values of each metric in the report."""
    names = ("values_count", "min_ns", "p50_ns", "p90_ns", "p95_ns", "p99_ns", "max_ns")
    return {(row["request"], row["metric"]): tuple(row[name] for name in names) for row in latency.to_dicts()}


def calculate_values(values):
    median = sorted(values)[(len(values) - 1) // 2]
    return (len(values), min(values), median, *(nearest_rank(values, percent) for percent in (90, 95, 99)), max(values))


@pytest.mark.slow
def test_phases_of_a_planted_serving_loop(served, path):
    with open_trace(path) as trace:
        rows = trace.run("phases").to_dicts()
        planted = group_steps(served.steps)
        assert {(row["phase"], row["batch_size"], row["graph"] is not None) for row in rows} == planted.keys()
        for row in rows:
            steps = planted[row["phase"], row["batch_size"], row["graph"] is not None]
            walls = [step.end_ns - step.start_ns for step in steps]
            assert row["steps"] == len(steps)
            assert row["mean_ns"] == pytest.approx(sum(walls) / len(walls))
            assert row["max_ns"] == max(walls)
            assert row["gpu_busy_ns"] == pytest.approx(sum(step.busy_ns for step in steps) / len(steps))
            assert row["launch_calls"] == pytest.approx(sum(step.launch_calls for step in steps) / len(steps))
        together = trace.run("phases", group_by="phase").to_dicts()
        assert {row["phase"]: row["steps"] for row in together} == {
            phase: sum(step.phase == phase for step in served.steps) for phase in ("prefill", "mixed", "decode")
        }
        # The columns per phase have the same numbers, and all idle time is explained.
        budget = {row["metric"]: row for row in trace.run("per-phase").to_dicts()}
        for row in together:
            phase = row["phase"]
            assert budget["steps"][phase] == row["steps"]
            for metric, name in (
                ("wall_ns", "mean_ns"),
                ("gpu_busy_ns", "gpu_busy_ns"),
                ("launch_calls", "launch_calls"),
            ):
                assert budget[metric][phase] == pytest.approx(row[name])
            idle = sum(row[phase] for name, row in budget.items() if name.startswith("idle_"))
            assert idle == pytest.approx(budget["gpu_idle_ns"][phase])


@pytest.mark.slow
def test_latencies_equal_brute_force(served, path):
    tokens, arrivals = served.tokens, served.arrivals
    values = defaultdict(list)
    for request, times in tokens.items():
        for owner in (request, None):
            values[owner, "ttft"].append(times[0] - arrivals[request])
            values[owner, "itl"] += [later - earlier for earlier, later in itertools.pairwise(times)]
            values[owner, "e2e"].append(times[-1] - arrivals[request])
    with open_trace(path) as trace:
        assert read_values(trace.run("latency")) == {
            key: calculate_values(durations) for key, durations in values.items()
        }
        answer = trace.answer("latency")
        assert "ttft begins where a range or a mark first names the request" in answer.notes
        assert any(
            note.startswith(f"{len(LENGTHS)} requests, {sum(LENGTHS.values())} tokens in ") for note in answer.notes
        )


@pytest.mark.slow
def test_without_arrivals_the_queueing_time_is_unknown(tmp_path):
    served = serve(mark_requests=False)
    with open_trace(served.trace.write(tmp_path / "trace.sqlite")) as trace:
        rows = read_values(trace.run("latency"))
        begins = {
            request: next(s.start_ns for s in served.steps if s.end_ns == times[0])
            for request, times in served.tokens.items()
        }
        for request, times in served.tokens.items():
            (_, ttft, *_) = rows[request, "ttft"]
            assert 0 <= times[0] - begins[request] - ttft <= 200  # the prefill's range opens a little after its step
        assert (
            "ttft begins with the prefill: no range or mark names a request before it" in trace.answer("latency").notes
        )


@pytest.mark.slow
@pytest.mark.parametrize("names", ["vllm", "trt", "sglang"])
def test_step_names_of_serving_engines(names, tmp_path):
    served = serve(naming=names)
    with open_trace(served.trace.write(tmp_path / "trace.sqlite")) as trace:
        rows = trace.run("phases", group_by="phase").to_dicts()
        assert {row["phase"]: row["steps"] for row in rows} == {
            phase: sum(step.phase == phase for step in served.steps) for phase in ("prefill", "mixed", "decode")
        }
        # They name no requests, and several are decoded at a time.
        answer = trace.answer("latency")
        assert answer.rows() == []
        assert "Name them in the ranges" in answer.empty


@pytest.mark.slow
def test_a_phase_is_a_scope_of_every_report(served, path):
    decodes = [step for step in served.steps if step.phase == "decode"]
    with open_trace(path, phase="decode") as trace:
        wall = next(row for row in trace.run("per-token").to_dicts() if row["metric"] == "wall_ns")
        assert wall["total"] == sum(step.end_ns - step.start_ns for step in decodes)
        assert [row["name"] for row in trace.run("top").to_dicts()] == ["decode_kernel(float *)"]
    with open_trace(path, phase="mixed") as trace:
        counts = {row["name"]: row["calls"] for row in trace.run("top").to_dicts()}
        assert counts["prefill_kernel(float *)"] == sum(step.phase == "mixed" for step in served.steps)
    with open_trace(path, phase="prefill tokens=64 req=0") as trace:  # a range name, as for --nvtx
        assert [row["calls"] for row in trace.run("top").to_dicts()] == [1]
    with pytest.raises(UsageError, match="no NVTX ranges name a phase 'prefil'") as error:
        open_trace(path, phase="prefil").__enter__()
    assert "decode, mixed, prefill" in error.value.hint
    with pytest.raises(UsageError, match="both name ranges"):
        open_trace(path, phase="decode", nvtx="decode").__enter__()


def trace_with_ranges(*names, launches=True):
    """Return a trace with a range for each name, one after the other. In a tuple, the others are inside the first."""
    trace = Trace()
    host = trace.thread(now=10_000)

    def write(name):
        if isinstance(name, tuple):
            with host.nvtx(name[0]):
                for nested_name in name[1:]:
                    write(nested_name)
            return
        with host.nvtx(name):
            if launches:
                host.launch("work(float *)", runs=2_000)
            host.sync("stream")

    for name in names:
        write(name)
    return trace


DECODES = [f"decode_step {number}" for number in range(4)]
PHASE_CASES = {
    # A range around a prefill and its decodes is not a phase itself.
    "generation around": ([("decode", *DECODES)], {"decode": 4}),
    "iterations around": ([("iteration 1", "prefill", *DECODES)] * 2, {"prefill": 2, "decode": 8}),
    "attention inside": ([("decode bs=4", "decode_attention", "decode_attention")] * 3, {"decode": 3}),
    "steps around": (
        [("step 1", "prefill"), ("step 2", "prefill", "decode"), ("step 3", "decode")],
        {"prefill": 1, "mixed": 1, "decode": 1},
    ),
    "training": ([("step 1", "forward", "backward", "optimizer")] * 2, {"forward": 2, "backward": 2, "optimizer": 2}),
    "forward inside": ([("prefill", "forward"), ("decode", "forward")], {"prefill": 1, "decode": 1}),
    "warm-up": ([("warm-up", "prefill", "decode"), "prefill", "decode"], {"prefill": 1, "decode": 1}),
    # None of these is a phase.
    "decoder": (["decoder layer 1", "aten::forward", "mixed_precision step"], {}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", PHASE_CASES)
def test_which_range_names_are_phases(case, tmp_path):
    names, expected = PHASE_CASES[case]
    with open_trace(trace_with_ranges(*names).write(tmp_path / "trace.sqlite")) as trace:
        assert {row["phase"]: row["steps"] for row in trace.run("phases", group_by="phase").to_dicts()} == expected


@pytest.mark.slow
def test_one_sequence_at_a_time_is_a_request_without_a_name(tmp_path):
    cases = {
        # One prefill, and decodes: the batch that it began.
        "one": (["prefill", *DECODES], ["1"]),
        # The batch size is 1: each prefill begins a request; a second chunk does not.
        "said": (["prefill", "decode bs=1", "decode bs=1", "prefill", "prefill", "decode bs=1"], ["1", "2"]),
        # The number of sequences decoded after the second prefill is unknown.
        "unknown": (["prefill", "decode", "prefill", "decode"], []),
        "several": (["prefill", "decode bs=2", "prefill", "decode bs=2"], []),
        "served one by one": (
            [("request 7", "prefill", "decode", "decode"), ("request 9", "prefill", "decode")],
            ["7", "9"],
        ),
    }
    for case, (names, expected) in cases.items():
        with open_trace(trace_with_ranges(*names).write(tmp_path / f"{case}.sqlite")) as trace:
            assert [row.request for row in trace.rows("SELECT request FROM requests ORDER BY request")] == expected, (
                case
            )


def test_incomplete_requests_have_a_reason_and_no_latency(tmp_path):
    names = [
        "decode req=1",
        "prefill req=2",
        "decode req=1,2",
        "prefill req=3",
        "decode req=1,2",
        "prefill req=2",
        "decode req=2",
    ]
    with open_trace(trace_with_ranges(*names).write(tmp_path / "trace.sqlite")) as trace:
        reasons = {row.request: (row.tokens, row.reason) for row in trace.rows("FROM requests")}
        assert reasons == {
            "1": (3, "no prefill in the capture"),
            "2": (0, "prefilled again after its first decode"),
            "3": (0, "no decode in the capture"),
        }
        assert {key: row_values[0] for key, row_values in read_values(trace.run("latency")).items()} == {
            ("1", "itl"): 2,
            (None, "itl"): 2,
        }


def test_ranges_without_gpu_work_are_no_phases(tmp_path):
    with open_trace(trace_with_ranges("prefill", "decode", launches=False).write(tmp_path / "trace.sqlite")) as trace:
        assert trace.run("phases").is_empty()
        assert trace.run("latency").is_empty()
        assert "No NVTX range names a phase" in trace.answer("phases").empty


def test_if_the_host_runs_ahead_a_token_is_complete_when_the_gpu_is_done(tmp_path):
    trace = Trace()
    host = trace.thread(now=10_000)
    ends = []
    for name in ("prefill req=a", "decode req=a", "decode req=a", "decode req=a"):
        with host.nvtx(name):
            host.launch("work(float *)", runs=90_000)
        ends.append(trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["end"])
    host.sync("stream")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        times = [row.at_ns for row in session.rows("SELECT at_ns FROM token_times ORDER BY number")]
        assert times == ends
        busy = session.run("phases", group_by="phase").to_dicts()
        assert [row["gpu_busy_ns"] for row in busy] == [90_000, 90_000]


@pytest.fixture(scope="module", params=["a", "b"])
def real(request):
    folder = REPOSITORY / "tests" / "data" / "serving"
    return folder / f"serving_{request.param}.sqlite", json.loads(
        (folder / f"measured_{request.param}.json").read_text()
    )


@pytest.mark.slow
def test_latencies_of_a_real_serving_loop_are_those_that_the_program_measured(real):
    path, requests = real
    with open_trace(path) as trace:
        rows = trace.rows("SELECT * FROM token_times ORDER BY request, number")
        times_by_request = defaultdict(list)
        for row in rows:
            times_by_request[int(row.request)].append(row.at_ns)
        begins = {int(row.request): row.start_ns for row in trace.rows("FROM requests")}
        for request in requests:
            times, begin = times_by_request[request["request"]], begins[request["request"]]
            gaps = [(later - earlier) / 1e3 for earlier, later in itertools.pairwise(times)]
            assert gaps == pytest.approx(request["itl_us"], abs=20)
            assert (times[0] - begin) / 1e3 == pytest.approx(request["ttft_us"], abs=40)
        graphs = {2: path.stem.endswith("b"), 4: True}
        steps = trace.run("phases").to_dicts()
        assert {(row["phase"], row["batch_size"]) for row in steps} == {
            ("prefill", 1), ("mixed", 2), ("mixed", 4), ("decode", 2), ("decode", 4),
        }  # fmt: skip
        assert all(
            (row["graph"] is not None) == graphs[row["batch_size"]] for row in steps if row["phase"] != "prefill"
        )
        assert sum(row["steps"] for row in steps) == 52
        prompts = {row["phase"]: row["prompt_tokens"] for row in trace.run("phases", group_by="phase").to_dicts()}
        assert prompts["decode"] is None
        assert prompts["prefill"] * 2 + prompts["mixed"] * 8 == pytest.approx(
            sum((96, 160, 64)[number % 3] for number in range(10))
        )


def compare_phases(before, after):
    """Compare two traces. Return the verdicts on phases by name and metric, the notes, and the comparison."""
    runs = []
    for path in (before, after):
        with open_trace(path) as trace:
            runs.append(measure(trace))
    # A baseline is the same as the run that it was saved from.
    comparison = compare([from_json(json.loads(to_json(runs[0])), before)], runs[1:])
    verdicts = {(row.name, row.metric): row.verdict for row in comparison.rows if row.part == "phase"}
    return verdicts, list(notes(comparison)), comparison


@pytest.mark.slow
def test_one_phase_gains_at_the_cost_of_another(path, tmp_path):
    candidate_path = serve(prefill_ns=60_000, decode_ns=3_000).trace.write(tmp_path / "after.sqlite")
    verdicts, note_texts, comparison = compare_phases(path, candidate_path)
    assert {name: verdict for (name, metric), verdict in verdicts.items() if metric == "wall_ns"} == {
        "decode, batch 2": "improved",
        "decode, batch 4": "improved",
        "mixed, batch 2": "regressed",
        "mixed, batch 4": "regressed",
        "prefill, batch 1": None,  # a single step on each side
    }
    (tradeoff_note,) = [note for note in note_texts if note.startswith("one phase got faster at the cost of another: ")]
    faster, slower = tradeoff_note.split(", but ")
    assert "decode, batch 2" in faster
    assert "mixed, batch 4" in slower
    # Tokens per second follow from the mean wall time, and have the same verdict.
    wall, rate = comparison.rows[:2]
    assert (rate.metric, rate.verdict) == ("tokens_per_s", wall.verdict)
    assert rate.before == pytest.approx(1e9 / wall.before)
    assert rate.difference.low == pytest.approx(1e9 / (wall.before + wall.difference.high) - rate.before)


@pytest.mark.slow
def test_unchanged_phases_have_no_note(path, tmp_path):
    verdicts, note_texts, _ = compare_phases(path, serve().trace.shifted(5_000).write(tmp_path / "same.sqlite"))
    assert set(verdicts.values()) <= {"noise", None}
    assert not any("faster" in note or "slower" in note for note in note_texts)


@pytest.mark.slow
def test_prefills_of_other_prompts_are_not_compared(tmp_path):
    paths = []
    for tokens in (64, 640):
        trace = trace_with_ranges(*[f"prefill tokens={tokens} req={number}" for number in range(4)], *DECODES)
        paths.append(trace.write(tmp_path / f"{tokens}.sqlite"))
    verdicts, note_texts, _ = compare_phases(*paths)
    assert {name for name, _ in verdicts} == {"decode"}
    assert any("other prompts: prefill, batch 1" in note for note in note_texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["served", "decode_eager", "decode_graph_node", "decode_graph_whole"])
def test_phases_are_the_same_after_the_steps_of_the_trace_are_found(name, path, sample):
    query = "SELECT * FROM phase_steps ORDER BY phase_step"
    answers = []
    for first in ([], ["FROM steps"]):
        with nsys_insight.open(path if name == "served" else sample(name)) as trace:
            for sql in first:
                trace.sql(sql)
            answers.append(trace.sql(query).rows())
    without_steps, with_steps = answers
    assert without_steps == with_steps
    assert len(without_steps) > 3


@pytest.mark.slow
@pytest.mark.parametrize("big_bytes", [10**12, 0], ids=["in memory", "in a file"])
def test_phases_of_selected_steps_count_only_work_in_the_scope(tmp_path, monkeypatch, big_bytes):
    """The steps are found in the full trace: they have more operations than the phases in the scope."""
    monkeypatch.setattr(open_strategies, "_BIG_BYTES", big_bytes)
    trace = Trace()
    host = trace.thread(now=10_000)
    for number in range(6):
        with host.nvtx(f"decode_step {number}"):
            host.launch("work(float *)", runs=20_000, stream=7)
            host.launch("more(float *)", runs=2_000, stream=8)
            host.sync("device")
    path = trace.write(tmp_path / "t.sqlite")
    with nsys_insight.open(path, scope=Scope(steady=True, stream=8)) as session:
        kernels = session.rows("SELECT phase_step, kernels, kernel_ns FROM phase_steps ORDER BY phase_step")
    assert kernels == [(number, 1, 2_000) for number in range(6)]
