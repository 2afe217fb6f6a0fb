"""Synthetic traces whose correct answers are known by construction, written as nsys writes them.

    trace = Trace()
    host = trace.thread(pid=100)
    with host.nvtx("decode_step"):
        host.launch("gemm(float *)", api=5_000, queue=200, runs=40_000, grid=(64, 1, 1))
        host.copy("D2H", 4, runs=1_000, blocking=True)
    trace.write(tmp_path / "trace.sqlite", version="2023.4")

All times are nanoseconds. A host thread has a clock: `start` of a call defaults to its current time.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import synthetic_file
from synthetic_schema import H200, MACHINE, NONE, TIME_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

Row = dict[str, Any]
Frame = tuple[str, str]  # a function and the file that it is in; a function 0x… has no symbol
Dim = tuple[int, int, int]
Text = str | bytes  # bytes are written to a TEXT column unchanged, UTF-8 or not

NULL_STREAM = 7  # as CUPTI numbers the legacy default stream of a process's first context
LATENCY = 1_000  # from the end of a call to the start of its work, on an idle stream
NVTX_COST = 100  # opening and closing a range, so that no two ranges of a `with` coincide
# The innermost frames of every backtrace of a CUDA call: those of the profiler, the driver and the runtime.
INSIDE_CUDA: tuple[Frame, ...] = (
    ("0x7f01", "/opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/libcupti.so.12.9"),
    ("0x7f02", "/usr/lib64/libcuda.so.550.54"),
    ("cudaEntry", "/usr/local/cuda/lib64/libcudart.so.12.5"),
)  # fmt: skip
COPY_KINDS = {
    "H2D": ("Host-to-Device", "pinned", "device"),
    "D2H": ("Device-to-Host", "device", "pinned"),
    "D2D": ("Device-to-Device", "device", "device"),
    "P2P": ("Peer-to-Peer", "device", "device"),
    "H2H": ("Host-to-Host", "pinned", "pinned"),
    "UM H2D": ("Unified Host-to-Device", "unknown", "unknown"),
    "UM D2H": ("Unified Device-to-Host", "unknown", "unknown"),
}


class Trace:
    """Rows of nsys's tables, in the order they were added; `rows` may be edited before `write`.

    Columns of string ids hold the string here, columns of enum numbers the label. `write` replaces them by numbers.
    """

    SECRET = "hunter2"  # noqa: S105 - every file carries it in the recorded environment; no report may show it

    def __init__(self) -> None:
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.processes: dict[int, Text] = {}
        self.visible_gpus: dict[int, Sequence[int]] = {}
        self.chains = 0
        self.correlations: defaultdict[int, int] = defaultdict(int)
        self.stream_ends: dict[tuple[int, int, int], int] = {}
        self.event_ends: dict[tuple[int, int], int] = {}
        self.start_epoch_ns = 1_767_323_045_000_000_000  # start of the trace by the host's clock
        self.environment: dict[str, str] = {}

    def __repr__(self) -> str:
        return "\n".join(f"{table}: {row}" for table, rows in self.rows.items() for row in rows) or "Trace()"

    def thread(
        self, *, pid: int = 100, tid: int | None = None, name: Text = "main", process: Text = "./app", now: int = 0,
        gpus: Sequence[int] = (), first_correlation: int | None = None,
    ) -> Host:  # fmt: skip
        """Add a host thread. `gpus` is its process's CUDA_VISIBLE_DEVICES: which GPU device 0, 1 … is.

        Every process counts its correlation ids from 1, so ids repeat across processes.
        """
        self.processes.setdefault(pid, process)
        if gpus:
            self.visible_gpus[pid] = gpus
        if first_correlation is not None:
            self.correlations[pid] = first_correlation - 1
        host = Host(self, pid, pid if tid is None else tid, now)
        self.row("ThreadNames", nameId=name, priority=20, globalTid=host.global_tid)
        return host

    def gpu(self, number: int = 0, **facts: Any) -> Self:
        """Describe a GPU: an H200, except for `facts`. GPUs that are used are described in any case."""
        self.row("TARGET_INFO_GPU", **{**H200, "id": number, "cuDevice": number, "pwGpuId": number, **facts})
        return self

    def diagnostic(self, text: Text, *, time: int = 0, severity: str = "Warning", source: str = "Injection") -> Self:
        self.row("DIAGNOSTIC_EVENT", timestamp=time, timestampType=1, source=source, severity=severity, text=text)
        return self

    def overhead(self, name: Text, start: int, end: int, host: Host | None = None) -> Self:
        """Record overhead of the profiler, such as "CUPTI Buffer flush"."""
        self.row("PROFILER_OVERHEAD", start=start, end=end, nameId=name, globalTid=host and host.global_tid)
        return self

    def gpu_metric(self, name: Text, *, time: int, value: int, gpu: int = 0) -> Self:
        """Record one sample of a metric, such as "SMs Active [Throughput %]"."""
        kind = MACHINE | 1 << 32 | gpu
        metric_rows = self.rows["TARGET_INFO_GPU_METRICS"]
        numbers = {row["metricName"]: row["metricId"] for row in metric_rows if row["typeId"] == kind}
        number = numbers.get(name, len(numbers))
        if name not in numbers:
            self.row(
                "TARGET_INFO_GPU_METRICS", typeId=kind, sourceId=kind, typeName="", metricId=number, metricName=name
            )
        self.row("GPU_METRICS", rawTimestamp=time, timestamp=time, typeId=kind, metricId=number, value=value)
        return self

    def chain(self, table: str, number: int, frames: Sequence[Frame]) -> None:
        """Record a call chain, the innermost frame first."""
        for depth, (symbol, module) in enumerate(frames):
            unresolved = 1 if symbol.startswith("0x") else None
            self.row(table, id=number, symbol=symbol, module=module, unresolved=unresolved, stackDepth=depth)

    def row(self, table: str, **values: Any) -> Row:
        """Add a row unchanged. Columns that are not given are NULL, or 0 or '' where nsys allows no NULL."""
        self.rows[table].append(values)
        return values

    def shifted(self, ns: int) -> Trace:
        """Return a copy of the trace, `ns` later."""
        shifted = copy.deepcopy(self)
        for rows in shifted.rows.values():
            for row in rows:
                row.update({name: row[name] + ns for name in TIME_COLUMNS & row.keys() if row[name] is not None})
        return shifted

    def twice(self) -> Trace:
        """Return the trace twice in a row. The second half has its own correlation ids. Close every range first."""
        first, last = synthetic_file.extent(self.rows)
        doubled, second_half = copy.deepcopy(self), self.shifted(last - first + 1_000)
        id_offset = max(self.correlations.values(), default=0)
        for table, rows in second_half.rows.items():
            for row in rows:
                if row.get("correlationId") is not None:
                    row["correlationId"] += id_offset
                event_columns = row.keys() & {"correlationId", *TIME_COLUMNS}
                if event_columns and row.get("eventType") != synthetic_file.NVTX_DOMAIN:
                    doubled.rows[table].append(row)
        return doubled

    def write(self, path: Path, version: str = "2025.3", **options: Any) -> Path:
        """Write the trace as this version of nsys exports it; see `synthetic_file.write` for the options."""
        return synthetic_file.write(self, path, version, **options)


class Host:
    """A host thread that makes one call after another. Every method returns the thread, for chained calls."""

    def __init__(self, trace: Trace, pid: int, tid: int, now: int) -> None:
        self.trace, self.pid, self.tid, self.now = trace, pid, tid, now
        self.global_pid = MACHINE | pid << 24
        self.global_tid = self.global_pid | tid
        self.allocated: list[Row] = []
        self.frames: tuple[Frame, ...] = ()

    def idle(self, ns: int) -> Self:
        """Let time pass without a CUDA call."""
        self.now += ns
        return self

    def call(self, name: Text, *, start: int | None = None, takes: int = 1_000, returns: int = 0) -> Self:
        """Make an API call. One that begins inside an earlier call is nested in it."""
        self._call(name, self._start_or_now(start), takes, returns)
        return self

    def launch(
        self, name: Text, *, start: int | None = None, api: int = 5_000, queue: int | None = None, runs: int = 1_000,
        stream: int = NULL_STREAM, device: int = 0, api_name: Text = "cudaLaunchKernel_v7000",
        driver: Text | None = None, **shape: Any,
    ) -> Self:  # fmt: skip
        """Launch a kernel.

        The call takes `api`; the kernel starts `queue` after its end, or, by default, as soon as its stream is free; it
        `runs`. A `driver` call is recorded inside the runtime call. `shape` is what `kernel` takes.
        """
        start = self._start_or_now(start)
        correlation = self._call(api_name, start, api)
        if driver is not None:
            self._call(driver, start + api // 4, api // 2)
        begins = self._begin(start + api, queue, stream, device)
        return self.kernel(
            name, start=begins, runs=runs, stream=stream, device=device, correlation=correlation, **shape
        )

    def kernel(
        self, name: Text, *, start: int, runs: int = 1_000, stream: int = NULL_STREAM, device: int = 0,
        correlation: int | None = None, grid: Dim = (1, 1, 1), block: Dim = (128, 1, 1), registers: int = 32,
        static_shared: int = 0, dynamic_shared: int = 0, short_name: Text | None = None, graph_node: int | None = None,
        launch_type: str = "Regular", local_total: int = 0,
    ) -> Self:  # fmt: skip
        """Record a kernel without a call. `correlation` is that of a call that the trace already has."""
        short = base_name(name) if short_name is None else short_name
        self._device_row(
            "CUPTI_ACTIVITY_KIND_KERNEL", start, runs, self._place(stream, device), correlation,
            demangledName=name, shortName=short, mangledName=short, launchType=launch_type, cacheConfig=1,
            gridX=grid[0], gridY=grid[1], gridZ=grid[2], blockX=block[0], blockY=block[1], blockZ=block[2],
            registersPerThread=registers, staticSharedMemory=static_shared, dynamicSharedMemory=dynamic_shared,
            sharedMemoryExecuted=32_768, gridId=len(self.trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]) + 1,
            graphNodeId=graph_node, localMemoryTotal=local_total,
        )  # fmt: skip
        return self

    def graph_launch(
        self, *, kernels: Sequence[tuple[Text, int]] | None = None, graph_ns: int | None = None,
        start: int | None = None, api: int = 10_000, queue: int | None = None, gap: int = 100,
        stream: int = NULL_STREAM, device: int = 0, graph: int = 4, api_name: Text = "cudaGraphLaunch_v10000",
    ) -> Self:  # fmt: skip
        """Launch a CUDA graph.

        With `kernels`, pairs of (name, ns), it is traced per node, with `gap` between kernels. With `graph_ns`, its
        duration, it is traced as one operation. All rows share the call's correlation id. With neither, the trace has
        the call and not the work.
        """
        start = self._start_or_now(start)
        correlation = self._call(api_name, start, api)
        begins = self._begin(start + api, queue, stream, device)
        for number, (name, runs) in enumerate(kernels or ()):
            node = graph + 1 << 32 | number
            self.kernel(
                name, start=begins, runs=runs, stream=stream, device=device, correlation=correlation, graph_node=node
            )
            begins += runs + gap
        if graph_ns is not None:
            self._device_row(
                "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", begins, graph_ns, self._place(stream, device), correlation,
                graphId=graph, graphExecId=graph + 1,
            )  # fmt: skip
        return self

    def copy(
        self, kind: str, size: int, *, start: int | None = None, api: int = 5_000, queue: int | None = None,
        runs: int = 1_000, blocking: bool = False, stream: int = NULL_STREAM, device: int = 0,
        source: str | None = None, target: str | None = None, api_name: Text | None = None,
    ) -> Self:  # fmt: skip
        """Copy `size` bytes: `kind` is H2D, D2H, D2D, P2P or H2H; `source` and `target` are pageable, pinned, device …

        A blocking call works for `api`, then waits for the copy and returns when it ends.
        """
        label, usual_source, usual_target = COPY_KINDS[kind]
        start = self._start_or_now(start)
        begins = self._begin(start + api, queue, stream, device)
        name = api_name or ("cudaMemcpy_v3020" if blocking else "cudaMemcpyAsync_v3020")
        correlation = self._call(name, start, begins + runs - start if blocking else api)
        self._device_row(
            "CUPTI_ACTIVITY_KIND_MEMCPY", begins, runs, self._place(stream, device), correlation, bytes=size,
            copyKind=label, srcKind=(source or usual_source).title(), dstKind=(target or usual_target).title(),
            copyCount=1,
        )  # fmt: skip
        return self

    def memset(
        self, size: int, *, value: int = 0, start: int | None = None, api: int = 3_000, queue: int | None = None,
        runs: int = 1_000, stream: int = NULL_STREAM, device: int = 0, api_name: Text = "cudaMemsetAsync_v3020",
    ) -> Self:  # fmt: skip
        start = self._start_or_now(start)
        correlation = self._call(api_name, start, api)
        begins = self._begin(start + api, queue, stream, device)
        self._device_row(
            "CUPTI_ACTIVITY_KIND_MEMSET", begins, runs, self._place(stream, device), correlation, value=value,
            bytes=size, memKind="Device",
        )  # fmt: skip
        return self

    def record(
        self, event: int, *, stream: int = NULL_STREAM, device: int = 0, start: int | None = None, takes: int = 500
    ) -> Self:
        """Record a CUDA event on a stream."""
        correlation = self._call("cudaEventRecord_v3020", self._start_or_now(start), takes)
        self.trace.row(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT", **self._place(stream, device), correlationId=correlation, eventId=event,
            eventSyncId=correlation,
        )  # fmt: skip
        self.trace.event_ends[self.pid, event] = self.trace.stream_ends.get((self.pid, device, stream), self.now)
        return self

    def sync(
        self, target: str, *, start: int | None = None, waits: int | None = None, stream: int = NULL_STREAM,
        event: int | None = None, device: int = 0, api_name: Text | None = None,
    ) -> Self:  # fmt: skip
        """Wait for the target: "stream", "event" or "device". The wait lasts `waits`, or until the work is done."""
        start, ends = self._start_or_now(start), self.trace.stream_ends
        on_device = [end for (pid, device_id, _), end in ends.items() if (pid, device_id) == (self.pid, device)]
        work_end = {
            "stream": ends.get((self.pid, device, stream), start),
            "event": self.trace.event_ends.get((self.pid, NONE if event is None else event), start),
            "device": max(on_device, default=start),
        }[target]
        takes = max(work_end - start, 0) + 500 if waits is None else waits
        correlation = self._call(api_name or f"cuda{target.title()}Synchronize_v3020", start, takes)
        inset = min(50, takes // 4)  # CUPTI's record lies inside the call
        self._device_row(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start + inset, takes - 2 * inset,
            self._place(stream if target == "stream" else NONE, device), correlation, syncType=target,
            eventId=NONE if event is None else event, eventSyncId=NONE,
        )  # fmt: skip
        return self

    def migrate(
        self, kind: str, size: int, *, start: int, runs: int, cause: str = "Page fault", device: int = 0
    ) -> Self:
        """Migrate pages of unified memory, "UM H2D" or "UM D2H". There is no call; the correlation id is 0."""
        label, source, target = COPY_KINDS[kind]
        self.trace.row(
            "CUPTI_ACTIVITY_KIND_MEMCPY", start=start, end=start + runs, deviceId=device, contextId=device + 1,
            streamId=0, correlationId=0, globalPid=self.global_pid, bytes=size, copyKind=label, srcKind=source.title(),
            dstKind=target.title(), migrationCause=cause, copyCount=1,
        )  # fmt: skip
        return self

    def page_faults(self, *, start: int, runs: int = 0, count: int = 1, device: int | None = None) -> Self:
        """Record page faults of a GPU, which last for `runs`, or without `device` one page fault of the CPU."""
        if device is None:
            self.trace.row(
                "CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=start, globalPid=self.global_pid, address=1 << 32,
                CpuInstruction=0, module=0,
            )  # fmt: skip
        else:
            self.trace.row(
                "CUDA_UM_GPU_PAGE_FAULT_EVENTS", start=start, end=start + runs, globalPid=self.global_pid,
                deviceId=device, address=1 << 32, numberOfPageFaults=count, faultAccessType=0,
            )  # fmt: skip
        return self

    def malloc(
        self, size: int, *, start: int | None = None, takes: int = 2_000, memory: str = "device", device: int = 0,
        api_name: Text = "cudaMalloc_v3020",
    ) -> Self:  # fmt: skip
        start = self._start_or_now(start)
        correlation = self._call(api_name, start, takes)
        event = {
            "globalPid": self.global_pid, "deviceId": device, "contextId": device + 1, "bytes": size,
            "memKind": memory.title(), "address": len(self.trace.rows["CUDA_GPU_MEMORY_USAGE_EVENTS"]) + 1 << 32,
        }  # fmt: skip
        self.allocated.append(event)
        self._memory_event(start + takes // 2, correlation, "Allocation", event)
        return self

    def free(self, *, start: int | None = None, takes: int = 2_000, api_name: Text = "cudaFree_v3020") -> Self:
        """Free the last allocation."""
        start = self._start_or_now(start)
        correlation = self._call(api_name, start, takes)
        self._memory_event(start + takes // 2, correlation, "Deallocation", self.allocated.pop())
        return self

    def range(
        self, name: Text, start: int, end: int | None, *, domain: Text | None = None, registered: bool = False,
        style: str = "push/pop",
    ) -> Self:  # fmt: skip
        """Add an NVTX range, push/pop or start/end. Without `end` it stays open. A registered name is a string id."""
        self.trace.row(
            "NVTX_EVENTS", start=start, end=end, eventType={"push/pop": 59, "start/end": 60}[style],
            globalTid=self.global_tid, endGlobalTid=self.global_tid if style == "start/end" else None,
            rangeId=len(self.trace.rows["NVTX_EVENTS"]) + 1 if style == "start/end" else None,
            domainId=self._domain(domain, start), **{"textId" if registered else "text": name},
        )  # fmt: skip
        return self

    def mark(self, name: Text, time: int) -> Self:
        self.trace.row("NVTX_EVENTS", start=time, eventType=34, globalTid=self.global_tid, domainId=0, text=name)
        return self

    @contextmanager
    def nvtx(self, name: Text, **kind: Any) -> Iterator[Self]:
        """Open a range around what the block does."""
        start = self.now
        self.now += NVTX_COST
        yield self
        self.now += NVTX_COST
        self.range(name, start, self.now, **kind)

    @contextmanager
    def call_stack(self, *frames: Frame) -> Iterator[Self]:
        """Run the block in these functions, the innermost first. Its CUDA calls get a backtrace."""
        outer_frames = self.frames
        self.frames = (*frames, *outer_frames)
        yield self
        self.frames = outer_frames

    def sample(self, time: int, *frames: Frame) -> Self:
        """Record a sample of the CPU with its call chain, the innermost frame first."""
        number = len(self.trace.rows["COMPOSITE_EVENTS"]) + 1
        self.trace.row("COMPOSITE_EVENTS", id=number, start=time, cpu=0, threadState=1, globalTid=self.global_tid)
        self.trace.chain("SAMPLING_CALLCHAINS", number, frames)
        return self

    def off_cpu(self, start: int, end: int) -> Self:
        """Record that the thread was off the CPU from `start` to `end`."""
        for time, is_in in ((start, 0), (end, 1)):
            self.trace.row("SCHED_EVENTS", start=time, cpu=0, isSchedIn=is_in, globalTid=self.global_tid)
        return self

    def osrt(self, name: Text, *, start: int | None = None, takes: int = 1_000) -> Self:
        """Make a call of the OS runtime, such as poll."""
        start = self._start_or_now(start)
        self.trace.row(
            "OSRT_API", start=start, end=start + takes, eventClass=27, globalTid=self.global_tid, nameId=name
        )
        self.now = max(self.now, start + takes)
        return self

    def _start_or_now(self, start: int | None) -> int:
        return self.now if start is None else start

    def _call(self, name: Text, start: int, takes: int, returns: int = 0) -> int:
        self.trace.correlations[self.pid] += 1
        correlation = self.trace.correlations[self.pid]
        runtime = name.startswith("cuda") if isinstance(name, str) else name.startswith(b"cuda")
        self.trace.row(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=start + takes, eventClass=0 if runtime else 1,
            globalTid=self.global_tid, correlationId=correlation, nameId=name, returnValue=returns,
            callchainId=self._chain(),
        )  # fmt: skip
        self.now = max(self.now, start + takes)
        return correlation

    def _chain(self) -> int | None:
        if not self.frames:
            return None
        self.trace.chains += 1
        self.trace.chain("CUDA_CALLCHAINS", self.trace.chains, (*INSIDE_CUDA, *self.frames))
        return self.trace.chains

    def _begin(self, issued: int, queue: int | None, stream: int, device: int) -> int:
        if queue is not None:
            return issued + queue
        return max(issued + LATENCY, self.trace.stream_ends.get((self.pid, device, stream), issued))

    def _place(self, stream: int, device: int) -> Row:
        return {
            "deviceId": device, "contextId": device + 1, "greenContextId": 0, "streamId": stream,
            "globalPid": self.global_pid,
        }  # fmt: skip

    def _device_row(
        self, table: str, start: int, runs: int, place: Row, correlation: int | None, **columns: Any
    ) -> None:
        self.trace.row(table, start=start, end=start + runs, **place, correlationId=correlation, **columns)
        key = (self.pid, place["deviceId"], place["streamId"])
        if place["streamId"] != NONE:
            self.trace.stream_ends[key] = max(self.trace.stream_ends.get(key, start), start + runs)

    def _memory_event(self, time: int, correlation: int, operation: str, event: Mapping[str, Any]) -> None:
        self.trace.row(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            start=time,
            correlationId=correlation,
            memoryOperationType=operation,
            **event,
        )

    def _domain(self, name: Text | None, time: int) -> int:
        if name is None:
            return 0
        created = [row for row in self.trace.rows["NVTX_EVENTS"] if row["eventType"] == synthetic_file.NVTX_DOMAIN]
        process_domains = [row for row in created if row["globalTid"] >> 24 == self.global_tid >> 24]
        domain_id = next((row["domainId"] for row in process_domains if row["text"] == name), None)
        if domain_id is not None:
            return int(domain_id)
        self.trace.row(
            "NVTX_EVENTS", start=time, eventType=synthetic_file.NVTX_DOMAIN, globalTid=self.global_tid,
            domainId=len(process_domains) + 1, text=name,
        )  # fmt: skip
        return len(process_domains) + 1


def base_name(name: Text) -> Text:
    """Return nsys's short name of a kernel: without return type, namespace, template and parameters."""
    if isinstance(name, bytes):
        return name
    return re.split(r"[ :]", re.sub(r"[<(].*", "", name, flags=re.DOTALL))[-1] or name
