"""Attention by cuDNN: in a new thread for each step, in one thread, or with a new length in each step."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

mode, steps = sys.argv[1], int(sys.argv[2])


def attend(length):
    q = torch.ones(2, 8, length, 64, device="cuda", dtype=torch.bfloat16)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for _ in range(4):
            q = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    torch.cuda.current_stream().synchronize()


pool = ThreadPoolExecutor(1)


def step(i):
    if mode == "threads":
        worker = threading.Thread(target=attend, args=(512,))
        worker.start()
        worker.join()
    elif mode == "lengths":
        pool.submit(attend, 512 + 64 * i).result()
    else:
        pool.submit(attend, 512).result()


step(0)
torch.cuda.synchronize()
times = []
torch.cuda.profiler.start()
for i in range(1, steps + 1):
    begin = time.perf_counter()
    step(i)
    times.append((time.perf_counter() - begin) * 1e3)
torch.cuda.profiler.stop()
print(mode, "ms per step:", " ".join(f"{t:.1f}" for t in times))
