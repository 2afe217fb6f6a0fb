"""The step without nsys: estimated from the calls of a trace, or measured; and what is left of verdicts and savings."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from statistics import fmean, median

import duckdb
import planted
import pytest
from command_line import run
from opening import diagnose_with, only_rules, open_trace
from synthetic import Trace

from nsys_insight.diagnose.evaluate import evaluate
from nsys_insight.diagnose.findings import Unprofiled, read_finding_rules
from nsys_insight.diagnose.rule_choice import RuleChoice
from nsys_insight.diagnose.unprofiled import limit_saving
from nsys_insight.errors import UsageError
from nsys_insight.model.views import create_macros
from nsys_insight.packs.notes import fill_note
from nsys_insight.packs.step_options import parse_options
from nsys_insight.paths import read_catalog, read_query

STEPS = 8
COSTS = read_catalog("profiler_costs")


def costs_of(framework, group):
    return next(row for row in COSTS["calls"] if framework in row["frameworks"] and row["call_group"] == group)


def expect(call_ns, *, step_ns, host_ns, gpu_ns, framework="cuda", group="launch"):
    """Compute the step without nsys with a plain formula: at least, likely, at most."""
    cost, shares = costs_of(framework, group), COSTS["shares"]
    left = (
        min(cost["least_ns"] / call_ns, shares["least_share"]),
        min(cost["likely_ns"] / call_ns, shares["likely_share"]),
        min(max(cost["most_ns"] / call_ns, shares["most_share"]), 1),
    )
    return [max(gpu_ns, step_ns - (1 - share) * host_ns) for share in left]


# The view, on small tables -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as database:
        create_macros(database)
        yield database


@pytest.fixture
def estimate(connection):
    """Give a function that returns the view's row for steps of 1 ms: 100 launches of 5 µs, late for 800 µs."""

    def ask(
        *, group="launch", call_ns=5_000, calls=100, step_ns=1_000_000, late_ns=800_000, communication_ns=0,
        host_ns=1_000_000, framework="cuda", backtraces=False, node_graphs=False, measured_ns=None, tokens=1, ranges=0,
    ):  # fmt: skip
        gpu_ns = step_ns - late_ns - communication_ns
        tables = {
            "steps": f"SELECT i AS step, 'steady' AS phase, 1 AS process_id, i * {step_ns} AS host_start_ns,"
            f" (i + 1) * {step_ns} AS host_end_ns, {step_ns} AS duration_ns FROM range({STEPS}) AS r(i)",
            "api_calls": f"SELECT '{group}' AS call_group, 1 AS process_id, i AS start_ns, {call_ns} AS duration_ns,"
            f" {'1' if backtraces else 'NULL'} AS callchain_id, i AS correlation_id FROM range({calls}) AS r(i)",
            "nvtx_ranges": f"SELECT 1 AS process_id, i * {step_ns // max(ranges, 1)} AS start_ns"
            f" FROM range({STEPS * ranges}) AS r(i)",
            "_traced_back_calls": "SELECT 1 AS process_id, 1 AS correlation_id WHERE false",
            "step_calls": f"SELECT i AS step, '{group}' AS call_group, {calls} AS calls, {calls * call_ns} AS time_ns"
            f" FROM range({STEPS}) AS r(i)",
            "step_budget": f"FROM (VALUES ('launch', {STEPS * late_ns}), ('gpu', {STEPS * gpu_ns}),"
            f" ('communication', {STEPS * communication_ns})) AS t(part, time_ns)",
            "_step_totals": f"SELECT true AS has_steps, {STEPS * tokens} AS units, {step_ns / tokens} AS wall_ns,"
            f" {gpu_ns / tokens}::DOUBLE AS busy_ns, {host_ns / tokens} AS host_floor_ns",
            "step_method": f"SELECT {tokens} AS tokens_per_step, {measured_ns or 'NULL'}::BIGINT AS measured_ns,"
            " NULL::VARCHAR AS unit",
            "frameworks": f"SELECT '{framework}' AS framework, true AS is_program",
            "_traced_graphs": f"SELECT 1 AS gpu_id WHERE {node_graphs}",
        }
        connection.begin()
        try:
            for name, query in tables.items():
                connection.execute(f"CREATE TABLE {name} AS {query}")
            result = connection.sql(read_query("model/steps/unprofiled_step"))
            (row,) = result.fetchall()
            connection.execute(f"CREATE TABLE unprofiled_step AS {read_query('model/steps/unprofiled_step')}")
            facts = connection.sql(read_query("model/steps/_unprofiled_source"))
            (fact_row,) = facts.fetchall()
            note = fill_note("unprofiled", dict(zip(facts.columns, fact_row, strict=True)))
            return {**dict(zip(result.columns, row, strict=True)), "note": note}
        finally:
            connection.rollback()

    return ask


