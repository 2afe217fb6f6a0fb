"""Two ranks on two GPUs: collectives of known sizes, and a pipeline of two stages.

RANK and WORLD_SIZE as torchrun sets them.

    python3 sizes_and_stages.py sizes MEET       each operation and size 12 times, timed one by one by events on the GPU
    python3 sizes_and_stages.py pipe MEET        GPipe: six microbatches a step, forward and backward, activations by send and recv,
                                      and an all-reduce of the gradients' norm at the end of each step
    python3 sizes_and_stages.py late MEET        the same; rank 1 is 6 ms late with a microbatch in steps 3, 7, 11, 15, 19

Prints a RESULT line for each call, each step and each wait for the other stage.
"""

import os, sys, time
import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
dist.init_process_group("nccl", init_method="file://" + sys.argv[2], rank=rank, world_size=world, device_id=device)
VARIANT = sys.argv[1]
mark = torch.cuda.nvtx.range


def event():
    return torch.cuda.Event(enable_timing=True)


def make_size_runs():
    """Return a function that times each call alone. A small all-reduce before each call synchronizes the ranks."""
    KiB = 1024
    todo = []
    values = torch.empty(256 * KiB * KiB // 4, device=device)
    gathered_values = torch.empty(512 * KiB * KiB // 4, device=device)
    meet = torch.zeros(1, device=device)
    for size in (64 * KiB, 1024 * KiB, 16 * KiB * KiB, 256 * KiB * KiB):
        n = size // 4
        todo += [
            ("AllReduce", size, lambda n=n: dist.all_reduce(values[:n])),
            ("AllGather", size, lambda n=n: dist.all_gather_into_tensor(gathered_values[: 2 * n], values[:n])),
            ("ReduceScatter", size, lambda n=n: dist.reduce_scatter_tensor(values[:n], gathered_values[: 2 * n])),
            ("Broadcast", size, lambda n=n: dist.broadcast(values[:n], 0)),
            (
                "SendRecv",
                size,
                (lambda n=n: dist.send(values[:n], 1)) if rank == 0 else (lambda n=n: dist.recv(values[:n], 0)),
            ),
        ]

    def go(log):
        for name, size, call in todo:
            times = []
            for _ in range(12):
                dist.all_reduce(meet)
                a, b = event(), event()
                a.record()
                call()
                b.record()
                times.append((a, b))
            torch.cuda.synchronize()
            if log:
                print(
                    f"RESULT rank {rank} {name} bytes {size} us "
                    + " ".join(f"{1e3 * a.elapsed_time(b):.1f}" for a, b in times),
                    flush=True,
                )

    return go


def make_pipeline(late):
    MICRO, WIDTH, LAYERS = 6, 2048, 8
    w = [torch.randn(WIDTH, WIDTH, device=device) * WIDTH**-0.5 for _ in range(LAYERS)]
    for weight in w:
        weight.requires_grad_(True)
    source = torch.randn(1024, WIDTH, device=device)
    buffer = torch.empty(1024, WIDTH, device=device)
    LATE = (3, 7, 11, 15, 19)

    def step(i, waits):
        def record_time(call):
            a, b = event(), event()
            a.record()
            call()
            b.record()
            waits.append((a, b))

        with mark("step"):
            activations = []
            for m in range(MICRO):
                with mark("forward"):
                    if rank == 0:
                        x = source
                    else:
                        x = torch.empty_like(buffer)
                        record_time(lambda: dist.recv(x, 0))
                        x.requires_grad_(True)
                        if late and i in LATE and m == 2:
                            torch.cuda.synchronize()
                            with mark("preprocess"):
                                time.sleep(0.006)
                    h = x
                    for weight in w:
                        h = torch.relu(h @ weight)
                    activations.append((x, h))
                    if rank == 0:
                        dist.send(h.detach(), 1)
            for m in range(MICRO):
                with mark("backward"):
                    x, h = activations[m]
                    if rank == 0:
                        g = torch.empty_like(buffer)
                        record_time(lambda: dist.recv(g, 1))
                        h.backward(g)
                    else:
                        h.square().mean().backward()
                        dist.send(x.grad, 0)
            with mark("optimizer"):
                norm = torch.stack([weight.grad.norm() for weight in w]).square().sum()
                dist.all_reduce(norm)
                with torch.no_grad():
                    for weight in w:
                        weight -= 1e-6 * weight.grad / (1 + norm)
                        weight.grad = None
            torch.cuda.synchronize()

    def go(log):
        for i in range(20 if log else 3):
            waits = []
            t = time.perf_counter()
            step(i if log else -1, waits)
            wall = 1e3 * (time.perf_counter() - t)
            if log:
                print(
                    f"RESULT rank {rank} step {i} host_ms {wall:.3f} recv_us "
                    + " ".join(f"{1e3 * a.elapsed_time(b):.1f}" for a, b in waits),
                    flush=True,
                )

    return go


go = make_size_runs() if VARIANT == "sizes" else make_pipeline(VARIANT == "late")
go(False)
dist.barrier()
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStart()
go(True)
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStop()
dist.barrier()
print("RESULT nccl", torch.cuda.nccl.version(), "torch", torch.__version__, flush=True)
dist.destroy_process_group()
