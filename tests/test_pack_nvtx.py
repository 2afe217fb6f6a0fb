"""`nvtx`: host and GPU time by range, against the output of nsys, plain loops, and planted traces."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import oracle
import pytest
from command_line import PROCESS, run
from hypothesis import HealthCheck, given, settings
from opening import diagnose_with, open_trace
from strategies import traces
from synthetic import Trace

from nsys_insight.errors import UsageError

REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY / "sample_traces"
NSYS_FOLDER = REPOSITORY / "tests" / "data" / "nsys_stats"
NAMES = sorted(path.name.partition(".")[0] for path in NSYS_FOLDER.glob("*.nvtx_sum.csv"))
STYLES = {oracle.PUSH_POP: "push/pop", oracle.START_END: "start/end"}


def ask(path, scope=None, **params):
    """Ask about ranges by their full names, as nsys and the loops do."""
    with open_trace(path, **scope or {}) as trace:
        return {(row["name"], row["style"]): row for row in trace.nvtx(fold=False, **params).to_dicts()}


def ask_by_name(trace, tmp_path, **params):
    """Return the rows of a synthetic trace by name."""
    return {name: row for (name, _), row in ask(trace.write(tmp_path / "trace.sqlite"), **params).items()}


def read_nsys_report(name, report):
    with (NSYS_FOLDER / f"{name}.{report}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def calculate_expected(tables):
    """Add up host and GPU time by name and style, in loops: each piece of GPU work looks for the ranges around it."""
    ranges, calls = oracle.nvtx_ranges(tables), oracle.calls_by_id(tables)
    expected = defaultdict(lambda: defaultdict(int))
    for number, row in enumerate(ranges):
        row["number"] = number
        row["key"] = (f"{row['domain']}:{row['name']}" if row["domain"] else row["name"], STYLES[row["eventType"]])
        expected[row["key"]]["calls"] += 1
    spans = defaultdict(list)
    for table in oracle.GPU_WORK:
        for work in tables[table]:
            call = calls.get((oracle.pid_of(work), work["correlationId"]))
            open_ranges = oracle.open_at(ranges, call["globalTid"], call["start"]) if call else []
            for key in {row["key"] for row in open_ranges}:
                expected[key]["gpu_ns"] += oracle.duration(work)
                expected[key]["kernels"] += table == oracle.KERNEL
            nested = [row for row in open_ranges if row["eventType"] == oracle.PUSH_POP]
            if nested:
                expected[nested[0]["key"]]["own_gpu_ns"] += oracle.duration(work)
            for row in open_ranges:
                spans[row["number"], row["key"]].append((work["start"], work["end"]))
    for (_, key), intervals in spans.items():
        expected[key]["projected_ns"] += max(end for _, end in intervals) - min(start for start, _ in intervals)
    for key in expected:
        times = [oracle.duration(row) for row in ranges if row["key"] == key and row["end"] is not None]
        expected[key]["host_ns"] = sum(times) if times else None
    return expected


def calculate_time_during(tables):
    """Calculate by name and style how long the GPU was busy and idle during ranges; the mean of a process's GPUs."""
    busy, gpus = oracle.busy_intervals(tables), defaultdict(set)
    for gpu, work in oracle.work_of_gpus(tables).items():
        for row in work:
            gpus[oracle.pid_of(row)].add(gpu)
    intervals = defaultdict(list)
    for row in oracle.nvtx_ranges(tables):
        key = (f"{row['domain']}:{row['name']}" if row["domain"] else row["name"], STYLES[row["eventType"]])
        if row["end"] is not None and gpus[oracle.pid_of(row)]:
            intervals[key, oracle.pid_of(row)].append((row["start"], max(row["start"], row["end"])))
    times = defaultdict(lambda: [0.0, 0.0])
    for (key, process), ranges in intervals.items():
        for gpu in gpus[process]:
            for start, end in oracle.union(ranges):
                busy_ns = sum(max(0, min(end, e) - max(start, s)) for s, e in busy[gpu])
                times[key][0] += busy_ns / len(gpus[process])
                times[key][1] += (end - start - busy_ns) / len(gpus[process])
    return times