def bounds(row):
    return [row["low_ns"], row["likely_ns"], row["high_ns"]]


@pytest.mark.parametrize(
    ("framework", "group", "call_ns"),
    [
        ("cuda", "launch", 3_000), ("cuda", "launch", 5_500), ("cuda", "memset", 3_000), ("cuda", "copy", 6_000),
        ("pytorch", "launch", 4_000), ("pytorch", "launch", 5_500), ("pytorch", "launch", 8_000),
    ],
)  # fmt: skip
def test_the_host_takes_the_share_of_its_calls_that_is_not_nsys(estimate, framework, group, call_ns):
    row = estimate(call_ns=call_ns, framework=framework, group=group)
    expected = expect(call_ns, step_ns=1_000_000, host_ns=1_000_000, gpu_ns=200_000, framework=framework, group=group)
    assert bounds(row) == pytest.approx(expected)
    assert (row["source"], row["bound"], row["reason"]) == ("estimated", "host", None)
    assert row["late_low_ns"] == pytest.approx(expected[0] - 200_000)


def test_what_nvtx_ranges_take_is_all_of_nsys(estimate):
    """100 ranges, each of 23% of a call of 5 µs."""
    row, without_ranges = estimate(ranges=100), estimate()
    ranges_ns = 100 * COSTS["shares"]["range_share"] * 5_000
    share = COSTS["calls"][2]["likely_ns"] / 5_000
    # The last range begins with the step after the last one.
    assert without_ranges["likely_ns"] - row["likely_ns"] == pytest.approx(share * ranges_ns, rel=0.01)
    assert row["high_ns"] == without_ranges["high_ns"]


def test_a_step_of_one_launch_has_an_estimate(estimate):
    row = estimate(calls=8, call_ns=5_000, step_ns=6_000, late_ns=5_000, host_ns=6_000)
    assert row["source"] == "estimated"
    row = estimate(calls=1, call_ns=5_000, step_ns=6_000, late_ns=5_000, host_ns=6_000)
    assert bounds(row) == pytest.approx(expect(5_000, step_ns=6_000, host_ns=6_000, gpu_ns=1_000))


def test_the_step_is_not_shorter_than_what_the_gpu_does(estimate):
    """The host is late for a tenth of the step: without nsys, the GPU is the limit."""
    row = estimate(late_ns=100_000)
    assert bounds(row) == [900_000] * 3
    assert row["bound"] == "GPU"
    assert row["late_low_ns"] == row["late_high_ns"] == 0


def test_a_step_between_both_has_no_single_bound(estimate):
    row = estimate(late_ns=400_000)
    assert bounds(row) == pytest.approx(expect(5_000, step_ns=1_000_000, host_ns=1_000_000, gpu_ns=600_000))
    assert row["low_ns"] == 600_000 < row["high_ns"]
    assert row["bound"] is None


def test_a_gpu_bound_step_takes_as_long(estimate):
    row = estimate(late_ns=0, host_ns=500_000)
    assert bounds(row) == [1_000_000] * 3
    assert row["bound"] == "GPU"
    # A cure of the GPU's work can save more than the host under nsys lets it seem.
    assert row["host_low_ns"] == pytest.approx(500_000 * COSTS["calls"][2]["least_ns"] / 5_000)


