"""`diagnose`: each finding fires on what was planted, with its numbers, and is silent where nothing is wrong."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from dataclasses import replace

import many_traces
import oracle
import planted
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace, planted_path
from pipeline_traces import PipelineRun
from planted import Loop
from rank_traces import Run
from strategies import traces as random_traces
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight.diagnose import diagnosis
from nsys_insight.diagnose.diagnosis import ranked
from nsys_insight.diagnose.findings import Finding, finding_rules, reports_of
from nsys_insight.diagnose.text import markdown
from nsys_insight.model import views
from nsys_insight.packs import library, step_options
from nsys_insight.sql import names, parameters

SAMPLES = ("churn", "decode_eager", "decode_fresh", "decode_graph_node", "decode_graph_whole")
RULES = {rule.name: rule for rule in finding_rules()}


# Loops that have one thing wrong, beside those of `planted` ----------------------------------------------------------


def looped(body, steps=8):
    """A loop of a GPU that always has work, and what `body` does in each step."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(steps):
        loop.step()
        planted.layers(loop, 50_000, think=0)
        body(loop)
    loop.sync()
    return planted.planted(trace, loop)


def healthy():
    """The GPU never waits, and its kernels fill it; nsys says what it always says."""
    truth = shaped(grid=4096, registers=32, block=(256, 1, 1))
    truth.trace.diagnostic("No OpenGL events collected. Does the process use OpenGL?")
    truth.trace.diagnostic("Not all CUDA events might have been collected.")
    return truth


def thinking():
    """Each step ends with 900 µs of work on the CPU; after 450 µs of it the GPU has run dry."""
    return looped(lambda loop: loop.python(900_000))


def waiting():
    """Each step ends with waiting for the GPU, and goes on 60 µs after it is done."""
    return looped(lambda loop: loop.sync(wakes=60_000))


def unrepeated():
    """Many kernels that are all different, each launched more slowly than it runs."""
    loop = Loop(Trace())
    loop.step()
    for number in range(200):
        loop.launch(f"kernel{'abcdefghij'[number // 20]}{number}(float *)", 2_000)
        loop.python(5_000)
    return planted.planted(loop.trace, loop)


