"""Pipelines with expected values by construction: which stage waits for which, and which rank is late.

    run = PipelineRun(8, microbatches=16)
    run.python[3] = {4: 6_000_000}       # stage 3 runs 6 ms more of Python in step 4, before its third microbatch
    run.merged().write(path)

The schedule is GPipe's. All microbatches go forward: each stage receives, computes and sends. Then all go backward,
which takes twice as long. At the end of a step all stages reduce a number. A message ends on both sides at the same
time, when both are ready and the transfer is done.
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
    """Return the payload of NCCL's range of a send or a receive: communicator, size, peer."""
    fields = struct.pack("<QQi4x", COMMUNICATOR, size, peer)
    return struct.pack("<QQQQ", 1, _SCHEMA, len(fields), 32 + len(fields)) + fields


class PipelineRun:
    """A pipeline. Set the attributes of its stages before writing it.

    Attributes:
        forward: Time that a stage computes for a microbatch, in ns.
        slower: Factor by which the computing time of a stage is longer, by rank.
        python: Time of additional Python before a rank's third microbatch, by rank and step.
        size: Size of a message; `transfer` is its duration.
        has_payloads: Whether NCCL's payloads are in the trace.
        replicas: Number of pipelines that run in parallel; ranks are numbered pipeline by pipeline.
        begins: The first step in the capture of a rank.
    """

    def __init__(self, stages: int, *, microbatches: int = 8, steps: int = 8) -> None:
        self.stages, self.microbatches, self.steps = stages, microbatches, steps
        self.forward, self.size, self.transfer = 200_000, 1 << 20, 20_000
        self.slower: dict[int, float] = {}
        self.python: dict[int, dict[int, int]] = defaultdict(dict)
        self.has_payloads, self.replicas = True, 1
        self.begins: dict[int, int] = {}

    def merged(self) -> Trace:
        """Return one trace in which all ranks are processes."""
        trace = Trace()
        count = self.stages * self.replicas
        self._simulate([trace.thread(pid=100 + rank, gpus=(rank,), now=1_000_000) for rank in range(count)])
        return trace

    def write(self, folder: Path) -> list[Path]:
        """Write a file for each rank."""
        traces = [Trace() for _ in range(self.stages * self.replicas)]
        marks = self._simulate(
            [trace.thread(pid=100 + rank, gpus=(rank,), now=1_000_000) for rank, trace in enumerate(traces)]
        )
        for rank, step in self.begins.items():
            for rows in traces[rank].rows.values():
                rows[:] = [row for row in rows if row.get("start") is None or row["start"] >= marks[rank][step]]
        return [trace.write(folder / f"rank{rank}.sqlite") for rank, trace in enumerate(traces)]

    def _simulate(self, hosts: Sequence[Host]) -> list[list[int]]:
        chance = random.Random(1)  # noqa: S311 - not for secrets
        for trace in {id(host.trace): host.trace for host in hosts}.values():
            describe_payloads(trace)
            trace.row("NVTX_PAYLOAD_SCHEMAS", domainId=1, schemaId=_SCHEMA, numEntries=3, payloadSize=24)
            for index, (name, kind, offset) in enumerate(
                (("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8), ("Peer rank", 5, 16))
            ):
                trace.row(
                    "NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=1, schemaId=_SCHEMA, idx=index, type=kind, name=name,
                    offset=offset,
                )  # fmt: skip
        free = [1_000_000] * len(hosts)  # end of the last operation of each GPU
        marks: list[list[int]] = [[] for _ in hosts]
        for step in range(self.steps):
            step_starts = [host.now for host in hosts]
            for rank in range(len(hosts)):
                marks[rank].append(hosts[rank].now - 1_000)
            self._step(hosts, free, step, chance)
            last_end = max(free) + 2_000
            for rank, host in enumerate(hosts):
                self._nccl(
                    host, (ALL_REDUCE, "ncclAllReduce", payload(COMMUNICATOR, 4)), free[rank] + 2_000, last_end + 9_000
                )
                free[rank] = last_end + 9_000
                host.sync("device", waits=max(free[rank] - host.now, 0) + 1_000)
                host.range("step", step_starts[rank], host.now - 500)
        return marks

    def _step(self, hosts: Sequence[Host], free: list[int], step: int, chance: random.Random) -> None:
        """Run each stage as far as possible, in turn, until all are done."""
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
                        for member, partner, name in ((rank, peer, "ncclSend"), (peer, rank, "ncclRecv")):
                            self._nccl(
                                hosts[member], (SEND_RECV, name, message(self.size, partner)), free[member] + 1_000, end
                            )
                            free[member] = end
                            todo[member].pop(0)

    def _plan(self, rank: int) -> list[tuple]:
        """Return the activities of a rank in a step, in order."""
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
        call_start = max(host.now, start - _LAUNCH)
        host.idle(call_start - host.now)
        if self.has_payloads:
            host.range(name, call_start, call_start + 4_500, domain="NCCL")
            event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
            event["binaryData"] = data
        host.idle(200)
        self._launch(host, kernel, start, end - start, COMM_STREAM)

    @staticmethod
    def _launch(host: Host, name: str, start: int, runs: int, stream: int = 7) -> None:
        call_start = max(host.now, start - _LAUNCH)
        host.launch(name, start=call_start, api=3_000, queue=start - call_start - 3_000, runs=runs, stream=stream)


class RingRun(PipelineRun):
    """Ranks in a ring, as in attention over long sequences: each sends to the next rank and receives from the previous.

    In each of `stages` hops a rank computes, and then sends and receives in one kernel, which lasts until both
    neighbors are ready. The time of `python` comes before the third hop.
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
            ready_ns = list(free)
            for rank, host in enumerate(hosts):
                before, after = (rank - 1) % count, (rank + 1) % count
                end = max(ready_ns[before], ready_ns[rank], ready_ns[after]) + 1_000 + self.transfer
                call_start = max(host.now, ready_ns[rank] + 1_000 - 3 * _LAUNCH)
                host.idle(call_start - host.now)
                for name, peer in (("ncclSend", after), ("ncclRecv", before)):
                    host.range(name, host.now, host.now + 1_000, domain="NCCL")
                    event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
                    event["binaryData"] = message(self.size, peer)
                    host.idle(1_200)
                self._launch(host, SEND_RECV, ready_ns[rank] + 1_000, end - ready_ns[rank] - 1_000, COMM_STREAM)
                free[rank] = end


class ExpertsRun(PipelineRun):
    """Ranks with experts: each layer sends its tokens to the experts and back, in messages of all ranks to all.

    `shares` is the part of all tokens that the experts of each rank get, which compute as long. There are
    `microbatches` layers.
    """

    def __init__(self, shares: Sequence[float], *, steps: int = 6) -> None:
        super().__init__(len(shares), microbatches=4, steps=steps)
        self.shares = shares
        self.size, self.forward = 16 << 20, 1_000_000 * len(shares)

    def _step(self, hosts: Sequence[Host], free: list[int], step: int, chance: random.Random) -> None:
        for layer in range(self.microbatches):
            for rank, host in enumerate(hosts):
                host.range(f"layer {layer} of step {step}", host.now, host.now + 1_000)
                self._launch(host, "router(float *)", free[rank] + 1_000, 200_000 + chance.randrange(2_000))
                free[rank] = free[rank] + 1_000 + 202_000
            self._exchange(hosts, free, [list(self.shares)] * len(hosts))
            for rank, host in enumerate(hosts):
                runs = round(self.forward * self.shares[rank]) + chance.randrange(2_000)
                self._launch(host, "gemm_experts(float *)", free[rank] + 1_000, runs)
                free[rank] += 1_000 + runs
            self._exchange(hosts, free, [[share] * len(hosts) for share in self.shares])

    def _exchange(self, hosts: Sequence[Host], free: list[int], parts: Sequence[Sequence[float]]) -> None:
        """Send the part `parts[a][b]` of a rank's tokens from rank a to rank b."""
        end = max(free) + 1_000 + self.transfer
        for rank, host in enumerate(hosts):
            host.idle(max(host.now, free[rank] + 1_000 - 6 * _LAUNCH) - host.now)
            for peer in range(len(hosts)):
                for name, share in (("ncclSend", parts[rank][peer]), ("ncclRecv", parts[peer][rank])):
                    host.range(name, host.now, host.now + 500, domain="NCCL")
                    event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
                    event["binaryData"] = message(round(self.size * share), peer)
                    host.idle(600)
            start = max(free[rank] + 1_000, host.now + _LAUNCH)
            self._launch(host, SEND_RECV, start, max(end, start + 1_000) - start, COMM_STREAM)
            free[rank] = max(end, start + 1_000)


class InterleavedRun(PipelineRun):
    """A pipeline in which each rank has several stages: after the last rank a microbatch continues on the first one.

    Microbatches go forward in groups, each group through all `chunks`. The size of a group is the number of ranks.
    They go backward in the same groups. A rank does not wait until its messages arrive: it sends on another stream.
    """

    chunks = 2

    def _step(self, hosts: Sequence[Host], free: list[int], step: int, chance: random.Random) -> None:
        count, lead = len(hosts), 200_000
        plans = [self._order(count) for _ in hosts]
        free[:] = [max(free_ns, host.now + lead) for free_ns, host in zip(free, hosts, strict=True)]
        results: dict[tuple[str, int, int], tuple[int, int]] = {}  # by microbatch and stage: end and rank
        events: list[list[tuple]] = [[] for _ in hosts]
        todo = [0] * count
        while any(position < len(plan) for position, plan in zip(todo, plans, strict=True)):
            for rank, plan in enumerate(plans):
                while todo[rank] < len(plan):
                    name, number, chunk = plan[todo[rank]]
                    stage = chunk * count + rank
                    needs = self._needed_result(name, number, stage, count)
                    if needs and needs not in results:
                        break
                    if needs and results[needs][1] != rank:
                        ready, sender = results[needs]
                        end = max(free[rank], ready) + 1_000 + self.transfer
                        events[rank].append((free[rank] + 1_000, end, "ncclRecv", sender))
                        events[sender].append((ready + 1_000, end, "ncclSend", rank))
                        free[rank] = end
                    late = self.python[rank].get(step, 0) if (name, number, chunk) == ("gemm", 2, 0) else 0
                    runs = round(self.forward * self.slower.get(rank, 1.0)) * (1 if name == "gemm" else 2)
                    start = free[rank] + 1_000 + late
                    free[rank] = start + runs + chance.randrange(2_000)
                    events[rank].append((start, free[rank], name, -1))
                    results[name, number, stage] = free[rank], rank
                    todo[rank] += 1
        for rank, host in enumerate(hosts):
            for start, end, name, peer in sorted(events[rank]):
                call_start = max(host.now, start - lead)
                host.idle(call_start - host.now)
                if peer >= 0:
                    host.range(name, call_start, call_start + 2_500, domain="NCCL")
                    event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
                    event["binaryData"] = message(self.size, peer)
                    host.idle(200)
                stream = {"ncclSend": COMM_STREAM + 1, "ncclRecv": COMM_STREAM}.get(name, 7)
                kernel_name = SEND_RECV if peer >= 0 else f"{name}(float *)"
                host.launch(kernel_name, api=3_000, queue=start - host.now - 3_000, runs=end - start, stream=stream)
            free[rank] = max(free[rank], *(end for _, end, *_ in events[rank]))

    def _order(self, count: int) -> list[tuple[str, int, int]]:
        plan = []
        for name in ("gemm", "backward"):
            for group in range(0, self.microbatches, count):
                for chunk in range(self.chunks)[:: 1 if name == "gemm" else -1]:
                    plan += [(name, number, chunk) for number in range(group, group + count)]
        return plan

    def _needed_result(self, name: str, number: int, stage: int, count: int) -> tuple[str, int, int] | None:
        """Return the result that a stage needs: of the previous stage. The last stage starts the backward pass."""
        last = count * self.chunks - 1
        if name == "gemm":
            return (name, number, stage - 1) if stage else None
        return (name, number, stage + 1) if stage < last else ("gemm", number, stage)
