"""Synthetic traces of loops whose steps, counts and idle time are known by construction.

    planted = planted.sync_bound(steps=8)
    planted.write(path)
    planted.steps[3].idle_ns["sync"]

A loop is a host that does one thing after another and a GPU that starts each operation when its launch call has
returned and its stream is free. While they run, each nanosecond without GPU work is recorded together with the
activity of the host. So the expected idle time does not depend on the trace.

Causes of idle time, as in `gpu_idle`. If the launch call of the next operation returned before the GPU went idle, the
operation was launched in time and waited for something else: *dependency*. Otherwise the host was late, and each
nanosecond has the host's activity as its cause: *sync*, *copy* (a blocking one), *allocation*, *profiler* for the
profiler's own work, and *launch* for the rest, which is Python, other calls, the launch call itself and the latency
from the call to the GPU. Time before the first operation and after the last one is *start-up and end*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from synthetic import LATENCY, NULL_STREAM, Host, Trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CAUSES = {"sync": "sync", "blocking copy": "copy", "allocation": "allocation", "profiler": "profiler"}


@dataclass(frozen=True)
class Gap:
    """A time in which a GPU was idle for one cause; `host` is the activity of the host."""

    gpu_id: int
    start_ns: int
    end_ns: int
    cause: str
    host: str

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass
class Step:
    """The expected values of one step on its GPU. Its wall time ends at the first operation of the next step."""

    host_start_ns: int
    start_ns: int = 0
    end_ns: int = 0
    busy_ns: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    idle_ns: dict[str, int] = field(default_factory=dict)
    phase: str = "steady"

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    @property
    def wall_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass
class Planted:
    """A trace with its expected values: the steps of each process, and the gaps of all GPUs in the trace."""

    trace: Trace
    loops: list[Loop]
    tokens_per_step: int = 1
    # What a step does, of a program of `ailments`: `body(loop, number)`.
    body: Callable[[Loop, int], None] | None = None

    @property
    def steps(self) -> list[Step]:
        """The steps of the first process."""
        return self.loops[0].steps

    @property
    def gaps(self) -> list[Gap]:
        return [gap for loop in self.loops for gap in loop.gaps]

    def write(self, path: Path, version: str = "2025.3", **options: Any) -> Path:
        return self.trace.write(path, version, **options)


class Loop:
    """A host thread and its GPU. The expected values are recorded while they run."""

    def __init__(self, trace: Trace, *, pid: int = 100, gpu: int = 0, nvtx: str = "") -> None:
        self.trace, self.gpu, self.nvtx = trace, gpu, nvtx
        self.host: Host = trace.thread(pid=pid, gpus=(gpu,), now=10_000)
        self.steps: list[Step] = []
        self.gaps: list[Gap] = []
        self.busy: list[tuple[int, int]] = []
        self.streams: dict[int, int] = {}
        self.host_activities: list[tuple[str, int, int]] = []  # name, start, end
        self.first_call: int | None = None

    # Host activities -------------------------------------------------------------------------------------------------

    def step(self, phase: str = "steady") -> Step:
        """Begin a step and end the previous one."""
        self._close_range()
        self.steps.append(Step(self.host.now, phase=phase))
        return self.steps[-1]

    def python(self, ns: int) -> None:
        """Spend time outside CUDA."""
        self._note("python", ns)
        self.host.idle(ns)

    def launch(
        self, name: str, runs: int, *, api: int = 4_000, stream: int = NULL_STREAM, waits: int = 0, **shape: Any
    ) -> None:
        """Launch a kernel. It starts `waits` after its stream and its call are ready."""
        start = self._call("launch", api)
        begins = self._operate(start, start + api + LATENCY, runs, stream, waits)
        self.host.launch(name, start=start, api=api, queue=begins - start - api, runs=runs, stream=stream, **shape)
        self._count("kernels", "launch_calls")

    def graph(self, *, kernels: list[tuple[str, int]] | None = None, graph_ns: int = 0, api: int = 10_000) -> None:
        """Launch a CUDA graph whose kernels run back to back."""
        start = self._call("launch", api)
        runs = graph_ns or sum(ns for _, ns in kernels or ())
        begins = self._operate(start, start + api + LATENCY, runs, NULL_STREAM)
        queue = begins - start - api
        self.host.graph_launch(kernels=kernels, graph_ns=graph_ns or None, start=start, api=api, queue=queue, gap=0)
        self._count("launch_calls", "graph_launches")
        self._count("kernels", number=len(kernels or ()))

    def copy(
        self, kind: str, size: int, runs: int, *, api: int = 5_000, blocking: bool = False, **options: Any
    ) -> None:
        """Copy; a blocking call returns when the copy is done."""
        start = self.host.now
        begins = max(start + api + LATENCY, self.streams.get(NULL_STREAM, 0))
        self._call("blocking copy" if blocking else "copy", begins + runs - start if blocking else api)
        self._operate(start, begins, runs, NULL_STREAM)
        queue = begins - start - api
        self.host.copy(kind, size, start=start, api=api, queue=queue, runs=runs, blocking=blocking, **options)
        self._count(f"{kind.lower()}_copies")
        self._count(f"{kind.lower()}_bytes", number=size)
        if blocking:
            self._count("sync_points")

    def memset(self, size: int, runs: int, *, api: int = 3_000) -> None:
        start = self._call("launch", api)
        begins = self._operate(start, start + api + LATENCY, runs, NULL_STREAM)
        self.host.memset(size, start=start, api=api, queue=begins - start - api, runs=runs)

    def sync(self, wakes: int = 1_000) -> None:
        """Wait for the stream. The host wakes `wakes` ns after the work is done."""
        start = self.host.now
        takes = max(self.streams.get(NULL_STREAM, 0) - start, 0) + wakes
        self._call("sync", takes)
        self.host.sync("stream", start=start, waits=takes)
        self._count("sync_calls", "sync_points")

    def malloc(self, size: int, takes: int) -> None:
        start = self._call("allocation", takes)
        self.host.malloc(size, start=start, takes=takes)
        self._count("mallocs")

    def free(self, takes: int) -> None:
        start = self._call("allocation", takes)
        self.host.free(start=start, takes=takes)
        self._count("frees")

    def profiler(self, takes: int) -> None:
        """Let the profiler block the host."""
        start = self.host.now
        self._note("profiler", takes)
        self.trace.overhead("CUPTI Buffer flush", start, start + takes, self.host)
        self.host.idle(takes)

    # Expected values -------------------------------------------------------------------------------------------------

    def finish(self) -> Loop:
        """End the last step, and assign busy and idle time to the steps."""
        self._close_range()
        ops_end = max(end for _, end in self.busy)
        for step, next_step in zip(self.steps, [*self.steps[1:], None], strict=True):
            step.end_ns = next_step.start_ns if next_step else ops_end
        for step in self.steps:
            step.busy_ns = sum(max(0, min(end, step.end_ns) - max(start, step.start_ns)) for start, end in self.busy)
            for gap in self.gaps:
                overlap = min(gap.end_ns, step.end_ns) - max(gap.start_ns, step.start_ns)
                if overlap > 0:
                    step.idle_ns[gap.cause] = step.idle_ns.get(gap.cause, 0) + overlap
        return self

    def edges(self, first: int, last: int) -> None:
        """Add the idle time between the trace's first and last event and the GPU's own."""
        for start, end in ((first, self.busy[0][0]), (self.busy[-1][1], last)):
            if end > start:
                self.gaps.append(Gap(self.gpu, start, end, "start-up and end", ""))

    def _close_range(self) -> None:
        if self.nvtx and self.steps:
            name = self.nvtx.replace("#", str(len(self.steps) - 1))
            self.host.range(name, self.steps[-1].host_start_ns, self.host.now)

    def _note(self, activity: str, takes: int) -> None:
        self.host_activities.append((activity, self.host.now, self.host.now + takes))

    def _call(self, activity: str, takes: int) -> int:
        if self.first_call is None:
            self.first_call = self.host.now
        self._note(activity, takes)
        return self.host.now

    def _count(self, *names: str, number: int = 1) -> None:
        for name in names:
            self.steps[-1].count(name, number)

    def _operate(self, call_start: int, ready: int, runs: int, stream: int, waits: int = 0) -> int:
        """Run an operation on the GPU, and record the idle time before it."""
        begins = max(ready, self.streams.get(stream, 0)) + waits
        free = self.busy[-1][1] if self.busy else None
        if free is None or begins > free:
            if free is not None:
                self._explain(free, begins, call_start)
            self.busy.append((begins, begins + runs))
        else:
            start, end = self.busy[-1]
            self.busy[-1] = (start, max(end, begins + runs))
        self.streams[stream] = begins + runs
        step = self.steps[-1]
        step.start_ns = min(step.start_ns or begins, begins)
        return begins

    def _explain(self, start: int, end: int, call_start: int) -> None:
        if call_start < start:
            self.gaps.append(Gap(self.gpu, start, end, "dependency", ""))
            return
        gap_start = start
        for activity, activity_start, activity_end in self.host_activities:
            if activity_end > gap_start and activity_start < end and gap_start < end:
                gap_end = min(activity_end, end)
                self.gaps.append(Gap(self.gpu, gap_start, gap_end, CAUSES.get(activity, "launch"), activity))
                gap_start = gap_end
        if gap_start < end:
            self.gaps.append(Gap(self.gpu, gap_start, end, "launch", "latency"))


def planted(trace: Trace, *loops: Loop, tokens_per_step: int = 1) -> Planted:
    """Finish the loops of a trace."""
    rows = trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    first = min(row["start"] for row in rows)
    last = max(*(row["end"] for row in rows), *(loop.busy[-1][1] for loop in loops))
    for loop in loops:
        loop.finish().edges(first, last)
    return Planted(trace, list(loops), tokens_per_step)


def layers(loop: Loop, runs: int = 2_000, *, count: int = 3, think: int = 5_000, grid: int = 4, **launch: Any) -> None:
    """Launch the kernels of a small decoder's step: 3 kernels, and 2 for each layer."""
    kernels = ["embed", *["norm", "gemm"] * count, "head", "argmax"]
    for name in kernels:
        loop.launch(f"{name}(float *)", runs, grid=(grid, 1, 1), **launch)
        if think:
            loop.python(think)


