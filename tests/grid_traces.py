"""Runs of tensor x data parallel ranks with expected values by construction.

Ranks that follow each other share a model (a tensor-parallel group, one communicator); ranks of the same number in
their group share gradients (a data-parallel group, another communicator). In each step every rank gets its data, and
reduces within its tensor group after each layer. At the end it reduces gradients within its data group.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING

from rank_traces import Run, describe_payloads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from synthetic import Host


class GridRun(Run):
    """A run of `data` replicas of a model on `tensor` ranks each; rank `r` is in tensor group `r // tensor`.

    `gradients` is the duration of the reduction of gradients after all ranks of its group are ready. Without
    `shares_gradients`, the replicas are separate. The tensor groups in `larger_groups` reduce twice as many bytes.
    """

    def __init__(self, tensor: int, data: int, *, shares_gradients: bool = True) -> None:
        super().__init__(tensor * data)
        self.tensor, self.layers, self.gradients = tensor, 4, 1_000_000
        self.transfer, self.shares_gradients = 100_000, shares_gradients
        self.larger_groups: set[int] = set()

    def _simulate(self, hosts: Sequence[Host]) -> None:
        chance = random.Random(1)  # noqa: S311 - not for secrets
        for trace in {id(host.trace): host.trace for host in hosts}.values():
            describe_payloads(trace)
        self._compute, self._marks = [0] * self.count, [[] for _ in hosts]
        for step in range(self.steps):
            for rank, host in enumerate(hosts):
                self._marks[rank].append(host.now)
                with host.nvtx("data"):
                    host.idle(100_000 + self.python[rank].get(step, 0) + chance.randrange(self.jitter + 1))
            for _ in range(self.layers):
                for rank, host in enumerate(hosts):
                    self._launch(host, rank, chance)
                self._reduce_groups(hosts, lambda rank: rank // self.tensor, 0xA00, chance)
            if self.shares_gradients:
                self._reduce_groups(hosts, lambda rank: rank % self.tensor, 0xD00, chance)
            for rank, host in enumerate(hosts):
                host.launch("adam(float *)", runs=300_000, queue=max(self._compute[rank] - host.now, 1_000))
                self._compute[rank] += 303_000
                host.range("step", self._marks[rank][-1], host.now + 1)
                host.sync("device", waits=max(self._compute[rank] - host.now, 0) + 10_000)

    def _launch(self, host: Host, rank: int, chance: random.Random) -> None:
        runs = round(800_000 * self.slower.get(rank, 1.0)) + chance.randrange(self.jitter + 1)
        start = max(host.now + 5_000, self._compute[rank])
        host.launch("gemm(float *)", api=4_000, queue=start - host.now - 4_000, runs=runs)
        self._compute[rank] = start + runs

    def _reduce_groups(
        self, hosts: Sequence[Host], group_of: Callable[[int], int], communicator: int, chance: random.Random
    ) -> None:
        members = defaultdict(list)
        for rank in range(self.count):
            members[group_of(rank)].append(rank)
        for group, ranks in members.items():
            starts = {rank: max(self._compute[rank] + 2_000, hosts[rank].now + 6_000) for rank in ranks}
            self.communicators = [communicator + group] * self.count
            self.size, duration = (256 << 20, self.gradients) if communicator == 0xD00 else (4 << 20, self.transfer)
            if communicator == 0xA00 and group in self.larger_groups:
                self.size *= 2
            for rank in ranks:
                end = max(starts.values()) + duration + chance.randrange(self.leaves)
                self._reduce(hosts[rank], rank, starts[rank], end)
                self._compute[rank] = end
