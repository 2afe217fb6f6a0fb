"""Captures of work that has no rows, or rows in an unusual form (tests/data/odd): what reports say about it."""

from __future__ import annotations

import lzma
import sqlite3
from typing import TYPE_CHECKING

import pytest
from command_line import run
from opening import diagnose_with, evaluate_rules, only_rules, open_trace
from synthetic import Trace

from nsys_insight.errors import TraceError
from nsys_insight.ncu import plan
from tests.conftest import REPOSITORY

MS = 1_000_000

if TYPE_CHECKING:
    from pathlib import Path

CAPTURES = REPOSITORY / "tests" / "data" / "odd"
SAMPLES = REPOSITORY / "sample_traces"


@pytest.fixture
def find(capture):
    """Give a function that evaluates rules on a capture and returns their findings by code."""

    def evaluate(name: str, *codes: str):
        with open_trace(capture(name)) as trace:
            return {finding.code: finding for finding in evaluate_rules(trace, codes).values()}

    return evaluate


def read(path: Path, query: str):
    with sqlite3.connect(path) as file:
        return file.execute(query).fetchall()


def sum_idle(path: Path) -> dict[tuple[str, str], int]:
    with open_trace(path) as trace:
        return {(row["cause"], row["host"]): row["time_ns"] for row in trace.answer("idle").dicts()}


def wait_early_in_a_gap(tmp_path, returned: int) -> Path:
    """Write a trace in which kernel b starts 1 ms after a. Its launch call returns `returned` ns after the end of a."""
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        host.launch("a", runs=MS)
        start = max(trace.stream_ends.values()) - 5_000
        host.launch("b", start=start, api=5_000 + returned, queue=MS - returned, runs=MS)
        host.sync("stream")
    return trace.write(tmp_path / "trace.sqlite")


# A graph that a kernel launches, on the device.


def test_a_wait_for_kernels_without_rows_is_no_launch(capture, find):
    path = capture("device_tail")
    kernels = read(
        path,
        """SELECT k.start, k."end", r."end" FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId) ORDER BY k.start""",
    )
    # `after` is launched before or just after `tail` ends, and starts 128 µs later: two kernels of 60 µs run.
    waits = [
        start - end
        for (_, end, _), (start, _, returned) in zip(kernels[::2], kernels[1::2], strict=True)
        if returned - end < 0.1 * (start - end)
    ]
    assert len(waits) == 19
    assert sum_idle(path)["dependency", "launched before"] == sum(waits) > 2_400_000
    assert ("launch", "launch call in progress") not in sum_idle(path)
    with open_trace(path) as trace:
        longest = trace.answer("gaps").dicts()[:20]
    assert sum(row["host"] == "launched before the gap" for row in longest) == 19
    finding = find("device_tail", "NSI106")["NSI106"]
    assert "what has no row, such as kernels that a kernel launches" in finding.evidence
    assert not find("device_tail", "NSI101", "NSI102", "NSI104")


@pytest.mark.parametrize(("returned", "is_in_time"), [(90_000, True), (200_000, False)])
def test_a_call_that_takes_much_of_a_gap_is_a_launch(returned, is_in_time, tmp_path):
    idle = sum_idle(wait_early_in_a_gap(tmp_path, returned))
    assert (("launch", "launch call in progress") not in idle) is is_in_time
    assert (("dependency", "launched before") in idle) is is_in_time


def test_a_stream_of_the_driver_has_a_large_number(capture):
    path = capture("device_forget")
    ((stream,),) = read(path, "SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE WHERE correlationId = 0")
    assert stream == 1 << 57
    with open_trace(path) as trace:
        assert stream in {row["stream_id"] for row in trace.answer("streams").dicts()}
        (loop,) = trace.answer("loops").dicts()
    # 20 launches from the host, and 20 from the device.
    assert (loop["iterations"], loop["operations"]) == (20, 3)
    with only_rules("launch-bound", "hot-kernels", "stall-place"):
        assert run("diagnose", path).returncode == 0


# A value in memory that a stream waits for.


