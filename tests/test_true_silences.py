"""Reports make no claims without data, and name the data that are missing."""

from __future__ import annotations

import re

import planted
import pytest
from opening import open_trace
from synthetic import Trace

from nsys_insight.diagnose.text import write_markdown


@pytest.fixture(scope="module")
def decoding(tmp_path_factory):
    """Open a trace of 32 decode steps."""
    path = planted.launch_bound(32, nvtx="decode_step").write(tmp_path_factory.mktemp("decoding") / "trace.sqlite")
    with open_trace(path) as opened_trace:
        yield opened_trace


def report_notes(path, report, scope=None, **params):
    """Return the notes of a report, or of the diagnosis."""
    with open_trace(path, **(scope or {})) as trace:
        return " ".join((trace.diagnose(**params) if report == "diagnose" else trace.answer(report, **params)).notes)


@pytest.mark.parametrize(("tokens", "fits"), [(7, False), (48, False), (32, True), (64, True)])
def test_tokens_that_do_not_match_the_steps_are_reported(decoding, tokens, fits):
    notes = " ".join(decoding.answer("per-token", tokens=tokens).notes)
    assert ("--tokens does not match the 32 steps" in notes) is not fits


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "fits"), [(48, False), (64, True)])
def test_the_diagnosis_reports_tokens_that_do_not_match(decoding, tokens, fits):
    notes = " ".join(decoding.diagnose(tokens=tokens).notes)
    assert ("--tokens does not match the 32 steps" in notes) is not fits


@pytest.mark.slow
def test_an_empty_window_names_the_time_of_the_gpu_work(tmp_path):
    trace = Trace()
    trace.thread().idle(2_000_000_000).launch("gemm(float *)", api=1_000, queue=0, runs=999_999_000)
    path = trace.write(tmp_path / "trace.sqlite")
    sentence = "GPU activity spans 2 s to 3 s"
    with open_trace(path, from_ns=100_000_000_000) as opened_trace:
        assert sentence in opened_trace.answer("top").empty
    assert sentence in report_notes(path, "diagnose", {"from_ns": 100_000_000_000})
    assert "GPU activity spans" not in report_notes(path, "diagnose")


def names_step_without_nsys(trace, folder):
    with open_trace(trace.write(folder / "trace.sqlite")) as opened_trace:
        return "are of the step without nsys" in opened_trace.diagnose().text(None)


@pytest.mark.slow
def test_the_step_without_nsys_is_named_only_with_savings_of_host_time(tmp_path):
    assert names_step_without_nsys(planted.launch_bound(8), tmp_path)
    assert not names_step_without_nsys(planted.deep_queue(8), tmp_path)


# Missing data -----------------------------------------------------------------------------------

CUPTI = "CUPTI_ACTIVITY_KIND_"
NO_CALLS = "the trace has no CUDA API calls"
NO_KERNELS = "8 launch calls are in the trace, but no kernels: the profiler lost what ran on the GPU"
NO_COPIES = "12 copy calls are in the trace, but no copies"
# The removed tables, the sentences that report it with their reports, and a pattern that no report may match then.
MISSING = {
    "calls": (
        [CUPTI + "RUNTIME"],
        {NO_CALLS: ("classify", "idle", "syncs", "host", "mallocs", "graph-candidates", "diagnose")},
        "fewer than two launches|No calls that allocate or free memory in",
    ),
    "kernels": (
        [CUPTI + "KERNEL"],
        {NO_KERNELS: ("classify", "top", "diagnose")},
        "No kernels ran|the GPU is idle|The host waits",
    ),
    "GPU work": ([CUPTI + "KERNEL", CUPTI + "MEMCPY"], {NO_KERNELS: ("copies", "idle")}, "[Nn]othing ran|no copy"),
    "copies": ([CUPTI + "MEMCPY"], {NO_COPIES: ("copies", "classify", "diagnose")}, "No copies or memsets ran"),
    "scheduling": (["SCHED_EVENTS"], {"context switches were not recorded": ("cpu-work",)}, ""),
    "all but CUDA": (
        [
            "NVTX_EVENTS",
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            "COMPOSITE_EVENTS",
            "SAMPLING_CALLCHAINS",
            "OSRT_API",
            "SCHED_EVENTS",
            "GPU_METRICS",
            "TARGET_INFO_GPU_METRICS",
        ],
        {
            "-t cuda,nvtx": ("nvtx", "diagnose"),
            "--cuda-memory-usage=true": ("mallocs", "info"),
            "--sample=process-tree": ("cpu-work", "diagnose"),
            "--gpu-metrics-devices=all": ("classify-kernels", "info", "roofline"),
            "--cuda-um-gpu-page-faults=true": ("unified-memory",),
        },
        "",
    ),
    "CUDA": (
        [CUPTI + name for name in ("RUNTIME", "KERNEL", "MEMCPY", "SYNCHRONIZATION")],
        {"capture with: nsys profile -t cuda": ("classify", "top", "copies", "diagnose")},
        "[Nn]othing ran",
    ),
}


