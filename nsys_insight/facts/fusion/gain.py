"""What fusing a chain would save in a step: at least and at most, in parts and in wall time.

A chain of k kernels becomes one. Then

* the host makes k - 1 launch calls fewer, and does not do what is between them. At most, the fused kernel is launched
  for what one of them costs. At least, its call costs EXTRA of them more (a Triton kernel called from Python does),
  though what the driver's launch calls take is saved in any case;
* the GPU pays the fixed cost of a kernel, the shortest that the trace shows, k - 1 times less;
* intermediate results are not written and read again. At most, the fused kernel takes half as long as the longest of
  the chain, but no less than the fixed cost: intermediate results are often twice as wide (float for bfloat16), and
  kernels that broadcast or turn are slow. With a matrix product in it, it takes as long as the longest. At least, two
  of three passes over memory are saved at each of the k - 1 joints of the chain's 3 k passes, as of operations that
  read two tensors and write one;
* the gaps between them go.

What that is worth is told by playing the step again (`facts.fusion.replay`): GPU time is worth nothing while the host
is late, and host time nothing while the queue is deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.fusion.replay import Change

if TYPE_CHECKING:
    from nsys_insight.facts.fusion.replay import Timeline
    from nsys_insight.facts.fusion.stream import Chain, Op

EXTRA = 2.5


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
    usual = median([ns for ns in timeline.advance_ns.values() if ns > 0] or [0.0])
    for ops in chain.ops:
        kept, gone = ops[-1], ops[:-1]
        parts = _parts(chain, ops, timeline, usual)
        nodes = _graph_calls(gone, timeline)
        before = max(0.0, ops[0].start_ns - timeline.before[ops[0]])
        gap = min(before, timeline.least_ns) if ops[0] in timeline.late else before
        for change, saved, extra in (
            (low, parts.kernel_low, parts.host_high - parts.host_low),
            (high, parts.kernel_high, 0.0),
        ):
            change.gone.update(gone)
            change.runs[kept] = (parts.chain - saved, gap)
            change.extra[kept] = extra
        for call, ns in nodes.items():
            high.calls[call] = high.calls.get(call, 0.0) + ns
        parts = parts._replace(host_high=parts.host_high + sum(nodes.values()))
        total = Parts(*map(sum, zip(total, parts, strict=True)))
    return Gain(*total, low, high)


def _parts(chain: Chain, ops: list[Op], timeline: Timeline, usual: float) -> Parts:
    """What fusing one occurrence saves, but for the nodes of a graph launch; `usual` is the time of one call."""
    durations = [op.duration_ns for op in ops]
    light = [ns for ns, kernel in zip(durations, chain.kernels, strict=True) if kernel.family != "gemm"]
    fastest = max(timeline.fixed_ns, max(durations) / 2) if len(light) == len(ops) else max(durations)
    at_most = sum(durations) - fastest
    launched = [op for op in ops[:-1] if not op.in_graph and op.call_ns is not None]
    saved = sum(timeline.advance_ns[op] for op in launched)
    calls = sum(min(timeline.advance_ns[op], (op.returned_ns or 0) - (op.call_ns or 0)) for op in launched)
    return Parts(
        host_low=saved - min(EXTRA * usual, saved - calls),
        host_high=saved,
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
