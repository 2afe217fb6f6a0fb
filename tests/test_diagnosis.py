"""`diagnose`: each finding fires on what was planted, with its numbers, and is silent where nothing is wrong."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

import many_traces
import oracle
import planted
import pytest
from ailments import AILING, BF16, CURED, FAMILIES, LARGE, check_finding, graph_updates, run_steps
from hypothesis import HealthCheck, given, settings
from opening import diagnose_with, evaluate_rules, open_trace, planted_path
from pipeline_traces import PipelineRun
from planted import Loop
from rank_traces import Run
from strategies import traces as random_traces
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight.diagnose.findings import list_reports, read_finding_rules
from nsys_insight.diagnose.ranking import rank
from nsys_insight.diagnose.text import write_markdown
from nsys_insight.model import views
from nsys_insight.packs import library, step_options
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.sql import names, parameters

SAMPLES = ("churn", "decode_eager", "decode_graph_node", "decode_graph_whole")
RULES = {rule.name: rule for rule in read_finding_rules()}


# Loops with one problem each, in addition to those of `planted` ------------------------------------------------------


def busy_loop(body, steps=8):
    """Give a loop whose GPU always has work; `body` adds to each step."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(steps):
        loop.step()
        planted.layers(loop, 50_000, think=0)
        body(loop)
    loop.sync()
    return planted.planted(trace, loop)


def healthy_run():
    """Give a run whose GPU is always busy and filled, with the messages that nsys always writes."""
    truth = busy_gpu(grid=4096, registers=32, block=(256, 1, 1))
    truth.trace.diagnostic("No OpenGL events collected. Does the process use OpenGL?")
    truth.trace.diagnostic("Not all CUDA events might have been collected.")
    return truth


def cpu_work_run():
    """End each step with 900 µs of CPU work; the GPU runs out of work after 450 µs of it."""
    return busy_loop(lambda loop: loop.python(900_000))


def late_wake_up():
    """End each step with a wait for the GPU that returns 60 µs after the GPU is done."""
    return busy_loop(lambda loop: loop.sync(wakes=60_000))


def distinct_kernels():
    """Launch many different kernels, each more slowly than it runs."""
    loop = Loop(Trace())
    loop.step()
    for number in range(200):
        loop.launch(f"kernel{'abcdefghij'[number // 20]}{number}(float *)", 2_000)
        loop.python(5_000)
    return planted.planted(loop.trace, loop)


def kernel_chains():
    """Launch four chains of three small kernels per step, more slowly than they run. The last launch fails."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(8):
        loop.step()
        for name in ("add", "mul", "relu") * 4:
            loop.launch(f"{name}(float *)", 2_000)
            loop.python(5_000)
        loop.launch("gemm(float *)", 20_000)
    loop.host.call("cudaLaunchKernel_v7000", returns=222)
    return planted.planted(trace, loop)


def busy_gpu(**shape):
    """Keep the GPU busy with kernels of 50 µs of this shape."""
    trace = Trace().gpu()
    loop = Loop(trace)
    for _ in range(8):
        loop.step()
        planted.layers(loop, 50_000, think=0, **shape)
    loop.sync()
    return planted.planted(trace, loop)


def small_grids():
    return busy_gpu(grid=4, registers=255, block=(256, 1, 1))


def large_grids():
    return busy_gpu(grid=4096, registers=255, block=(256, 1, 1))


def input_copies(memory, **memset):
    """Copy the input of each step from this kind of memory and wait for it; set memory while the GPU has no work."""
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        host.copy("H2D", 1 << 20, api=15_000, runs=100_000, blocking=True, source=memory)
        for kernel in ("embed", "norm", "head"):
            host.launch(f"{kernel}(float *)", runs=20_000)
        host.sync("stream").memset(64, api=40_000, **memset)
    return trace


def pageable_copies():
    """Set memory with a call that waits."""
    return input_copies("pageable", api_name="cudaMemset_v3020")


def pinned_copies():
    return input_copies("pinned")


def slow_rank():
    """Give two ranks that reduce at the end of each step; one waits while the slow one still computes."""
    trace = Trace()
    for pid, added_ns in ((100, 0), (200, 200_000)):
        host = trace.thread(pid=pid, gpus=(pid // 100 - 1,))
        for step in range(8):
            host.launch("gemm(float *)", start=max(host.now, step * 1_000_000), runs=300_000 + added_ns, queue=1_000)
            host.launch(
                "ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)", queue=296_000 + added_ns, runs=500_000 - added_ns
            )
    return trace


def slow_link():
    """Give two ranks of one host whose reductions of 25 MiB take 1 ms, at 26 GB/s."""
    return fast_link(1_000_000)


def fast_link(transfer=100_000):
    """Give two ranks of one host with NVLinks."""
    run = Run(2, steps=6)
    run.transfer = transfer
    return run.merged()


def late_rank():
    """Give two ranks; the second one gets its data 3 ms later in every third step."""
    run = Run(2, steps=9)
    run.python[1] = dict.fromkeys(range(2, 9, 3), 3_000_000)
    return run.merged()


def slightly_late_rank():
    """Give two ranks; the second one gets its data 150 µs later in every third step."""
    run = Run(2, steps=9)
    run.python[1] = dict.fromkeys(range(2, 9, 3), 150_000)
    return run.merged()


def alternating_late_ranks():
    """Give four ranks; a different one gets its data late in each step."""
    run = Run(4, steps=9)
    for step in range(9):
        run.python[step % 4][step] = 3_000_000
    return run.merged()


def pipeline():
    """Give three stages of a pipeline that are all in time."""
    return PipelineRun(3, microbatches=4, steps=5).merged()


def independent_programs():
    """Give two programs that reduce separately; one is slower."""
    run = Run(2, steps=9)
    run.is_independent, run.communicators, run.slower = True, [None, None], {1: 1.3}
    return run.merged()


def late_start():
    """Start the first operation 50 ms after the first call, and report events that the profiler lost."""
    truth = planted.deep_queue(8)
    truth.trace.diagnostic("CUDA events were lost: buffers were dropped")
    truth.trace.row(
        "CUPTI_ACTIVITY_KIND_RUNTIME", start=10_000 - 50_000_000, end=5_000, eventClass=0,
        globalTid=truth.loops[0].host.global_tid, correlationId=90_000, nameId="cudaFree_v3020", returnValue=0,
    )  # fmt: skip
    return truth


def read_in_the_middle():
    """Run eight steps, read a file for 30 ms, and run one more kernel."""
    truth = planted.deep_queue(8)
    host = truth.loops[0].host
    host.idle(5_000_000).osrt("read", takes=30_000_000)
    host.launch("summary(float *)", runs=100_000)
    return truth


def graphs_without_kernels():
    """Launch CUDA graphs far ahead of the GPU, traced without their kernels."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(8):
        loop.step()
        loop.graph(graph_ns=500_000)
    loop.sync()
    return planted.planted(trace, loop)