def make_full_trace():
    """Make four steps with every kind of data that nsys records."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(4):
        with host.nvtx("step"):
            host.copy("H2D", 4 << 20, runs=200_000)
            for name in ("gemm(float *)", "norm(float *)"):
                host.launch(name, runs=100_000, grid=(256, 1, 1))
            host.malloc(1 << 20).free().sync("device")
            host.copy("D2H", 64, blocking=True).copy("D2H", 64, blocking=True)
            host.migrate("UM H2D", 4096, start=host.now - 500, runs=100)
            host.sample(host.now + 250_000, ("work", "/app/app"), ("main", "/app/app"))
            host.off_cpu(host.now + 10_000, host.now + 100_000)
            host.osrt("read", takes=200_000).idle(200_000)
    trace.gpu_metric("SMs Active [Throughput %]", time=0, value=50)
    return trace


def report_text(opened_trace, report):
    """Return the text of a report (notes, cells, and the text for no rows), or of the diagnosis."""
    if report == "diagnose":
        diagnosis = opened_trace.diagnose()
        return " ".join([diagnosis.text(None), *diagnosis.notes])
    answer = opened_trace.answer(report)
    rows = answer.dicts()
    cells = [str(cell) for row in rows for cell in row.values()]
    return " ".join([*answer.notes, *cells, *([] if rows else [answer.empty])])


@pytest.mark.slow
@pytest.mark.parametrize("missing", MISSING)
def test_a_report_names_missing_data_once_and_makes_no_false_claims(missing, tmp_path):
    tables, sentences, forbidden = MISSING[missing]
    trace = make_full_trace()
    for table in tables:
        trace.rows.pop(table)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        texts = {
            report: report_text(opened_trace, report)
            for report in {report for reports in sentences.values() for report in reports}
        }
    for sentence, reports in sentences.items():
        for report in reports:
            assert texts[report].count(sentence) == 1, (report, sentence, texts[report])
    assert not forbidden or [report for report, text in texts.items() if re.search(forbidden, text)] == []


@pytest.mark.slow
def test_a_complete_trace_has_no_missing_data(tmp_path):
    with open_trace(make_full_trace().write(tmp_path / "trace.sqlite")) as opened_trace:
        text = " ".join(
            report_text(opened_trace, report) for report in ("classify", "idle", "top", "copies", "diagnose")
        )
    assert not re.search(f"in the trace, (and|but) no|{NO_CALLS}|The capture is incomplete", text)


@pytest.mark.slow
def test_single_missing_kernels_are_counted(tmp_path):
    trace = make_full_trace()
    del trace.rows[CUPTI + "KERNEL"][2:4]
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        assert "2 of 8 launch calls ran no kernel that is in the trace" in write_markdown(opened_trace.diagnose())


@pytest.mark.slow
def test_launches_captured_into_a_graph_need_no_kernel(tmp_path):
    trace = Trace()
    host = trace.thread().call("cudaStreamBeginCapture_v10000")
    for _ in range(4):
        host.call("cudaLaunchKernel_v7000")
    host.call("cudaStreamEndCapture_v10000")
    for _ in range(8):
        host.graph_launch(kernels=[("work(float *)", 50_000)] * 4).copy("D2H", 64, blocking=True)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        assert "The capture is incomplete" not in opened_trace.diagnose().text(None)


@pytest.mark.slow
def test_failed_launches_are_not_lost_work(tmp_path):
    trace = Trace()
    trace.thread().call("cudaLaunchKernel_v7000", returns=222).call("cudaLaunchKernel_v7000", returns=222)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        text = opened_trace.diagnose().text(None)
    assert "no GPU work is in the trace" in text
    assert "profiler lost" not in text


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        ("copies", "copies and memsets inside them are not in this table"),
        ("gaps", "idle time inside them counts as busy"),
        ("gap-sizes", "idle time inside them counts as busy"),
        ("gap-places", "idle time inside them counts as busy"),
        ("idle", "idle time inside them counts as busy"),
        ("top", "their kernels are not in this table"),
        ("info", "Most of what the GPU runs is hidden in CUDA graphs: capture with --cuda-graph-trace=node"),
    ],
)
def test_reports_name_the_work_hidden_in_graphs(report, sentence, graphs):
    graph_level, node_level = graphs
    assert sentence in " ".join(graph_level.answer(report).notes)
    assert sentence not in " ".join(node_level.answer(report).notes)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Open traces of steps with CUDA graphs, at graph level and at node level."""
    folder = tmp_path_factory.mktemp("graphs")
    paths = [
        planted.graphs(8, graph_level=is_graph_level).write(folder / f"{is_graph_level}.sqlite")
        for is_graph_level in (True, False)
    ]
    with open_trace(paths[0]) as graph_level, open_trace(paths[1]) as node_level:
        yield graph_level, node_level


# Agreement of reports ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [{}, {"nvtx": "step"}])
def test_work_launched_by_another_thread_counts_the_same_in_all_reports(scope, tmp_path):
    trace = Trace()
    host, engine = trace.thread(tid=100), trace.thread(tid=101)
    for _ in range(6):
        with host.nvtx("step"):
            host.launch("forward(float *)", runs=100_000)
            engine.now = host.now
            engine.launch("backward(float *)", runs=300_000)
            host.now = engine.now
            host.sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite"), **scope) as opened_trace:
        top = opened_trace.answer("top").dicts()
        per_token = {row["metric"]: row["total"] for row in opened_trace.answer("per-token").dicts()}
        nvtx = opened_trace.answer("nvtx")
        (step,) = nvtx.dicts()
    kernel_ns = sum(row["total_ns"] for row in top)
    assert (sum(row["calls"] for row in top), kernel_ns) == (per_token["kernels"], per_token["kernel_ns"])
    outside = 0 if scope else 1_800_000
    assert (step["gpu_ns"] + outside, step["kernels"] + outside // 300_000) == (kernel_ns, per_token["kernels"])
    assert ("75.0% of GPU time was launched outside" in " ".join(nvtx.notes)) is not bool(scope)
