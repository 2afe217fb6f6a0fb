"""What the data do not support is not said; what was not looked at is."""

from __future__ import annotations

import re

import planted
import pytest
from opening import open_trace
from synthetic import Trace


@pytest.fixture(scope="module")
def decoding(tmp_path_factory):
    """32 steps."""
    path = planted.launch_bound(32, nvtx="decode_step").write(tmp_path_factory.mktemp("decoding") / "trace.sqlite")
    with open_trace(path) as opened:
        yield opened


def said(path, report, scope=None, **params):
    """Give the notes of a report, or of the diagnosis."""
    with open_trace(path, **(scope or {})) as trace:
        return " ".join((trace.diagnose(**params) if report == "diagnose" else trace.answer(report, **params)).notes)


@pytest.mark.parametrize(("tokens", "fits"), [(7, False), (48, False), (32, True), (64, True)])
def test_tokens_that_do_not_fit_the_steps_are_said(decoding, tokens, fits):
    notes = " ".join(decoding.answer("per-token", tokens=tokens).notes)
    assert ("--tokens does not match the 32 steps" in notes) is not fits


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "fits"), [(48, False), (64, True)])
def test_the_diagnosis_says_it_too(decoding, tokens, fits):
    notes = " ".join(decoding.diagnose(tokens=tokens).notes)
    assert ("--tokens does not match the 32 steps" in notes) is not fits


@pytest.mark.slow
def test_an_empty_window_is_told_where_the_trace_is(tmp_path):
    trace = Trace()
    trace.thread().idle(2_000_000_000).launch("gemm(float *)", api=1_000, queue=0, runs=999_999_000)
    path = trace.write(tmp_path / "trace.sqlite")
    lies = "the GPU works from 2 s to 3 s of this trace"
    with open_trace(path, from_ns=100_000_000_000) as opened:
        assert lies in opened.answer("top").empty
    assert lies in said(path, "diagnose", {"from_ns": 100_000_000_000})
    assert "the GPU works from" not in said(path, "diagnose")


def profiled_share(trace, folder):
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        return "without the profiler expect" in opened.diagnose().text(None)


@pytest.mark.slow
def test_the_profilers_share_is_said_where_host_time_is_promised_and_nowhere_else(tmp_path):
    assert profiled_share(planted.launch_bound(8), tmp_path)
    assert not profiled_share(planted.deep_queue(8), tmp_path)


# What is missing, and who says so -----------------------------------------------------------------------------------

CUPTI = "CUPTI_ACTIVITY_KIND_"
NO_CALLS = "the trace has no CUDA API calls"
NO_KERNELS = "8 launch calls are in the trace, but no kernels: the profiler lost what ran on the GPU"
NO_COPIES = "12 copy calls are in the trace, but no copies"
# Tables that are taken out; what is said for it, and by which reports; what none of these may say then.
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


