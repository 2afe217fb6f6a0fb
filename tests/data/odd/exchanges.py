"""torchrun --nproc-per-node 2 exchanges.py MODE (mesh: python3 exchanges.py mesh): exchanges between two GPUs."""

import os
import sys
import time

mode = sys.argv[1]
STEPS = 40
if mode == "mesh":
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.2"
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(jax.devices(), ("data",))
    by_rows = NamedSharding(mesh, PartitionSpec("data"))

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=(PartitionSpec("data"), PartitionSpec()), out_specs=PartitionSpec())
    def step(rows, weights):
        gradient = rows.T @ jnp.tanh(rows @ weights)
        return weights - 1e-6 * jax.lax.psum(gradient, "data")

    rows = jax.device_put(jax.random.normal(jax.random.key(0), (8192, 2048)), by_rows)
    weights = jax.device_put(jnp.zeros((2048, 2048)) + 0.01, NamedSharding(mesh, PartitionSpec()))
    for _ in range(3):
        weights = step(rows, weights)
    jax.block_until_ready(weights)
    begin = time.perf_counter()
    for _ in range(STEPS):
        weights = step(rows, weights)
    jax.block_until_ready(weights)
    print(f"mesh: {(time.perf_counter() - begin) / STEPS * 1e6:.1f} us per step, JAX {jax.__version__}")
    sys.exit()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
torch.manual_seed(0)
dist.init_process_group("nccl", device_id=device)
big, second = (torch.ones(16 << 20, device=device) for _ in range(2))
square = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16) * 0.01
message = torch.ones(256 << 10, device=device)
groups = [dist.new_group([0, 1]) for _ in range(2)] if mode == "groups" else []
streams = [torch.cuda.Stream() for _ in groups]
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).to(device)
batch = torch.randn(512, 1024, device=device)
parallel = nn.parallel.DistributedDataParallel(
    model, device_ids=[rank], find_unused_parameters=mode == "unused"
) if mode in ("unused", "used") else None  # fmt: skip


def compute(products):
    x = square
    for _ in range(products):
        x = x @ square
    return x


def step(number):
    if mode == "link":
        dist.all_reduce(big)
        big.fill_(1.0)
    if parallel is not None:
        model.zero_grad(set_to_none=True)
        parallel(batch).square().mean().backward()
    if mode == "objects":
        compute(4)
        gathered = [None, None]
        dist.all_gather_object(gathered, {"rank": rank, "step": number, "loss": 0.5 * number})
    if mode == "groups":
        for group, stream, data in zip(groups, streams, (big, second), strict=True):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                dist.all_reduce(data, group=group)
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)
        big.fill_(1.0)
        second.fill_(1.0)
    if mode == "stages":
        if rank == 0:
            compute(9)
            dist.send(message, 1)
        else:
            dist.recv(message, 0)
            compute(5)


for number in range(STEPS + 5):
    if number == 5:
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        begin = time.perf_counter()
    step(number)
torch.cuda.synchronize()
print(f"{mode}, rank {rank}: {(time.perf_counter() - begin) / STEPS * 1e6:.1f} us per step")
torch.cuda.cudart().cudaProfilerStop()
dist.destroy_process_group()