def launch_bound(steps: int = 8, *, nvtx: str = "", straggler: int | None = None, tokens_per_step: int = 1) -> Planted:
    """Kernels shorter than their launches: of the 9 µs that each of the 9 takes, 7 are idle: launch."""
    trace = Trace()
    loop = Loop(trace, nvtx=nvtx)
    for number in range(steps):
        loop.step()
        layers(loop)
        if number == straggler:
            loop.python(500_000)
    return planted(trace, loop, tokens_per_step=tokens_per_step)


def straggling(steps: int = 12, *, slow_step: int = 7) -> Planted:
    """One step in which the host does something else for 500 µs."""
    return launch_bound(steps, straggler=slow_step)


def tokens_in_batches(steps: int = 6) -> Planted:
    """8 tokens a step."""
    return launch_bound(steps, tokens_per_step=8)


def deep_queue(steps: int = 8, *, nvtx: str = "") -> Planted:
    """Kernels of 50 µs that are launched every 4 µs: the host runs ahead, and the GPU never waits."""
    trace = Trace()
    loop = Loop(trace, nvtx=nvtx)
    for _ in range(steps):
        loop.step()
        layers(loop, 50_000, think=0)
    loop.sync()
    return planted(trace, loop)


def sync_bound(steps: int = 8, *, nvtx: str = "") -> Planted:
    """Each step reads its token back: the host wakes 20 µs after the copy, and works 10 µs before the next launch."""
    trace = Trace()
    loop = Loop(trace, nvtx=nvtx)
    for _ in range(steps):
        loop.step()
        layers(loop, 10_000, think=0)
        loop.copy("D2H", 8, 1_000)
        loop.sync(wakes=20_000)
        loop.python(10_000)
    return planted(trace, loop)


