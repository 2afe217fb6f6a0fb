"""Two processes, one for each GPU, that share a process group."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import harness
import torch
from torch import distributed, multiprocessing

Program = Callable[[argparse.Namespace, int], Callable[[int], object]]


def work(rank: int, args: argparse.Namespace, program: Program) -> None:
    """Measure the steps of one rank; the first rank prints and marks."""
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
        harness.profiler = harness.report = lambda *_: None
    args.steps = args.steps or 60
    harness.measure(args, step, synchronize, warmup=15)
    del step  # a CUDA graph with collectives goes before their communicator
    distributed.destroy_process_group()


def run(args: argparse.Namespace, program: Program) -> None:
    """Start both processes."""
    multiprocessing.spawn(work, (args, program), nprocs=2)
