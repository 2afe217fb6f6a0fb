"""The operations of a typical step, stream by stream, and the chains of kernels in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nsys_insight.facts.fusion.patterns import Pattern

# What may be computed in one kernel with its neighbours; `other` is what no name tells.
FUSABLE = frozenset({
    "elementwise", "activation", "copy/cast", "memory", "norm", "rope", "softmax", "reduction", "quantise",
    "gather/scatter", "embedding", "other",
})  # fmt: skip
# Kernels of these are fused already, or parts of what a library does.
FINISHED = frozenset({"Inductor", "cuDNN", "cuBLAS"})
POINTWISE = frozenset({"elementwise", "activation", "copy/cast"})


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
