"""Time a compiled denoiser over 30 batches.

Ailing: the first call, which compiles, is inside the measured part.
Cured: a warm-up call comes first.
"""

import time

import harness
import torch
from torch import nn


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(1024, 4096), nn.GELU(), nn.LayerNorm(4096), nn.Linear(4096, 1024), nn.Tanh()]
    model = torch.compile(nn.Sequential(*layers).cuda().half())
    noise = torch.randn(8192, 1024, device="cuda", dtype=torch.half)
    steps = args.profile or args.steps or 30
    with torch.no_grad():
        if args.variant == "cured":
            model(noise)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.cuda.nvtx.range("benchmark"):
            for _ in range(steps):
                model(noise)
            torch.cuda.synchronize()
    harness.report(time.perf_counter() - begin, steps)


if __name__ == "__main__":
    main()
