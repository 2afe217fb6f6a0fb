"""Two processes, one for each GPU, that share a process group.

With RANK in the environment this process is that rank, and another one is started elsewhere: so each rank can have a
profiler of its own. A profiler of both stops when the first rank marks the end, and loses what the other one buffers.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import harness
import torch
from torch import distributed, multiprocessing

Program = Callable[[argparse.Namespace, int], Callable[[int], object]]


def work(rank: int, args: argparse.Namespace, program: Program) -> None:
    """Measure the steps of one rank; the first rank prints."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", NCCL_NVLS_ENABLE="0")
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", rank=rank, world_size=2)
    torch.manual_seed(0)
    step = program(args, rank)

    def synchronize() -> None:
        torch.cuda.synchronize()
        distributed.barrier()
        torch.cuda.synchronize()

    if rank:
        harness.report = lambda *_: None
        if "RANK" not in os.environ:
            harness.profiler = lambda *_: None
    args.steps = args.steps or 60
    harness.measure(args, step, synchronize, warmup=15)
    del step  # a CUDA graph with collectives goes before their communicator
    distributed.destroy_process_group()


def run(args: argparse.Namespace, program: Program) -> None:
    """Be one of both processes, or start both."""
    if rank := os.environ.get("RANK"):
        work(int(rank), args, program)
        return
    multiprocessing.spawn(work, (args, program), nprocs=2)