def test_times_are_per_token(estimate):
    assert bounds(estimate(tokens=4)) == pytest.approx([time / 4 for time in bounds(estimate())])


@pytest.mark.parametrize(
    ("changes", "reason", "text"),
    [
        ({"group": "graph launch"}, "graphs", "CUDA graphs launch the step"),
        ({"calls": 0}, "few launches", "a step has no launch of its own"),
        ({"calls": 20}, "other work", "most of the host's time is work other than CUDA calls, which nsys"),
        ({"backtraces": True}, "backtraces", "backtraces make calls longer"),
        ({"call_ns": 11_000}, "long calls", "11 µs per call is more than nsys explains"),
        ({"framework": "julia"}, "framework", "no program of this framework was measured"),
        ({"communication_ns": 100_000}, "other ranks", "the step waits for other ranks"),
        ({"late_ns": 0, "host_ns": 950_000}, "even", None),
        ({"late_ns": 0, "host_ns": 500_000, "node_graphs": True}, "traced graphs", None),
    ],
)
def test_there_is_no_estimate_where_the_trace_cannot_tell(estimate, changes, reason, text):
    row = estimate(**changes)
    assert bounds(row) == [None] * 3
    assert row["source"] is row["late_low_ns"] is row["late_high_ns"] is row["bound"] is None
    assert row["reason"] == reason
    # No sentence where the host is late for less than 10% of the step.
    assert row["note"] == "" if text is None else f"are shorter: {text}" in row["note"]


def test_a_measured_time_replaces_the_estimate(estimate):
    row = estimate(measured_ns=600_000)
    assert bounds(row) == [600_000] * 3
    assert row["source"] == "measured"
    assert row["late_low_ns"] == row["late_high_ns"] == 400_000
    assert row["note"] == "1 ms per step (median) under nsys; about 600 µs without (measured)"
    # Also where there is no estimate.
    assert estimate(measured_ns=600_000, group="graph launch")["source"] == "measured"


@pytest.mark.parametrize(("measured_ns", "reason"), [(1_200_000, "too long"), (100_000, "too short")])
def test_a_measured_time_of_something_else_is_not_used(estimate, measured_ns, reason):
    row = estimate(measured_ns=measured_ns)
    limits = {"too long": "longer than the step in the trace, 1 ms under", "too short": "step of the trace, 200 µs"}
    assert row["note"].startswith("--step-time is not used: ")
    assert limits[reason] in row["note"]
    assert row["source"] == "estimated"
    assert bounds(row) == bounds(estimate())
    assert row["reason"] == reason


# Traces --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def launch_bound(tmp_path_factory):
    """9 launches of 4 µs with 5 µs between them, in each step; the kernels take 2 µs."""
    return planted.launch_bound(12).write(tmp_path_factory.mktemp("unprofiled") / "trace.sqlite")


def test_the_estimate_of_a_trace_is_that_of_its_steps(launch_bound):
    with open_trace(launch_bound) as trace:
        (row,) = trace.sql("FROM unprofiled_step").rows(named=True)
    steps = planted.launch_bound(12).steps[1:-1]
    step_ns = median(step.wall_ns for step in steps)
    assert row["step_ns"] == step_ns == 81_000
    expected = expect(4_000, step_ns=81_000, host_ns=81_000, gpu_ns=81_000 - row["late_ns"])
    assert bounds(row) == pytest.approx(expected)


def test_savings_are_those_of_the_step_without_nsys(launch_bound):
    rules = RuleChoice(("launch-bound",)).filter(read_finding_rules())
    with open_trace(launch_bound) as trace:
        (row,) = trace.sql("FROM unprofiled_step").rows(named=True)
        (finding,) = evaluate(trace, rules, parse_options({"step_time_ns": 50_000}))
    late_ns, left_ns = row["late_ns"], 50_000 - (81_000 - row["late_ns"])
    assert finding.profiled_ns < late_ns
    # In a graph, kernels may be a tenth shorter.
    assert finding.recoverable_ns == pytest.approx(min(1.1 * left_ns, 50_000 - 0.9 * 9 * 2_000))
    assert 0 < finding.saving_low_ns < finding.recoverable_ns
    assert finding.wall_pct == pytest.approx(100 * finding.recoverable_ns / 50_000)


