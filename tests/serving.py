"""A serving loop as a synthetic trace: continuous batching whose steps and token times are written down while it runs.

Each step prefills at most one request that waits, and decodes all that run: two or fewer by single kernels, as a batch
of 2; more of them as a CUDA graph, of batch 4. Tokens are there at the end of a step, whose ranges name its requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from synthetic import Trace

ARRIVALS = {0: 0, 1: 0, 2: 1, 3: 9, 4: 10, 5: 12, 6: 14}  # in which step each request arrives
LENGTHS = {0: 14, 1: 18, 2: 8, 3: 12, 4: 20, 5: 6, 6: 9}
SLOTS = 4
SGLANG = {"mixed": "MIXED", "decode": "DECODE", "prefill": "EXTEND"}  # what its steps are called


@dataclass
class ServedStep:
    """A step: what it did, its range, and what the GPU ran in it."""

    phase: str
    batch_size: int | None
    graph: bool
    start_ns: int
    end_ns: int = 0
    busy_ns: int = 0
    launch_calls: int = 0


@dataclass
class Served:
    """A trace, with its steps and, by request, when it arrived and when its tokens were there."""

    trace: Trace = field(default_factory=Trace)
    steps: list[ServedStep] = field(default_factory=list)
    arrivals: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, list[int]] = field(default_factory=dict)


def serve(
    *,
    prefill_ns: int = 40_000,
    decode_ns: int = 6_000,
    host_ns: int = 3_000,
    names: str = "requests",
    marked: bool = True,
) -> Served:
    """Serve all requests.

    Args:
        prefill_ns: How long a prefill's kernel runs.
        decode_ns: How long each of the three kernels of a decode runs.
        host_ns: How long the host does something else in a step.
        names: How ranges are called: by "requests", as "vllm", "trt" or "sglang" call their steps, or "plain".
        marked: Whether a range lasts from a request's arrival to its last token.
    """
    served = Served()
    host = served.trace.thread(now=10_000)
    waiting, running, queue, number = dict(ARRIVALS), [], [], 0
    while waiting or running or queue:
        for request in [request for request, at in waiting.items() if at <= number]:
            del waiting[request]
            queue.append(request)
            served.arrivals[str(request)], served.tokens[str(request)] = host.now, []
        host.idle(500)
        begun = queue.pop(0) if queue and len(running) < SLOTS else None
        phase = "mixed" if begun is not None and running else "decode" if running else "prefill"
        size = (2 if len(running) <= 2 else 4) if running else None
        step = ServedStep(phase, size if running else 1, bool(running) and size == 4, host.now)
        served.steps.append(step)
        whole = {
            "requests": f"step {number}",
            "plain": f"step {number}",
            "vllm": f"execute_context_{int(begun is not None)}(64)_generation_{len(running)}({len(running)})",
            "trt": f"[Executor] _forward_step {number}: {int(begun is not None)} ctx reqs, {len(running)} gen reqs",
            "sglang": f"step[{SGLANG[phase]} bs={step.batch_size}]",
        }[names]
        with host.nvtx(whole):
            if begun is not None:
                with host.nvtx(_called(names, "prefill", f"tokens=64 req={begun}")):
                    host.launch("prefill_kernel(float *)", runs=prefill_ns)
                step.busy_ns += prefill_ns
                step.launch_calls += 1
            if running:
                with host.nvtx(_called(names, "decode", f"bs={size} req={','.join(map(str, running))}")):
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
        for request in [*running, *([] if begun is None else [begun])]:
            served.tokens[str(request)].append(host.now)
        running += [] if begun is None else [begun]
        for request in [request for request in running if len(served.tokens[str(request)]) >= LENGTHS[request]]:
            running.remove(request)
            if marked and names == "requests":
                host.range(f"request {request}", served.arrivals[str(request)], host.now, style="start/end")
        number += 1
    return served


def _called(names: str, phase: str, more: str) -> str:
    if names == "requests":
        return f"{phase} {more}"
    return phase if names == "plain" else "forward"
