"""A serving loop as a synthetic trace: continuous batching that records the expected steps and token times.

Each step prefills at most one waiting request, and decodes all running ones: up to two by single kernels as a batch of
2, more by a CUDA graph as a batch of 4. Tokens are ready at the end of a step. The ranges of a step name its requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from synthetic import Trace

ARRIVALS = {0: 0, 1: 0, 2: 1, 3: 9, 4: 10, 5: 12, 6: 14}  # by request: the step in which it arrives
LENGTHS = {0: 14, 1: 18, 2: 8, 3: 12, 4: 20, 5: 6, 6: 9}
SLOTS = 4
SGLANG = {"mixed": "MIXED", "decode": "DECODE", "prefill": "EXTEND"}  # names of its steps


@dataclass
class ServedStep:
    """A step: its phase, its times, and its GPU work."""

    phase: str
    batch_size: int | None
    graph: bool
    start_ns: int
    end_ns: int = 0
    busy_ns: int = 0
    launch_calls: int = 0


@dataclass
class Served:
    """A trace with its expected steps, and the times of arrival and tokens by request."""

    trace: Trace = field(default_factory=Trace)
    steps: list[ServedStep] = field(default_factory=list)
    arrivals: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, list[int]] = field(default_factory=dict)


def serve(
    *,
    prefill_ns: int = 40_000,
    decode_ns: int = 6_000,
    host_ns: int = 3_000,
    naming: str = "requests",
    mark_requests: bool = True,
) -> Served:
    """Serve all requests.

    Args:
        prefill_ns: Duration of a prefill's kernel.
        decode_ns: Duration of each of the three kernels of a decode.
        host_ns: Time of other work of the host in a step.
        naming: Names of the ranges: with "requests", in the style of "vllm", "trt" or "sglang", or "plain".
        mark_requests: Whether a range lasts from each request's arrival to its last token.
    """
    served = Served()
    host = served.trace.thread(now=10_000)
    waiting, running, queue, number = dict(ARRIVALS), [], [], 0
    while waiting or running or queue:
        for request in [request for request, arrival_step in waiting.items() if arrival_step <= number]:
            del waiting[request]
            queue.append(request)
            served.arrivals[str(request)], served.tokens[str(request)] = host.now, []
        host.idle(500)
        new_request = queue.pop(0) if queue and len(running) < SLOTS else None
        prefills = int(new_request is not None)
        phase = "mixed" if new_request is not None and running else "decode" if running else "prefill"
        size = (2 if len(running) <= 2 else 4) if running else None
        step = ServedStep(phase, size if running else 1, bool(running) and size == 4, host.now)
        served.steps.append(step)
        step_name = {
            "requests": f"step {number}",
            "plain": f"step {number}",
            "vllm": f"execute_context_{prefills}(64)_generation_{len(running)}({len(running)})",
            "trt": f"[Executor] _forward_step {number}: {prefills} ctx reqs, {len(running)} gen reqs",
            "sglang": f"step[{SGLANG[phase]} bs={step.batch_size}]",
        }[naming]
        with host.nvtx(step_name):
            if new_request is not None:
                with host.nvtx(_range_name(naming, "prefill", f"tokens=64 req={new_request}")):
                    host.launch("prefill_kernel(float *)", runs=prefill_ns)
                step.busy_ns += prefill_ns
                step.launch_calls += 1
            if running:
                with host.nvtx(_range_name(naming, "decode", f"bs={size} req={','.join(map(str, running))}")):
                    if step.graph:
                        host.graph_launch(kernels=[("decode_kernel(float *)", decode_ns)] * 3, gap=0, graph=size)
                    else:
                        for _ in range(3):
                            host.launch("decode_kernel(float *)", runs=decode_ns)
                step.busy_ns += 3 * decode_ns
                step.launch_calls += 1 if step.graph else 3
            host.copy("D2H", 8, runs=1_000, blocking=True)
            step.busy_ns += 1_000
            host.idle(host_ns)
        step.end_ns = host.now
        for request in [*running, *([] if new_request is None else [new_request])]:
            served.tokens[str(request)].append(host.now)
        running += [] if new_request is None else [new_request]
        for request in [request for request in running if len(served.tokens[str(request)]) >= LENGTHS[request]]:
            running.remove(request)
            if mark_requests and naming == "requests":
                host.range(f"request {request}", served.arrivals[str(request)], host.now, style="start/end")
        number += 1
    return served


def _range_name(naming: str, phase: str, details: str) -> str:
    if naming == "requests":
        return f"{phase} {details}"
    return phase if naming == "plain" else "forward"
