"""Train an acoustic model and save it every fourth step.

Ailing: torch.save writes the model while the training waits.
Cured: the weights are copied to pinned memory without waiting, and a thread writes them (no new copy meanwhile).
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
import torch
from torch import nn


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(8)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    frames = torch.randn(8192, 2048, device="cuda")
    torch.set_float32_matmul_precision("high")
    target = Path(tempfile.mkdtemp()) / "model.pt"
    writer = ThreadPoolExecutor(1)
    staging = {name: torch.empty(p.shape, pin_memory=True) for name, p in model.state_dict().items()}
    copied = torch.cuda.Event()
    pending = [writer.submit(int)]

    def write() -> None:
        copied.synchronize()
        torch.save(staging, target)

    def save() -> None:
        if args.variant == "ailing":
            torch.save(model.state_dict(), target)
            return
        if not pending[0].done():  # the last one is still being written: skip this one
            return
        for name, p in model.state_dict().items():
            staging[name].copy_(p, non_blocking=True)
        copied.record()
        pending[0] = writer.submit(write)

    def step(index: int) -> None:
        model(frames).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if index % 4 == 3:
            save()

    harness.measure(args, step, torch.cuda.synchronize, warmup=8)
    writer.shutdown()


if __name__ == "__main__":
    main()
