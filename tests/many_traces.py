"""One trace with everything that a trace may hold, written in many variants, for properties that hold for any trace."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from synthetic import Trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
EARLIER, LATER = -1_000_000, 10**15
# Columns that older versions of nsys lack.
OPTIONAL = {
    "greenContextId", "mangledName", "launchType", "sharedMemoryExecuted", "graphNodeId", "copyCount", "srcKind",
    "dstKind", "memKind", "callchainId", "deprecatedSyncType", "eventSyncId", "endGlobalTid", "textId", "rangeId",
    "CUDA_GPU_MEMORY_USAGE_EVENTS.streamId", "localMemoryPoolSize",
}  # fmt: skip


def write_all(folder: Path) -> dict[str, Path]:
    """Write all variants, add two sample traces, and return the files by their special property."""
    bare = remove_columns(make_full_trace(), OPTIONAL)
    return {
        "plain": make_full_trace().write(folder / "plain.sqlite"),
        "shuffled": make_full_trace().write(folder / "shuffled.sqlite", shuffle=1),
        "NULL columns": bare.write(folder / "null_columns.sqlite"),
        "missing columns": bare.write(folder / "missing_columns.sqlite", without_columns=OPTIONAL),
        "2025.3": make_full_trace(any_version=True).write(folder / "2025.sqlite"),
        "2023.4": make_full_trace(any_version=True).write(folder / "2023.sqlite", version="2023.4"),
        "2022.2": make_full_trace(any_version=True).write(folder / "2022.sqlite", version="2022.2"),
        "earlier": make_full_trace().shifted(EARLIER).write(folder / "earlier.sqlite"),
        "later": make_full_trace().shifted(LATER).write(folder / "later.sqlite", lazy=False),
        "sample": SAMPLES / "churn.sqlite",
        "sample, shuffled": shuffle_rows(SAMPLES / "churn.sqlite", folder / "churn.sqlite"),
        "sample with graphs": SAMPLES / "decode_graph_node.sqlite",
        "sample with graphs, shuffled": shuffle_rows(SAMPLES / "decode_graph_node.sqlite", folder / "graph.sqlite"),
        "nothing": Trace().write(folder / "nothing.sqlite"),
        "calls only": calls_only().write(folder / "calls.sqlite"),
        "kernels only": kernels_only().write(folder / "kernels.sqlite"),
        "a wait in a reset": wait_in_a_reset().write(folder / "reset.sqlite"),
        "GPUs of 2020": with_gpus_of_2020(
            kernels_only().write(folder / "2020.sqlite", without_tables=["TARGET_INFO_GPU"])
        ),
    }


def make_full_trace(*, any_version: bool = False) -> Trace:
    """Return a trace with everything that a trace may hold, and many ties; or with what any version of nsys writes."""
    trace = Trace()
    for pid, device in ((100, 0), (200, 1)):
        host = trace.thread(pid=pid)
        host.range("epoch", host.now, None).range("request", 50_000, 400_000, style="start/end")
        for _ in range(4):
            with host.nvtx("step"):
                host.copy("H2D", 4096, device=device, source="pageable")
                with host.nvtx("layer", domain="model"):
                    for stream in (7, 13):
                        with host.call_stack(("norm(Tensor)", "/app/model.so"), ("forward", "/app/model.py")):
                            host.launch("void norm<float>(float *)", runs=2_000, stream=stream, device=device)
                        with host.call_stack(("gemm(Tensor)", "/app/model.so"), ("0x1", "/app/model.so")):
                            host.launch(
                                "gemm(float *)",
                                runs=2_000,
                                stream=stream,
                                device=device,
                                grid=(64, 1, 1),
                                registers=200,
                            )
                host.launch(
                    "gemm(half *)",
                    runs=2_000,
                    device=device,
                    driver="cuLaunchKernelEx",
                    launch_type="Coop Single Device",
                )
                host.memset(256, device=device).malloc(1 << 20, device=device).free()
                host.graph_launch(kernels=[("gemm(float *)", 2_000), ("relu", 0)], stream=13, device=device)
                if not any_version:
                    host.graph_launch(graph_ns=3_000, device=device)
                host.record(1, stream=13, device=device).sync("event", event=1, device=device)
                host.copy("D2H", 64, device=device).sync("stream", device=device).sync("device", device=device)
                host.copy("D2H", 64, device=device, target="pageable", blocking=True).copy("D2D", 512, device=device)
            for offset in range(0, 30_000, 2_000):
                host.sample(host.now + offset, ("vfprintf", "/lib/libc.so.6"), ("log(int)", "/app/model.so"))
            host.osrt("poll", takes=20_000).off_cpu(host.now - 15_000, host.now - 5_000).idle(5_000)
        host.kernel("stray", start=host.now, device=device).call("cudaLaunchKernel_v7000").mark("here", host.now)
        trace.overhead("CUPTI Buffer flush", 1_000, 9_000, host)
    if not any_version:
        trace.diagnostic("Not all CUDA events might have been collected.").diagnostic("No.", severity="Error")
        for offset in range(0, 100_000, 10_000):
            trace.gpu_metric("SMs Active [Throughput %]", time=offset, value=50).gpu_metric(
                "DRAM Read", time=offset, value=7
            )
    return trace


def remove_columns(trace: Trace, columns: set[str]) -> Trace:
    """Remove these columns from the rows of a trace and return it; they become NULL."""
    for table, rows in trace.rows.items():
        for row in rows:
            for column in columns:
                owner, _, name = column.rpartition(".")
                if owner in ("", table):
                    row.pop(name, None)
    return trace


def shuffle_rows(source: Path, target: Path) -> Path:
    """Copy a real export with the rows of each table in another order."""
    target.write_bytes(source.read_bytes())
    with closing(sqlite3.connect(target)) as database, database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            database.execute(
                f'CREATE TEMP TABLE reordered AS SELECT * FROM main."{table}" ORDER BY rowid * 7919 % 10007, rowid'
            )
            database.execute(f'DELETE FROM main."{table}"')
            database.execute(f'INSERT INTO main."{table}" SELECT * FROM reordered ORDER BY rowid')
            database.execute("DROP TABLE reordered")
    return target


def calls_only() -> Trace:
    trace = Trace()
    trace.thread().call("cudaLaunchKernel_v7000").call("cudaGetDevice")
    return trace


def kernels_only() -> Trace:
    trace = Trace()
    trace.thread().kernel("k", start=0).kernel("k", start=5_000)
    return trace


def wait_in_a_reset() -> Trace:
    """Return a loop whose last wait has the correlation id of the reset call around it."""
    trace = Trace()
    host = trace.thread()
    for _ in range(4):
        host.launch("gemm(float *)", runs=20_000).copy("D2H", 64, target="pageable").sync("stream").idle(9_000)
    host.call("cudaDeviceReset_v3020", takes=9_000)
    reset = trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]
    host.sync("device", start=reset["start"] + 1_000, waits=3_000, api_name="cuCtxSynchronize")
    trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["correlationId"] = reset["correlationId"]
    return trace


def with_gpus_of_2020(path: Path) -> Path:
    """Describe the GPUs of a trace as nsys did from 2020 to 2022, with the bus as text."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INT, name TEXT, pciBusId TEXT, numMultiprocessors INT)"
        )
        database.execute("INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, 'Quadro RTX 6000', '0000:3B:00.0', 72)")
    return path
