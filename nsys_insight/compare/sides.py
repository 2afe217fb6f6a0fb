"""The runs of one side of a comparison, taken together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nsys_insight.compare.kernel_identity import KernelOfRun
from nsys_insight.compare.noise import Samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.compare.runs import Run

HEADLINE = "wall_ns"
PEAK_MEMORY = "peak_memory_bytes"


@dataclass(frozen=True)
class Side:
    """The runs of one side as one: the samples of all steps, or of each run its mean."""

    runs: Sequence[Run]
    by_run: bool
    kernels: dict[str, KernelOfRun] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Run], *, by_run: bool) -> Side:
        """Put runs together; a kernel's calls are the mean over them."""
        found: dict[str, KernelOfRun] = {}
        for run in runs:
            for name, kernel in (run.kernels or {}).items():
                known = found.get(name, replace(kernel, calls=0.0))
                registers = max((known.registers, kernel.registers), key=lambda number: number or 0)
                found[name] = KernelOfRun(kernel.family, known.calls + kernel.calls / len(runs), registers)
        return cls(runs, by_run, found)

    def metric(self, name: str) -> Samples | None:
        """A metric; None where a run does not have it."""
        return self._pooled([run.metrics.get(name) for run in self.runs])

    def peak_memory(self) -> Samples | None:
        """The peak memory of each run."""
        peaks = [run.peak_memory_bytes for run in self.runs]
        return Samples(tuple(float(peak or 0) for peak in peaks), independent=True) if None not in peaks else None

    def time_of(self, names: Iterable[str]) -> Samples | None:
        """The time that kernels take together, 0 in a run that does not have them."""
        names = list(names)
        return self._pooled([_summed(run, names) for run in self.runs])

    def _pooled(self, parts: Sequence[Samples | None]) -> Samples | None:
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or not all(part.values for part in known):
            return None
        if self.by_run:
            return Samples(tuple(part.mean for part in known), independent=True)
        return Samples(tuple(value for part in known for value in part.values), known[0].each)


def _summed(run: Run, names: list[str]) -> Samples | None:
    wall = run.metrics.get(HEADLINE)
    if wall is None:
        return None
    total = replace(wall, values=(0.0,) * len(wall.values))
    for name in names:
        if name in run.kernel_ns:
            total = total.plus(run.kernel_ns[name])
    return total
