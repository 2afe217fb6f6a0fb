"""`libraries`: calls of cuBLAS, cuDNN and of libraries with an NVTX domain, with the kernels under them."""

from __future__ import annotations

from opening import open_trace
from oracle import add_up_events, operations_of_calls, read, strings
from synthetic import Trace


def write_program(path):
    """A convolution that multiplies matrices inside, a collective, and a kernel outside of libraries."""
    trace = Trace()
    host = trace.thread()
    for _ in range(3):
        begin = host.now
        host.copy("H2D", 512, runs=1_000)
        host.launch("gemm", runs=20_000)
        inner = {"start": begin + 100, "end": host.now, "globalTid": host.global_tid}
        trace.row("CUBLAS_EVENTS", nameId="cublasSgemm_v2", **inner)
        trace.row("CUBLAS_EVENTS", nameId="cublasGemmEx", **{**inner, "start": begin + 200})
        host.launch("bias", runs=2_000)
        trace.row("CUDNN_EVENTS", start=begin, end=host.now, nameId="cudnnConvolutionForward",
                  globalTid=host.global_tid)  # fmt: skip
        with host.nvtx("ncclAllReduce", domain="NCCL"):
            host.launch("ncclDevKernel_AllReduce", runs=5_000)
        with host.nvtx("step", domain="app"):
            host.launch("outside", runs=3_000)
    return trace.write(path)


def test_calls_equal_a_plain_loop(tmp_path):
    path = write_program(tmp_path / "trace.sqlite")
    tables = read(path)
    names = strings(tables)
    library_of_table = {"CUDNN_EVENTS": "cuDNN", "CUBLAS_EVENTS": "cuBLAS"}
    calls = [
        ((library, names[row["nameId"]]), row) for table, library in library_of_table.items() for row in tables[table]
    ]
    calls += [(("NCCL", row["text"]), row) for row in tables["NVTX_EVENTS"] if row["text"] == "ncclAllReduce"]
    expected = add_up_events(calls, operations_of_calls(tables))
    with open_trace(path) as session:
        rows = {(row["library"], row["name"]): row for row in session.libraries().to_dicts()}
    assert rows.keys() == expected.keys()
    kernel_ns = sum(row["end"] - row["start"] for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"])
    for key, row in rows.items():
        # No function calls itself, so the time of the host is the sum of the durations.
        assert {**row, "sum_ns": row["host_ns"], "threads": 1}.items() >= expected[key].items()
        assert row["kernel_pct"] == 100 * row["kernel_ns"] / kernel_ns
    assert rows["cuDNN", "cudnnConvolutionForward"]["kernels"] == 6


def test_a_call_inside_a_call_of_its_library_counts_once(tmp_path):
    with open_trace(write_program(tmp_path / "trace.sqlite")) as session:
        calls = {row["name"]: row for row in session.libraries().to_dicts()}
        libraries = {row["library"]: row for row in session.libraries(group_by="library").to_dicts()}
    assert libraries["cuBLAS"]["host_ns"] == calls["cublasSgemm_v2"]["host_ns"]
    assert (libraries["cuBLAS"]["calls"], libraries["cuBLAS"]["kernels"]) == (6, 3)
    assert libraries["NCCL"]["kernel_ns"] == 15_000


def test_without_library_calls_the_answer_names_the_flag(tmp_path):
    trace = Trace()
    host = trace.thread()
    with host.nvtx("step", domain="app"):
        host.launch("kernel")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer("libraries")
        assert answer.frame().is_empty()
        assert "cublas,cudnn" in answer.empty