def test_a_wait_for_a_value_is_named(capture, find):
    finding = find("flag", "NSI106")["NSI106"]
    assert "streams of the program wait for a value in memory (cuStreamWaitValue32)" in finding.evidence
    assert not find("flag", "NSI101")
    with open_trace(capture("flag")) as trace:
        notes = plan.make(trace).notes
    # ncu hung on this program.
    assert any("cuStreamWaitValue32" in note and "forever" in note for note in notes)
    with open_trace(SAMPLES / "decode_eager.sqlite") as trace:
        assert not any("forever" in note for note in plan.make(trace).notes)


# Kernels of graphs that ncu does not profile one by one.


def test_kernels_of_conditional_graphs_are_not_planned(capture):
    with open_trace(capture("while_node")) as trace, pytest.raises(TraceError, match="252 kernels of CUDA graphs"):
        plan.make(trace)


def test_other_kernels_are_planned_without_those_of_conditional_graphs(capture, tmp_path):
    path = tmp_path / "mixed.sqlite"
    path.write_bytes(capture("while_node").read_bytes())
    with sqlite3.connect(path) as file:
        # The first kernel of each launch is one outside of graphs.
        file.execute(
            """UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = NULL
            WHERE shortName = (SELECT id FROM StringIds WHERE value = 'start')"""
        )
    with open_trace(path) as trace:
        ncu_plan = plan.make(trace)
        assert {row["name"].split("(")[0] for row in ncu_plan.answer.dicts()} == {"start"}
    assert "--graph-profiling" not in ncu_plan.options
    assert any("left out: 246 kernels of CUDA graphs with conditional nodes" in note for note in ncu_plan.notes)


# Graphs that are captured and instantiated in each step.


