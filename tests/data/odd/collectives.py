"""Collectives of PyTorch on two GPUs, each in an NVTX range: torchrun --nproc-per-node 2 collectives.py."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm

rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=device)
large = torch.ones(8 << 20, device=device, dtype=torch.bfloat16)
small = torch.ones(1024, device=device, dtype=torch.bfloat16)
gathered = torch.empty(16 << 20, device=device, dtype=torch.bfloat16)
half = torch.empty(4 << 20, device=device, dtype=torch.bfloat16)
group = dist.group.WORLD.group_name
shared = symm.empty(1 << 20, device=device, dtype=torch.bfloat16)
symm.rendezvous(shared, group)


def exchange() -> None:
    """Send to the other rank, and receive from it."""
    operations = [dist.P2POp(dist.isend, large, 1 - rank), dist.P2POp(dist.irecv, gathered[: 8 << 20], 1 - rank)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def reduce_together() -> None:
    """Run four small reductions as one."""
    with dist._coalescing_manager(async_ops=False):
        for _ in range(4):
            dist.all_reduce(small)


operations = {
    "all_reduce_16M": lambda: dist.all_reduce(large),
    "all_reduce_2K": lambda: dist.all_reduce(small),
    "all_gather": lambda: dist.all_gather_into_tensor(gathered, large),
    "reduce_scatter": lambda: dist.reduce_scatter_tensor(half, large),
    "all_to_all": lambda: dist.all_to_all_single(gathered[: 8 << 20], large),
    "broadcast": lambda: dist.broadcast(large, 0),
    "send_recv": exchange,
    "coalesced": reduce_together,
    "barrier": dist.barrier,
    "reduce": lambda: dist.reduce(large, 0),
    "object": lambda: dist.all_gather_object([None, None], {"a": rank}),
    "symm_one_shot": lambda: torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", group),
    "symm_two_shot": lambda: torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", group),
}
for operation in operations.values():
    operation()
    torch.cuda.synchronize()
dist.barrier()
torch.cuda.cudart().cudaProfilerStart()
for name, operation in operations.items():
    with torch.cuda.nvtx.range(name):
        for _ in range(3):
            operation()
    torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStop()
dist.destroy_process_group()