def limit(rule_name, high_ns, low_ns, *, measured_ns, wall_ns=10_000, busy_ns=2_000, late_ns=7_000, is_measured=True):
    """Return what is left of a saving in a step of 10 µs under nsys, in which the GPU works for 2."""
    (rule,) = RuleChoice((rule_name,)).filter(read_finding_rules())
    step = Unprofiled(
        source="measured" if is_measured else "estimated", step_ns=wall_ns, wall_ns=wall_ns, busy_ns=busy_ns,
        low_ns=measured_ns, likely_ns=measured_ns, high_ns=measured_ns, late_ns=late_ns,
        late_low_ns=max(measured_ns - wall_ns + late_ns, 0), late_high_ns=max(measured_ns - wall_ns + late_ns, 0),
        sentence="a time", unknown=None, misfit=None,
    )  # fmt: skip
    return limit_saving(step, rule, high_ns, low_ns)


@pytest.mark.parametrize("rule_name", ["graph-break", "scalar-read-backs", "tiny-d2d", "replaceable-construct"])
def test_a_saving_of_idle_time_loses_what_nsys_adds_to_it(rule_name):
    """A quarter of the 8 µs of idle time is left in a step of 4 µs. At most, the saving contains the GPU's 2 µs."""
    high_ns, low_ns = limit(rule_name, 9_000, 3_600, measured_ns=4_000)
    assert (high_ns, low_ns) == pytest.approx((2_000 + 7_000 / 4, 3_600 / 4))
    # All that the step does is all of it without nsys, too.
    assert limit(rule_name, 10_000, None, measured_ns=4_000) == (4_000, None)
    # Idle time is not longer than that of the step.
    assert limit(rule_name, 10_000, 9_000, measured_ns=4_000)[1] == pytest.approx(9_000 - 8_000 * 3 / 4)


def test_a_saving_of_the_gpus_work_stays():
    assert limit("fp32-gemm", 1_800, 1_500, measured_ns=4_000) == (1_800, 1_500)


def test_a_measured_step_that_takes_longer_is_of_a_slower_gpu():
    high_ns, low_ns = limit("attention-unfused", 8_000, 6_000, measured_ns=11_000, busy_ns=9_900, late_ns=50)
    assert (high_ns, low_ns) == pytest.approx((8_800, 6_000))


def test_a_graph_saves_the_gaps_and_a_part_of_the_kernels_time():
    """3 µs are left of the launches, and the GPU works for 1.8 µs at least."""
    assert limit("launch-bound", 6_500, None, measured_ns=6_000)[0] == pytest.approx(1.1 * 3_000)
    assert limit("launch-bound", 6_500, None, measured_ns=6_000, late_ns=7_900)[0] == pytest.approx(6_000 - 0.9 * 2_000)
    # If the GPU bounds the step, nothing is left; the range of an estimate is wide enough.
    assert limit("launch-bound", 6_500, None, measured_ns=3_000)[0] == 0
    assert limit("launch-bound", 6_500, None, measured_ns=6_000, is_measured=False)[0] == pytest.approx(
        6_500 * 3 / 7, rel=1e-3
    )


def test_a_verdict_that_only_nsys_creates_is_named_so(launch_bound):
    """At 22 µs, the GPU would be busy for 18 of them."""
    with only_rules():
        text = run("diagnose", str(launch_bound), "--step-time", "22us").stdout
    assert "81 µs per step under nsys; about 22 µs without (measured)" in " ".join(text.split())
    assert "Only nsys makes it launch-bound: without it, it is GPU-bound." in " ".join(text.split())
    text = run("classify", str(launch_bound), "--step-time", "22us").stderr
    assert "only nsys makes the step launch-bound: without it, it is GPU-bound" in text