def test_a_graph_that_is_instantiated_in_each_step_is_the_step(capture, find):
    path = capture("instantiate")
    ids = read(path, "SELECT DISTINCT graphId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    assert len(ids) == 30
    with open_trace(path) as trace:
        assert [row["iterations"] for row in trace.answer("loops").dicts()] == [30]
        steps = [step for step in trace.sql("FROM steps").to_dicts() if step["phase"] == "steady"]
    assert len(steps) == 29
    finding = find("instantiate", "NSI118")["NSI118"]
    # The 60 launch calls between the start and the end of a capture launch nothing: they build the graph.
    calls = read(
        path,
        """SELECT s.value, r.start, r."end" FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
        JOIN StringIds AS s ON s.id = r.nameId ORDER BY r.start""",
    )
    total, begin = 0, 0
    for name, start, end in calls:
        if "BeginCapture" in name:
            begin = start
        elif "EndCapture" in name:
            total += end - begin
        elif "GraphInstantiate" in name or "Destroy" in name:
            total += end - start
    assert finding.values["update_ns"] == pytest.approx(total / 30, rel=0.05)
    assert finding.values["update_ns"] > 200_000


def test_graphs_that_are_launched_once_among_others_are_no_loop(tmp_path):
    """Three graphs run once each, before one that is launched again and again: they are different operations."""
    trace = Trace()
    host = trace.thread()
    for number in (1, 2, 3, *[4] * 12):
        host.graph_launch(graph_ns=MS, graph=number)
        host.sync("stream")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        (loop,) = session.answer("loops").dicts()
    assert loop["iterations"] == 12


# The first launch of a kernel.


def test_a_first_launch_that_waits_for_another_kernel_is_no_latency(capture):
    path = capture("first")
    # The kernels of 1 µs start 4 µs after the kernel of 10 ms on another stream, 9 ms after their launch.
    rows = read(
        path,
        """SELECT k.start - r."end" FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId) WHERE k."end" - k.start < 10000""",
    )
    assert min(wait for (wait,) in rows) > 8_000_000
    with open_trace(path) as trace:
        elements = {(row["kind"], row["name"]): row for row in trace.answer("critical-path").dicts()}
    running = elements["kernel", "running(long)"]
    assert running["path_pct"] > 99
    # Without it, the step is a pause of 1 ms and the launches.
    assert 8_000_000 < running["saved_ns"] < 9_500_000
    assert elements["launch latency", None]["path_pct"] < 1


def test_a_launch_call_that_waits_is_not_preceded_by_work(capture, find):
    finding = find("stack", "NSI104")["NSI104"]
    assert "The launch calls themselves take long" in finding.action
    ((longest,),) = read(
        capture("stack"),
        """SELECT max(r."end" - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
        JOIN StringIds AS s ON s.id = r.nameId WHERE s.value LIKE 'cudaLaunchKernel%'""",
    )
    assert longest > 13_000_000


# Virtual memory.


def test_mapping_memory_is_allocation(capture, find):
    path = capture("segments")
    with open_trace(path) as trace:
        answer = trace.answer("mallocs")
        rows = {row["name"]: row for row in answer.dicts()}
    for name in ("cuMemCreate", "cuMemMap", "cuMemSetAccess"):
        ((calls, total),) = read(
            path,
            f"""SELECT count(*), sum(r."end" - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
            JOIN StringIds AS s ON s.id = r.nameId WHERE s.value GLOB '{name}*'""",
        )
        assert (rows[name]["calls"], rows[name]["total_ns"], rows[name]["memory"]) == (calls, total, "virtual")
    assert rows["cuMemSetAccess"]["size_bytes"] == 700 << 20
    assert not any("sizes are unknown" in note for note in answer.notes)
    idle = sum_idle(path)
    assert idle["allocation", "allocation"] > 10 * idle["launch", "API calls"]
    assert find("segments", "NSI701")


# Steps of several streams.


def test_steps_that_overlap_are_counted_once(tmp_path):
    """Every second kernel starts late, so iterations in launch order overlap."""
    trace = Trace()
    host = trace.thread()
    for number in range(400):
        host.launch("a", api=2_000, runs=3_000, queue=12_000 if number % 2 else 1_000, stream=20 + number % 8)
    path = trace.write(tmp_path / "trace.sqlite")
    with open_trace(path) as trace:
        steps = trace.sql("SELECT start_ns, end_ns FROM steps WHERE phase = 'steady' ORDER BY start_ns").to_dicts()
        wall = sum(row["duration_ns"] for row in trace.sql("FROM wall").to_dicts())
        stated = diagnose_with(trace).steps["steps_ns"]
    covered, latest = 0, 0
    for step in steps:
        covered += max(0, step["end_ns"] - max(step["start_ns"], latest))
        latest = max(latest, step["end_ns"])
    assert stated == covered < wall
    assert sum(step["end_ns"] - step["start_ns"] for step in steps) > 1.1 * covered


# What ncu's metrics show.


@pytest.fixture(scope="module")
def ncu_report(tmp_path_factory):
    """Return the report on kernels whose names say what limits them, by name."""
    path = tmp_path_factory.mktemp("micro") / "micro.raw.csv"
    path.write_bytes(lzma.decompress((CAPTURES / f"{path.name}.xz").read_bytes()))
    text = run("ncu", "report", path, "--limit", "0").stdout
    parts = text.split("\n\n1. ", 1)[1]
    sections, number = {}, 2
    while parts:
        section, _, parts = parts.partition(f"\n{number}. ")
        sections[section.split("\n")[0].removesuffix("()").strip()] = " ".join(section.split())
        number += 1
    return sections


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [("atomics_on_one_address", "atomics"), ("atomics_returning", "atomics"), ("reads_host", "host-memory")],
)
def test_what_warps_wait_for_is_named(ncu_report, kernel, rule):
    assert f"[{rule}]" in ncu_report[kernel]
    assert sum(f"[{rule}]" in section for section in ncu_report.values()) == (2 if rule == "atomics" else 1)


@pytest.mark.parametrize("kernel", ["atomics_returning", "reads_host", "cluster_exchange", "spins_on_flag", "sleeps"])
def test_more_loads_in_flight_do_not_help_where_warps_wait_for_something_else(ncu_report, kernel):
    assert "Keep several independent loads" not in ncu_report[kernel]
    assert "[stall-long-scoreboard]" not in ncu_report[kernel]


def test_loads_from_another_block_do_not_pass_l2(ncu_report):
    assert "memory-bound (L1)" in ncu_report["cluster_exchange"]


def test_one_warp_that_waits_for_latency_may_gain_nothing_from_coalescing(ncu_report):
    section = ncu_report["chases"]
    assert "Coalesce global access saves 0 to 100% of the kernel's time" in section
