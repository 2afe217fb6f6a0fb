"""The operations of the typical step by stream, the boundaries between them, and chains of kernels."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.fusion.patterns import Pattern

# Families whose kernels may be fused with their neighbors. `other` are kernels that no name pattern identifies.
FUSABLE = frozenset({
    "elementwise", "activation", "copy/cast", "memory", "norm", "rope", "softmax", "reduction", "quantise",
    "gather/scatter", "embedding", "other",
})  # fmt: skip
# Kernels of these sources are fused already, or are a piece of a library's operation.
FINISHED = frozenset({"Inductor", "cuDNN", "cuBLAS"})
POINTWISE = frozenset({"elementwise", "activation", "copy/cast"})
# Launches from Python are 5 to 50 µs apart. Longer CPU time is work of its own, which a fused kernel does not save.
WORK_NS = 100_000.0


@dataclass(eq=False, slots=True)  # hashed as an object: a hash of all fields takes half of a simulation
class Op:
    """An operation of the typical step.

    Times are in ns from the start of the step on the host; None if unknown. `first_ns` is the start in the first of the
    steps, in ns of the trace. `nvtx_range` is the outermost NVTX range within the step at the launch.
    """

    device: int
    stream: int
    position: int
    token: int
    kind: str
    name_id: int | None
    label: str | None
    grid: str | None
    block: str | None
    grid_y: int | None
    is_in_graph: bool
    correlation: int | None
    first_ns: int
    thread: int | None
    nvtx_range: str | None
    call_ns: float | None
    returned_ns: float | None
    start_ns: float
    end_ns: float

    @property
    def duration_ns(self) -> float:
        """Return how long it runs."""
        return self.end_ns - self.start_ns


class Wait(NamedTuple):
    """A wait of the host for the GPU, in ns from the start of the step on the host."""

    start_ns: float
    end_ns: float
    name: str


class NamedKernel(NamedTuple):
    """What a kernel's name shows. `word` is the operation that it computes."""

    name: str
    family: str
    provenance: str
    word: str


@dataclass
class OpStream:
    """The operations of a stream in the typical step, in order.

    `boundaries` maps the index of an operation to the reason why no kernel can span it and the operation before it.
    """

    ops: list[Op]
    kernels: list[NamedKernel | None]
    boundaries: dict[int, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """Return the word for each operation."""
        return [kernel.word if kernel else op.kind for op, kernel in zip(self.ops, self.kernels, strict=True)]

    def is_fusable(self, index: int) -> bool:
        """Return whether an operation may be in a chain."""
        kernel = self.kernels[index]
        # Each launch of a fused optimizer updates other tensors: nothing of one is read by the next.
        return (
            kernel is not None
            and kernel.family in FUSABLE
            and kernel.provenance not in FINISHED
            and kernel.word != "fused_optimizer"
        )


@dataclass(frozen=True)
class Chain:
    """A recurring run of kernels. `occurrences` has the indices of its kernels in the stream, for each occurrence.

    `skipped` are the indices of kernels between them that stay, in the first occurrence. `veto` is the reason why the
    chain cannot be fused, independent of its kernels.
    """

    stream: OpStream
    occurrences: tuple[tuple[int, ...], ...]
    pattern: Pattern | None = None
    skipped: tuple[int, ...] = ()
    edge: str | None = None
    veto: str | None = None

    @property
    def ops(self) -> list[list[Op]]:
        """Return its operations, for each occurrence."""
        return [[self.stream.ops[index] for index in indices] for indices in self.occurrences]

    @property
    def kernels(self) -> list[NamedKernel]:
        """Return its kernels, in order."""
        return [kernel for index in self.occurrences[0] if (kernel := self.stream.kernels[index])]

    @property
    def words(self) -> list[str]:
        """Return what its kernels compute, in order."""
        return [kernel.word for kernel in self.kernels]


def find_boundaries(ops: Sequence[Op], waits: Sequence[Wait]) -> dict[int, str]:
    """Return the boundaries of a stream: by index of the operation after it, why no kernel can span it."""
    waits = sorted(waits)
    wait_starts = [wait.start_ns for wait in waits]
    boundaries = {}
    for index, (before, after) in enumerate(pairwise(ops), 1):
        is_same_graph = before.is_in_graph and before.correlation == after.correlation
        if before.call_ns is None or after.call_ns is None or is_same_graph:
            continue
        next_wait = bisect_left(wait_starts, before.call_ns)
        cpu_ns = after.call_ns - (before.returned_ns or before.call_ns)
        if next_wait < len(waits) and wait_starts[next_wait] < after.call_ns:
            boundaries[index] = f"the host waits between them ({waits[next_wait].name})"
        elif before.thread != after.thread:
            boundaries[index] = "different host threads launch them"
        elif before.nvtx_range and after.nvtx_range and before.nvtx_range != after.nvtx_range:
            boundaries[index] = f"they are in different NVTX ranges ({before.nvtx_range}, {after.nvtx_range})"
        elif cpu_ns > WORK_NS:
            boundaries[index] = f"{cpu_ns / 1e6:.1f} ms of CPU time are between them"
    return boundaries