def assert_times_during_equal(answer, expected):
    for key, row in answer.items():
        if row["gpu_busy_during_ns"] is None:
            assert (row["gpu_idle_during_ns"], sum(expected[key])) == (None, 0), key
        else:
            assert [row["gpu_busy_during_ns"], row["gpu_idle_during_ns"]] == pytest.approx(expected[key], abs=1), key


def assert_equal(answer, expected):
    assert answer.keys() == expected.keys()
    for key, row in answer.items():
        columns = ["calls", "host_ns", "gpu_ns", "kernels", "projected_ns"]
        if row["style"] == "push/pop":
            columns.append("own_gpu_ns")
        assert {c: row[c] for c in columns} == {c: expected[key][c] for c in columns}, key


class TestAgainstNsys:
    @pytest.mark.parametrize("name", NAMES)
    def test_host_times_are_those_of_nvtx_sum(self, name):
        answer = ask(SAMPLES / f"{name}.sqlite")
        rows = read_nsys_report(name, "nvtx_sum")
        assert {(row["Range"].lstrip(":"), "push/pop") for row in rows} == answer.keys()
        for row in rows:
            own_row = answer[row["Range"].lstrip(":"), "push/pop"]
            assert (own_row["calls"], own_row["host_ns"]) == (int(row["Instances"]), int(row["Total Time (ns)"]))
            for column, nsys_column in (
                ("avg", "Avg"),
                ("med", "Med"),
                ("min", "Min"),
                ("max", "Max"),
                ("stddev", "StdDev"),
            ):
                # nsys prints 0 if a single range has no deviation.
                assert (own_row[f"{column}_ns"] or 0) == pytest.approx(float(row[f"{nsys_column} (ns)"]), abs=0.051)

    @pytest.mark.parametrize("name", NAMES)
    def test_kernels_are_those_of_nvtx_kern_sum(self, name):
        kernels = defaultdict(int)
        for row in read_nsys_report(name, "nvtx_kern_sum"):
            if row["NVTX Range"]:
                kernels[row["NVTX Range"].lstrip(":"), "push/pop"] += int(row["Kern Inst"])
        assert {key: row["kernels"] for key, row in ask(SAMPLES / f"{name}.sqlite").items()} == kernels

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "decode_graph_whole"])
    def test_projected_times_are_those_of_nvtx_gpu_proj_sum(self, name):
        # nsys projects without graphs that were traced as a unit: the numbers of that trace differ, as expected.
        projected = {
            (row["Range"].lstrip(":"), "push/pop"): int(row["Total Proj Time (ns)"])
            for row in read_nsys_report(name, "nvtx_gpu_proj_sum")
        }
        assert {key: row["projected_ns"] for key, row in ask(SAMPLES / f"{name}.sqlite").items()} == projected


class TestAgainstLoops:
    @pytest.mark.parametrize("name", NAMES)
    def test_sample_traces(self, name):
        path = SAMPLES / f"{name}.sqlite"
        answer, tables = ask(path), oracle.read(path)
        assert_equal(answer, calculate_expected(tables))
        assert_times_during_equal(answer, calculate_time_during(tables))

    @pytest.mark.slow
    @settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(trace=traces())
    def test_any_trace(self, trace, tmp_path):
        path = trace.write(tmp_path / "trace.sqlite")
        answer, tables = ask(path), oracle.read(path)
        assert_equal(answer, calculate_expected(tables))
        assert_times_during_equal(answer, calculate_time_during(tables))

    @pytest.mark.parametrize("name", NAMES)
    def test_own_times_add_up_to_those_of_the_outermost_ranges(self, name):
        answer = ask(SAMPLES / f"{name}.sqlite", by="path").values()
        outermost = [row for row in answer if "/" not in row["name"]]
        assert sum(row["own_host_ns"] for row in answer) == sum(row["host_ns"] for row in outermost)
        assert sum(row["own_gpu_ns"] for row in answer) == sum(row["gpu_ns"] for row in outermost)

    @pytest.mark.parametrize("name", NAMES)
    def test_by_path_a_name_is_split_by_its_enclosing_ranges(self, name):
        path = SAMPLES / f"{name}.sqlite"
        by_name, by_path = ask(path), ask(path, by="path")
        assert {"/".join(row["path"]) for row in oracle.nvtx_nesting(oracle.read(path))} == {p for p, _ in by_path}
        for (range_name, _), row in by_name.items():
            path_rows = [
                path_row for (path_text, _), path_row in by_path.items() if path_text.rpartition("/")[2] == range_name
            ]
            for column in ("calls", "host_ns", "own_host_ns", "gpu_ns", "own_gpu_ns", "kernels", "projected_ns"):
                assert sum(path_row[column] for path_row in path_rows) == row[column]


