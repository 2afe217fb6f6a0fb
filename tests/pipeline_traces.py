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


class RingRun(PipelineRun):
    """Every rank hands blocks around a ring, as attention over long sequences does: to the next, from the one before.

    In each of `stages` hops a rank computes, and then sends and receives in one kernel, which lasts until both of its
    neighbors are there. `python` is thought before the third hop.
    """

    def _step(self, hosts: Sequence[Host], free: list[int], step: int, chance: random.Random) -> None:
        count = len(hosts)
        for hop in range(self.microbatches):
            for rank, host in enumerate(hosts):
                if hop == 2 and (late := self.python[rank].get(step, 0)):
                    with host.nvtx("preprocess"):
                        host.idle(free[rank] - host.now + late)
                    free[rank] += late + _LAUNCH
                runs = round(self.forward * self.slower.get(rank, 1.0)) + chance.randrange(2_000)
                self._launch(host, "attention(float *)", free[rank] + 1_000, runs)
                free[rank] += 1_000 + runs
            there = list(free)
            for rank, host in enumerate(hosts):
                before, after = (rank - 1) % count, (rank + 1) % count
                end = max(there[before], there[rank], there[after]) + 1_000 + self.transfer
                at = max(host.now, there[rank] + 1_000 - 3 * _LAUNCH)
                host.idle(at - host.now)
                for name, peer in (("ncclSend", after), ("ncclRecv", before)):
                    host.range(name, host.now, host.now + 1_000, domain="NCCL")
                    event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
                    event["binaryData"] = message(self.size, peer)
                    host.idle(1_200)
                self._launch(host, SEND_RECV, there[rank] + 1_000, end - there[rank] - 1_000, COMM_STREAM)
                free[rank] = end


class InterleavedRun(PipelineRun):
    """A pipeline in which each rank has several stages: from the last rank a microbatch goes on at the first one.

    Microbatches go forward in groups of as many as there are ranks, each group through all `chunks`, and backward
    likewise. A rank does not wait until what it sends has arrived: it sends on a stream of its own.
    """

    chunks = 2

    def _step(self, hosts: Sequence[Host], free: list[int], step: int, chance: random.Random) -> None:
        count, lead = len(hosts), 200_000
        plans = [self._order(count) for _ in hosts]
        free[:] = [max(at, host.now + lead) for at, host in zip(free, hosts, strict=True)]
        done: dict[tuple[str, int, int], tuple[int, int]] = {}  # of a microbatch at a stage: when, and on which rank
        events: list[list[tuple]] = [[] for _ in hosts]
        todo = [0] * count
        while any(at < len(plan) for at, plan in zip(todo, plans, strict=True)):
            for rank, plan in enumerate(plans):
                while todo[rank] < len(plan):
                    name, number, chunk = plan[todo[rank]]
                    stage = chunk * count + rank
                    needs = self._needs(name, number, stage, count)
                    if needs and needs not in done:
                        break
                    if needs and done[needs][1] != rank:
                        ready, sender = done[needs]
                        end = max(free[rank], ready) + 1_000 + self.transfer
                        events[rank].append((free[rank] + 1_000, end, "ncclRecv", sender))
                        events[sender].append((ready + 1_000, end, "ncclSend", rank))
                        free[rank] = end
                    late = self.python[rank].get(step, 0) if (name, number, chunk) == ("gemm", 2, 0) else 0
                    runs = round(self.forward * self.slower.get(rank, 1.0)) * (1 if name == "gemm" else 2)
                    start = free[rank] + 1_000 + late
                    free[rank] = start + runs + chance.randrange(2_000)
                    events[rank].append((start, free[rank], name, -1))
                    done[name, number, stage] = free[rank], rank
                    todo[rank] += 1
        for rank, host in enumerate(hosts):
            for start, end, name, peer in sorted(events[rank]):
                at = max(host.now, start - lead)
                host.idle(at - host.now)
                if peer >= 0:
                    host.range(name, at, at + 2_500, domain="NCCL")
                    event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
                    event["binaryData"] = message(self.size, peer)
                    host.idle(200)
                stream = {"ncclSend": COMM_STREAM + 1, "ncclRecv": COMM_STREAM}.get(name, 7)
                shown = SEND_RECV if peer >= 0 else f"{name}(float *)"
                host.launch(shown, api=3_000, queue=start - host.now - 3_000, runs=end - start, stream=stream)
            free[rank] = max(free[rank], *(end for _, end, *_ in events[rank]))

    def _order(self, count: int) -> list[tuple[str, int, int]]:
        plan = []
        for name in ("gemm", "backward"):
            for group in range(0, self.microbatches, count):
                for chunk in range(self.chunks)[:: 1 if name == "gemm" else -1]:
                    plan += [(name, number, chunk) for number in range(group, group + count)]
        return plan

    def _needs(self, name: str, number: int, stage: int, count: int) -> tuple[str, int, int] | None:
        """The microbatch at the stage before; at the first one none, and the last one turns round."""
        last = count * self.chunks - 1
        if name == "gemm":
            return (name, number, stage - 1) if stage else None
        return (name, number, stage + 1) if stage < last else ("gemm", number, stage)
