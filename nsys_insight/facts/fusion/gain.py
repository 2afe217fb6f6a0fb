"""What fusing a chain saves in a step: lower and upper bounds, by component and in wall time.

A chain of k kernels becomes one kernel.

* Host time: k - 1 launch calls are saved. Upper bound: the work between the calls (allocations, Python) is saved too,
  and the fused kernel costs as much to launch as the cheapest of all launches. Lower bound: only the calls are saved,
  because the work between them may be needed. In a Python program without a known library operation, the new launch
  also costs EXTRA_CALLS usual calls more, as a Triton launch does. With few kernels, the lower bound is then negative.
* Fixed cost: the GPU pays it k - 1 times less. The shortest kernels in the trace show the fixed cost.
* Memory: intermediate results are neither written nor read again. Upper bound: the fused kernel takes a sixth of the
  longest kernel of the chain, but at least the fixed cost. It reads once and writes once where the longest kernel reads
  twice, intermediate results are often twice as wide (float for bfloat16), and kernels that broadcast or reduce reach
  half of the memory's bandwidth. With a matrix product in the chain, it takes as long as the longest. Lower bound: two
  of three passes over memory are saved at each of the k - 1 joints of the chain's 3 k passes, as for operations that
  read two tensors and write one.
* Gaps: the gaps between the kernels disappear.

Simulating the step gives the savings in wall time (`facts.fusion.simulate`). GPU time saves nothing while the host is
late, and host time saves nothing while the queue is deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.fusion.simulate import Change, Timeline

if TYPE_CHECKING:
    from nsys_insight.facts.fusion.stream import Chain, Op

EXTRA_CALLS = 7
# Sources of kernels that Python launches.
FROM_PYTHON = frozenset({"PyTorch native", "Triton", "Inductor"})
# Duration of a fused kernel as a share of the longest kernel of its chain, at least.
MIN_DURATION_SHARE = 1 / 6


class Savings(NamedTuple):
    """Saved host time, gaps and GPU time, and the GPU time of the chain, in ns."""

    host_low: float = 0.0
    host_high: float = 0.0
    gap: float = 0.0
    kernel_low: float = 0.0
    kernel_high: float = 0.0
    chain: float = 0.0


@dataclass(frozen=True)
class Gain:
    """What fusing a chain saves in a step, in ns by component, and the changes to simulate for wall time."""

    host_low_ns: float
    host_high_ns: float
    gap_ns: float
    kernel_low_ns: float
    kernel_high_ns: float
    chain_ns: float
    low: Change
    high: Change

    @property
    def bound_ns(self) -> float:
        """Return a time that is longer than what it can save."""
        return max(self.host_high_ns, self.kernel_high_ns + self.gap_ns) + self.kernel_high_ns


def measure_gain(chain: Chain, timeline: Timeline) -> Gain:
    """Return what fusing all occurrences of a chain saves."""
    low, high = Change(), Change()
    total = Savings()
    costs = _LaunchCosts.measure(timeline)
    for ops in chain.ops:
        fused, removed = ops[-1], ops[:-1]
        savings = _measure_occurrence(chain, ops, timeline, costs)
        node_ns = _node_times(removed, timeline)
        recorded_gap = max(0.0, ops[0].start_ns - timeline.previous_end[ops[0]])
        gap = min(recorded_gap, timeline.min_gap_ns) if ops[0] in timeline.late else recorded_gap
        removed_ns = sum(timeline.advance_ns[op] for op in removed if not op.is_in_graph)
        for change, kernel_saved, host_saved in (
            (low, savings.kernel_low, savings.host_low),
            (high, savings.kernel_high, savings.host_high),
        ):
            change.removed.update(removed)
            change.runs[fused] = (savings.chain - kernel_saved, gap)
            change.extra[fused] = removed_ns - host_saved
        for call, ns in node_ns.items():
            high.calls[call] = high.calls.get(call, 0.0) + ns
        savings = savings._replace(host_high=savings.host_high + sum(node_ns.values()))
        total = Savings(*map(sum, zip(total, savings, strict=True)))
    return Gain(*total, low, high)


class _LaunchCosts(NamedTuple):
    """What launching costs the host in this step.

    `cheapest_ns` and `usual_ns` are times from a launch call to the next event. `call_ns` is the usual call alone.
    """

    cheapest_ns: float
    usual_ns: float
    call_ns: float

    @classmethod
    def measure(cls, timeline: Timeline) -> _LaunchCosts:
        advances = sorted(ns for op, ns in timeline.advance_ns.items() if ns > 0 and not op.is_in_graph) or [0.0]
        calls = [
            _call_time(op, timeline) for op in timeline.advance_ns if op.call_ns is not None and not op.is_in_graph
        ]
        return cls(advances[len(advances) // 20], median(advances), median(calls or [0.0]))


def _call_time(op: Op, timeline: Timeline) -> float:
    """Return the duration of the launch call; 0 where the GPU never waits for the host."""
    return min(timeline.advance_ns[op], (op.returned_ns or 0) - (op.call_ns or 0))


def _measure_occurrence(chain: Chain, ops: list[Op], timeline: Timeline, costs: _LaunchCosts) -> Savings:
    """Return what fusing one occurrence saves, without the nodes of a graph launch."""
    durations = [op.duration_ns for op in ops]
    non_gemm = [ns for ns, kernel in zip(durations, chain.kernels, strict=True) if kernel.family != "gemm"]
    fastest = (
        max(timeline.fixed_ns, max(durations) * MIN_DURATION_SHARE) if len(non_gemm) == len(ops) else max(durations)
    )
    kernel_high = sum(durations) - fastest
    launches = [op for op in ops[:-1] if not op.is_in_graph and op.call_ns is not None]
    # If the time after the last launch is longer than usual, the rest of it is work of its own.
    cheaper = min(max(0.0, timeline.advance_ns[ops[-1]] - costs.cheapest_ns), costs.usual_ns) if launches else 0.0
    calls = sum(_call_time(op, timeline) for op in launches)
    is_library_operation = chain.edge or (chain.pattern and chain.pattern.is_library_operation)
    is_python = any(kernel.provenance in FROM_PYTHON for kernel in chain.stream.kernels if kernel)
    extra_ns = EXTRA_CALLS * costs.call_ns if is_python and launches and not is_library_operation else 0.0
    return Savings(
        host_low=calls - extra_ns,
        host_high=sum(timeline.advance_ns[op] for op in launches) + cheaper,
        # The gaps around a skipped kernel stay.
        gap=0.0 if chain.skipped else sum(max(0.0, op.start_ns - timeline.previous_end[op]) for op in ops[1:]),
        kernel_low=min(kernel_high, _measure_kernel_low(non_gemm, len(ops), timeline)),
        kernel_high=kernel_high,
        chain=sum(durations),
    )


def _measure_kernel_low(durations: list[float], count: int, timeline: Timeline) -> float:
    """Return the lower bound of the saved GPU time."""
    fixed = timeline.fixed_ns
    passes = 2 * (count - 1) / (3 * count)
    return (count - 1) * fixed + passes * sum(max(0.0, ns - fixed) for ns in durations)


def _node_times(removed: list[Op], timeline: Timeline) -> dict[int, float]:
    """Return what each graph launch takes for its removed nodes, if every node costs the same."""
    times: dict[int, float] = {}
    for op in removed:
        if op.is_in_graph and op.correlation and op.call_ns is not None and op.returned_ns is not None:
            per_node = (op.returned_ns - op.call_ns) / timeline.nodes[op.correlation]
            times[op.correlation] = times.get(op.correlation, 0.0) + per_node
    return times
