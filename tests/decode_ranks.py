"""Ranks that launch many short kernels in each step, as in the decoding of a model divided over several GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rank_traces import Run

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from synthetic import Host

_API, _RUNS, _KERNELS = 4_000, 4_000, 150


class DecodeRun(Run):
    """A run whose hosts set the pace.

    Attributes:
        launch_ns: How long the host of each rank takes for each of the 300 kernels of a step.
    """

    def __init__(self, launch_ns: Sequence[int], steps: int = 12) -> None:
        super().__init__(len(launch_ns), steps)
        self.launch_ns = launch_ns
        self.transfer = 20_000

    def _work(self, host: Host, rank: int, step: int, chance: random.Random) -> list[int]:  # noqa: ARG002
        """Launch the kernels of each bucket; return the time when it is ready to be reduced."""
        self._marks[rank].append(host.now)
        ready = []
        for _ in range(self.buckets):
            for kernel in range(_KERNELS):
                host.idle(self.launch_ns[rank] - _API + chance.randrange(2_000))
                start = max(host.now + _API + 1_000, self._compute[rank])
                host.launch(f"kernel_{kernel % 7}(float *)", api=_API, queue=start - host.now - _API, runs=_RUNS)
                self._compute[rank] = start + _RUNS
            ready.append(self._compute[rank] + 2_000)
        return ready
