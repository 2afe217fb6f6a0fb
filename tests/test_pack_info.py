"""`info`: what is in a trace, what is missing, and what is private."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import oracle
import pytest
from command_line import run
from opening import open_trace
from real_traces import SAMPLE_NAMES
from synthetic import Trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"


def ask(path, **scope):
    """Return the rows as {section: [(metric, value, detail), ...]}."""
    with open_trace(path, **scope) as trace:
        sections = {}
        for row in trace.info().to_dicts():
            sections.setdefault(row["section"], []).append((row["metric"], row["value"], row["detail"]))
        return sections


def values(rows):
    return {metric: value for metric, value, _ in rows}


def details(rows):
    return {metric: detail for metric, _, detail in rows}


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_counts_equal_the_rows_of_the_file(name):
    tables = oracle.read(SAMPLES / f"{name}.sqlite")
    answer, counts, coverage = ask(SAMPLES / f"{name}.sqlite"), oracle.counts(tables), oracle.launch_coverage(tables)
    events = values(answer["events"])
    assert events["kernels"] == counts["kernels"]
    assert events["copies"] == counts["copies"]
    assert events.get("memsets", 0) == counts["memsets"]
    assert events["api_calls"] == len(oracle.api_calls(tables))
    assert events["syncs"] == len(tables[oracle.SYNC])
    assert events.get("nvtx_ranges", 0) == len(oracle.nvtx_ranges(tables))
    assert events.get("memory_events", 0) == len(tables["CUDA_GPU_MEMORY_USAGE_EVENTS"])
    assert events.get("os_calls", 0) == len(tables["OSRT_API"])
    missing = coverage["kernels"] - coverage["kernels_with_call"]
    ending = f"{missing:,} without their launch call" if missing else "all with their launch call"
    assert details(answer["events"])["kernels"].endswith(ending)


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_times_equal_plain_loops(name):
    tables = oracle.read(SAMPLES / f"{name}.sqlite")
    answer, (first, last) = ask(SAMPLES / f"{name}.sqlite"), oracle.wall(tables)
    assert values(answer["capture"])["wall_ns"] == last - first
    assert values(answer["gpu"])["gpu_busy_pct"] == pytest.approx(100 * oracle.busy_ns(tables)[0] / (last - first))
    work = [row for table in oracle.GPU_WORK for row in tables[table]]
    assert values(answer["process"])["gpu_time_ns"] == sum(map(oracle.duration, work))


def test_the_sample_is_described_in_readable_text(sample):
    answer = ask(sample("decode_eager"))
    assert details(answer["capture"])["nsys_version"] == "2023.4.4.54, export schema 3.7.2"
    assert details(answer["capture"])["command"].startswith("python3 decode.py --layers 4 --hidden 512")
    gpu = "GPU 0: NVIDIA H200, 132 SMs, 139.8 GiB at 4814 GB/s, compute capability 9.0"
    assert details(answer["gpu"])["gpu_busy_pct"] == gpu
    assert details(answer["process"])["gpu_time_ns"].endswith(
        "python3: 14,328 API calls on 1 thread, 6,469 kernels on 1 stream"
    )


@pytest.mark.slow
def test_the_graph_trace_level_and_the_hidden_kernels_are_reported(sample, tmp_path):
    node_answer, graph_answer = ask(sample("decode_graph_node")), ask(sample("decode_graph_whole"))
    assert values(node_answer["graphs"]) == {"graph_launch_calls": 32, "node_kernels": 6_272}
    assert "graph_kernels" not in values(node_answer["missing"])
    tables = oracle.read(sample("decode_graph_whole"))
    graph_ns = sum(map(oracle.duration, tables[oracle.GRAPH]))
    gpu_ns = sum(oracle.duration(row) for table in oracle.GPU_WORK for row in tables[table])
    assert values(graph_answer["graphs"]) == {
        "graph_launch_calls": 32,
        "whole_graph_pct": pytest.approx(100 * graph_ns / gpu_ns),
    }
    assert details(graph_answer["missing"])["graph_kernels"] == "--cuda-graph-trace=node"
    assert "graphs" not in ask(sample("decode_eager"))

    trace = Trace()
    trace.thread().graph_launch(graph_ns=500).graph_launch(kernels=[("k", 5)]).graph_launch()
    mixed = ask(trace.write(tmp_path / "trace.sqlite"))["graphs"]
    assert values(mixed) == {
        "graph_launch_calls": 3,
        "node_kernels": 1,
        "whole_graph_pct": pytest.approx(100 * 500 / 505),
    }
    assert "partly" in details(mixed)["graph_launch_calls"]


@pytest.mark.slow
def test_missing_data_is_listed_with_the_capture_flag(sample, tmp_path):
    assert details(ask(sample("decode_eager"))["missing"]) == {
        "memory_events": "--cuda-memory-usage=true",
        "gpu_metric_samples": "--gpu-metrics-devices=all",
        "os_calls": "-t osrt",
        "unimportant_api_calls": "--cuda-trace-all-apis=true",
    }
    assert "nvtx_ranges" in details(ask(sample("churn"))["missing"])
    assert set(values(ask(sample("churn"))["missing"]).values()) == {None}

    trace = Trace().gpu_metric("SMs Active", time=0, value=1)
    trace.thread().range("step", 0, 10).osrt("poll").malloc(8).launch("k")
    trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][0]["callchainId"] = 1
    assert "missing" not in ask(trace.write(tmp_path / "trace.sqlite"))


@pytest.mark.slow
def test_in_a_scope_nothing_is_reported_as_missing(sample):
    answer = ask(sample("decode_fresh"), nvtx="decode_step")
    assert "missing" not in answer
    assert values(answer["events"])["kernels"] == 16 * 196


def test_kernels_without_their_launch_call_are_counted(tmp_path):
    trace = Trace()
    host = trace.thread().launch("k")
    for number in range(10):
        host.kernel("stray", start=100_000 + 1_000 * number, runs=10)
    events = ask(trace.write(tmp_path / "trace.sqlite"))["events"]
    assert details(events)["kernels"] == "2 names; 10 without their launch call"


def test_unused_gpus_and_processes_without_cuda_are_counted_separately(tmp_path):
    trace = Trace().gpu(0).gpu(1).gpu(2).gpu(3, name="NVIDIA L4")
    trace.thread(pid=10, process="rank0", gpus=[2]).launch("k", start=0, api=100, queue=0, runs=900)
    other = trace.thread(pid=11, tid=1, process="rank1", gpus=[1])
    other.launch("k", start=0, api=100, queue=0, runs=400).launch("k", start=500, api=100, queue=0, runs=100, stream=9)
    trace.thread(pid=11, tid=2).call("cudaGetDevice")
    trace.thread(pid=12, process="sh")
    answer = ask(trace.write(tmp_path / "trace.sqlite"))
    assert [(value, detail[:5]) for _, value, detail in answer["gpu"][:2]] == [(50, "GPU 1"), (90, "GPU 2")]
    assert answer["gpu"][2] == ("gpus_not_used", 2, "NVIDIA H200, NVIDIA L4")
    assert answer["process"] == [
        ("gpu_time_ns", 900, "10 rank0: 1 API calls on 1 thread, 1 kernels on 1 stream"),
        ("gpu_time_ns", 500, "11 rank1: 3 API calls on 2 threads, 2 kernels on 2 streams"),
        ("processes_without_cuda", 1, None),
    ]


def test_warnings_and_errors_are_shown_once_each_errors_first(tmp_path):
    trace = Trace().diagnostic("Not all CUDA events\n might have been collected.").diagnostic("boom", severity="Error")
    trace.diagnostic("Not all CUDA events\n might have been collected.").diagnostic("CUPTI loaded", severity="Info")
    trace.overhead("CUPTI Buffer flush", 100, 350)
    trace.thread().launch("k")
    assert ask(trace.write(tmp_path / "trace.sqlite"))["diagnostics"] == [
        ("errors", 1, "boom"),
        ("warnings", 2, "Not all CUDA events might have been collected."),
        ("profiler_overhead_ns", 250, "CPU time spent in the profiler"),
    ]


@pytest.mark.parametrize("version", ["2025.3", "2023.4", "2022.2"])
def test_environment_host_and_user_are_not_shown(version, tmp_path):
    trace = Trace()
    trace.thread().launch("k")
    names = (
        "EXPORT_HOST",
        "EXPORT_USER",
        "DEVICE_DISPLAY_NAME",
        "PROCESS_0:USER_NAME",
        "PROCESS_0:ENVIRONMENT_VARIABLE",
    )
    for table in ("META_DATA_EXPORT", "META_DATA_CAPTURE"):
        if version != "2022.2" or table == "META_DATA_EXPORT":
            for name in names:
                trace.row(table, name=name, value=Trace.SECRET)
    path = trace.write(tmp_path / "trace.sqlite", version=version)
    assert Trace.SECRET.encode() in path.read_bytes()
    assert Trace.SECRET not in json.dumps(ask(path))
    with open_trace(path) as session:
        assert Trace.SECRET not in str(session.sql("FROM capture").to_dicts())


def test_a_trace_without_metadata_is_still_described(tmp_path):
    trace = Trace()
    trace.thread().launch("k", start=0, api=1_000, queue=0, runs=1_000)
    names = ["META_DATA_EXPORT", "META_DATA_CAPTURE", "ANALYSIS_DETAILS", "TARGET_INFO_SESSION_START_TIME", "PROCESSES"]
    names += ["TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"]
    answer = ask(trace.write(tmp_path / "trace.sqlite", without_tables=names))
    assert answer["capture"] == [("wall_ns", 2_000, "from the first to the last CUDA event")]
    assert answer["gpu"] == [("gpu_busy_pct", 50, "GPU 0")]
    assert answer["process"][0][2].startswith("100: ")


def test_foreign_traces_of_four_versions_are_described(shared):
    for path in sorted((shared / "foreign").glob("*.sqlite")):
        tables = oracle.read(path)
        assert values(ask(path)["events"])["kernels"] == len(tables[oracle.KERNEL])


@pytest.mark.slow
def test_gpus_and_processes_outside_the_scope_are_not_reported_as_unused(sample, tmp_path):
    trace = Trace().gpu(0).gpu(1)
    trace.thread(pid=1).launch("a", device=0)
    trace.thread(pid=2).idle(50_000).launch("b", device=1)
    trace.thread(pid=3)
    path = trace.write(tmp_path / "trace.sqlite")
    full_answer = ask(path)
    assert "gpus_not_used" not in values(full_answer["gpu"])
    assert values(full_answer["process"])["processes_without_cuda"] == 1
    for scope in ({"process": 1}, {"device": 0}, {"stream": 99}, {"from_ns": 0, "to_ns": 10_000}):
        scoped_answer = ask(path, **scope)
        assert "gpus_not_used" not in values(scoped_answer.get("gpu", []))
        assert "processes_without_cuda" not in values(scoped_answer.get("process", []))
        assert "missing" not in scoped_answer


def test_it_names_the_ranges_to_narrow_to_and_the_next_step(sample):
    answer = ask(sample("decode_eager"))
    assert details(answer["events"])["nvtx_ranges"].startswith("6 names; the most frequent: layer_0 (33), layer_1 (33)")
    with open_trace(sample("decode_eager")) as trace:
        assert [
            note
            for note in trace.answer("info").notes
            if note.startswith("GPU idle 86.4% of the wall time. Next: nsys-insight diagnose")
        ]
    with open_trace(sample("churn")) as trace:
        assert "per-token" in trace.answer("info").notes[-1]


def test_it_names_the_tables_that_nothing_reads(tmp_path):
    trace = Trace()
    trace.thread().launch("kernel")
    path = trace.write(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE VULKAN_API (start INT)")
        database.execute("CREATE TABLE NEW_ENGINE_WORKLOAD (start INT)")
        database.execute("CREATE TABLE ENUM_NEW_ENGINE (id INT)")
        database.execute("CREATE TABLE EMPTY_EVENTS (start INT)")
        database.execute("INSERT INTO VULKAN_API VALUES (1), (2)")
        database.execute("INSERT INTO NEW_ENGINE_WORKLOAD VALUES (1)")
        database.execute("INSERT INTO ENUM_NEW_ENGINE VALUES (1)")
        database.commit()
    (note,) = [line for line in run("info", path).stderr.splitlines() if "that no report reads" in line]
    assert "NEW_ENGINE_WORKLOAD (1 row), VULKAN_API (2 rows) (nsys" in note
