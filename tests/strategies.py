"""Small random traces for hypothesis: every habit of real traces that a count can stumble over, in a handful of rows.

Calls of one thread never touch or coincide, and NVTX ranges of one thread nest: what is ambiguous in a trace has no
right answer to test against.
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
kernel_times = st.integers(0, 2_000)  # a kernel may last no time at all
call_times = st.integers(10, 1_000)
# A kernel may start before its call has returned, and need not wait for its stream.
queues = st.none() | st.integers(-10, 3_000)


def _steps(devices: int, *, whole_graphs: bool) -> st.SearchStrategy[Callable[[Host], Any]]:
    """Strategy of one thing that a host thread does."""
    place = {"stream": streams, "device": st.integers(0, devices - 1)}
    work = {**place, "runs": kernel_times, "api": call_times, "queue": queues}

    def does(
        method: Callable[..., Any], **arguments: st.SearchStrategy[Any]
    ) -> st.SearchStrategy[Callable[[Host], Any]]:
        return st.fixed_dictionaries(arguments).map(lambda drawn: lambda host: method(host, **drawn))

    def lonely_kernel(host: Host, **arguments: Any) -> None:
        host.kernel(at=host.now, **arguments)

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
        does(Host.sync, what=st.sampled_from(["stream", "device"]), **place),
        does(wait_for_event, **place),
        does(window, length=st.integers(1, 5_000)),
        does(allocate_and_free, size=st.integers(1, 1 << 30)),
        does(Host.graph_launch, kernels=nodes, api=call_times, queue=queues, **place),
    ]
    if whole_graphs:
        steps.append(does(Host.graph_launch, whole=kernel_times, api=call_times, queue=queues, **place))
    return st.one_of(steps)


@st.composite
def traces(draw: st.DrawFn, *, whole_graphs: bool = True, open_ranges: bool = True) -> Trace:
    """Strategy of traces: one or two processes of up to three threads together, on one or two devices.

    Without `whole_graphs`, any version of nsys can hold the trace; without `open_ranges`, it can be repeated.
    """
    trace = Trace()
    devices = draw(st.integers(1, 2))
    places = draw(st.sampled_from([[(100, 100)], [(100, 100), (200, 200)], [(100, 100), (100, 101), (200, 200)]]))
    steps = st.lists(
        st.one_of(_steps(devices, whole_graphs=whole_graphs), st.sampled_from((*RANGES, None))), max_size=8
    )
    for pid, tid in places:
        host = trace.thread(pid=pid, tid=tid, now=draw(st.integers(-5_000, 5_000)))
        opened: list[tuple[str, int]] = []
        for step in draw(steps):
            host.idle(draw(st.integers(1, 2_000)))
            if step is None and opened:
                name, start = opened.pop()
                host.range(name, start, host.now, registered=len(opened) % 2 == 1)
            elif isinstance(step, str):
                opened.append((step, host.now))
            elif step is not None:
                step(host)
        # A range that stays open keeps those around it open.
        unclosed = draw(st.integers(0, len(opened))) if open_ranges else 0
        for level, (name, start) in reversed(list(enumerate(opened))):
            host.idle(1).range(name, start, None if level < unclosed else host.now)
    return trace
