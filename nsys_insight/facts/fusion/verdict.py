"""Whether a chain can be fused, why not, and how difficult it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.fusion.stream import POINTWISE, Chain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.facts.fusion.gain import Gain

YES, NO, UNKNOWN = "YES", "NO", "UNKNOWN"
# A chain is not worth fusing if it saves less than this share of the step (playbook: fuse what matters).
MIN_SHARE = 0.01
# A chain needs at least this share of the steps with its kernels in this order.
MIN_RECURRENCE = 0.75
# Operations that libraries offer as a matrix product's epilogue.
EPILOGUES = frozenset({"add", "relu", "gelu", "silu", "sigmoid", "tanh"})
REDUCING = frozenset({"reduction", "norm", "softmax"})


@dataclass(frozen=True)
class Candidate:
    """A chain with its verdict, and what it saves in wall time: lower and upper bound."""

    chain: Chain
    gain: Gain
    verdict: str
    reason: str | None
    recurrence: float
    saved_low_ns: float
    saved_high_ns: float

    @property
    def order(self) -> tuple[Any, ...]:
        """Return the sort key: chains that can be fused first, then by savings."""
        first = self.chain.stream.ops[self.chain.occurrences[0][0]]
        saved_ns = self.saved_low_ns + self.saved_high_ns
        return ((YES, UNKNOWN, NO).index(self.verdict), -round(saved_ns), first.device, first.stream, first.position)


def judge_chain(
    chain: Chain, wall_ns: float, saved_ns: tuple[float, float], recurrence: float
) -> tuple[str, str | None]:
    """Return whether a chain can be fused, and the reason for NO or UNKNOWN. `saved_ns` are lower and upper bound."""
    reason = chain.veto or _find_obstacle(chain, recurrence)
    if reason is None and saved_ns[1] < MIN_SHARE * wall_ns:
        reason = f"it saves less than {100 * MIN_SHARE:.0f}% of the step"
    if reason:
        return NO, reason
    doubt = _find_edge_doubt(chain) if chain.edge else _find_doubt(chain)
    if doubt is None and sum(saved_ns) <= 0:
        doubt = "launched from Python, it costs more than it saves: it pays as a library operation or in a CUDA graph"
    return (UNKNOWN, doubt) if doubt else (YES, None)


def _find_obstacle(chain: Chain, recurrence: float) -> str | None:
    """Return why a chain cannot be fused."""
    if recurrence < MIN_RECURRENCE:
        return f"only {100 * recurrence:.0f}% of the steps have the kernels in this order"
    if all(kernel.word == "cat" for kernel in chain.kernels):
        return "each copies what it joins, which one kernel for all would copy as well"
    if count := count_other_orders(chain):
        return f"the kernels also occur in another order, {count} times per step"
    if crossing := _find_grid_reduction(chain):
        return f"{crossing} reduces across blocks, and what follows needs its complete result"
    return None


def rate_complexity(chain: Chain) -> str:
    """Return how difficult it is to write the fused kernel: easy, moderate or hard."""
    if chain.edge:
        return "hard"
    if chain.pattern:
        return chain.pattern.complexity
    return "easy" if all(kernel.family in POINTWISE | {"memory"} for kernel in chain.kernels) else "moderate"


def count_other_orders(chain: Chain) -> int:
    """Count the runs of the same kernels in another order; 0 if they are less than half as frequent as the chain."""
    if chain.skipped or chain.edge:
        return 0
    tokens = [op.token for op in chain.stream.ops]
    length = len(chain.occurrences[0])
    chain_tokens = sorted(tokens[index] for index in chain.occurrences[0])
    in_chain = {index for indices in chain.occurrences for index in indices}
    count, start = 0, 0
    while start <= len(tokens) - length:
        window = range(start, start + length)
        if in_chain.isdisjoint(window) and sorted(tokens[start : start + length]) == chain_tokens:
            count += 1
            start += length
        else:
            start += 1
    return count if 2 * count >= len(chain.occurrences) else 0


def measure_recurrence(
    chain: Chain, other_steps: Sequence[Mapping[tuple[int, int], Sequence[int]]], typical_count: int
) -> float:
    """Return the share of steps in which the chain occurs at least as often as in the typical step.

    Args:
        chain: The chain.
        other_steps: The tokens of each step that is not typical, by stream.
        typical_count: Number of typical steps.
    """
    if not other_steps:
        return 1.0
    first = chain.stream.ops[0]
    tokens = [op.token for op in chain.stream.ops]
    run = tokens[chain.occurrences[0][0] : chain.occurrences[0][-1] + 1]
    recurring = sum(
        _count_run(step.get((first.device, first.stream), ()), run) >= len(chain.occurrences) for step in other_steps
    )
    return (typical_count + recurring) / (typical_count + len(other_steps))


def _count_run(tokens: Sequence[int], run: Sequence[int]) -> int:
    count, start = 0, 0
    while start <= len(tokens) - len(run):
        if list(tokens[start : start + len(run)]) == run:
            count += 1
            start += len(run)
        else:
            start += 1
    return count


def _find_grid_reduction(chain: Chain) -> str | None:
    """Return a reduction across blocks. PyTorch uses several blocks for a result if the grid is two-dimensional."""
    for index, kernel in zip(chain.occurrences[0][:-1], chain.kernels, strict=False):
        op = chain.stream.ops[index]
        if kernel.family == "reduction" and kernel.provenance == "PyTorch native" and (op.grid_y or 1) > 1:
            return kernel.word
    return None


def _find_edge_doubt(chain: Chain) -> str | None:
    if chain.edge == "prologue":
        return "few libraries fuse computation into a product's input"
    if chain.words[-1] not in EPILOGUES:
        return "whether it reads the product's result is not in the trace"
    return None


def _find_doubt(chain: Chain) -> str | None:
    """Return why it is unknown whether a chain can be fused."""
    unnamed = next((kernel for kernel in chain.kernels if kernel.family == "other"), None)
    if unnamed:
        return f"what {unnamed.name[:60]} computes is not clear from its name"
    if chain.pattern:
        return None
    for index, kernel in zip(chain.occurrences[0][:-1], chain.kernels, strict=False):
        if kernel.family in REDUCING and chain.stream.ops[index].grid != "1":
            return f"{kernel.word} may reduce across its blocks"
    if not all(kernel.family in POINTWISE | REDUCING for kernel in chain.kernels):
        return "no known pattern: whether they work on the same data is not in the trace"
    return None
