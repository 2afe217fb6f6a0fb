"""Whether a chain can be fused, why not, and how hard it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.fusion.stream import POINTWISE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.facts.fusion.gain import Gain
    from nsys_insight.facts.fusion.stream import Chain

YES, NO, UNKNOWN = "YES", "NO", "UNKNOWN"
# What saves less of the step is not worth the work (playbook: fuse what matters).
LEAST = 0.01
# A chain that fewer of the steps have in this order is none.
RECURS = 0.75
# What libraries offer as a product's epilogue.
EPILOGUES = frozenset({"add", "relu", "gelu", "silu", "sigmoid", "tanh"})
REDUCING = frozenset({"reduction", "norm", "softmax"})


@dataclass(frozen=True)
class Candidate:
    """A chain with what it saves."""

    chain: Chain
    gain: Gain
    verdict: str
    reason: str | None
    recurrence: float
    saved_low_ns: float
    saved_high_ns: float

    @property
    def order(self) -> tuple[Any, ...]:
        """Those that can be fused first, each by what they save."""
        first = self.chain.stream.ops[self.chain.places[0][0]]
        saved = self.saved_low_ns + self.saved_high_ns
        return ((YES, UNKNOWN, NO).index(self.verdict), -round(saved), first.device, first.stream, first.place)


def verdict(chain: Chain, wall_ns: float, saved_ns: tuple[float, float], recurrence: float) -> tuple[str, str | None]:
    """Say whether a chain can be fused, and why not or why nobody knows, given what it saves at least and at most."""
    reason = chain.veto or _refusal(chain, recurrence)
    if reason is None and saved_ns[1] < LEAST * wall_ns:
        reason = f"saves less than {100 * LEAST:.0f} % of the step"
    if reason:
        return NO, reason
    doubt = _edge_doubt(chain) if chain.edge else _doubt(chain)
    if doubt is None and sum(saved_ns) <= 0:
        doubt = "launched from Python, it costs more than it saves: it pays as a library operation or in a CUDA graph"
    return (UNKNOWN, doubt) if doubt else (YES, None)


def _refusal(chain: Chain, recurrence: float) -> str | None:
    """Why a chain is not to be fused."""
    if recurrence < RECURS:
        return f"only {100 * recurrence:.0f} % of the steps have the kernels in this order"
    if others := other_orders(chain):
        return f"the kernels also occur in another order, {others} times a step"
    if crossing := _crosses_blocks(chain):
        return f"{crossing} reduces across blocks, and what follows needs its complete result"
    return None


def complexity(chain: Chain) -> str:
    """How hard it is to write the fused kernel."""
    if chain.edge:
        return "hard"
    if chain.pattern:
        return chain.pattern.complexity
    return "easy" if all(kernel.family in POINTWISE | {"memory"} for kernel in chain.kernels) else "moderate"


def other_orders(chain: Chain) -> int:
    """How often the same kernels follow each other in another order, if that is at least half as often; else 0."""
    if chain.around or chain.edge:
        return 0
    tokens = [op.token for op in chain.stream.ops]
    length = len(chain.places[0])
    wanted = sorted(tokens[at] for at in chain.places[0])
    taken = {at for places in chain.places for at in places}
    count, at = 0, 0
    while at <= len(tokens) - length:
        window = range(at, at + length)
        if taken.isdisjoint(window) and sorted(tokens[at : at + length]) == wanted:
            count += 1
            at += length
        else:
            at += 1
    return count if 2 * count >= len(chain.places) else 0


def recurrence(chain: Chain, others: Sequence[Mapping[tuple[int, int], Sequence[int]]], typical: int) -> float:
    """The share of steps that have the chain as often as the typical one; `others` are those that are not typical."""
    if not others:
        return 1.0
    first = chain.stream.ops[0]
    tokens = [op.token for op in chain.stream.ops]
    run = tokens[chain.places[0][0] : chain.places[0][-1] + 1]
    having = sum(_count(step.get((first.device, first.stream), ()), run) >= len(chain.places) for step in others)
    return (typical + having) / (typical + len(others))


def _count(tokens: Sequence[int], run: Sequence[int]) -> int:
    found, at = 0, 0
    while at <= len(tokens) - len(run):
        if list(tokens[at : at + len(run)]) == run:
            found += 1
            at += len(run)
        else:
            at += 1
    return found


def _crosses_blocks(chain: Chain) -> str | None:
    """PyTorch's reduction lets several blocks work on one result if its grid has a second dimension."""
    for at, kernel in zip(chain.places[0][:-1], chain.kernels, strict=False):
        op = chain.stream.ops[at]
        if kernel.family == "reduction" and kernel.provenance == "PyTorch native" and (op.grid_y or 1) > 1:
            return kernel.word
    return None


def _edge_doubt(chain: Chain) -> str | None:
    if chain.edge == "prologue":
        return "few libraries fuse computation into a product's input"
    if chain.words[-1] not in EPILOGUES:
        return "whether it reads the product's result is not in the trace"
    return None


def _doubt(chain: Chain) -> str | None:
    """Why nobody knows whether a chain can be fused."""
    unnamed = next((kernel for kernel in chain.kernels if kernel.family == "other"), None)
    if unnamed:
        return f"what {unnamed.name[:60]} computes is not clear from its name"
    if chain.pattern:
        return None
    for at, kernel in zip(chain.places[0][:-1], chain.kernels, strict=False):
        if kernel.family in REDUCING and chain.stream.ops[at].grid != "1":
            return f"{kernel.word} may reduce across its blocks"
    if not all(kernel.family in POINTWISE | REDUCING for kernel in chain.kernels):
        return "no known pattern: whether they work on the same data is not in the trace"
    return None
