"""Pipelines whose truth is known by construction: which stage waits for which, and who is late.

    run = PipelineRun(8, microbatches=16)
    run.python[3] = {4: 6_000_000}       # stage 3 thinks for 6 ms more in step 4, before its third microbatch
    run.merged().write(path)

GPipe: all microbatches forward, each stage receives, computes and sends; then all backward, which takes twice as long;
at the end of a step all stages reduce a number. A message is over on both sides when both are there and it is sent.
"""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from rank_traces import ALL_REDUCE, describe_payloads, payload
from synthetic import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from synthetic import Host

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
COMM_STREAM, COMMUNICATOR = 20, 0xABC
_SCHEMA, _LAUNCH = 6, 6_000


def message(size: int, peer: int) -> bytes:
    """What NCCL's range of a send or a receive carries: communicator, size, peer."""
    fields = struct.pack("<QQi4x", COMMUNICATOR, size, peer)
    return struct.pack("<QQQQ", 1, _SCHEMA, len(fields), 32 + len(fields)) + fields


class PipelineRun:
    """A pipeline; what is different about a stage is said before it is written.

    Attributes:
        forward: How long a stage computes for a microbatch.
        slower: How many times as long a stage takes, by rank.
        python: How long a rank thinks more than others before its third microbatch, by rank and step.
        size: Of a message; `transfer` is how long it takes.
        is_told: Whether NCCL's payloads are in the trace.
        replicas: How many pipelines run side by side; ranks are numbered pipeline by pipeline.
        begins: The first step that a rank's capture has.
    """

    def __init__(self, stages: int, *, microbatches: int = 8, steps: int = 8) -> None:
        self.stages, self.microbatches, self.steps = stages, microbatches, steps
        self.forward, self.size, self.transfer = 200_000, 1 << 20, 20_000
        self.slower: dict[int, float] = {}
        self.python: dict[int, dict[int, int]] = defaultdict(dict)
        self.is_told, self.replicas = True, 1
        self.begins: dict[int, int] = {}

    def merged(self) -> Trace:
        """One trace in which all ranks are processes."""
        trace = Trace()
        count = self.stages * self.replicas
        self._go([trace.thread(pid=100 + rank, gpus=(rank,), now=1_000_000) for rank in range(count)])
        return trace

    def write(self, folder: Path) -> list[Path]:
        """Write a file for each rank."""
        traces = [Trace() for _ in range(self.stages * self.replicas)]
        marks = self._go([trace.thread(pid=100 + at, gpus=(at,), now=1_000_000) for at, trace in enumerate(traces)])
        for rank, step in self.begins.items():
            for rows in traces[rank].rows.values():
                rows[:] = [row for row in rows if row.get("start") is None or row["start"] >= marks[rank][step]]
        return [trace.write(folder / f"rank{rank}.sqlite") for rank, trace in enumerate(traces)]

    def _go(self, hosts: Sequence[Host]) -> list[list[int]]:
        chance = random.Random(1)  # noqa: S311 - not for secrets
        for trace in {id(host.trace): host.trace for host in hosts}.values():
            describe_payloads(trace)
            trace.row("NVTX_PAYLOAD_SCHEMAS", domainId=1, schemaId=_SCHEMA, numEntries=3, payloadSize=24)
            for at, (name, kind, offset) in enumerate(
                (("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8), ("Peer rank", 5, 16))
            ):
                trace.row(
                    "NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=1, schemaId=_SCHEMA, idx=at, type=kind, name=name,
                    offset=offset,
                )  # fmt: skip
        free = [1_000_000] * len(hosts)  # when the GPU has done what it was given
        marks: list[list[int]] = [[] for _ in hosts]
        for step in range(self.steps):
            begun = [host.now for host in hosts]
            for rank in range(len(hosts)):
                marks[rank].append(hosts[rank].now - 1_000)
            self._step(hosts, free, step, chance)
            arrived = max(free) + 2_000
            for rank, host in enumerate(hosts):
                self._nccl(
                    host, (ALL_REDUCE, "ncclAllReduce", payload(COMMUNICATOR, 4)), free[rank] + 2_000, arrived + 9_000
                )
                free[rank] = arrived + 9_000
                host.sync("device", waits=max(free[rank] - host.now, 0) + 1_000)
                host.range("step", begun[rank], host.now - 500)
        return marks

    def _step(self, hosts: Sequence[Host], free: list[int], step: int, chance: random.Random) -> None:
        """Run all stages, each as far as it comes, until all are through."""
        todo = [self._plan(rank) for rank in range(len(hosts))]
        while any(todo):
            for rank, plan in enumerate(todo):
                while plan and plan[0][0] == "compute":
                    _, name, runs, number = plan.pop(0)
                    late = self.python[rank].get(step, 0) if number == 2 and name == "gemm" else 0
                    if late:
                        with hosts[rank].nvtx("preprocess"):
                            hosts[rank].idle(free[rank] - hosts[rank].now + late)
                        free[rank] += late + _LAUNCH
                    runs += chance.randrange(2_000)
                    self._launch(hosts[rank], f"{name}(float *)", free[rank] + 1_000, runs)
                    free[rank] += 1_000 + runs
                if plan and plan[0][0] == "send":
                    peer = plan[0][1]
                    if todo[peer] and todo[peer][0][:2] == ("receive", rank):
                        end = max(free[rank], free[peer]) + 1_000 + self.transfer
                        for at, other, name in ((rank, peer, "ncclSend"), (peer, rank, "ncclRecv")):
                            self._nccl(hosts[at], (SEND_RECV, name, message(self.size, other)), free[at] + 1_000, end)
                            free[at] = end
                            todo[at].pop(0)

    def _plan(self, rank: int) -> list[tuple]:
        """What a rank does in a step, in order."""
        stage, plan = rank % self.stages, []
        runs = round(self.forward * self.slower.get(rank, 1.0))
        for before, after, name, times in ((rank - 1, rank + 1, "gemm", 1), (rank + 1, rank - 1, "backward", 2)):
            is_first, is_last = (stage == 0, stage == self.stages - 1)[:: 1 if name == "gemm" else -1]
            for number in range(self.microbatches):
                plan += [] if is_first else [("receive", before)]
                plan.append(("compute", name, times * runs, number))
                plan += [] if is_last else [("send", after)]
        return plan

    def _nccl(self, host: Host, call: tuple[str, str, bytes], start: int, end: int) -> None:
        kernel, name, data = call
        at = max(host.now, start - _LAUNCH)
        host.idle(at - host.now)
        if self.is_told:
            host.range(name, at, at + 4_500, domain="NCCL")
            event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
            event["binaryData"] = data
        host.idle(200)
        self._launch(host, kernel, start, end - start, COMM_STREAM)

    @staticmethod
    def _launch(host: Host, name: str, start: int, runs: int, stream: int = 7) -> None:
        at = max(host.now, start - _LAUNCH)
        host.launch(name, at=at, api=3_000, queue=start - at - 3_000, runs=runs, stream=stream)
