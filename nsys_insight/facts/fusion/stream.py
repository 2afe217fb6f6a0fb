"""The operations of a typical step, stream by stream, what parts them, and the chains of kernels in them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.fusion.patterns import Pattern

# What may be computed in one kernel with its neighbours; `other` is what no name tells.
FUSABLE = frozenset({
    "elementwise", "activation", "copy/cast", "memory", "norm", "rope", "softmax", "reduction", "quantise",
    "gather/scatter", "embedding", "other",
})  # fmt: skip
# Kernels of these are fused already, or parts of what a library does.
FINISHED = frozenset({"Inductor", "cuDNN", "cuBLAS"})
POINTWISE = frozenset({"elementwise", "activation", "copy/cast"})
# Launches from Python are 5 to 50 µs apart; what takes the CPU longer is work of its own, which no kernel does.
WORK_NS = 100_000.0


class Op(NamedTuple):
    """One operation of the typical step; times in ns from the step's beginning on the host, None if unknown."""

    device: int
    stream: int
    place: int
    token: int
    kind: str
    name_id: int | None
    label: str | None
    grid: str | None
    block: str | None
    shapes: int
    grid_y: int | None
    in_graph: bool
    correlation: int | None
    first_ns: int
    thread: int | None
    part: str | None
    call_ns: float | None
    returned_ns: float | None
    start_ns: float
    end_ns: float

    @property
    def duration_ns(self) -> float:
        """How long it ran."""
        return self.end_ns - self.start_ns


class Wait(NamedTuple):
    """A wait of the host for the GPU, in ns from the step's beginning on the host."""

    start_ns: float
    end_ns: float
    name: str


class NamedKernel(NamedTuple):
    """What is known of a kernel by its name."""

    name: str
    family: str
    provenance: str
    word: str


@dataclass
class OpStream:
    """The operations of a stream in the typical step, in their order, and the word for what each is.

    `parted` has the places that nothing goes on across, with why.
    """

    ops: list[Op]
    kernels: list[NamedKernel | None]
    parted: dict[int, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """What each operation is."""
        return [kernel.word if kernel else op.kind for op, kernel in zip(self.ops, self.kernels, strict=True)]

    def fusable(self, at: int) -> bool:
        """Whether an operation may be a part of a chain."""
        kernel = self.kernels[at]
        return kernel is not None and kernel.family in FUSABLE and kernel.provenance not in FINISHED


@dataclass(frozen=True)
class Chain:
    """A run of kernels that comes back: where each of its kernels is in the stream, for each time that it comes.

    `around` are the kernels between them that stay. `veto` says why it cannot be fused whatever its kernels are.
    """

    stream: OpStream
    places: tuple[tuple[int, ...], ...]
    pattern: Pattern | None = None
    around: tuple[int, ...] = ()
    edge: str | None = None
    veto: str | None = None

    @property
    def ops(self) -> list[list[Op]]:
        """Its operations, for each time that it comes."""
        return [[self.stream.ops[at] for at in places] for places in self.places]

    @property
    def kernels(self) -> list[NamedKernel]:
        """Its kernels, in order."""
        return [kernel for at in self.places[0] if (kernel := self.stream.kernels[at])]

    @property
    def words(self) -> list[str]:
        """What its kernels compute, in order."""
        return [kernel.word for kernel in self.kernels]


def parted(line: Sequence[Op], waits: Sequence[Wait]) -> dict[int, str]:
    """Give the places of a stream before which something parts it, with what that is: no kernel goes on across them."""
    waits = sorted(waits)
    begins = [wait.start_ns for wait in waits]
    found = {}
    for at, (one, other) in enumerate(pairwise(line), 1):
        if one.call_ns is None or other.call_ns is None or (one.in_graph and one.correlation == other.correlation):
            continue
        following = bisect_left(begins, one.call_ns)
        if following < len(waits) and begins[following] < other.call_ns:
            found[at] = f"the host waits between them ({waits[following].name})"
        elif one.thread != other.thread:
            found[at] = "different host threads launch them"
        elif one.part and other.part and one.part != other.part:
            found[at] = f"they are in different NVTX ranges ({one.part}, {other.part})"
        elif other.call_ns - (one.returned_ns or one.call_ns) > WORK_NS:
            found[at] = (
                f"{(other.call_ns - (one.returned_ns or one.call_ns)) / 1e6:.1f} ms of CPU time are between them"
            )
    return found