def page_migrations():
    """Give steps of one kernel during which pages of unified memory migrate."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch("add(float *)", runs=1_000_000, grid=(4096, 1, 1)).sync("device").idle(100_000)
        host.migrate("UM H2D", 2 << 20, start=host.now - 600_000, runs=100_000)
    return trace


def slow_launches():
    """Launch three kernels; the GPU waits 5 ms for each launch, and 20 ms for the end of the program."""
    trace = Trace()
    host = trace.thread()
    for name in ("load", "solve", "store"):
        host.launch(f"{name}(float *)", queue=5_000_000, runs=20_000).idle(5_020_000)
    host.call("cudaDeviceReset_v3020", takes=20_000_000)
    return trace


def parallel_kernels(side_ns, *, threads=1):
    """Wait in each step for a kernel of 200 µs and one on another stream; a second thread may make calls."""
    trace = Trace()
    host, other_thread = trace.thread(), trace.thread(tid=101)
    for _ in range(12):
        with host.nvtx("step"):
            if threads > 1:
                for index in range(20):
                    other_thread.call("cudaEventQuery", start=host.now + index * 10_000, takes=9_000)
            host.launch("wide(float *)", runs=200_000, stream=7).launch("side(float *)", runs=side_ns, stream=13)
            host.sync("device").idle(20_000)
    return trace


def two_streams():
    return parallel_kernels(150_000)


def one_dominant_kernel():
    return parallel_kernels(5_000)


def two_threads():
    return parallel_kernels(150_000, threads=2)


def staged_copies(size=16 << 20):
    """Let one GPU work on what the other made: copies through the host, with the time of their last piece."""
    trace = Trace()
    host = trace.thread(gpus=(0, 1))
    for _ in range(8):
        host.launch("make(float *)", runs=130_000, stream=14)
        host.copy(
            "D2H", size, runs=21_000, queue=550_000, stream=14, source="device", target="device",
            api_name="cudaMemcpyPeerAsync_v4000",
        )  # fmt: skip
        half = trace.rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1]
        times = {"start": half["start"] + 30_000, "end": half["end"] + 30_000}
        place = {"deviceId": 1, "contextId": 2, "streamId": 18, "copyKind": "Host-to-Device"}
        trace.row("CUPTI_ACTIVITY_KIND_MEMCPY", **half | times | place)
        trace.stream_ends[host.pid, 1, 18] = times["end"]
        host.launch("use(float *)", runs=10_000, stream=18, device=1).sync("stream", stream=18, device=1)
    return trace


def small_staged_copies():
    return staged_copies(1 << 20)


# The trace in which each finding must fire, and those in which it must not. The rules of `ailments` are tested in
# tests/test_rules_*.py.
FIRES = {
    "launch-bound": planted.launch_bound,
    "many-launches": distinct_kernels,
    "graph-candidate": planted.launch_bound,
    "fusion": kernel_chains,
    "cpu-work": cpu_work_run,
    "d2h-sync": planted.sync_bound,
    "other-wait": late_wake_up,
    "allocation": planted.allocating,
    "copy-bound": pageable_copies,
    "pageable-copy": pageable_copies,
    "blocking-memset": pageable_copies,
    "small-grid": small_grids,
    "low-occupancy": large_grids,
    "exposed-communication": planted.communicating,
    "late-rank": late_rank,
    "slow-rank": slow_rank,
    "moving-straggler": alternating_late_ranks,
    "slow-link": slow_link,
    "pipeline-bubble": pipeline,
    "outlier-steps": planted.straggling,
    "idle-at-start": late_start,
    "outside-steps": late_start,
    "profiler-overhead": planted.profiled,
    "capture-problem": late_start,
    "hot-kernels": planted.deep_queue,
    "critical-path": two_streams,
    "unified-memory": page_migrations,
    "stall-place": cpu_work_run,
    "failed-calls": kernel_chains,
    "slow-launches": slow_launches,
    "idle-at-end": slow_launches,
    "staged-copies": staged_copies,
}
SILENT = {
    "launch-bound": [healthy_run, planted.communicating, cpu_work_run, distinct_kernels],
    "many-launches": [healthy_run, planted.launch_bound, cpu_work_run],
    "graph-candidate": [healthy_run, "decode_graph_node", cpu_work_run, distinct_kernels],
    "fusion": [planted.launch_bound, healthy_run],
    "cpu-work": [planted.launch_bound, healthy_run, planted.sync_bound, kernel_chains],
    "d2h-sync": [planted.launch_bound, healthy_run, pageable_copies, late_wake_up],
    "other-wait": [planted.launch_bound, healthy_run, planted.sync_bound],
    "allocation": [planted.launch_bound, planted.sync_bound],
    "copy-bound": [planted.launch_bound, planted.sync_bound, healthy_run],
    "pageable-copy": [pinned_copies, planted.sync_bound],
    "blocking-memset": [pinned_copies],
    "small-grid": [healthy_run, large_grids, planted.launch_bound],
    "low-occupancy": [healthy_run, small_grids],
    "exposed-communication": [healthy_run],
    "late-rank": [fast_link, planted.communicating, slow_rank, alternating_late_ranks, independent_programs, pipeline],
    "slow-rank": [fast_link, late_rank, alternating_late_ranks, independent_programs, pipeline],
    "slow-link": [fast_link, pipeline],
    "moving-straggler": [fast_link, late_rank, slow_rank, independent_programs, pipeline],
    "pipeline-bubble": [fast_link, late_rank, slow_rank],
    "outlier-steps": [planted.launch_bound],
    "idle-at-start": [healthy_run, planted.launch_bound],
    "outside-steps": [healthy_run, planted.launch_bound],
    "profiler-overhead": [planted.launch_bound, healthy_run],
    "capture-problem": [healthy_run, planted.launch_bound],
    "hot-kernels": [planted.launch_bound, graphs_without_kernels],
    "critical-path": [
        one_dominant_kernel,
        two_threads,
        planted.deep_queue,
        planted.communicating,
        planted.launch_bound,
    ],
    "unified-memory": [healthy_run, pageable_copies],
    "stall-place": [healthy_run, planted.launch_bound, planted.sync_bound],
    "failed-calls": [healthy_run, planted.launch_bound],
    "slow-launches": [healthy_run, planted.launch_bound, cpu_work_run, distinct_kernels],
    "idle-at-end": [healthy_run, planted.launch_bound, late_start],
    "staged-copies": [small_staged_copies, two_threads],
}


# What must hold of every diagnosis is tested on these, by default on some of them with all rules.
_DIAGNOSED = ("churn", "decode_eager", "decode_graph_whole", planted.launch_bound, late_rank, slow_launches)
_WITH_ALL_RULES = ("churn", "decode_eager", slow_launches, healthy_run)
every_case = pytest.mark.parametrize(
    "case",
    [
        *_DIAGNOSED,
        *sweep(
            case
            for case in dict.fromkeys(["decode_fresh", *SAMPLES, *(FIRES | AILING).values()])
            if case not in _DIAGNOSED
        ),
    ],
)


@pytest.fixture(scope="module")
def open_once(tmp_path_factory):
    """Give a function that opens a planted trace or a sample once. The trace stays open."""
    traces = {}
    names_of_loops = {make: name for name, make in planted.ALL.items()}
    with ExitStack() as open_traces:

        def open_case(case):
            if case not in traces:
                if case in names_of_loops:
                    path = planted_path(names_of_loops[case])
                elif callable(case):
                    path = case().write(tmp_path_factory.mktemp("planted") / "trace.sqlite")
                else:
                    path = many_traces.SAMPLES / f"{case}.sqlite"
                traces[case] = open_traces.enter_context(open_trace(path, is_final=True))
            return traces[case]

        yield open_case


@pytest.fixture(scope="module")
def rules_by_case():
    """Return the rules that tests ask about, by planted trace or sample."""
    rules = {
        slightly_late_rank: ["one-block", "late-rank"],
        alternating_late_ranks: ["exposed-communication"],
        late_rank: ["exposed-communication", "launch-bound", "cpu-work"],
        "decode_graph_node": [*CELLS, "profiler-overhead"],
        "decode_graph_whole": [*CELLS, "hot-kernels"],
    }
    for name, case in FIRES.items():
        for tested_case in (case, *SILENT[name]):
            rules.setdefault(tested_case, []).append(name)
    return rules


@pytest.fixture(scope="module")
def diagnose(open_once, rules_by_case, pytestconfig):
    """Give a function that diagnoses a trace once: with all rules, or with those that tests ask about."""
    has_all = pytestconfig.getoption("--all")

    def diagnose_case(case):
        if has_all or case in _WITH_ALL_RULES:
            return open_once(case).diagnose()
        return diagnose_with(open_once(case), *rules_by_case.get(case, ()))

    return cache(diagnose_case)


@pytest.fixture(scope="module")
def evaluate(open_once, diagnose, rules_by_case):
    """Give a function that evaluates the rules that tests ask about on a planted trace or a sample, once.

    A trace that is diagnosed anyway has the findings of its diagnosis.
    """
    diagnosed = (*_DIAGNOSED, healthy_run, graphs_without_kernels, alternating_late_ranks, late_start)

    @cache
    def evaluate_case(case):
        if case in diagnosed:
            return findings_by_name(diagnose(case))
        return evaluate_rules(open_once(case), rules_by_case[case])

    return evaluate_case


def findings_by_name(diagnosis):
    """Return all findings by name, including those listed under others."""
    return {entry.name: entry for finding in diagnosis.findings for entry in (finding, *finding.also)}


def sum_savings(diagnosis):
    """Return the time that the findings that do not overlap save together."""
    return sum(finding.recoverable_ns or 0 for finding in diagnosis.findings if not finding.overlaps)


@pytest.mark.slow
def test_a_query_is_retried_when_duckdb_gives_up_on_its_connection(tmp_path, monkeypatch):
    path = planted.launch_bound().write(tmp_path / "trace.sqlite")
    with nsys_insight.open(path) as trace:
        expected = trace.diagnose().text(None)
    with nsys_insight.open(path) as trace:
        read_dicts, lost_queries = trace.dicts, []

        def dicts(query, *arguments):
            if not lost_queries and query.startswith("WITH"):
                lost_queries.append(query)
                trace._connection.files._strategies.repeat()  # as after DuckDB's InternalException
                trace._connection.files.open()
            return read_dicts(query, *arguments)

        monkeypatch.setattr(trace, "dicts", dicts)
        assert trace.diagnose().text(None) == expected
        assert lost_queries


# Each finding --------------------------------------------------------------------------------------------------------


def test_every_finding_has_a_trace_on_which_it_fires_and_others_on_which_it_does_not():
    family_rules = [name for names_of_family in FAMILIES.values() for name in names_of_family]
    assert sorted(family_rules) == sorted(AILING) == sorted(CURED)
    family_rules += ["fp64-arrays", "invariant-array", "recomputation", "unused-gradients"]  # test_needless_work.py
    assert sorted([*FIRES, *family_rules]) == sorted([*SILENT, *family_rules]) == list(RULES)


@pytest.mark.parametrize("name", FIRES)
def test_a_finding_fires_on_what_was_planted_and_says_what_to_do(name, evaluate):
    check_finding(evaluate(FIRES[name])[name])


@pytest.mark.parametrize("name", SILENT)
def test_a_finding_is_silent_where_there_is_nothing_to_find(name, evaluate):
    for case in SILENT[name]:
        assert name not in evaluate(case), case


@pytest.mark.parametrize("name", RULES)
def test_a_finding_reads_views_and_reports_and_its_command_shows_one_of_them(name):
    rule = RULES[name]
    reports = list_reports(rule.sql)
    assert set(reports) <= set(library.built_in_packs())
    tables = {table for table in names.list_tables_read(rule.statement()) if not table.endswith("_report")}
    assert tables <= {*views.documented_views(), "scope"}
    assert parameters.find_parameters(f"{rule.sql};{rule.when}") - {"tokens", "waiting_pct", "shown_pct"} == set(
        rule.params
    )
    report = rule.report.split()[0]
    tables_of_report = set() if report == "sql" else {*names.list_tables_read(library.get_pack(report).sql)}
    assert report in (
        *reports,
        "steps" if tables & {"steps", "_steady_windows"} else "",
        # A report that reads the same view.
        report if tables & tables_of_report else "",
        "ranks" if rule.is_cross_rank else "",
        "collectives" if "_exposed_collectives" in tables else "",
        "loops" if "_repetitions" in tables else "",
        # The kernels of the steady steps, by name or launch shape.
        *(("top", "launch-configs") if "_steady_shapes" in tables else ()),
        # The launch shapes of the operations of a step.
        *(("occupancy",) if "step_operations" in tables else ()),
        "sql",
    )


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["churn", *sweep(name for name in SAMPLES if name != "churn")])
def test_a_finding_whose_condition_is_false_would_find_nothing(sample, diagnose, monkeypatch):
    findings = diagnose(sample).findings
    # The condition of the critical path is not a shortcut: it avoids repeating other findings.
    unconditional_rules = [
        replace(rule, when=rule.when if rule.name == "critical-path" else "") for rule in read_finding_rules()
    ]
    monkeypatch.setattr("nsys_insight.diagnose.diagnosis.read_finding_rules", lambda: unconditional_rules)
    with open_trace(many_traces.SAMPLES / f"{sample}.sqlite") as trace:
        assert trace.diagnose().findings == findings


# The cell that has the number of a finding, in the report that its command shows.
CELLS = {
    "launch-bound": ("classify", {"part": "launch"}, "recoverable_ns"),
    "graph-candidate": ("graph-candidates", {}, "saving_high_ns"),
    "cpu-work": ("host", {"bottleneck": "CPU work"}, "recoverable_ns"),
    "d2h-sync": ("host", {"bottleneck": "D2H sync points"}, "recoverable_ns"),
    "other-wait": ("host", {"bottleneck": "other waits"}, "recoverable_ns"),
    "allocation": ("host", {"bottleneck": "allocations and frees"}, "recoverable_ns"),
    "pageable-copy": ("host", {"bottleneck": "pageable copies"}, "recoverable_ns"),
    "blocking-memset": ("host", {"bottleneck": "blocking memsets"}, "recoverable_ns"),
    "copy-bound": ("classify", {"part": "copy"}, "recoverable_ns"),
    "exposed-communication": ("classify", {"part": "communication"}, "recoverable_ns"),
    "profiler-overhead": ("classify", {"part": "profiler"}, "wall_pct"),
    "idle-at-start": ("idle", {"host": "before the first operation"}, "wall_pct"),
    "idle-at-end": ("idle", {"host": "after the last operation"}, "wall_pct"),
}


@pytest.mark.parametrize("name", CELLS)
def test_the_number_of_a_finding_is_the_one_that_its_report_shows(name, evaluate, open_once):
    report, row_values, column = CELLS[name]
    for case in (FIRES[name], *SAMPLES):
        finding = evaluate(case).get(name)
        if finding is not None:
            assert finding.report == report
            number = finding.wall_pct if column == "wall_pct" else finding.profiled_ns
            (row,) = (row for row in open_once(case).answer(report).dicts() if row.items() >= row_values.items())
            assert number == row[column]


@every_case
def test_the_share_of_a_finding_is_its_time_as_a_share_of_the_wall(case, diagnose):
    diagnosis = diagnose(case)
    for finding in findings_by_name(diagnosis).values():
        if finding.recoverable_ns is not None:
            # The share of fusion is one of the typical step. Shares are of the step without nsys.
            stretch = diagnosis.unprofiled.stretch if diagnosis.unprofiled else 1.0
            expected = 100 * finding.recoverable_ns / diagnosis.wall_ns * stretch
            assert finding.wall_pct == pytest.approx(expected, rel=1e-2)


# Planted numbers ----------------------------------------------------------------------------------------------------


def test_the_critical_path_says_what_is_saved_until_another_path_takes_over(evaluate):
    # Launched 5 µs after `wide`, `side` ends 45 µs before it.
    finding = evaluate(two_streams)["critical-path"]
    assert finding.recoverable_ns == pytest.approx(45_000, abs=2_000)
    assert "wide holds the critical path of a step for 200 µs" in finding.evidence
    assert "and as much if it takes half the time; then side takes over" in finding.evidence


def test_launches_cost_what_was_planted(diagnose):
    # 10 kernels of 2 µs per step; before 9 of them the GPU waits 7 µs; 0.3 µs of each stays in a graph.
    findings = findings_by_name(diagnose(planted.launch_bound))
    assert findings["launch-bound"].profiled_ns == pytest.approx(9 * 7_000 - 9 * 300, abs=300)
    assert "4 µs" in findings["launch-bound"].evidence
    assert "kernels average 2 µs" in findings["launch-bound"].evidence


def test_cpu_work_costs_what_was_planted(evaluate):
    truth = cpu_work_run()
    steady_steps = truth.steps[:-1]
    python_ns = sum(
        gap.duration_ns for gap in truth.gaps if gap.host == "python" and gap.start_ns < steady_steps[-1].end_ns
    )
    finding = evaluate(cpu_work_run)["cpu-work"]
    assert finding.recoverable_ns == pytest.approx(python_ns / len(steady_steps), rel=0.01)


def test_allocations_cost_what_was_planted(evaluate):
    finding = evaluate(planted.allocating)["allocation"]
    assert finding.recoverable_ns == pytest.approx(60_000)
    assert finding.evidence.startswith("the CPU spends 60 µs in 2 calls per step")
    assert finding.place in ("cudaMalloc, cudaFree", "cudaFree, cudaMalloc")


def test_a_small_grid_wastes_all_but_its_share_of_the_gpu(evaluate):
    # 9 kernels of 50 µs per step, of 4 blocks each, on the 132 SMs of an H200.
    finding = evaluate(small_grids)["small-grid"]
    assert finding.recoverable_ns == pytest.approx(9 * 50_000 * (1 - 4 / 132), rel=1e-3)
    assert finding.evidence.startswith(f"{finding.place}: grid 4x1x1 on 132 SMs")


def test_what_the_profiler_need_not_record_is_what_it_recorded(evaluate):
    # The buffers of this trace have no graphs, backtraces or operating system calls.
    action = evaluate(planted.profiled)["profiler-overhead"].action
    assert action == "Take the wall time from a run without the profiler."
    action = evaluate("decode_graph_node")["profiler-overhead"].action
    assert action.endswith("or capture less: --cuda-graph-trace=graph.")


def test_a_slow_rank_is_the_one_that_works_longer(evaluate):
    finding = evaluate(slow_rank)["slow-rank"]
    assert finding.place == "rank 1"
    assert finding.recoverable_ns == pytest.approx(200_000)
    assert "its GPU is busy 1.7 times as long" in finding.evidence


def two_late_ranks():
    """Give five ranks; two of them get their data later in every third step, one by 3 ms and one by 5 ms."""
    run = Run(5, steps=9)
    for number, late_ns in ((1, 3_000_000), (2, 5_000_000)):
        run.python[number] = dict.fromkeys(range(2, 9, 3), late_ns)
    return run.merged()


def test_ranks_that_are_late_together_cost_as_much_as_the_latest(open_once):
    finding = evaluate_rules(open_once(two_late_ranks), ["late-rank"])["late-rank"]
    assert finding.place.startswith("ranks 1, 2")
    assert finding.recoverable_ns == pytest.approx(3 * 5_000_000 / 8, rel=0.02)


def test_the_diagnosed_rank_is_the_one_that_the_others_wait_for(diagnose):
    diagnosis = diagnose(late_rank)
    assert diagnosis.run.sentence.startswith(
        "2 ranks: rank 1 is late in 3 of 8 steps (2, 5, 8) by 3 ms: CPU work in data; "
    )
    assert diagnosis.trace["scope"] == {"process": 101}
    assert diagnosis.findings[0].name == "late-rank"
    assert diagnosis.text(80).startswith("2 ranks: rank 1 is late")
    assert diagnosis.answer().summary["run"]["rank"] == 1


def test_waiting_for_other_ranks_is_not_communication_that_overlap_would_hide(diagnose):
    diagnosis = diagnose(alternating_late_ranks)
    assert diagnosis.verdict == "waiting for other ranks"
    exposed = findings_by_name(diagnosis)["exposed-communication"]
    assert exposed.recoverable_ns < 0.2 * diagnosis.wall_ns
    assert "of that is waiting for other ranks" in exposed.evidence
    transfer_share = 1 - exposed.values["waiting_pct"] / 100
    assert exposed.recoverable_ns == pytest.approx(exposed.values["exposed_ns"] * transfer_share)


def test_an_outlier_costs_what_it_takes_longer_shared_by_all_steps(evaluate):
    finding = evaluate(planted.straggling)["outlier-steps"]
    assert finding.profiled_ns == pytest.approx(500_000 / 11, rel=0.02)
    # Without nsys, a part of it is left.
    assert 0.5 * finding.profiled_ns < finding.recoverable_ns < finding.profiled_ns
    assert finding.place.startswith("step 7, at ")
    assert (finding.values["outliers"], finding.values["steady_steps"]) == (1, 11)
    assert finding.values["more_idle_ns"] == pytest.approx(500_000, rel=0.02)
    assert finding.evidence.startswith("1 of 11 steps takes ")


def server(*, pauses=20, pause=50_000_000, think=20_000):
    """Serve requests of 1 ms. Once in `pauses` of them, the next one comes `pause` ns later."""

    def body(loop, number):
        loop.python(think)
        if number % pauses == pauses - 1:
            loop.python(pause)
        for _ in range(2):
            loop.launch(BF16, 500_000, **LARGE)

    return run_steps(body, steps=60)


@pytest.mark.slow
def test_a_small_delay_of_a_rank_comes_after_larger_problems(diagnose):
    findings = diagnose(slightly_late_rank).findings
    severities = [SEVERITIES.index(finding.severity) for finding in findings]
    assert severities == sorted(severities)
    assert (findings[0].name, findings[-1].name) == ("one-block", "late-rank")


def test_pauses_in_a_few_steps_are_not_cpu_work_of_each_step(open_once):
    (leader,) = rank(evaluate_rules(open_once(server), ["outlier-steps", "cpu-work"]).values())
    assert leader.name == "outlier-steps"
    assert [member.name for member in leader.also] == ["cpu-work"]
    assert "a server without requests" in leader.caveat


def test_cpu_work_of_each_step_is_no_symptom_of_outliers(open_once):
    trace = open_once(partial(server, think=8_000_000))
    findings = rank(evaluate_rules(trace, ["outlier-steps", "cpu-work"]).values())
    assert "cpu-work" in {finding.name for finding in findings}


def test_start_up_is_a_share_of_the_trace_and_not_a_saving_per_step(diagnose):
    findings = findings_by_name(diagnose(late_start))
    for name in ("idle-at-start", "outside-steps"):
        assert (findings[name].recoverable_ns, findings[name].share_of) == (None, "trace")
        assert findings[name].wall_pct == pytest.approx(100 * 50 / 53.3, abs=1)


def test_the_headline_says_what_most_of_the_trace_is_if_the_steps_are_a_small_part(diagnose):
    outside = diagnose(late_start).steps["outside"]
    assert [(idle["host"], idle["gaps"]) for idle in outside["longest_idle"]] == [("cudaFree", 1)]
    assert outside["longest_idle"][0]["idle_ns"] == pytest.approx(50_000_000, rel=1e-3)
    text = diagnose(late_start).text(None)
    assert re.search(
        r"Only \d\.\d% of the trace is in steady steps; outside them, .* and idle for 50 ms \(mostly cudaFree\)", text
    )
    text = diagnose(read_in_the_middle).text(None)
    assert re.search(r"outside them, the GPU is busy for .* of .*, and idle for 35 ms \(mostly read\)\.", text)


def two_benchmarks(*, second=8):
    """Run one benchmark 14 times, and then another one."""

    def body(loop, number):
        is_first = number < 14
        for name in ("forward", "scale") if is_first else ("sort", "reduce", "gather"):
            loop.launch(f"{name}(float *)", 800_000 if is_first else 1_000_000, **LARGE)
        loop.copy("D2H", 4_096, 2_000, blocking=True)

    return run_steps(body, steps=14 + second, sync=False)


def test_the_headline_names_the_other_loops_of_the_program(diagnose):
    text = diagnose(two_benchmarks).text(None)
    # 14 iterations of two kernels of 0.8 ms, and 8 of three of 1 ms.
    kernel_ns = 14 * 1_600_000 + 8 * 3_000_000
    assert re.search(
        rf"Loop 1, 14 iterations of 1\.6\d ms each, holds {100 * 14 * 1_600_000 / kernel_ns:.0f}\.\d%", text
    )
    assert diagnose(late_start).steps.get("other_loops") in (None, [])
    assert diagnose(healthy_run).steps.get("other_loops") in (None, [])


def test_another_loop_is_named_next_to_steps_of_half_of_the_trace(diagnose):
    text = diagnose(partial(two_benchmarks, second=20)).text(None)
    assert re.search(r"\. Loop 1, 14 iterations of 1\.6\d ms each, holds 27\.\d% of the GPU time \(see loops\)", text)
    assert "Only" not in text


def test_the_headline_is_silent_about_the_rest_if_the_steps_are_most_of_the_trace(diagnose):
    for make in (planted.launch_bound, healthy_run):
        assert "outside" not in diagnose(make).steps
        assert "outside them" not in diagnose(make).text(None)


@pytest.mark.parametrize(
    "make",
    [planted.launch_bound, healthy_run, graphs_without_kernels, *sweep([planted.sync_bound, planted.allocating])],
)
def test_busy_and_idle_are_those_of_the_steps_that_were_planted(make, diagnose):
    diagnosis = diagnose(make)
    steady_steps = [step for step in make().steps if step.phase == "steady"][: diagnosis.steps["steady_count"]]
    assert diagnosis.wall_ns == pytest.approx(sum(step.wall_ns for step in steady_steps) / len(steady_steps), rel=1e-6)
    busy_pct = 100 * sum(step.busy_ns for step in steady_steps) / sum(step.wall_ns for step in steady_steps)
    assert diagnosis.busy_pct == pytest.approx(busy_pct, abs=1e-6)


# Status of a run ----------------------------------------------------------------------------------------------------


def efficient_run():
    """Keep the GPU busy with matrix products on tensor cores that fill it."""

    def body(loop, _):
        for _ in range(12):
            loop.launch(BF16, 50_000, **LARGE)

    return run_steps(body, sync=False)


def test_a_run_whose_gpu_never_waits_is_called_healthy_with_the_numbers(open_once):
    diagnosis = open_once(efficient_run).diagnose()
    assert (diagnosis.status, diagnosis.verdict) == ("healthy", "GPU-bound")
    assert re.search(
        r"Healthy: the GPU is busy (9\d\.\d|100\.0)% of (the wall time|a step), .* \d+\.\d% of their time",
        diagnosis.text(500),
    )


def test_a_busy_gpu_with_kernels_that_nobody_knows_is_not_called_healthy(diagnose):
    diagnosis = diagnose(healthy_run)
    assert (diagnosis.status, diagnosis.verdict) == ("unjudged", "GPU-bound")
    text = diagnosis.text(500)
    assert "100% of the GPU time is in kernels whose efficiency the trace does not show" in text
    assert "Healthy" not in text


def test_a_verdict_about_graphs_without_kernels_has_a_reservation(diagnose):
    first_line, sentence, *_ = diagnose("decode_graph_whole").text(200).splitlines()
    assert "GPU-bound as far as recorded; " in first_line
    assert sentence == "The GPU is busy, or inside a CUDA graph, 91.0% of each step."


SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float>(T4 *)"


def short_and_unknown_kernels():
    """Keep the GPU busy, a part of the time with operations as short as a launch."""

    def body(loop, _):
        for _ in range(100):
            loop.launch(SOFTMAX, 2_000, api=1_500, **LARGE)
        loop.launch("advance(float *)", 600_000, **LARGE)

    return run_steps(body, sync=False)


def test_the_time_that_something_could_replace_is_not_called_unknown(diagnose):
    diagnosis = diagnose(short_and_unknown_kernels)
    assert diagnosis.status == "unjudged"
    assert diagnosis.replaceable_pct == pytest.approx(25, abs=1)
    assert diagnosis.unknown_pct == pytest.approx(75, abs=1)
    assert re.search(
        r"GPU-bound: .*; 25% of the GPU time is in operations that something could replace, and 75% is in kernels whose"
        r" efficiency the trace does not show \(nsys-insight constructs\)\.",
        diagnosis.text(500),
    )


def launched_one_by_one_with_a_late_kernel():
    """Launch each kernel after the one before it has ended: the GPU is nearly always busy.

    One kernel starts so late that the mean launch would be ahead.
    """
    loop = Loop(trace := Trace().gpu())
    for step in range(60):
        loop.step()
        loop.launch("k(float *)", 2_000_000, waits=3_000_000 * (step == 30), grid=(4096, 1, 1))
        loop.sync()
    return planted.planted(trace, loop)


def test_a_run_that_waits_for_each_kernel_is_not_healthy(diagnose):
    diagnosis = diagnose(launched_one_by_one_with_a_late_kernel)
    assert (diagnosis.status, diagnosis.verdict) == ("findings", "GPU-bound")
    assert "Healthy" not in diagnosis.text(500)
    assert re.search(r"% of a step, but the CPU does not launch ahead: [0-9]% of the operations", diagnosis.text(500))


def test_time_in_other_calls_is_not_outside_of_calls(diagnose):
    # The host sets the parameters of graph nodes: 20 calls of 10 µs.
    text = diagnose(graph_updates).text(None)
    assert "trace.sqlite: host-bound" in text
    assert "it mostly does something other than launching" in text
    assert "outside CUDA calls" not in text


def test_graphs_without_their_kernels_are_not_healthy(diagnose):
    diagnosis = diagnose(graphs_without_kernels)
    assert diagnosis.status == "unseen"
    assert "Healthy" not in diagnosis.text()
    assert "--cuda-graph-trace=node" in diagnosis.text(500)
    assert "--cuda-graph-trace=node" not in diagnose("decode_graph_node").text(500)


def test_a_run_with_a_bottleneck_is_not_healthy(diagnose):
    cases = (case for case in _DIAGNOSED if case != late_rank)
    assert all(diagnose(case).status == "findings" for case in cases)


@pytest.mark.slow
def test_a_trace_with_missing_tables_or_columns_has_a_diagnosis(tmp_path):
    files = many_traces.write_all(tmp_path)
    for name in ("nothing", "kernels only", "missing columns"):
        with nsys_insight.open(files[name]) as trace:
            diagnosis = trace.diagnose()
            assert diagnosis.answer().row_count == len(findings_by_name(diagnosis))
        if name == "nothing":
            assert (diagnosis.status, diagnosis.findings, diagnosis.wall_ns) == ("empty", (), None)
            assert "nsys profile -t cuda" in diagnosis.text()
        else:
            assert sum(share.wall_pct for share in diagnosis.shares) == pytest.approx(100)


@pytest.mark.slow
@given(random_traces())
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
def test_shares_add_up_and_savings_do_not_exceed_the_wall_time(tmp_path_factory, trace):
    with open_trace(trace.write(tmp_path_factory.mktemp("random") / "trace.sqlite")) as open_file:
        diagnosis = open_file.diagnose()
        if diagnosis.wall_ns:
            assert sum(share.wall_pct for share in diagnosis.shares) == pytest.approx(100)
            assert sum_savings(diagnosis) <= diagnosis.wall_ns * (1 + 1e-9)
        assert len(diagnosis.findings) <= 7
        assert all(len(line) <= 60 for line in diagnosis.text(60).splitlines())


@every_case
def test_savings_in_planted_traces_do_not_exceed_the_wall_time(case, diagnose):
    assert sum_savings(diagnose(case)) <= diagnose(case).wall_ns


@every_case
def test_the_headline_s_shares_are_those_of_classify(case, diagnose):
    diagnosis = diagnose(case)
    line = next(line for line in diagnosis.text(500).splitlines() if line.startswith("GPU busy"))
    busy, idle = (float(re.search(rf"{word} (\d+\.\d)%", line)[1]) for word in ("busy", "idle"))
    assert round(busy + idle, 1) == 100.0
    printed_shares = dict(re.findall(r"(\w[\w -]*) (\d+\.\d)%(?=,|\))", line.partition(", idle ")[2]))
    assert printed_shares == {
        s.part: f"{s.wall_pct:.1f}" for s in diagnosis.shares if not s.is_busy and s.wall_pct >= 0.05
    }


# Scope and steps, and the trace afterwards ----------------------------------------------------------------------------


@pytest.mark.slow
def test_commands_repeat_the_scope_and_the_step_options(sample):
    with open_trace(sample("decode_eager"), nvtx="decode_step") as trace:
        diagnosis = trace.diagnose(tokens_per_step=4)
    finding = findings_by_name(diagnosis)["launch-bound"]
    assert diagnosis.unit == "token"
    assert diagnosis.trace["scope"] == {"nvtx": "decode_step"}
    assert diagnosis.wall_ns == pytest.approx(2_673_265 / 4, rel=0.01)
    assert shlex.split(finding.command)[3:] == ["--nvtx", "decode_step", "--tokens-per-step", "4"]
    assert "idle-at-start" not in findings_by_name(diagnosis)


@pytest.mark.slow
def test_a_diagnosis_leaves_the_trace_as_it_was(sample):
    with nsys_insight.open(sample("churn")) as trace:
        trace.diagnose()
        options = {"step_method": "count", "tokens": 5}
        rows = trace.answer("classify", **options).rows()
        with nsys_insight.open(sample("churn")) as fresh:
            assert rows == fresh.answer("classify", **options).rows()
        assert set(step_options.PARAMS) >= set(options)


def test_several_traces_have_no_diagnosis(sample):
    with (
        nsys_insight.open([sample("churn"), sample("decode_eager")]) as traces,
        pytest.raises(nsys_insight.errors.UsageError),
    ):
        traces.diagnose()


# Real traces ---------------------------------------------------------------------------------------------------------


def test_the_headline_of_a_real_trace_is_what_plain_loops_find(diagnose, sample):
    tables = oracle.read(sample("decode_eager"))
    names = oracle.strings(tables)
    ranges = [
        (event["start"], event["end"]) for event in tables["NVTX_EVENTS"]
        if (event["text"] or names.get(event["textId"])) == "decode_step"
    ]  # fmt: skip
    work = sorted((event["start"], event["end"]) for table in oracle.GPU_WORK for event in tables[table])
    starts = [start for start, _ in ranges]
    steps = list(zip(starts, [*starts[1:], ranges[-1][1]], strict=True))
    busy = covered = 0
    for start, end in steps:
        counted_to = start
        for work_start, work_end in work:
            if work_end > counted_to and work_start < end:
                busy += min(work_end, end) - max(work_start, counted_to)
                counted_to = max(counted_to, min(work_end, end))
        covered += end - start
    diagnosis = diagnose("decode_eager")
    assert diagnosis.wall_ns == pytest.approx(covered / len(steps))
    assert diagnosis.busy_pct == pytest.approx(100 * busy / covered)
    launches = [
        event for event in tables[oracle.RUNTIME]
        if oracle.LAUNCH.match(names[event["nameId"]]) and any(start <= event["start"] < end for start, end in ranges)
    ]  # fmt: skip
    assert f"{len(launches) // len(ranges)} launch calls" in findings_by_name(diagnosis)["launch-bound"].evidence


def test_pinned_copies_of_a_real_trace_are_not_counted_as_pageable(diagnose, sample):
    # One of the four copies of a step of churn is from pinned memory.
    assert findings_by_name(diagnose("churn"))["pageable-copy"].evidence.startswith("3 copies per step")


@pytest.mark.sweep
def test_findings_of_other_people_s_traces(shared):
    diagnoses = {}
    for path in sorted((shared / "foreign").glob("*.sqlite")):
        with open_trace(path) as trace:
            diagnoses[path.name.partition(".")[0]] = trace.diagnose()
    assert diagnoses["mordred"].findings[0].name == "copy-bound"
    assert diagnoses["mordred"].busy_pct > 60  # its copies are not idle time
    # Its step is 85 launches and one long time of CPU work: no graph would help.
    assert [finding.name for finding in diagnoses["power_iteration"].findings] == ["alternating", "fp64-gemm"]
    assert (
        "in 44 of 44 steps, the GPU stalls before gemv2T_kernel_val; 44 stalls of 14.4 ms (median)"
        in findings_by_name(diagnoses["power_iteration"])["stall-place"].evidence
    )
    assert findings_by_name(diagnoses["power_iteration"]).keys().isdisjoint({"graph-candidate", "launch-bound"})
    assert diagnoses["cloverleaf"].verdict == "GPU-bound"
    assert [finding.name for finding in diagnoses["cloverleaf"].findings[:2]] == ["sync-each-launch", "copy-bound"]
    assert {"cpu-work", "copy-bound", "one-block"} <= findings_by_name(diagnoses["saxpy_mpi"]).keys()


# Output formats ------------------------------------------------------------------------------------------------------


@every_case
def test_the_text_fits_the_width_of_the_screen(case, diagnose):
    assert max(map(len, diagnose(case).text(80).splitlines())) <= 80


def test_the_text_fits_the_height_of_the_screen(diagnose):
    for case in ("churn", "decode_eager", "decode_graph_whole"):
        diagnosis = diagnose(case)
        findings_text = diagnosis.text(80).partition("\nDetails")[0]
        # A first finding with all that it explains.
        assert len(findings_text.splitlines()) <= (36 if len(diagnosis.findings) < 3 else 46)


def test_the_table_has_all_findings_and_the_summary_has_the_headline(diagnose):
    diagnosis = diagnose("churn")
    answer = diagnosis.answer()
    names = [column.name for column in answer.columns]
    table = [dict(zip(names, values, strict=True)) for values in answer.rows()]
    assert [finding["finding"] for finding in table if finding["under"] is None] == [
        finding.name for finding in diagnosis.findings
    ]
    assert {finding["finding"] for finding in table} == set(findings_by_name(diagnosis))
    assert answer.summary["verdict"] == diagnosis.verdict
    assert sum(share["wall_pct"] for share in answer.summary["shares"]) == pytest.approx(100)
    assert all(column.description for column in answer.columns)


def test_markdown_says_the_same(diagnose):
    diagnosis = diagnose("decode_eager")
    page = write_markdown(diagnosis)
    for finding in findings_by_name(diagnosis).values():
        assert finding.command in page
    assert page.count("### ") == len(diagnosis.findings)


# The first screen -----------------------------------------------------------------------------------------------------


def test_the_first_screen_says_what_the_verdict_means(diagnose):
    lines = diagnose("decode_eager").text(200).splitlines()
    assert lines[0].startswith("decode_eager.sqlite: launch-bound; ")
    idle = re.search(r"launch (\d+\.\d)%", lines[2])[1]
    assert lines[1] == f"The GPU is idle {idle}% of each step because the CPU launches kernels too slowly."
    busy = float(re.search(r"busy (\d+\.\d)%", lines[2])[1])
    assert (lines[3].count("█"), lines[3].count("░")) == (round(0.6 * busy), 60 - round(0.6 * busy))


def test_a_mixed_verdict_names_the_two_largest_causes(diagnose):
    diagnosis = diagnose("churn")
    assert diagnosis.verdict.startswith("mixed: ")
    causes = re.findall(r"([\w-]+-bound) \((\d+\.\d)%\)", diagnosis.text(500).splitlines()[0])
    shares = {share.part: share.wall_pct for share in diagnosis.shares if not share.is_busy}
    assert [float(share) for _, share in causes] == sorted((float(share) for _, share in causes), reverse=True)
    assert causes[0] == ("allocation-bound", f"{max(shares.values()):.1f}")
    assert len(causes) == 2


def test_findings_say_what_to_do_and_when_to_skip_it(diagnose):
    diagnosis = diagnose("decode_eager")
    text = diagnosis.text(500)
    for finding in diagnosis.findings[:3]:
        assert f"\n   Fix   {finding.action}\n" in text
        assert f"\n   Skip  if {finding.caveat[0].lower()}{finding.caveat[1:]}\n" in text
    assert text.count("without the profiler.\n") >= 1
    assert text.count("Savings of launches, and shares of all savings, are of the step without nsys.") == 1


def test_a_diagnosis_without_launches_says_nothing_about_them(diagnose):
    assert "without nsys" not in diagnose(healthy_run).text(500)