def full():
    """Four steps with something of all that nsys records."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(4):
        with host.nvtx("step"):
            host.copy("H2D", 4 << 20, runs=200_000)
            for name in ("gemm(float *)", "norm(float *)"):
                host.launch(name, runs=100_000, grid=(256, 1, 1))
            host.malloc(1 << 20).free().sync("device")
            host.copy("D2H", 64, blocking=True).copy("D2H", 64, blocking=True)
            host.migrate("UM H2D", 4096, at=host.now - 500, runs=100)
            host.sample(host.now + 250_000, ("work", "/app/app"), ("main", "/app/app"))
            host.off_cpu(host.now + 10_000, host.now + 100_000)
            host.osrt("read", takes=200_000).idle(200_000)
    trace.gpu_metric("SMs Active [Throughput %]", at=0, value=50)
    return trace


def said_by(opened, report):
    """All that a report says: notes and cells, and what it says of no rows; or the diagnosis."""
    if report == "diagnose":
        found = opened.diagnose()
        return " ".join([found.text(None), *found.notes])
    answer = opened.answer(report)
    rows = answer.dicts()
    cells = [str(cell) for row in rows for cell in row.values()]
    return " ".join([*answer.notes, *cells, *([] if rows else [answer.empty])])


@pytest.mark.slow
@pytest.mark.parametrize("missing", MISSING)
def test_whoever_lacks_something_says_so_once_and_nothing_that_is_false_for_it(missing, tmp_path):
    tables, sentences, never = MISSING[missing]
    trace = full()
    for table in tables:
        trace.rows.pop(table)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        texts = {report: said_by(opened, report) for report in {one for by in sentences.values() for one in by}}
    for sentence, reports in sentences.items():
        for report in reports:
            assert texts[report].count(sentence) == 1, (report, sentence, texts[report])
    assert not never or [report for report, text in texts.items() if re.search(never, text)] == []


@pytest.mark.slow
def test_of_a_whole_trace_nothing_is_said_to_be_missing(tmp_path):
    with open_trace(full().write(tmp_path / "trace.sqlite")) as opened:
        said = " ".join(said_by(opened, report) for report in ("classify", "idle", "top", "copies", "diagnose"))
    assert not re.search(f"in the trace, (and|but) no|{NO_CALLS}|The capture is incomplete", said)


@pytest.mark.slow
def test_kernels_that_are_missing_among_others_are_counted(tmp_path):
    trace = full()
    del trace.rows[CUPTI + "KERNEL"][6:]
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        assert "2 of 8 launch calls ran no kernel that is in the trace" in opened.diagnose().text(None)


@pytest.mark.slow
def test_launches_that_are_captured_into_a_graph_lack_no_kernel(tmp_path):
    trace = Trace()
    host = trace.thread().call("cudaStreamBeginCapture_v10000")
    for _ in range(4):
        host.call("cudaLaunchKernel_v7000")
    host.call("cudaStreamEndCapture_v10000")
    for _ in range(8):
        host.graph_launch(kernels=[("work(float *)", 50_000)] * 4).copy("D2H", 64, blocking=True)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        assert "The capture is incomplete" not in opened.diagnose().text(None)


@pytest.mark.slow
def test_launches_that_all_failed_are_no_lost_work(tmp_path):
    trace = Trace()
    trace.thread().call("cudaLaunchKernel_v7000", returns=222).call("cudaLaunchKernel_v7000", returns=222)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        text = opened.diagnose().text(None)
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
        ("info", "next: most of what the GPU runs is hidden in CUDA graphs: capture with --cuda-graph-trace=node"),
    ],
)
def test_what_graphs_hide_is_said_where_it_would_be(report, sentence, graphs):
    hidden, seen = graphs
    assert sentence in " ".join(hidden.answer(report).notes)
    assert sentence not in " ".join(seen.answer(report).notes)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Steps of CUDA graphs, traced as a whole and by their nodes."""
    folder = tmp_path_factory.mktemp("graphs")
    paths = [planted.graphs(8, whole=whole).write(folder / f"{whole}.sqlite") for whole in (True, False)]
    with open_trace(paths[0]) as hidden, open_trace(paths[1]) as seen:
        yield hidden, seen


# What reports agree on ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [{}, {"nvtx": "step"}])
def test_what_another_thread_launches_counts_alike_for_whoever_counts(scope, tmp_path):
    trace = Trace()
    host, engine = trace.thread(tid=100), trace.thread(tid=101)
    for _ in range(6):
        with host.nvtx("step"):
            host.launch("forward(float *)", runs=100_000)
            engine.now = host.now
            engine.launch("backward(float *)", runs=300_000)
            host.now = engine.now
            host.sync("device")
    with open_trace(trace.write(tmp_path / "trace.sqlite"), **scope) as opened:
        top = opened.answer("top").dicts()
        per_token = {row["metric"]: row["total"] for row in opened.answer("per-token").dicts()}
        nvtx = opened.answer("nvtx")
        (step,) = nvtx.dicts()
    kernel_ns = sum(row["total_ns"] for row in top)
    assert (sum(row["calls"] for row in top), kernel_ns) == (per_token["kernels"], per_token["kernel_ns"])
    outside = 0 if scope else 1_800_000
    assert (step["gpu_ns"] + outside, step["kernels"] + outside // 300_000) == (kernel_ns, per_token["kernels"])
    assert ("75.0 % of GPU time was launched outside" in " ".join(nvtx.notes)) is not bool(scope)