def copy_bound(steps: int = 8) -> Planted:
    """Each step copies its input and its output with blocking calls that take 15 µs before they begin to copy."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(steps):
        loop.step()
        loop.copy("H2D", 1 << 20, 100_000, api=15_000, blocking=True)
        layers(loop, 5_000, think=0, count=1)
        loop.sync(wakes=0)
        loop.copy("D2H", 1 << 20, 100_000, api=15_000, blocking=True)
    return planted(trace, loop)


def allocating(steps: int = 8, *, warm_up: int | None = None) -> Planted:
    """Steps that allocate and free between two kernels, 30 µs each: all steps, or only the first `warm_up`."""
    trace = Trace()
    loop = Loop(trace)
    for number in range(steps):
        allocates = warm_up is None or number < warm_up
        loop.step("steady" if warm_up is None or not allocates else "warm-up")
        layers(loop)
        if allocates:
            loop.malloc(1 << 20, 30_000)
        loop.launch("scale(float *)", 2_000)
        loop.python(4_000)
        if allocates:
            loop.free(30_000)
    return planted(trace, loop)


def profiled(steps: int = 8) -> Planted:
    """The profiler writes its buffers for 40 µs in every other step."""
    trace = Trace()
    loop = Loop(trace)
    for number in range(steps):
        loop.step()
        layers(loop)
        if number % 2:
            loop.profiler(40_000)
    return planted(trace, loop)


def dependent(steps: int = 8) -> Planted:
    """Two streams. The kernel on the second one is launched in time and starts 6 µs after all other work is done."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(steps):
        loop.step()
        layers(loop, 20_000, think=0)
        waits = loop.busy[-1][1] + 6_000 - (loop.host.now + 4_000 + LATENCY)
        loop.launch("allreduce(float *)", 10_000, stream=13, waits=waits)
        loop.sync(wakes=0)
        loop.python(max(0, loop.busy[-1][1] - loop.host.now))
    return planted(trace, loop)