def test_work_counts_for_the_launching_thread_even_if_it_runs_late(tmp_path):
    trace = Trace()
    host = trace.thread(pid=1, tid=1)
    host.range("early", 0, 10_000).launch("slow", start=1_000, api=1_000, queue=500_000, runs=700)
    host.range("late", 400_000, 600_000)  # the kernel runs during this range, but does not belong to it
    trace.thread(pid=1, tid=2).launch("other thread's", start=2_000, queue=0, runs=50)
    trace.thread(pid=2, tid=1).launch("other process's", start=3_000, queue=0, runs=60)
    answer = ask_by_name(trace, tmp_path)
    assert (answer["early"]["kernels"], answer["early"]["gpu_ns"]) == (1, 700)
    assert (answer["late"]["kernels"], answer["late"]["gpu_ns"], answer["late"]["projected_ns"]) == (0, 0, 0)


def plan_waits_and_files():
    """Build steps that launch a long kernel, wait for it in a range that launches nothing, and write a file."""
    trace = Trace()
    host = trace.thread()
    for number in range(8):
        with host.nvtx(f"launch {number}"):
            host.launch("k", api=1_000, queue=0, runs=90_000)
        with host.nvtx(f"wait {number}"):
            host.sync("stream")
        with host.nvtx(f"file {number}"):
            host.idle(50_000)
    host.launch("last", queue=0, runs=1_000)
    return trace


@pytest.fixture(scope="module")
def waits_and_files(tmp_path_factory):
    return plan_waits_and_files().write(tmp_path_factory.mktemp("waits") / "trace.sqlite")


def test_a_range_that_waits_for_a_busy_gpu_is_not_idle(waits_and_files):
    answer = {name: row for (name, _), row in ask(waits_and_files).items()}
    for number in range(8):
        wait, file = answer[f"wait {number}"], answer[f"file {number}"]
        assert (wait["gpu_ns"], file["gpu_ns"], file["gpu_busy_during_ns"]) == (0, 0, 0)
        assert wait["gpu_busy_during_ns"] > 0.95 * wait["host_ns"]
        assert file["gpu_idle_during_ns"] == file["host_ns"]


def test_what_the_gpu_does_during_a_step_is_known_in_its_time_window_only(sample):
    with open_trace(sample("decode_eager"), step=17) as trace:
        answer = trace.answer("nvtx")
        rows = answer.frame().to_dicts()
        assert rows
        assert {row["gpu_idle_during_ns"] for row in rows} == {row["gpu_busy_during_ns"] for row in rows} == {None}
        (note,) = [note for note in answer.notes if "work of earlier steps" in note]
        window = re.search(r"--from (\S+)ms --to (\S+)ms", note).groups()
    start_ns, end_ns = (round(float(text) * 1e6) for text in window)
    with open_trace(sample("decode_eager"), from_ns=start_ns, to_ns=end_ns) as trace:
        assert all(row["gpu_idle_during_ns"] is not None for row in trace.nvtx().to_dicts() if row["host_ns"])


