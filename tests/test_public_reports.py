"""What people reported or asked about nsys traces, planted: the right answer to each."""

from __future__ import annotations

import shlex

import pytest
from opening import evaluate_rules, open_trace
from synthetic import Trace

from nsys_insight.cli import synonyms
from nsys_insight.cli.synonyms import explain_report
from nsys_insight.packs.library import find_pack

LOOP = 40


def write_loop(path, body, *, count=LOOP, trace=None):
    """Write a trace of `count` iterations of `body(host, number)`."""
    trace = trace or Trace()
    host = trace.thread()
    for number in range(count):
        body(host, number)
    return trace.write(path / "trace.sqlite")


def test_start_end_ranges_hold_what_no_push_pop_range_does(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.range("request", 0, 50_000, style="start/end").range("train_step", 20_000, 90_000, style="start/end")
    host.range("forward", 60_000, 70_000)
    for start_ns in (5_000, 25_000, 55_000, 65_000, 80_000, 95_000):
        host.launch("k", start=start_ns, api=10, queue=0, runs=100)
    host.sync("device", start=81_000, waits=1_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        calls = dict(session.top(group_by="nvtx").select("name", "calls").rows())
        ranges = session.sql("SELECT range_name FROM kernels_in_nvtx ORDER BY start_ns").rows()
        assert session.syncs().to_dicts()[0]["nvtx_path"] == "train_step"
    assert calls == {"train_step": 3, "request": 1, "forward": 1, "(outside NVTX ranges)": 1}
    assert [name for (name,) in ranges] == ["request", "train_step", "train_step", "forward", "train_step", None]


FOLDED_NAMES = {
    "step 12": "step #", "layer_3_forward": "layer_#_forward", "iter12": "iter#", "1_2_3": "#_#_#",
    "aten::conv2d": "aten::conv2d", "gemm_fp8": "gemm_fp8", "expert.3": "expert.#", "op_id = 7, seq = 9": "op_id = #",
}  # fmt: skip


def test_only_numbers_that_count_are_folded(tmp_path):
    columns = ", ".join(f"folded_name('{name}')" for name in FOLDED_NAMES)
    with open_trace(Trace().write(tmp_path / "trace.sqlite")) as session:
        assert session.sql(f"SELECT {columns}").rows() == [tuple(FOLDED_NAMES.values())]


def test_marks_are_counted(tmp_path):
    trace = Trace()
    host = trace.thread().range("step", 0, 1_000)
    for number in range(3):
        host.mark(f"token {number}", 100 * number)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        rows = session.nvtx().to_dicts()
        assert session.sql("SELECT count(*) FROM nvtx_marks").rows() == [(3,)]
    assert [(row["name"], row["style"], row["calls"], row["host_ns"]) for row in rows] == [
        ("step", "push/pop", 1, 1_000), ("token #", "mark", 3, None)
    ]  # fmt: skip


def test_a_range_around_a_benchmark_is_not_its_step(tmp_path):
    def run(host, _):
        for number in range(4):
            host.launch(f"k{number % 2}", runs=20_000)
        host.sync("device")

    trace = Trace()
    host = trace.thread()
    with host.nvtx("benchmark"):
        for number in range(10):
            run(host, number)
    path = trace.write(tmp_path / "trace.sqlite")
    with open_trace(path, nvtx="benchmark") as session:
        assert session.sql("SELECT method, step_count FROM step_method").rows() == [("sequence", 10)]
    # Without a wait in each of them, they may be the layers of one step.
    trace = Trace()
    host = trace.thread()
    with host.nvtx("prefill"):
        for _ in range(10):
            for number in range(4):
                host.launch(f"k{number % 2}", runs=20_000)
    host.sync("device")
    with open_trace(trace.write(tmp_path / "prefill.sqlite"), nvtx="prefill") as session:
        assert session.sql("SELECT method, step_count FROM step_method").rows() == [("nvtx", 1)]


def test_first_iterations_with_a_part_of_the_work_are_left_out(tmp_path):
    def run(host, number):
        host.copy("H2D", 1_000, runs=5_000)
        for _ in range(1 if number < 2 else 12):
            host.launch("level", runs=20_000)
        host.launch("last", runs=20_000)
        host.sync("device")

    with open_trace(write_loop(tmp_path, run, count=12)) as session:
        phases = [phase for (phase,) in session.sql("SELECT phase FROM steps ORDER BY step").rows()]
    assert phases == ["warm-up"] * 2 + ["steady"] * 9 + ["tail"]


@pytest.mark.parametrize(("call", "fires"), [("cudaGraphInstantiate_v12000", True), ("cudaEventQuery_v3020", False)])
def test_graphs_that_are_built_in_each_step_are_a_finding(tmp_path, call, fires):
    def run(host, _):
        host.call(call, takes=200_000)
        host.graph_launch(graph_ns=300_000)
        host.sync("stream")

    with open_trace(write_loop(tmp_path, run)) as session:
        findings = [*evaluate_rules(session, ["NSI118"]).values()]
    assert bool(findings) == fires
    assert (
        not fires
        or "the host takes 200 µs to capture, build, update or remove graphs [cudaGraphInstantiate]"
        in findings[0].evidence
    )


def test_kernels_of_one_launcher_have_different_names(tmp_path):
    names = [f"void Kokkos::launch<Kokkos::ParallelFor<{name}<double>, Policy>>(int)" for name in ("Force", "Fill")]

    def run(host, _):
        for name in names:
            host.launch(name, runs=500_000, grid=(4096, 1, 1))

    with open_trace(write_loop(tmp_path, run)) as session:
        (evidence,) = [finding.evidence for finding in evaluate_rules(session, ["NSI401"]).values()]
    assert "Force" in evidence
    assert "Fill" in evidence


def test_memory_that_is_not_freed_is_a_note(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.malloc(1 << 30).malloc(600 << 20).free().malloc(1 << 20, memory="pinned").free()
    host.launch("k", runs=1_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        notes = session.answer("mallocs").notes
    assert "peak device memory that nsys saw allocated: 1.59 GiB on device 0" in notes
    assert any(note.startswith("not freed in this capture: 1.00 GiB of device memory in 1 block") for note in notes)
    assert not any("pinned" in note for note in notes)


def test_processes_that_share_a_gpu_stretch_each_others_kernels(tmp_path):
    trace = Trace()
    for pid, gpu, later in ((500, 0, 0), (501, 0, 0), (600, 1, 0), (601, 1, 50_000)):
        host = trace.thread(pid=pid, tid=pid, gpus=[gpu])
        for number in range(5):
            host.launch("k", start=100_000 * number + later, api=10, runs=40_000)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        assert session.sql("SELECT gpu_id, processes, contexts, overlap_pct FROM _shared_gpus").rows() == [
            (0, 2, 2, 100.0)
        ]
        (note,) = (note for note in session.answer("host").notes if "other processes" in note)
    assert "kernels of 2 processes run at the same time on GPU 0 (100.0% of its busy time):" in note


STATS_REPORTS = [
    "cuda_api_gpu_sum",
    "cuda_api_sum",
    "cuda_api_trace",
    "cuda_gpu_kern_gb_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_size_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_sum",
    "cuda_gpu_trace",
    "cuda_kern_exec_sum",
    "cuda_kern_exec_trace",
    "mpi_event_sum",
    "mpi_event_trace",
    "mpi_msg_size_sum",
    "nvtx_gpu_proj_sum",
    "nvtx_gpu_proj_trace",
    "nvtx_kern_sum",
    "nvtx_pushpop_sum",
    "nvtx_pushpop_trace",
    "nvtx_startend_sum",
    "nvtx_sum",
    "openacc_sum",
    "openmp_sum",
    "osrt_sum",
    "syscall_sum",
    "um_cpu_page_faults_sum",
    "um_sum",
    "um_total_sum",
    "vulkan_api_sum",
    "wddm_queue_sum",
    "network_congestion",
    "nvvideo_api_sum",
]


def test_every_report_of_nsys_stats_works_or_names_a_command(tmp_path):
    path = Trace().write(tmp_path / "trace.sqlite")
    with open_trace(path) as session:
        for name in STATS_REPORTS:
            error = explain_report(name)
            assert error or find_pack(name), name
            for command in (error.hint or "").split(", and ") if error else ():
                words = shlex.split(command)
                if words[1] == "sql":
                    session.sql(words[3])
                else:
                    assert words[0] == "nsys" or find_pack(words[1]), name


def test_old_names_of_reports_lead_to_the_current_ones():
    for old, name in synonyms._OLD_REPORT_NAMES.items():
        error = explain_report(old)
        assert error
        assert name in error.hint
        assert find_pack(name) or explain_report(name), name


def test_stats_itself_is_answered_with_the_commands_to_start_with():
    error = explain_report("stats")
    assert (str(error), error.hint) == (
        "stats is a command of nsys",
        "nsys-insight diagnose TRACE, or nsys-insight top TRACE",
    )
