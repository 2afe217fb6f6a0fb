"""Runs of several ranks with expected values by construction: which rank is late to which collective, and why.

    run = Run(8)
    run.python[3] = {4: 12_000_000}      # rank 3 runs 12 ms more of Python in step 4
    paths = run.write(tmp_path)          # a file for each rank; or run.merged().write(path)

In each step every rank gets its data, computes, and reduces in buckets on a separate stream. A collective starts on a
rank when the rank is ready. It ends on all ranks when the last one is ready and the transfer is done.
"""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from synthetic import Host, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMM_STREAM = 20
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
_SCHEMA = 5
_API, _LATENCY = 4_000, 1_000


def payload(communicator: int, size: int, *, schema: int = _SCHEMA) -> bytes:
    """Return the payload of NCCL's range of an all-reduce: communicator, size, reduction."""
    fields = struct.pack("<QQI4x", communicator, size, 0)
    return struct.pack("<QQQQ", 1, schema, len(fields), 32 + len(fields)) + fields


def describe_payloads(trace: Trace) -> None:
    """Add the layout of `payload` to a trace."""
    trace.row("NVTX_PAYLOAD_SCHEMAS", domainId=1, schemaId=_SCHEMA, numEntries=3, payloadSize=24)
    for index, (name, kind, offset) in enumerate(
        (("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8), ("Reduction operation", 14_000_000, 16))
    ):
        trace.row(
            "NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=1, schemaId=_SCHEMA, idx=index, type=kind, name=name, offset=offset
        )


class Run:
    """A run. Set the attributes of its ranks before writing it.

    Attributes:
        buckets: Number of collectives of a step.
        python: Time of additional Python while a rank gets its data, by rank and step.
        slower: Factor by which the kernels of a rank are slower.
        transfer: Duration of a collective after all ranks are ready.
        begins: The first step in the capture of a rank; `ends` is the first step after it.
        clock: Offset of the clock of a rank's host in ns, and how much faster the clock runs.
        jitter: Largest random addition to kernels and Python, in ns.
        leaves: Ranks leave a collective within this time, in ns.
        is_ahead: Whether hosts launch step after step without waiting for their GPUs.
        is_independent: Whether the ranks are separate programs, which do not wait for each other.
        communicators: Communicator of each rank; None if the trace lacks it.
        operation: Name of the kernel; `size` is the size of the message.
        missing: Ranks without a file.
        hexadecimal: Whether payloads are written as hexadecimal text.
        first_pid: Process id of rank 0; those of the others follow.
    """

    def __init__(self, count: int, steps: int = 12, *, buckets: int = 2) -> None:
        self.count, self.steps, self.buckets = count, steps, buckets
        self.python: dict[int, dict[int, int]] = defaultdict(dict)
        self.slower: dict[int, float] = {}
        self.transfer = 300_000
        self.begins: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.clock: dict[int, tuple[int, float]] = {}
        self.jitter = 4_000
        self.leaves = 2_000
        self.communicators: Sequence[int | None] = [0xABC] * count
        self.operation = ALL_REDUCE
        self.size = 25 << 20
        self.missing: set[int] = set()
        self.hexadecimal = False
        self.is_independent = False
        self.first_pid = 100
        self.is_ahead = False

    def traces(self) -> list[Trace]:
        """Return a trace for each rank, in the time of its host."""
        rank_traces = [Trace() for _ in range(self.count)]
        hosts = [
            trace.thread(pid=self.first_pid + rank, gpus=(rank,), now=1_000_000)
            for rank, trace in enumerate(rank_traces)
        ]
        self._simulate(hosts)
        shifted_traces = []
        for rank, trace in enumerate(rank_traces):
            begins = self.begins.get(rank, 0)
            cut_start = self._marks[rank][begins] - 500_000 if begins else 0
            cut_end = self._marks[rank][self.ends[rank]] - 500_000 if rank in self.ends else 1 << 62
            late, drift = self.clock.get(rank, (0, 0.0))
            for rows in trace.rows.values():
                rows[:] = [row for row in rows if row.get("start") is None or cut_start <= row["start"] < cut_end]
                for row in rows:
                    for name in ("start", "end"):
                        if row.get(name) is not None:
                            row[name] = round((row[name] - cut_start) * (1 + drift))
            trace.start_epoch_ns += cut_start + late
            shifted_traces.append(trace)
        return shifted_traces

    def merged(self) -> Trace:
        """Return one trace in which all ranks are processes."""
        trace = Trace()
        self._simulate(
            [trace.thread(pid=self.first_pid + rank, gpus=(rank,), now=1_000_000) for rank in range(self.count)]
        )
        return trace

    def write(self, folder: Path, name: str = "rank{}") -> list[Path]:
        """Write a file for each rank that is not missing."""
        numbered_traces = enumerate(self.traces())
        return [
            trace.write(folder / f"{name.format(rank)}.sqlite")
            for rank, trace in numbered_traces
            if rank not in self.missing
        ]

    def _simulate(self, hosts: Sequence[Host]) -> None:
        chance = random.Random(1)  # noqa: S311 - not for secrets
        for trace in {id(host.trace): host.trace for host in hosts}.values():
            if None not in self.communicators:
                describe_payloads(trace)
        self._compute, self._reduced = [0] * self.count, [0] * self.count
        self._marks: list[list[int]] = [[] for _ in hosts]
        for step in range(self.steps):
            ready = [self._work(host, rank, step, chance) for rank, host in enumerate(hosts)]
            for bucket in range(self.buckets):
                starts = [
                    max(ready[rank][bucket], self._reduced[rank], host.now + 6_000) for rank, host in enumerate(hosts)
                ]
                for rank, host in enumerate(hosts):
                    last_start = starts[rank] if self.is_independent else max(starts)
                    end = last_start + self.transfer + chance.randrange(self.leaves)
                    self._reduce(host, rank, starts[rank], end)
                    self._reduced[rank] = end
            for rank, host in enumerate(hosts):
                self._compute[rank] = max(self._compute[rank], self._reduced[rank])
                if not self.is_ahead:
                    host.sync("device", waits=max(self._compute[rank] - host.now, 0) + 1_000)

    def _work(self, host: Host, rank: int, step: int, chance: random.Random) -> list[int]:
        """Get data and compute; return the time when each bucket is ready to be reduced."""
        self._marks[rank].append(host.now)
        step_start, ready = host.now, []
        with host.nvtx("data"):
            host.idle(100_000 + self.python[rank].get(step, 0) + chance.randrange(self.jitter + 1))
        for _ in range(self.buckets):
            for name in ("gemm", "gelu"):
                runs = round(1_000_000 * self.slower.get(rank, 1.0)) + chance.randrange(self.jitter + 1)
                start = max(host.now + _API + _LATENCY, self._compute[rank])
                host.launch(f"{name}(float *)", api=_API, queue=start - host.now - _API, runs=runs)
                self._compute[rank] = start + runs
            ready.append(self._compute[rank] + 2_000)
        host.range("step", step_start, host.now + 50_000)
        return ready

    def _reduce(self, host: Host, rank: int, start: int, end: int) -> None:
        call_start = host.now
        communicator = self.communicators[rank]
        if communicator is not None:
            host.range("ncclAllReduce", call_start, call_start + _API + 1_000, domain="NCCL")
            data = payload(communicator, self.size)
            event = next(row for row in reversed(host.trace.rows["NVTX_EVENTS"]) if row.get("end") is not None)
            event["binaryData"] = data.hex() if self.hexadecimal else data
        host.idle(500)
        host.launch(
            self.operation, api=_API, queue=start - host.now - _API, runs=end - start, stream=COMM_STREAM,
            api_name="cudaLaunchKernelExC_v11060",
        )  # fmt: skip
        host.idle(500)
