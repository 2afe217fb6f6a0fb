"""python3 cases.py autotune|loader|segments: a PyTorch or Triton program of the kind, with a loop of 30 steps."""

import os
import sys
import time

MODE = sys.argv[1]
if MODE == "segments":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"expandable_segments:{'True' if sys.argv[2] == 'on' else 'False'}"

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

STEPS = 30


def measure(step):
    start = time.perf_counter()
    for number in range(STEPS):
        step(number)
    torch.cuda.synchronize()
    print(f"{' '.join(sys.argv[1:])}: {(time.perf_counter() - start) / STEPS * 1e6:.0f} us per step", flush=True)


def bench(call, quantiles):
    return triton.testing.do_bench(call, warmup=5, rep=20, quantiles=quantiles)


@triton.autotune(
    [triton.Config({"block": b}, num_warps=w) for b in (256, 1024, 4096) for w in (2, 8)], ["n"], do_bench=bench
)
@triton.jit
def scale(x, y, n, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n) * 1.5 + 1.0, mask=offsets < n)


def autotune():
    x, y, w = (
        torch.randn(1 << 20, device="cuda"),
        torch.empty(1 << 20, device="cuda"),
        torch.randn(1024, 1024, device="cuda"),
    )

    def step(number):
        n = (1 << 20) - 1024 * (number // 15)
        scale[lambda meta: (triton.cdiv(n, meta["block"]),)](x, y, n)
        out = y.view(1024, 1024) @ w
        out = torch.relu(out).sum()
        return out.item()

    measure(step)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 16 * (STEPS + 4)

    def __getitem__(self, index):
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass
        return torch.full((1024,), float(index))


def loader():
    w = torch.randn(1024, 4096, device="cuda")
    batches = iter(torch.utils.data.DataLoader(Samples(), batch_size=16, num_workers=2, pin_memory=True))

    def step(number):
        x = next(batches).to("cuda", non_blocking=True)
        for _ in range(10):
            x = torch.relu(x @ w) @ w.t() * 1e-4
        return x.sum().item()

    for number in range(2):
        step(number)
    torch.cuda.cudart().cudaProfilerStart()
    measure(step)
    torch.cuda.cudart().cudaProfilerStop()


def segments():
    def step(number):
        n = 4096 + 512 * number
        x = torch.randn(n, 4096, device="cuda")
        y = torch.relu(x * 2)
        return float((x + y).sum())

    step(0)
    torch.cuda.cudart().cudaProfilerStart()
    measure(step)
    torch.cuda.cudart().cudaProfilerStop()


{"autotune": autotune, "loader": loader, "segments": segments}[MODE]()
