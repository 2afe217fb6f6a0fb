"""torchrun --nproc-per-node 2 groups.py: several calls of NCCL in one kernel."""

import os
import time

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
big, small = torch.ones(4 << 20, device="cuda"), torch.ones(1 << 10, device="cuda")
gathered, part = torch.empty(8 << 20, device="cuda"), torch.empty(2 << 20, device="cuda")
received = torch.empty_like(big)


def step():
    with torch.cuda.nvtx.range("swap"):
        calls = [dist.P2POp(dist.isend, big, 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
    with torch.cuda.nvtx.range("coalesced"), dist._coalescing_manager(None, torch.device("cuda", rank)):
        dist.all_reduce(big)
        dist.all_reduce(small)
    with torch.cuda.nvtx.range("gather"):
        dist.all_gather_into_tensor(gathered, big)
    with torch.cuda.nvtx.range("scatter"):
        dist.reduce_scatter_tensor(part, big)
    with torch.cuda.nvtx.range("broadcast"):
        dist.broadcast(big, 0)
    big.fill_(1.0)
    dist.barrier()


for i in range(23):
    if i == 3:
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        begin = time.perf_counter()
    step()
torch.cuda.synchronize()
if rank == 0:
    print(f"groups: {(time.perf_counter() - begin) / 20 * 1e6:.1f} us per step, NCCL {torch.cuda.nccl.version()}")
torch.cuda.cudart().cudaProfilerStop()
dist.destroy_process_group()