def two_streams(steps: int = 8) -> Planted:
    """Two streams whose kernels overlap by half."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(steps):
        loop.step()
        for name in ("embed", "norm", "gemm", "head"):
            loop.launch(f"{name}(float *)", 20_000)
            loop.launch(f"side_{name}(float *)", 20_000, stream=13)
            loop.python(30_000)
    return planted(trace, loop)


def two_processes(steps: int = 8) -> Planted:
    """Two ranks with their own GPUs whose correlation ids are the same; the second one is slower."""
    trace = Trace()
    ranks = [Loop(trace, pid=100, gpu=0), Loop(trace, pid=200, gpu=1)]
    for _ in range(steps):
        for rank, think in zip(ranks, (5_000, 9_000), strict=True):
            rank.step()
            layers(rank, think=think)
    return planted(trace, *ranks)


def prefill_and_decode(steps: int = 8) -> Planted:
    """A prompt of larger grids and longer kernels, then steps; each ends by reading its token back."""
    trace = Trace()
    loop = Loop(trace)
    for number in range(steps + 1):
        loop.step("steady" if number else "prefill")
        layers(loop, 2_000 if number else 80_000, grid=4 if number else 256)
        loop.copy("D2H", 8, 1_000)
        loop.sync()
        loop.python(10_000)
    return planted(trace, loop)


def graphs(steps: int = 8, *, graph_level: bool = False) -> Planted:
    """Each step is one CUDA graph of 6 kernels and a sampling kernel, traced per node or as one operation."""
    trace = Trace()
    loop = Loop(trace)
    kernels = [("embed", 3_000), *[("norm", 2_000), ("gemm", 6_000)] * 2, ("head", 9_000)]
    for _ in range(steps):
        loop.step()
        loop.graph(**({"graph_ns": 28_000} if graph_level else {"kernels": kernels}))
        loop.launch("argmax(float *)", 2_000)
        loop.copy("D2H", 8, 1_000)
        loop.sync()
        loop.python(10_000)
    return planted(trace, loop)


def communicating(steps: int = 8) -> Planted:
    """9 kernels of 20 µs, and 200 µs in which the GPU only communicates."""
    trace = Trace()
    loop = Loop(trace)
    for _ in range(steps):
        loop.step()
        layers(loop, 20_000, think=0)
        loop.launch("allreduce(float *)", 200_000)
    loop.sync()
    return planted(trace, loop)


ALL = {
    "launch bound": launch_bound,
    "straggling": straggling,
    "tokens in batches": tokens_in_batches,
    "deep queue": deep_queue,
    "sync bound": sync_bound,
    "copy bound": copy_bound,
    "allocating": allocating,
    "profiled": profiled,
    "dependent": dependent,
    "two streams": two_streams,
    "two processes": two_processes,
    "prefill and decode": prefill_and_decode,
    "graphs": graphs,
    "communicating": communicating,
}

# The expected verdict on steady steps of each.
VERDICTS = {
    "launch bound": "launch-bound",
    "straggling": "launch-bound",
    "tokens in batches": "launch-bound",
    "deep queue": "GPU-bound",
    "sync bound": "mixed: GPU-bound, sync-bound",  # the GPU is busy for 91 µs of 126
    "copy bound": "copy-bound",
    "allocating": "mixed: launch-bound, allocation-bound",  # 60 µs of allocations, 69 µs of late launches
    "profiled": "launch-bound",
    "dependent": "GPU-bound",
    "two streams": "mixed: GPU-bound, launch-bound",  # the GPU waits for the host, a third of the time
    "two processes": "launch-bound",
    "prefill and decode": "launch-bound",
    "graphs": "mixed: GPU-bound, sync-bound",  # the host would be a step ahead if it did not wait for the token
    "communicating": "communication-bound",
}