def test_the_scope_of_ranges_that_launch_nothing_has_their_idle_time(waits_and_files):
    with open_trace(waits_and_files, nvtx="file #") as trace:
        file_ns = sum(row["host_ns"] for (name, _), row in ask(waits_and_files).items() if name.startswith("file"))
        assert {row["cause"]: row["time_ns"] for row in trace.idle().to_dicts()} == {"busy": 0, "launch": file_ns}
        assert [row["duration_ns"] for row in trace.gaps().to_dicts()] == [file_ns // 8] * 8
        assert trace.top().to_dicts() == []
        assert trace.answer("top").empty == "Nothing in this scope (--nvtx 'file #'): no GPU work was launched in it."


def test_a_number_sign_stands_for_any_number(waits_and_files):
    with open_trace(waits_and_files) as trace:
        for pattern, count in (("file #", 8), ("file *", 8), ("f*#", 8), ("f…#", 8), ("file 3", 1)):
            assert trace.scope(nvtx=pattern).rows("SELECT range_count FROM scope")[0].range_count == count, pattern
        with pytest.raises(UsageError, match="no NVTX range is named"):
            trace.scope(nvtx="# #").idle()


def test_an_ellipsis_that_fits_several_names_says_which(sample):
    with open_trace(sample("decode_eager"), nvtx="…e…") as trace:
        assert trace.answer("top").notes_named("shortened") == (
            "… stands for any text; the scope has the ranges decode_step, layer_#, prefill",
        )
    with open_trace(sample("decode_eager"), nvtx="decode…") as trace:
        assert trace.answer("top").notes_named("shortened") == ()


@pytest.mark.slow
def test_a_kernel_in_two_ranges_of_one_name_counts_once(tmp_path):
    trace = Trace()
    host = trace.thread().range("recurse", 0, 100_000).range("recurse", 10_000, 60_000)
    host.launch("inner", start=20_000, runs=300).launch("outer", start=70_000, runs=40)
    (row,) = ask_by_name(trace, tmp_path).values()
    assert (row["calls"], row["kernels"], row["kernels_per_call"], row["gpu_ns"]) == (2, 2, 1.0, 340)
    assert (row["host_ns"], row["own_host_ns"]) == (150_000, 100_000)
    assert {name: row["kernels"] for name, row in ask_by_name(trace, tmp_path, by="path").items()} == {
        "recurse": 2,
        "recurse/recurse": 1,
    }


@pytest.mark.slow
def test_overlapping_ranges_are_not_compared_pair_by_pair(tmp_path):
    """There are 200 million pairs."""
    trace, count = Trace(), 20_000
    host = trace.thread()
    for number in range(count):
        host.range("request", 100 * number, 100 * (number + count), style="start/end")
        host.launch("k", start=100 * number + 5, api=10, queue=0, runs=20)
    (row,) = ask_by_name(trace, tmp_path).values()
    assert (row["calls"], row["kernels"], row["gpu_ns"]) == (count, count, 20 * count)
    # A request has the kernels from its own number to the last.
    assert row["projected_ns"] == sum(100 * (count - 1 - number) + 20 for number in range(count))


@pytest.mark.slow
def test_ranges_of_domains_that_overlap_have_their_own_work(tmp_path):
    trace = Trace()
    host = trace.thread().range("step", 0, 10_000).range("request", 5_000, 15_000, domain="server")
    for start_ns, runs in ((1_000, 1), (6_000, 20), (12_000, 300)):
        host.launch("k", start=start_ns, api=10, queue=0, runs=runs)
    path = trace.write(tmp_path / "trace.sqlite")
    assert_equal(ask(path), calculate_expected(oracle.read(path)))
    own_times = {name: (row["own_host_ns"], row["own_gpu_ns"]) for (name, _), row in ask(path, by="path").items()}
    assert own_times == {"step": (5_000, 1), "request": (10_000, 320)}
    with open_trace(path) as session:
        assert session.top(group_by="nvtx").select("name", "calls").rows() == [("request", 2), ("step", 1)]


def test_nested_time_is_separate_from_own_time(tmp_path):
    trace = Trace()
    host = trace.thread().range("step", 0, 100_000).range("layer", 10_000, 30_000).range("layer", 30_000, 80_000)
    host.launch("a", start=20_000, queue=0, runs=100).launch("b", start=40_000, queue=0, runs=200)
    host.launch("c", start=85_000, queue=0, runs=400)
    answer = ask_by_name(trace, tmp_path)
    assert (answer["step"]["host_ns"], answer["step"]["own_host_ns"]) == (100_000, 30_000)
    assert (answer["step"]["gpu_ns"], answer["step"]["own_gpu_ns"]) == (700, 400)
    assert (answer["layer"]["host_ns"], answer["layer"]["own_host_ns"]) == (70_000, 70_000)
    # From the first kernel's start at 25,000 to the last one's end at 90,400: idle time between them is in it.
    assert answer["step"]["projected_ns"] == 65_400
    assert answer["layer"]["projected_ns"] == 300


def test_start_end_ranges_may_overlap_and_have_no_own_time(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.range("request 1", 0, 50_000, style="start/end").range("request 2", 20_000, 90_000, style="start/end")
    host.range("step", 10_000, 40_000)
    for start_ns, runs in ((5_000, 1), (25_000, 10), (60_000, 100)):
        host.launch("k", start=start_ns, queue=0, runs=runs)
    answer = ask_by_name(trace, tmp_path)
    assert {name: row["gpu_ns"] for name, row in answer.items()} == {"request 1": 11, "request 2": 110, "step": 10}
    assert {row["style"] for row in answer.values()} == {"push/pop", "start/end"}
    for name in ("request 1", "request 2"):
        assert (answer[name]["own_host_ns"], answer[name]["own_gpu_ns"]) == (None, None)
    assert answer["step"]["own_gpu_ns"] == 10


def test_an_open_range_has_work_but_no_known_end(tmp_path):
    trace = Trace()
    host = trace.thread().range("epoch", 0, None).range("step", 1_000, 20_000)
    host.launch("k", start=2_000, runs=30).launch("k", start=50_000, runs=500)
    answer = ask_by_name(trace, tmp_path)
    epoch = answer["epoch"]
    assert (epoch["calls"], epoch["kernels"], epoch["gpu_ns"], epoch["own_gpu_ns"]) == (1, 2, 530, 500)
    assert {epoch[column] for column in ("host_ns", "wall_pct", "own_host_ns", "avg_ns", "max_ns")} == {None}
    assert answer["step"]["host_ns"] == 19_000
    with open_trace(tmp_path / "trace.sqlite") as session:
        assert any(note.startswith("1 range was still open") for note in session.answer("nvtx").notes)


def test_a_domain_is_a_prefix_that_distinguishes_equal_names(tmp_path):
    trace = Trace()
    trace.thread().range("sort", 0, 10).range("sort", 20, 50, domain="CUB").range("scan", 60, 70, registered=True)
    assert {name: row["host_ns"] for name, row in ask_by_name(trace, tmp_path).items()} == {
        "sort": 10,
        "CUB:sort": 30,
        "scan": 10,
    }


def test_work_outside_all_ranges_has_a_note(tmp_path):
    trace = Trace()
    trace.thread().range("step", 0, 10_000).launch("in", start=1_000, runs=300).launch("out", start=20_000, runs=700)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        assert any(note.startswith("70.0% of GPU time") for note in session.answer("nvtx").notes)


@pytest.mark.slow
def test_graphs_traced_as_a_unit_have_gpu_time_but_no_kernels(tmp_path):
    trace = Trace()
    trace.thread().range("step", 0, 30_000).graph_launch(graph_ns=9_000, start=1_000).graph_launch(
        kernels=[("k", 5)], start=20_000
    )
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer("nvtx")
    row = ask(tmp_path / "trace.sqlite")["step", "push/pop"]
    assert (row["gpu_ns"], row["kernels"]) == (9_005, 1)
    assert any("--cuda-graph-trace=node" in note for note in answer.notes)


def test_in_the_scope_of_a_range_only_nested_ranges_count(sample):
    unscoped_rows, scoped_rows = ask(sample("decode_eager")), ask(sample("decode_eager"), scope={"nvtx": "decode_step"})
    assert scoped_rows.keys() == {
        (name, "push/pop") for name in ("decode_step", "layer_0", "layer_1", "layer_2", "layer_3")
    }
    assert scoped_rows["decode_step", "push/pop"]["gpu_ns"] == unscoped_rows["decode_step", "push/pop"]["gpu_ns"]
    assert scoped_rows["layer_0", "push/pop"]["calls"] == 32
    assert scoped_rows["decode_step", "push/pop"]["wall_pct"] == pytest.approx(100)


def test_backtrace_rows_of_nsys_2022_do_not_count_work_twice(tmp_path):
    trace = Trace()
    trace.thread().range("step", 0, 10_000).launch("k", start=1_000, runs=300)
    path = trace.write(tmp_path / "trace.sqlite", version="2022.2")
    assert ask(path)["step", "push/pop"]["gpu_ns"] == 300


def test_without_ranges_the_answer_is_empty_and_says_how_to_get_some(sample):
    with open_trace(sample("churn")) as trace:
        answer = trace.answer("nvtx")
        assert answer.rows() == []
        # It was captured with -t cuda,nvtx.
        assert "mark ranges in the program" in answer.empty


def test_kernels_of_graphs_count_where_their_nodes_were_captured(tmp_path):
    """The nodes that run are clones of the captured ones; the graph is launched from another range."""
    trace = Trace()
    host = trace.thread()
    events = {"eventClass": 77, "globalTid": host.global_tid}
    with host.nvtx("build"):
        for node, name in enumerate(("attention", "mlp"), 1):
            with host.nvtx(name):
                trace.row("CUDA_GRAPH_NODE_EVENTS", start=host.now, graphNodeId=node, nameId="Creation", **events)
                host.now += 1_000
    for node in (1, 2):
        values = {"start": host.now, "graphNodeId": 10 + node, "originalGraphNodeId": node, "nameId": "Cloning"}
        trace.row("CUDA_GRAPH_NODE_EVENTS", **values, **events)
    for _ in range(3):
        with host.nvtx("decode"):
            for node in (1, 2):
                host.launch("gemm", runs=node * 100_000)
                trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["graphNodeId"] = 10 + node
    path = trace.write(tmp_path / "trace.sqlite")
    rows = {name: row for (name, _), row in ask(path).items()}
    assert {name: row["captured_gpu_ns"] for name, row in rows.items()} == {
        "decode": 0, "build": 900_000, "attention": 300_000, "mlp": 600_000,
    }  # fmt: skip
    assert rows["build"]["captured_kernels"] == 6
    assert (rows["decode"]["gpu_ns"], rows["build"]["gpu_ns"]) == (900_000, 0)
    with open_trace(path) as session:
        assert {row["name"]: row["total_ns"] for row in session.top(group_by="nvtx").to_dicts()} == {
            "decode (captured in build/attention)": 300_000, "decode (captured in build/mlp)": 600_000,
        }  # fmt: skip


def test_without_a_recorded_capture_captured_work_is_unknown(tmp_path):
    trace = Trace()
    with trace.thread().nvtx("decode") as host:
        host.launch("gemm")
    assert ask_by_name(trace, tmp_path)["decode"]["captured_gpu_ns"] is None


def write_nested(path, stacks, depth):
    """Write stacks of ranges that are all inside each other, with a kernel in the innermost of each stack."""
    trace = Trace()
    host = trace.thread()
    for _ in range(stacks):
        host.idle(depth + 10).launch("k", api=1_000, queue=100, runs=500)
        start_ns, end_ns = host.now - 1_000 - depth, host.now + depth
        host.idle(depth)
        for level in range(depth):
            trace.row(
                "NVTX_EVENTS", start=start_ns + level, end=end_ns - level, eventType=59,
                globalTid=host.global_tid, text=f"level_{level % 1000}", domainId=0,
            )  # fmt: skip
    host.sync("device")
    return trace.write(path)


@pytest.fixture(scope="module")
def nested(tmp_path_factory):
    return write_nested(tmp_path_factory.mktemp("nested") / "trace.sqlite", 1, TestDeepNesting.DEPTH)


@pytest.fixture(scope="module")
def shallow(tmp_path_factory):
    return write_nested(tmp_path_factory.mktemp("shallow") / "trace.sqlite", 2, 64)


class TestDeepNesting:
    DEPTH = 3_000

    def test_the_text_of_paths_is_bounded_and_the_depth_is_exact(self, nested):
        with open_trace(nested) as trace:
            ((count, deepest, different, characters),) = trace.sql(
                "SELECT count(*), max(depth), count(DISTINCT path), max(length(path)) FROM nvtx_nesting"
            ).rows()
            assert (count, deepest, different) == (self.DEPTH, self.DEPTH, 65)
            assert characters < 65 * len("level_63/")
            wrong = trace.sql(
                "SELECT count(*) FROM nvtx_nesting AS r LEFT JOIN nvtx_nesting AS p ON p.range_id = r.parent_id"
                " WHERE r.depth <> coalesce(p.depth, 0) + 1"
            ).rows()
            assert wrong == [(0,)]
            ((path, depth),) = trace.sql("SELECT nvtx_path, depth FROM kernels_in_nvtx").rows()
            assert path == "/".join([*(f"level_{level}" for level in range(64)), "…"])
            assert depth == self.DEPTH

    def test_times_of_names_and_paths_are_exact(self, nested):
        by_name, by_path = ask(nested), ask(nested, by="path")
        inner_ns = 1_000  # the launch call, which the innermost range holds with 1 ns on each side
        for level in range(1_000):
            row = by_name[f"level_{level}", "push/pop"]
            expected_ns = sum(inner_ns + 2 * (self.DEPTH - outer) for outer in range(level, self.DEPTH, 1_000))
            assert (row["calls"], row["host_ns"], row["gpu_ns"], row["kernels"]) == (3, expected_ns, 500, 1)
            assert row["own_gpu_ns"] == (500 if level == 999 else 0)
        assert len(by_path) == 65
        assert sum(row["calls"] for row in by_path.values()) == self.DEPTH
        for rows in (by_name, by_path):
            assert sum(row["own_host_ns"] for row in rows.values()) == inner_ns + 2 * self.DEPTH

    def test_a_note_says_what_the_last_name_of_a_path_stands_for(self, nested, shallow):
        for report, options in (("nvtx", {"by": "path"}), ("top", {"group_by": "nvtx"})):
            for path, is_cut in ((nested, True), (shallow, False)):
                with open_trace(path) as trace:
                    notes = trace.answer(report, **options).notes
                assert any("… stands for all ranges inside the 64th" in str(note) for note in notes) == is_cut

    def test_the_error_for_a_missing_path_says_how_deep_paths_have_names(self, nested, shallow):
        for path, is_cut in ((nested, True), (shallow, False)):
            result = run("top", path, "--nvtx", "level_70/level_72")
            assert result.returncode == 2
            assert ("paths have no names of ranges deeper than 64" in result.stderr) == is_cut
        assert run("top", nested, "--nvtx", "level_70").returncode == 0

    @pytest.mark.slow
    @pytest.mark.parametrize(("stacks", "depth"), [(1, 1_000_000), (1_000, 1_000)])
    @pytest.mark.parametrize("command", ["info", "nvtx", "top --group-by nvtx", "diagnose"])
    def test_a_million_nested_ranges_take_half_a_minute_and_little_memory(self, tmp_path, stacks, depth, command):
        path = write_nested(tmp_path / "trace.sqlite", stacks, depth)
        name, *options = command.split()
        process = subprocess.Popen([*PROCESS, name, str(path), *options, "--no-cache"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        assert usage.ru_utime + usage.ru_stime < 30
        assert usage.ru_maxrss < 1 << 20  # KiB


def test_a_trace_with_nvtx_gets_no_advice_to_trace_it(sample):
    with open_trace(sample("churn")) as trace:
        answer = trace.answer("nvtx")
        remedies = {question.subject: question.remedy for question in diagnose_with(trace).unassessed}
    assert (answer.row_count, "NVTX was traced, so mark ranges in the program" in answer.empty) == (0, True)
    assert "-t cuda,nvtx" not in answer.empty
    assert remedies["place in the program"] == "mark ranges around the program's steps"
