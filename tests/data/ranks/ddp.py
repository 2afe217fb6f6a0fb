"""Two ranks train a small network with data parallelism by hand.

In variant a rank 1 is 12 ms late with its data in every fifth step, in variant b its batch is four times as large, in
variant c the ranks are equal. Prints for each step the host's time, and the duration of the first all-reduce by events
on the GPU, which on the early rank is waiting. RANK and WORLD_SIZE are set as torchrun does.
Usage: ddp.py MEETING_FILE STEPS VARIANT
"""

import os
import sys
import time

import torch
import torch.distributed as dist

meeting, steps, variant = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", init_method=f"file://{meeting}", rank=rank, world_size=world)
source = torch.randn(2048 if variant == "b" and rank == 1 else 512, 2048).pin_memory()
weights = [torch.randn(2048, 2048, device="cuda", requires_grad=True) for _ in range(4)]
mark = torch.cuda.nvtx.range


def step(number):
    """Train a step, and return events before and after its first all-reduce."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    with mark("step"):
        with mark("data"):
            x = source.cuda(non_blocking=True)
            if variant == "a" and rank == 1 and number % 5 == 4:
                time.sleep(0.012)
        with mark("forward"):
            for weight in weights:
                x = torch.relu(x @ weight)
            loss = x.square().mean()
        with mark("backward"):
            loss.backward()
        with mark("reduce"):
            events[0].record()
            dist.all_reduce(weights[-1].grad)
            events[1].record()
            for weight in weights[-2::-1]:
                dist.all_reduce(weight.grad)
        with mark("optimizer"), torch.no_grad():
            for weight in weights:
                weight.sub_(1e-6 * weight.grad)
                weight.grad = None
        torch.cuda.synchronize()
    return events


for _ in range(3):
    step(0)
dist.barrier()
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStart()
for number in range(steps):
    step_start = time.perf_counter()
    before, after = step(number)
    host_ms = 1e3 * (time.perf_counter() - step_start)
    print(f"rank {rank} step {number} host_ms {host_ms:.3f} first_all_reduce_ms {before.elapsed_time(after):.3f}")
torch.cuda.cudart().cudaProfilerStop()
dist.barrier()
dist.destroy_process_group()