def chained():
    """Four times three small kernels a step, launched more slowly than they run."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(8):
        loop.step()
        for name in ("add", "mul", "relu") * 4:
            loop.launch(f"{name}(float *)", 2_000)
            loop.python(5_000)
        loop.launch("gemm(float *)", 20_000)
    return planted.planted(trace, loop)


def shaped(**shape):
    """The GPU is always busy, with kernels of 50 µs of this shape."""
    trace = Trace().gpu()
    loop = Loop(trace)
    for _ in range(8):
        loop.step()
        planted.layers(loop, 50_000, think=0, **shape)
    loop.sync()
    return planted.planted(trace, loop)


def small():
    return shaped(grid=4, registers=255, block=(256, 1, 1))


def crowded():
    return shaped(grid=4096, registers=255, block=(256, 1, 1))


def copying(memory):
    """Each step copies its input from this kind of memory and waits for it; it sets memory without waiting."""
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        host.copy("H2D", 1 << 20, api=15_000, runs=100_000, blocking=True, source=memory)
        for kernel in ("embed", "norm", "head"):
            host.launch(f"{kernel}(float *)", runs=20_000)
        host.sync("stream").memset(64, api=40_000)
    return trace


def pageable():
    return copying("pageable")


def pinned():
    return copying("pinned")


def zeroing():
    """Each step sets memory with a call that takes 40 µs while the GPU has nothing to do."""
    trace = Trace()
    host = trace.thread()
    for _ in range(8):
        for kernel in ("embed", "norm", "head"):
            host.launch(f"{kernel}(float *)", runs=20_000)
        host.sync("stream").memset(64, api=40_000, api_name="cudaMemset_v3020")
        host.copy("D2H", 8).sync("stream")
    return trace


def ranks(slower):
    """Two ranks that reduce at the end of each step; what the slow one computes longer the other one waits."""
    trace = Trace()
    for pid, more in ((100, 0), (200, slower)):
        host = trace.thread(pid=pid, gpus=(pid // 100 - 1,))
        for step in range(8):
            host.launch("gemm(float *)", at=max(host.now, step * 1_000_000), runs=300_000 + more, queue=1_000)
            host.launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)", queue=296_000 + more, runs=500_000 - more)
    return trace


def slow_rank():
    return ranks(200_000)


def even_ranks():
    return ranks(0)


def late_rank():
    """Of two ranks the second one gets its data 3 ms later in every third step."""
    run = Run(2, steps=9)
    run.python[1] = dict.fromkeys(range(2, 9, 3), 3_000_000)
    return run.merged()


def ranks_by_turns():
    """Of four ranks another one gets its data later in each step."""
    run = Run(4, steps=9)
    for step in range(9):
        run.python[step % 4][step] = 3_000_000
    return run.merged()


def pipeline():
    """Three stages of a pipeline, none of which is late."""
    return PipelineRun(3, microbatches=4, steps=5).merged()


def programs_apart():
    """Two programs that each reduce by themselves, one of them slower."""
    run = Run(2, steps=9)
    run.apart, run.communicators, run.slower = True, [None, None], {1: 1.3}
    return run.merged()


def starting_late():
    """The first operation comes 50 ms after the first call, and the profiler lost events."""
    truth = planted.deep_queue(8)
    truth.trace.diagnostic("CUDA events were lost: buffers were dropped")
    truth.trace.row(
        "CUPTI_ACTIVITY_KIND_RUNTIME", start=10_000 - 50_000_000, end=5_000, eventClass=0,
        globalTid=truth.loops[0].host.global_tid, correlationId=90_000, nameId="cudaFree_v3020", returnValue=0,
    )  # fmt: skip
    return truth


def whole_graphs():
    """CUDA graphs that the host launches far ahead of the GPU, traced without their kernels."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(8):
        loop.step()
        loop.graph(whole=500_000)
    loop.sync()
    return planted.planted(trace, loop)


