"""The traces to break: small ones with rows in many tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mpi_traces
import planted
from grid_traces import GridRun
from pipeline_traces import PipelineRun
from synthetic import Trace

if TYPE_CHECKING:
    from pathlib import Path


def _make_full_trace() -> Trace:
    """Return a trace of two processes with graphs, NVTX, allocations, waits, metrics and diagnostics."""
    trace = Trace()
    for pid in (100, 200):
        host = trace.thread(pid=pid)
        for step in range(6):
            with host.nvtx("decode_step", domain="engine"), host.nvtx(f"layer_{step % 2}"):
                host.copy("H2D", 4096, runs=1_500)
                host.launch("void gemm<float>(float *, int)", api=5_000, queue=2_000, runs=40_000, grid=(64, 1, 1))
                host.launch("relu(float *)", api=4_000, runs=3_000, driver="cuLaunchKernelEx")
                host.memset(256, runs=500)
                host.malloc(1 << 20).idle(500).free()
                host.graph_launch(kernels=[("norm", 2_000), ("silu", 1_500)])
                host.record(1).idle(10).sync("event", event=1)
                host.copy("D2H", 4, runs=1_000, blocking=True)
            host.idle(2_000)
        host.sync("device")
    trace.overhead("CUPTI Buffer flush", 30_000, 60_000, host)
    trace.diagnostic("Some CUDA events were lost", time=50_000)
    for time in range(0, 400_000, 20_000):
        trace.gpu_metric("SMs Active [Throughput %]", time=time, value=time // 10_000)
    return trace


def _make_mpi_trace() -> Trace:
    """Return a trace of three MPI processes with OpenACC constructs, which call libraries from OpenMP."""
    trace = Trace()
    hosts = [trace.thread(pid=100 + rank, gpus=(rank,)) for rank in range(3)]
    for rank, host in enumerate(hosts):
        mpi_traces.join_mpi(host, rank, len(hosts))
    for step in range(10):
        step_ns = 10_000 + step * 200_000
        for rank, host in enumerate(hosts):
            place = {"globalTid": host.global_tid, "lineNo": 40, "srcFile": "solve.c", "funcName": "relax"}
            host.idle(max(step_ns - host.now, 0))
            with host.nvtx("step"):
                begin = host.now
                host.copy("H2D", 4_096, runs=2_000, blocking=True)
                trace.row("CUPTI_ACTIVITY_KIND_OPENACC_DATA", start=begin, end=host.now, nameId="Enqueue Upload",
                          bytes=4_096, varName="grid", **place)  # fmt: skip
                launch_ns = host.now
                host.launch("relax_40_gpu", runs=50_000)
                trace.row("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", start=launch_ns, end=host.now, nameId="Enqueue Launch",
                          numGangs=80, numWorkers=4, vectorLength=32, kernelName="relax_40_gpu", **place)  # fmt: skip
                trace.row(
                    "CUPTI_ACTIVITY_KIND_OPENACC_OTHER", start=begin, end=host.now, nameId="Compute construct", **place
                )
                host.sync("stream")
                call = {"start": launch_ns, "end": host.now, "globalTid": host.global_tid}
                trace.row("CUBLAS_EVENTS", nameId="cublasSgemm_v2", **call)
                trace.row("OPENMP_EVENT_KIND_PARALLEL", nameId="Parallel", **call)
            after, partner = step_ns + 100_000, (rank + 1) % len(hosts)
            mpi_traces.message(host, "MPI_Isend", (after, after + 1_000), peer=partner, size=4_096, request=7)
            mpi_traces.message(
                host, "MPI_Recv", (after + 2_000, after + 9_000), peer=(rank - 1) % len(hosts), size=4_096
            )
            mpi_traces.wait(host, "MPI_Wait", (after + 9_000, after + 10_000), 7)
            mpi_traces.collective(host, "MPI_Allreduce", (after + 20_000 + 1_000 * rank, after + 30_000), 1 << 20)
            mpi_traces.collective(host, "MPI_Bcast", (after + 40_000, after + 45_000), 64, root=0)
    return trace


BASES = {
    "everything": (_make_full_trace, "2025.3"),
    "older": (_make_full_trace, "2023.4"),
    "sync_bound": (lambda: planted.sync_bound(steps=8), "2025.3"),
    "mpi": (_make_mpi_trace, "2025.3"),
    # The ranks of four tensor-parallel and data-parallel groups, and of a pipeline; and one rank of several files.
    "groups": (lambda: GridRun(2, 2).merged(), "2025.3"),
    "pipeline": (lambda: PipelineRun(3).merged(), "2025.3"),
    "rank": (lambda: GridRun(2, 2).traces()[0], "2025.3"),
}


def write_base(base: str, path: Path) -> Path:
    """Write one of the base traces."""
    make, version = BASES[base]
    missing_tables = ("DIAGNOSTIC_EVENT", "GPU_METRICS", "TARGET_INFO_GPU_METRICS") if version == "2023.4" else ()
    if base == "rank":
        (path.parent / "others").mkdir(exist_ok=True)
        for number, trace in enumerate(GridRun(2, 2).traces()[1:], 1):
            trace.write(path.parent / "others" / f"rank{number}.sqlite", version=version)
    return make().write(path, version=version, without_tables=missing_tables)


def other_ranks(base: Path) -> list[Path]:
    """Return the traces of the other ranks of the run that a base trace is of."""
    return sorted((base.parent / "others").glob("*.sqlite")) if base.stem == "rank" else []
