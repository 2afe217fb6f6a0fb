"""The traces to break: small ones with rows in many tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import planted
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


BASES = {
    "everything": (_make_full_trace, "2025.3"),
    "older": (_make_full_trace, "2023.4"),
    "sync_bound": (lambda: planted.sync_bound(steps=8), "2025.3"),
}


def write_base(base: str, path: Path) -> Path:
    """Write one of the base traces."""
    make, version = BASES[base]
    missing_tables = ("DIAGNOSTIC_EVENT", "GPU_METRICS", "TARGET_INFO_GPU_METRICS") if version == "2023.4" else ()
    return make().write(path, version=version, without_tables=missing_tables)