def migrating():
    """Steps of a kernel for which pages of unified memory move."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(8):
        host.launch("add(float *)", runs=1_000_000, grid=(4096, 1, 1)).sync("device").idle(100_000)
        host.migrate("UM H2D", 2 << 20, at=host.now - 600_000, runs=100_000)
    return trace


def failing():
    """Launches of which one fails."""
    truth = planted.launch_bound(8)
    truth.loops[0].host.call("cudaLaunchKernel_v7000", returns=222)
    return truth


def loading():
    """Three kernels; the GPU waits 5 ms for each of their launches, and for the end of the program."""
    trace = Trace()
    host = trace.thread()
    for name in ("load", "solve", "store"):
        host.launch(f"{name}(float *)", queue=5_000_000, runs=20_000).idle(5_020_000)
    host.call("cudaDeviceReset_v3020", takes=20_000_000)
    return trace


def beside(side, *, threads=1):
    """Each step waits for a kernel of 200 µs and for one beside it on another stream; another thread may call."""
    trace = Trace()
    host, other = trace.thread(), trace.thread(tid=101)
    for _ in range(12):
        with host.nvtx("step"):
            if threads > 1:
                for at in range(20):
                    other.call("cudaEventQuery", at=host.now + at * 10_000, takes=9_000)
            host.launch("wide(float *)", runs=200_000, stream=7).launch("side(float *)", runs=side, stream=13)
            host.sync("device").idle(20_000)
    return trace


def two_streams():
    return beside(150_000)


def one_kernel_far_longer():
    return beside(5_000)


def two_threads():
    return beside(150_000, threads=2)


# What must be found, and what must not be.
FIRES = {
    "launch-bound": planted.launch_bound,
    "many-launches": unrepeated,
    "graph-candidate": planted.launch_bound,
    "fusion": chained,
    "cpu-work": thinking,
    "d2h-sync": planted.sync_bound,
    "other-wait": waiting,
    "allocation": planted.allocating,
    "copy-bound": pageable,
    "pageable-copy": pageable,
    "blocking-memset": zeroing,
    "small-grid": small,
    "low-occupancy": crowded,
    "exposed-communication": planted.communicating,
    "late-rank": late_rank,
    "slow-rank": slow_rank,
    "moving-straggler": ranks_by_turns,
    "pipeline-bubble": pipeline,
    "outlier-steps": planted.straggling,
    "idle-at-start": starting_late,
    "outside-steps": starting_late,
    "profiler-overhead": planted.profiled,
    "capture-problem": starting_late,
    "hot-kernels": planted.deep_queue,
    "critical-path": two_streams,
    "unified-memory": migrating,
    "stall-place": thinking,
    "failed-calls": failing,
    "slow-launches": loading,
    "idle-at-end": loading,
}
SILENT = {
    "launch-bound": [healthy, planted.communicating, thinking, unrepeated],
    "many-launches": [healthy, planted.launch_bound, thinking],
    "graph-candidate": [healthy, "decode_graph_node", thinking, unrepeated],
    "fusion": [planted.launch_bound, healthy],
    "cpu-work": [planted.launch_bound, healthy, planted.sync_bound, chained],
    "d2h-sync": [planted.launch_bound, healthy, pageable, waiting],
    "other-wait": [planted.launch_bound, healthy, planted.sync_bound],
    "allocation": [planted.launch_bound, planted.sync_bound],
    "copy-bound": [planted.launch_bound, planted.sync_bound, healthy],
    "pageable-copy": [pinned, planted.sync_bound],
    "blocking-memset": [pinned],
    "small-grid": [healthy, crowded, planted.launch_bound],
    "low-occupancy": [healthy, small],
    "exposed-communication": [healthy],
    "late-rank": [even_ranks, planted.communicating, slow_rank, ranks_by_turns, programs_apart, pipeline],
    "slow-rank": [even_ranks, late_rank, ranks_by_turns, programs_apart, pipeline],
    "moving-straggler": [even_ranks, late_rank, slow_rank, programs_apart, pipeline],
    "pipeline-bubble": [even_ranks, late_rank, slow_rank],
    "outlier-steps": [planted.launch_bound],
    "idle-at-start": [healthy, planted.launch_bound],
    "outside-steps": [healthy, planted.launch_bound],
    "profiler-overhead": [planted.launch_bound, healthy],
    "capture-problem": [healthy, planted.launch_bound],
    "hot-kernels": [planted.launch_bound, whole_graphs],
    "critical-path": [
        one_kernel_far_longer,
        two_threads,
        planted.deep_queue,
        planted.communicating,
        planted.launch_bound,
    ],
    "unified-memory": [healthy, pageable],
    "stall-place": [healthy, planted.launch_bound, planted.sync_bound],
    "failed-calls": [healthy, planted.launch_bound],
    "slow-launches": [healthy, planted.launch_bound, thinking, unrepeated],
    "idle-at-end": [healthy, planted.launch_bound, starting_late],
}


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    """Give the diagnosis of a planted trace or of a sample, made once; its trace stays open."""
    known = {}
    loops = {make: name for name, make in planted.ALL.items()}

    with ExitStack() as opened:

        def once(what):
            if what not in known:
                if what in loops:
                    path = planted_path(loops[what])
                elif callable(what):
                    path = what().write(tmp_path_factory.mktemp("planted") / "trace.sqlite")
                else:
                    path = many_traces.SAMPLES / f"{what}.sqlite"
                known[what] = opened.enter_context(open_trace(path)).diagnose()
            return known[what]

        yield once


def every(found):
    """All findings by name, also those under others."""
    return {one.name: one for finding in found.findings for one in (finding, *finding.also)}


def own_ns(found):
    """What the findings that do not overlap win together."""
    return sum(finding.recoverable_ns or 0 for finding in found.findings if not finding.overlaps)


def rows(found, report):
    answer = found.answers[report]
    names = [column.name for column in answer.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.rows()]


def row(found, report, **where):
    (one,) = (row for row in rows(found, report) if all(row[name] == value for name, value in where.items()))
    return one


@pytest.mark.slow
def test_a_connection_that_duckdb_gives_up_on_the_way_is_asked_anew(tmp_path, monkeypatch):
    path = planted.launch_bound().write(tmp_path / "trace.sqlite")
    with nsys_insight.open(path) as trace:
        expected = trace.diagnose().text(None)
    with nsys_insight.open(path) as trace:
        ask, lost = trace.dicts, []

        def dicts(query, *rest):
            if not lost and query.startswith("WITH"):
                lost.append(query)
                trace._connection._files._strategies.repeat()  # as after DuckDB's InternalException
                trace._connection._files.open()
            return ask(query, *rest)

        monkeypatch.setattr(trace, "dicts", dicts)
        assert trace.diagnose().text(None) == expected
        assert lost


# Each finding --------------------------------------------------------------------------------------------------------


def test_every_finding_has_a_trace_on_which_it_fires_and_others_on_which_it_does_not():
    assert set(FIRES) == set(SILENT) == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_a_finding_fires_on_what_was_planted_and_says_what_to_do(name, diagnosed):
    finding = every(diagnosed(FIRES[name]))[name]
    assert finding.severity in diagnosis.SEVERITIES
    assert re.search(r"\d", finding.evidence) or name == "capture-problem"
    assert all(len(text) > 20 for text in (finding.meaning, finding.action, finding.caveat))


@pytest.mark.parametrize("name", RULES)
def test_a_finding_is_silent_where_there_is_nothing_to_find(name, diagnosed):
    for make in SILENT[name]:
        assert name not in every(diagnosed(make)), make


@pytest.mark.parametrize("name", RULES)
def test_a_finding_reads_views_and_reports_and_shows_one_that_it_reads(name):
    rule = RULES[name]
    reports = reports_of(rule.sql)
    assert set(reports) <= set(library.built_in())
    tables = {table for table in names.tables_read(rule.statement()) if not table.endswith("_report")}
    assert tables <= {*views.documented(), "scope"}
    assert parameters.parameters(f"{rule.sql};{rule.when}") - {"per", "tokens", "shown_pct"} == set(rule.params)
    report = rule.report.split()[0]
    shown = set() if report == "sql" else {*names.tables_read(library.pack_of(report).sql)}
    assert report in (
        *reports,
        "steps" if "steps" in tables else "",
        # One that is made of the same view.
        report if tables & shown else "",
        "ranks" if rule.of_run else "",
        "sql",
    )


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["churn", *sweep(name for name in SAMPLES if name != "churn")])
def test_a_finding_that_is_not_asked_would_find_nothing(sample, diagnosed, monkeypatch):
    found = diagnosed(sample).findings
    # The critical path is not asked where it would find what others have: that is no shortcut.
    asked = [replace(rule, when=rule.when if rule.name == "critical-path" else "") for rule in finding_rules()]
    monkeypatch.setattr(diagnosis, "finding_rules", lambda: asked)
    with open_trace(many_traces.SAMPLES / f"{sample}.sqlite") as trace:
        assert trace.diagnose().findings == found


# The numbers of a finding are those of the report that its command shows: where that has them in a cell, that cell.
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
def test_the_number_of_a_finding_is_the_one_that_its_report_shows(name, diagnosed):
    report, where, column = CELLS[name]
    for what in (FIRES[name], *SAMPLES):
        found = diagnosed(what)
        finding = every(found).get(name)
        if finding is not None:
            assert finding.report == report
            shown = finding.wall_pct if column == "wall_pct" else finding.recoverable_ns
            assert shown == row(found, report, **where)[column]


def test_the_share_of_a_finding_is_its_time_as_a_share_of_the_wall(diagnosed):
    for what in {*FIRES.values(), *SAMPLES}:
        found = diagnosed(what)
        for finding in every(found).values():
            if finding.recoverable_ns is not None:
                # That of fusion is a share of the typical step.
                assert finding.wall_pct == pytest.approx(100 * finding.recoverable_ns / found.wall_ns, rel=1e-2)


# What was planted ----------------------------------------------------------------------------------------------------


def test_the_critical_path_says_what_is_saved_until_another_path_takes_over(diagnosed):
    # Launched 5 µs after `wide`, `side` ends 45 µs before it.
    found = every(diagnosed(two_streams))["critical-path"]
    assert found.recoverable_ns == pytest.approx(45_000, abs=2_000)
    assert "wide holds the critical path of a step for 200 µs" in found.evidence
    assert "and as much if it takes half the time; then side takes over" in found.evidence


def test_launches_cost_what_was_planted(diagnosed):
    # 10 kernels of 2 µs a step; before 9 of them the GPU waits 7 µs; 0.3 µs of each stays in a graph.
    found = every(diagnosed(planted.launch_bound))
    assert found["launch-bound"].recoverable_ns == pytest.approx(9 * 7_000 - 9 * 300, abs=300)
    assert "4 µs" in found["launch-bound"].evidence
    assert "a kernel takes 2 µs" in found["launch-bound"].evidence


def test_cpu_work_costs_what_was_planted(diagnosed):
    truth = thinking()
    steady = truth.steps[:-1]
    python = sum(gap.duration_ns for gap in truth.gaps if gap.host == "python" and gap.start_ns < steady[-1].end_ns)
    finding = every(diagnosed(thinking))["cpu-work"]
    assert finding.recoverable_ns == pytest.approx(python / len(steady), rel=0.01)


def test_allocations_cost_what_was_planted(diagnosed):
    finding = every(diagnosed(planted.allocating))["allocation"]
    assert finding.recoverable_ns == pytest.approx(60_000)
    assert finding.evidence.startswith("2 calls a step take the host 60 µs")
    assert finding.place in ("cudaMalloc, cudaFree", "cudaFree, cudaMalloc")


def test_a_small_grid_wastes_all_but_its_share_of_the_gpu(diagnosed):
    # 9 kernels of 50 µs a step, of 4 blocks each, on the 132 SMs of an H200.
    found = diagnosed(small)
    finding = every(found)["small-grid"]
    assert finding.recoverable_ns == pytest.approx(found.wall_ns * (1 - 4 / 132), rel=1e-3)
    assert "grid 4x1x1 on 132 SMs" in finding.evidence


def test_a_slow_rank_is_the_one_that_works_longer(diagnosed):
    found = diagnosed(slow_rank)
    finding = every(found)["slow-rank"]
    assert (found.run.rank, finding.place) == (1, "rank 1")
    assert finding.recoverable_ns == pytest.approx(200_000)
    assert "its GPU is busy 1.7 times as long" in finding.evidence


def test_the_rank_that_is_looked_at_is_the_one_that_the_others_wait_for(diagnosed):
    found = diagnosed(late_rank)
    assert found.run.sentence.startswith(
        "2 ranks: rank 1 is late in 3 of 8 steps (2, 5, 8) by 3 ms: CPU work in data; "
    )
    assert found.trace["scope"] == {"process": 101}
    assert found.findings[0].name == "late-rank"
    assert found.text(80).startswith("2 ranks: rank 1 is late")
    assert found.answer().summary["run"]["rank"] == 1


def test_waiting_for_other_ranks_is_no_communication_that_overlap_would_hide(diagnosed):
    found = diagnosed(ranks_by_turns)
    assert found.verdict == "waiting for other ranks"
    exposed = every(found)["exposed-communication"]
    assert exposed.recoverable_ns < 0.2 * found.wall_ns
    assert "of that is waiting for other ranks" in exposed.evidence


def test_an_outlier_costs_what_it_takes_longer_shared_by_all_steps(diagnosed):
    finding = every(diagnosed(planted.straggling))["outlier-steps"]
    assert finding.recoverable_ns == pytest.approx(500_000 / 11, rel=0.02)
    assert finding.place.startswith("step 7, at ")
    assert finding.evidence.startswith("1 of 11 steps")


def test_start_up_is_told_as_a_share_of_the_trace_and_not_as_what_a_step_may_win(diagnosed):
    found = every(diagnosed(starting_late))
    for name in ("idle-at-start", "outside-steps"):
        assert (found[name].recoverable_ns, found[name].of) == (None, "trace")
        assert found[name].wall_pct == pytest.approx(100 * 50 / 53.3, abs=1)


@pytest.mark.parametrize("make", [planted.launch_bound, planted.sync_bound, planted.allocating, healthy, whole_graphs])
def test_busy_and_idle_are_those_of_the_steps_that_were_planted(make, diagnosed):
    found = diagnosed(make)
    steady = [step for step in make().steps if step.phase == "steady"][: found.steps["steady_count"]]
    assert found.wall_ns == pytest.approx(sum(step.wall_ns for step in steady) / len(steady), rel=1e-6)
    busy = 100 * sum(step.busy_ns for step in steady) / sum(step.wall_ns for step in steady)
    assert found.busy_pct == pytest.approx(busy, abs=1e-6)


# How a run stands ----------------------------------------------------------------------------------------------------


def test_a_run_whose_gpu_never_waits_is_called_healthy_with_the_numbers(diagnosed):
    found = diagnosed(healthy)
    assert (found.status, found.verdict) == ("healthy", "GPU-bound")
    assert re.search(
        r"Healthy: the GPU is busy (9\d\.\d|100\.0) % of (the wall time|a step), .* \d+\.\d % of their time",
        found.text(500),
    )


def test_graphs_without_their_kernels_are_not_healthy_for_want_of_kernels(diagnosed):
    found = diagnosed(whole_graphs)
    assert found.status == "unseen"
    assert "Healthy" not in found.text()
    assert "--cuda-graph-trace=node" in found.text(500)
    assert "--cuda-graph-trace=node" not in diagnosed("decode_graph_node").text(500)


def test_a_run_that_something_holds_up_is_not_healthy(diagnosed):
    assert all(diagnosed(what).status == "findings" for what in (planted.sync_bound, *SAMPLES))


@pytest.mark.slow
def test_whatever_a_trace_lacks_there_is_a_diagnosis(tmp_path):
    files = many_traces.write(tmp_path)
    for name in ("nothing", "kernels only", "missing columns"):
        with nsys_insight.open(files[name]) as trace:
            found = trace.diagnose()
            assert found.answer().row_count == len(every(found))
        if name == "nothing":
            assert (found.status, found.findings, found.wall_ns) == ("empty", (), None)
            assert "nsys profile -t cuda" in found.text()
        else:
            assert sum(share.wall_pct for share in found.shares) == pytest.approx(100)


@pytest.mark.slow
@given(random_traces())
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
def test_the_parts_are_the_whole_and_no_more_is_won_than_there_is(tmp_path_factory, trace):
    with open_trace(trace.write(tmp_path_factory.mktemp("random") / "trace.sqlite")) as opened:
        found = opened.diagnose()
        if found.wall_ns:
            assert sum(share.wall_pct for share in found.shares) == pytest.approx(100)
            assert own_ns(found) <= found.wall_ns * (1 + 1e-9)
        assert len(found.findings) <= 7
        assert all(len(line) <= 60 for line in found.text(60).splitlines())


def test_no_more_is_won_than_there_is_in_what_was_planted(diagnosed):
    for what in {*FIRES.values(), *SAMPLES}:
        assert own_ns(diagnosed(what)) <= diagnosed(what).wall_ns


def test_the_headline_s_shares_are_those_of_classify(diagnosed):
    for what in {*FIRES.values(), *SAMPLES}:
        found = diagnosed(what)
        line = next(line for line in found.text(500).splitlines() if line.startswith("GPU busy"))
        busy, idle = (float(re.search(rf"{word} (\d+\.\d) %", line)[1]) for word in ("busy", "idle"))
        assert round(busy + idle, 1) == 100.0
        printed = dict(re.findall(r"(\w+) (\d+\.\d)(?=,|$)", line.partition("charged to")[2]))
        assert printed == {s.part: f"{s.wall_pct:.1f}" for s in found.shares if not s.is_busy and s.wall_pct >= 0.05}


# Ranking -------------------------------------------------------------------------------------------------------------


def finding(name, recoverable=None, share=None, *, family=None, overlaps=False, severity="info"):
    texts = dict.fromkeys(("evidence", "meaning", "action", "caveat", "report", "command"), "")
    return Finding(name, name, severity, family or name, recoverable, share, "step", overlaps, None, **texts)


def test_findings_are_ranked_by_what_can_be_won_and_what_is_too_little_is_dropped():
    found = [
        finding("little", 9, 0.99), finding("some", 10, 1.0), finding("most", 90, 9.0), finding("told", None, 30.0),
        finding("capture", severity="warning"), finding("remedy", 80, 8.0, overlaps=True), finding("more", 20, 2.0),
    ]  # fmt: skip
    assert [one.name for one in ranked(found)] == ["most", "more", "some", "remedy", "capture", "told"]


def test_what_the_verdict_is_about_comes_first_but_for_what_is_critical():
    found = [
        finding("little", 20, 4.0, severity="warning"), finding("kernels", None, 60.0),
        finding("most", 90, 90.0, severity="critical"),
    ]  # fmt: skip
    assert [one.name for one in ranked(found, first="kernels")] == ["most", "kernels", "little"]
    assert [one.name for one in ranked(found)] == ["most", "little", "kernels"]


def test_a_family_is_one_finding_and_a_problem_comes_before_its_remedy():
    found = [
        finding("graph", 80, 80.0, family="launch", overlaps=True), finding("launch", 70, 70.0, family="launch"),
        finding("memset", 0.5, 0.5, family="launch", overlaps=True), finding("sync", 20, 20.0),
    ]  # fmt: skip
    first, second = ranked(found)
    assert (first.name, [one.name for one in first.also], second.name) == ("launch", ["graph"], "sync")


def test_there_are_at_most_seven_findings():
    assert len(ranked([finding(f"{number}", number, 10.0) for number in range(1, 20)])) == 7


# Scope, steps, and what comes after ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_scope_and_options_about_steps_are_kept_in_the_commands(sample):
    with open_trace(sample("decode_eager"), nvtx="decode_step") as trace:
        found = trace.diagnose(tokens_per_step=4)
    whole = every(found)["launch-bound"]
    assert found.per == "token"
    assert found.trace["scope"] == {"nvtx": "decode_step"}
    assert found.wall_ns == pytest.approx(2_673_265 / 4, rel=0.01)
    assert shlex.split(whole.command)[3:] == ["--nvtx", "decode_step", "--tokens-per-step", "4"]
    assert "idle-at-start" not in every(found)


@pytest.mark.slow
def test_a_diagnosis_leaves_the_trace_as_it_was(sample):
    with nsys_insight.open(sample("churn")) as trace:
        trace.diagnose()
        asked = {"step_method": "count", "tokens": 5}
        after = trace.answer("classify", **asked).rows()
        with nsys_insight.open(sample("churn")) as fresh:
            assert after == fresh.answer("classify", **asked).rows()
        assert set(step_options.PARAMS) >= set(asked)


def test_several_traces_have_no_diagnosis(sample):
    with (
        nsys_insight.open([sample("churn"), sample("decode_eager")]) as both,
        pytest.raises(nsys_insight.errors.UsageError),
    ):
        both.diagnose()


# Real traces ---------------------------------------------------------------------------------------------------------


def test_the_headline_of_a_real_trace_is_what_plain_loops_find(diagnosed, sample):
    tables = oracle.read(sample("decode_eager"))
    names = oracle.strings(tables)
    ranges = [
        (one["start"], one["end"]) for one in tables["NVTX_EVENTS"]
        if (one["text"] or names.get(one["textId"])) == "decode_step"
    ]  # fmt: skip
    work = sorted((one["start"], one["end"]) for table in oracle.GPU_WORK for one in tables[table])
    busy = covered = 0
    for start, end in ranges:
        reached = start
        for begun, over in work:
            if over > reached and begun < end:
                busy += min(over, end) - max(begun, reached)
                reached = max(reached, min(over, end))
        covered += end - start
    found = diagnosed("decode_eager")
    assert found.wall_ns == pytest.approx(covered / len(ranges))
    assert found.busy_pct == pytest.approx(100 * busy / covered)
    launches = [
        one for one in tables[oracle.RUNTIME]
        if oracle.LAUNCH.match(names[one["nameId"]]) and any(start <= one["start"] < end for start, end in ranges)
    ]  # fmt: skip
    assert f"{len(launches) // len(ranges)} launch calls" in every(found)["launch-bound"].evidence


def test_pinned_copies_of_a_real_trace_are_not_counted_as_pageable(diagnosed, sample):
    # churn: of the four copies of a step, one is from pinned memory.
    assert every(diagnosed("churn"))["pageable-copy"].evidence.startswith("3 copies a step")


@pytest.mark.sweep
def test_what_other_people_s_traces_say(shared):
    found = {}
    for path in sorted((shared / "foreign").glob("*.sqlite")):
        with open_trace(path) as trace:
            found[path.name.partition(".")[0]] = trace.diagnose()
    assert found["mordred"].findings[0].name == "copy-bound"
    assert found["mordred"].busy_pct > 60  # its copies are no idle time
    # Its step is 85 launches and one long time of CPU work: no graph would help.
    assert [one.name for one in found["power_iteration"].findings] == ["cpu-work", "hot-kernels"]
    assert (
        "44 of 44 steps stall 14.4 ms before gemv2T_kernel_val"
        in every(found["power_iteration"])["stall-place"].evidence
    )
    assert every(found["power_iteration"]).keys().isdisjoint({"graph-candidate", "launch-bound"})
    assert found["cloverleaf"].verdict == "GPU-bound"
    assert [one.name for one in found["cloverleaf"].findings[:2]] == ["hot-kernels", "other-wait"]
    assert {"cpu-work", "copy-bound", "small-grid"} <= every(found["saxpy_mpi"]).keys()


# How it is written ---------------------------------------------------------------------------------------------------


def test_the_text_fits_the_screen(diagnosed):
    for what in {*FIRES.values(), *SAMPLES}:
        assert max(map(len, diagnosed(what).text(80).splitlines())) <= 80
    for what in SAMPLES:
        found = diagnosed(what)
        above = found.text(80).partition("\nFor details")[0]
        assert len(above.splitlines()) <= (21 if len(found.findings) < 3 else 42)


def test_the_table_has_all_findings_and_the_headline_beside_them(diagnosed):
    found = diagnosed("churn")
    answer = found.answer()
    names = [column.name for column in answer.columns]
    table = [dict(zip(names, values, strict=True)) for values in answer.rows()]
    assert [one["finding"] for one in table if one["under"] is None] == [one.name for one in found.findings]
    assert {one["finding"] for one in table} == set(every(found))
    assert answer.summary["verdict"] == found.verdict
    assert sum(share["wall_pct"] for share in answer.summary["shares"]) == pytest.approx(100)
    assert all(column.description for column in answer.columns)


def test_markdown_says_the_same(diagnosed):
    found = diagnosed("decode_eager")
    written = markdown(found)
    for one in every(found).values():
        assert one.command in written
    assert written.count("### ") == len(found.findings)
