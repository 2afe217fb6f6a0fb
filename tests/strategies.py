"""Small random traces for hypothesis: the properties of real traces that make counting hard, in a few rows.

Calls of one thread never touch or coincide, and NVTX ranges of one thread nest: an ambiguous trace has no correct
answer to test against.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from synthetic import Host, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

# The first two share a short name.
KERNELS = ("void norm<float>(float *, int)", "void norm<half>(half *, int)", "gemm(const float *, float *)", "relu")
RANGES = ("decode_step", "layer_0", "layer_1")
STREAMS = (7, 13)

names = st.sampled_from(KERNELS)
streams = st.sampled_from(STREAMS)
kernel_times = st.integers(0, 2_000)  # a kernel may have no duration
call_times = st.integers(10, 1_000)
# A kernel may start before its call has returned, and need not wait for its stream.
queues = st.none() | st.integers(-10, 3_000)


def _steps(devices: int, *, graph_level: bool) -> st.SearchStrategy[Callable[[Host], Any]]:
    """Return a strategy of one activity of a host thread."""
    place = {"stream": streams, "device": st.integers(0, devices - 1)}
    work = {**place, "runs": kernel_times, "api": call_times, "queue": queues}

    def does(
        method: Callable[..., Any], **arguments: st.SearchStrategy[Any]
    ) -> st.SearchStrategy[Callable[[Host], Any]]:
        return st.fixed_dictionaries(arguments).map(lambda values: lambda host: method(host, **values))

    def lonely_kernel(host: Host, **arguments: Any) -> None:
        host.kernel(start=host.now, **arguments)

    def window(host: Host, length: int) -> None:
        host.range("request", host.now, host.now + length, style="start/end")

    def allocate_and_free(host: Host, size: int) -> None:
        host.malloc(size).idle(1).free()

    def wait_for_event(host: Host, stream: int, device: int) -> None:
        host.record(1, stream=stream, device=device).idle(1).sync("event", event=1, device=device)

    drivers = st.none() | st.just("cuLaunchKernelEx")
    nodes = st.lists(st.tuples(names, kernel_times), max_size=3)
    steps = [
        does(Host.launch, name=names, driver=drivers, **work),
        does(Host.call, name=st.sampled_from(["cudaLaunchKernel_v7000", "cudaGetDevice_v3020"]), takes=call_times),
        does(lonely_kernel, name=names, runs=kernel_times, **place),
        does(
            Host.copy,
            kind=st.sampled_from(["H2D", "D2H", "D2D"]),
            size=st.integers(0, 1 << 20),
            blocking=st.booleans(),
            **{**work, "queue": st.none() | st.integers(0, 3_000)},
        ),
        does(Host.memset, size=st.integers(1, 4096), **work),
        does(Host.sync, target=st.sampled_from(["stream", "device"]), **place),
        does(wait_for_event, **place),
        does(window, length=st.integers(1, 5_000)),
        does(allocate_and_free, size=st.integers(1, 1 << 30)),
        does(Host.graph_launch, kernels=nodes, api=call_times, queue=queues, **place),
    ]
    if graph_level:
        steps.append(does(Host.graph_launch, graph_ns=kernel_times, api=call_times, queue=queues, **place))
    return st.one_of(steps)


@st.composite
def traces(draw: st.DrawFn, *, graph_level: bool = True, open_ranges: bool = True) -> Trace:
    """Return a strategy of traces: one or two processes with up to three threads in total, on one or two devices.

    Without `graph_level` tracing of graphs, any version of nsys can write the trace. Without `open_ranges`, it can be
    repeated.
    """
    trace = Trace()
    devices = draw(st.integers(1, 2))
    thread_ids = draw(st.sampled_from([[(100, 100)], [(100, 100), (200, 200)], [(100, 100), (100, 101), (200, 200)]]))
    steps = st.lists(st.one_of(_steps(devices, graph_level=graph_level), st.sampled_from((*RANGES, None))), max_size=8)
    for pid, tid in thread_ids:
        host = trace.thread(pid=pid, tid=tid, now=draw(st.integers(-5_000, 5_000)))
        range_stack: list[tuple[str, int]] = []
        for step in draw(steps):
            host.idle(draw(st.integers(1, 2_000)))
            if step is None and range_stack:
                name, start = range_stack.pop()
                host.range(name, start, host.now, registered=len(range_stack) % 2 == 1)
            elif isinstance(step, str):
                range_stack.append((step, host.now))
            elif step is not None:
                step(host)
        # If a range stays open, its outer ranges stay open too.
        unclosed = draw(st.integers(0, len(range_stack))) if open_ranges else 0
        for level, (name, start) in reversed(list(enumerate(range_stack))):
            host.idle(1).range(name, start, None if level < unclosed else host.now)
    return trace