def test_late_starts_under_nsys_make_no_verdict_without_it(tmp_path):
    """Each kernel runs for 5.3 µs and starts 9 µs after its launch call, so that the GPU is busy for half of a step."""
    trace = Trace()
    host = trace.thread()
    for _ in range(12):
        for name in "abcdefghi":
            host.launch(f"{name}(float *)", api=2_000, queue=9_000, runs=5_300).idle(8_000)
        host.idle(40_000)
    path = trace.write(tmp_path / "trace.sqlite")
    with only_rules():
        text = " ".join(run("diagnose", str(path), "--step-time", "90us").stdout.split())
    assert "launch-bound" in text
    assert "about 90 µs without (measured)" in text
    assert "it is GPU-bound" not in text


def test_reports_say_what_is_left_of_a_saving(launch_bound):
    notes = run("graph-candidates", str(launch_bound), "--step-time", "50us").stderr
    assert "without nsys, a graph saves " in notes
    assert "81 µs per step (median) under nsys; about 50 µs without (measured)" in notes
    assert "81 µs per step (median) under nsys; about 50 µs without" in run(
        "per-token", str(launch_bound), "--step-time", "50us"
    ).stderr  # fmt: skip
    assert "--step-time is not used: 1 ms is longer" in run(
        "per-token", str(launch_bound), "--step-time", "1ms"
    ).stderr  # fmt: skip


def test_a_step_time_needs_steps():
    with pytest.raises(UsageError, match="--step-time is the time of a step"):
        parse_options({"step_time_ns": "515us", "step_method": "count", "tokens": 8})


# Programs that were timed without nsys ------------------------------------------------------------------------------

TIMED_PROGRAMS = Path(__file__).parents[1] / "benchmarks" / "unprofiled"


def unpack(name, folder):
    path = folder / f"{name}.sqlite"
    path.write_bytes(lzma.decompress((TIMED_PROGRAMS / "traces" / f"{name}.sqlite.xz").read_bytes()))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "program", "parts", "error"),
    [
        ("H100", "cpp_20_wait", 1, 0.3), ("H100", "triton_small", 30, 0.15), ("H200", "cpp_streams", 20, 0.15),
        ("H200", "torch_decode", 1, 0.3),
    ],
)  # fmt: skip
def test_the_step_of_a_timed_program_is_in_its_range(tmp_path, machine, program, parts, error):
    """`parts` steps are found in what the program times as one."""
    times = json.loads((TIMED_PROGRAMS / "times.json").read_text())[machine][program]
    measured_ns = times["median_us"] * 1e3 / parts
    with open_trace(unpack(f"{machine.lower()}_{program}", tmp_path)) as trace:
        (row,) = trace.sql("FROM unprofiled_step").rows(named=True)
    assert row["source"] == "estimated"
    assert row["low_ns"] / 1.05 <= measured_ns <= row["high_ns"] * 1.05
    assert row["likely_ns"] == pytest.approx(measured_ns, rel=error)


@pytest.mark.slow
def test_savings_of_a_timed_program_are_at_most_its_step(tmp_path):
    """A step takes 1.13 ms without nsys, 1.85 with it; the GPU works 0.1 of them."""
    path = unpack("h200_torch_decode", tmp_path)
    text = " ".join(run("diagnose", str(path), "--step-time", "1134us").stdout.split())
    assert "1.85 ms per step under nsys; about 1.13 ms without (measured)" in text
    with open_trace(path) as trace:
        rules = RuleChoice(("launch-bound",)).filter(read_finding_rules())
        (finding,) = evaluate(trace, rules, parse_options({"step_time_ns": 1_134_000}))
    assert finding.recoverable_ns <= 1_134_000 - 100_000 < finding.profiled_ns


def test_the_headline_names_the_median_from_which_the_step_without_nsys_is_estimated(sample):
    with open_trace(sample("decode_fresh")) as trace:
        headline = diagnose_with(trace).text(width=None).splitlines()[0]
        durations = [row["duration_ns"] for row in trace.answer("steps").dicts() if row["phase"] == "steady"]
    assert f"{median(durations) / 1e6:.2f} ms per step (median) under nsys; " in headline
    assert f"{fmean(durations) / 1e6:.2f} ms" not in headline
