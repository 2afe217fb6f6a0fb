"""What fusing a chain would save in a step: at least and at most, in parts and in wall time.

A chain of k kernels becomes one. Then

* the host makes k - 1 launch calls fewer, and at most does not do what is between them either (allocations, Python);
  then the fused kernel is launched for what the cheapest of all launches costs. At least, only the calls themselves are
  saved, for what is between them may be work of its own, and in a Python program, where no library's operation is
  known, the new one costs EXTRA of them more, as that of Triton does: of few kernels, less than nothing is left;
* the GPU pays the fixed cost of a kernel, the shortest that the trace shows, k - 1 times less;
* intermediate results are not written and read again. At most, the fused kernel takes a sixth of the longest of the
  chain, but no less than the fixed cost: it reads once and writes once where the longest reads twice, intermediate
  results are often twice as wide (float for bfloat16), and kernels that broadcast or reduce reach half of the memory's
  bandwidth. With a matrix product in it, it takes as long as the longest. At least, two
  of three passes over memory are saved at each of the k - 1 joints of the chain's 3 k passes, as of operations that
  read two tensors and write one;
* the gaps between them go.

What that is worth is found by simulating the step (`facts.fusion.simulate`): GPU time is worth nothing while the host
is late, and host time nothing while the queue is deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.fusion.simulate import Change

if TYPE_CHECKING:
    from nsys_insight.facts.fusion.simulate import Timeline
    from nsys_insight.facts.fusion.stream import Chain, Op

EXTRA = 7
# Kernels of these are launched from Python.
FROM_PYTHON = frozenset({"PyTorch native", "Triton", "Inductor"})
SHORTEST = 1 / 6


class Parts(NamedTuple):
    """What is saved of host time, gaps and GPU time, and the GPU time of the chain, in ns."""

    host_low: float = 0.0
    host_high: float = 0.0
    gap: float = 0.0
    kernel_low: float = 0.0
    kernel_high: float = 0.0
    chain: float = 0.0


@dataclass(frozen=True)
class Gain:
    """What fusing a chain saves in a step, in ns: by parts, each by itself, and in wall time."""

    host_low_ns: float
    host_high_ns: float
    gap_ns: float
    kernel_low_ns: float
    kernel_high_ns: float
    chain_ns: float
    low: Change
    high: Change

    @property
    def most_ns(self) -> float:
        """More than it can save."""
        return max(self.host_high_ns, self.kernel_high_ns + self.gap_ns) + self.kernel_high_ns


def gain(chain: Chain, timeline: Timeline) -> Gain:
    """Tell what fusing a chain saves, each time that it comes."""
    low, high = Change(), Change()
    total = Parts()
    host = _Host.of(timeline)
    for ops in chain.ops:
        kept, gone = ops[-1], ops[:-1]
        parts = _parts(chain, ops, timeline, host)
        nodes = _graph_calls(gone, timeline)
        before = max(0.0, ops[0].start_ns - timeline.before[ops[0]])
        gap = min(before, timeline.least_ns) if ops[0] in timeline.late else before
        removed = sum(timeline.advance_ns[op] for op in gone if not op.in_graph)
        for change, saved, host_saved in (
            (low, parts.kernel_low, parts.host_low),
            (high, parts.kernel_high, parts.host_high),
        ):
            change.gone.update(gone)
            change.runs[kept] = (parts.chain - saved, gap)
            change.extra[kept] = removed - host_saved
        for call, ns in nodes.items():
            high.calls[call] = high.calls.get(call, 0.0) + ns
        parts = parts._replace(host_high=parts.host_high + sum(nodes.values()))
        total = Parts(*map(sum, zip(total, parts, strict=True)))
    return Gain(*total, low, high)


class _Host(NamedTuple):
    """What launching costs the host in this step: the cheapest launch with what follows it, and a usual one; a call."""

    cheapest_ns: float
    usual_ns: float
    call_ns: float

    @classmethod
    def of(cls, timeline: Timeline) -> _Host:
        advances = sorted(ns for op, ns in timeline.advance_ns.items() if ns > 0 and not op.in_graph) or [0.0]
        calls = [_call(op, timeline) for op in timeline.advance_ns if op.call_ns is not None and not op.in_graph]
        return cls(advances[len(advances) // 20], median(advances), median(calls or [0.0]))


def _call(op: Op, timeline: Timeline) -> float:
    """The launch call itself; nothing where the host is never waited for."""
    return min(timeline.advance_ns[op], (op.returned_ns or 0) - (op.call_ns or 0))


def _parts(chain: Chain, ops: list[Op], timeline: Timeline, host: _Host) -> Parts:
    """What fusing one occurrence saves, but for the nodes of a graph launch."""
    durations = [op.duration_ns for op in ops]
    light = [ns for ns, kernel in zip(durations, chain.kernels, strict=True) if kernel.family != "gemm"]
    fastest = max(timeline.fixed_ns, max(durations) * SHORTEST) if len(light) == len(ops) else max(durations)
    at_most = sum(durations) - fastest
    launched = [op for op in ops[:-1] if not op.in_graph and op.call_ns is not None]
    # What follows the last launch is work of its own where it is longer than usual.
    cheaper = min(max(0.0, timeline.advance_ns[ops[-1]] - host.cheapest_ns), host.usual_ns) if launched else 0.0
    calls = sum(_call(op, timeline) for op in launched)
    by_library = chain.edge or (chain.pattern and chain.pattern.library)
    python = any(kernel.provenance in FROM_PYTHON for kernel in chain.stream.kernels if kernel)
    dearer = EXTRA * host.call_ns if python and launched and not by_library else 0.0
    return Parts(
        host_low=calls - dearer,
        host_high=sum(timeline.advance_ns[op] for op in launched) + cheaper,
        # Around a kernel that stays, the time in between stays too.
        gap=0.0 if chain.around else sum(max(0.0, op.start_ns - timeline.before[op]) for op in ops[1:]),
        kernel_low=min(at_most, _kernel_low(light, len(ops), timeline)),
        kernel_high=at_most,
        chain=sum(durations),
    )


def _kernel_low(durations: list[float], count: int, timeline: Timeline) -> float:
    """The GPU time that is saved at least."""
    fixed = timeline.fixed_ns
    passes = 2 * (count - 1) / (3 * count)
    return (count - 1) * fixed + passes * sum(max(0.0, ns - fixed) for ns in durations)


def _graph_calls(gone: list[Op], timeline: Timeline) -> dict[int, float]:
    """What graph launches take for the nodes that vanish, if every node costs the same."""
    calls: dict[int, float] = {}
    for op in gone:
        if op.in_graph and op.correlation and op.call_ns is not None and op.returned_ns is not None:
            per_node = (op.returned_ns - op.call_ns) / timeline.nodes[op.correlation]
            calls[op.correlation] = calls.get(op.correlation, 0.0) + per_node
    return calls
