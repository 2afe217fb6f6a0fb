"""python3 libraries.py dropout|lengths|limit|alone|data|replicas: what PyTorch does that its program does not say."""

import os
import sys
import time

import torch

mode = sys.argv[1]
start, stop = torch.cuda.cudart().cudaProfilerStart, torch.cuda.cudart().cudaProfilerStop
nn, F = torch.nn, torch.nn.functional


def measure(step, warm=5, steps=40):
    for i in range(warm):
        step(i)
    torch.cuda.synchronize()
    start()
    begin = time.perf_counter()
    for i in range(warm, warm + steps):
        step(i)
    torch.cuda.synchronize()
    print(f"{mode}: {(time.perf_counter() - begin) / steps * 1e6:.1f} us per step")
    stop()


if mode == "dropout":  # A training step in a graph, with dropout.
    model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(512, 512), nn.GELU(), nn.Dropout(0.1))]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.randn(256, 512, device="cuda"), torch.randn(256, 512, device="cuda")

    def train():
        optimizer.zero_grad(set_to_none=False)
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train()

    def step(i):
        graph.replay()
        if i % 10 == 0:
            loss.item()

    measure(step)
elif mode == "lengths":  # A transform of another length in each step.
    x = torch.randn(64, 8192, device="cuda")

    def step(i):
        n = 3001 + 2 * i
        y = torch.fft.rfft(x[:, :n])
        torch.fft.irfft(y * 0.5, n)

    measure(step)
elif mode == "limit":  # Tensors of a size that changes, near the limit of memory.
    torch.cuda.set_per_process_memory_fraction(3 * 2**30 / torch.cuda.get_device_properties(0).total_memory)

    def step(i):
        n = 400 + (i * 37) % 200
        a = torch.empty(n << 20, dtype=torch.uint8, device="cuda").fill_(1)
        b = torch.empty((n + 90) << 20, dtype=torch.uint8, device="cuda").fill_(2)
        c = torch.empty((n + 180) << 20, dtype=torch.uint8, device="cuda").fill_(3)
        del a, b, c

    measure(step)
    print({k: v for k, v in torch.cuda.memory_stats().items() if k in ("num_alloc_retries", "num_ooms")})
elif mode == "alone":  # Collectives of one rank.
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    x, y = torch.ones(4 << 20, device="cuda"), torch.empty(4 << 20, device="cuda")
    layers = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    model = nn.parallel.DistributedDataParallel(layers, device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    z = torch.randn(256, 1024, device="cuda")

    def step(i):
        for name, call in (
            ("all_reduce", lambda: dist.all_reduce(x)),
            ("all_gather", lambda: dist.all_gather_into_tensor(y, x)),
            ("reduce_scatter", lambda: dist.reduce_scatter_tensor(y, x)),
            ("broadcast", lambda: dist.broadcast(x, 0)),
        ):
            with torch.cuda.nvtx.range(name):
                call()
        with torch.cuda.nvtx.range("train"):
            optimizer.zero_grad()
            model(z).square().mean().backward()
            optimizer.step()

    measure(step, steps=20)
    dist.destroy_process_group()
elif mode == "data":  # One product, of zeros or of random numbers: 400 at once.
    n = 8192
    make = torch.zeros if sys.argv[2] == "zeros" else torch.randn
    a, b = (make(n, n, device="cuda", dtype=torch.bfloat16) for _ in "ab")
    c = torch.empty_like(a)
    measure(lambda _: torch.mm(a, b, out=c), warm=3, steps=400)
elif mode == "replicas":  # DataParallel on two GPUs.
    model = nn.DataParallel(nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(2048, 2048), nn.GELU())]).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.randn(512, 2048, device="cuda"), torch.randn(512, 2048, device="cuda")

    def step(i):
        optimizer.zero_grad()
        F.mse_loss(model(x), target).backward()
        optimizer.step()

    measure(step, steps=20)
