"""Train on two GPUs with four micro-batches a step.

Ailing: DistributedDataParallel reduces the gradients in each micro-batch.
Cured: no_sync() in all but the last one.
"""

import argparse
import contextlib
from collections.abc import Callable

import harness
import ranks
import torch
from torch import nn


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    layers = [nn.Sequential(nn.Linear(4096, 4096), nn.ReLU()) for _ in range(8)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers).cuda(), device_ids=[rank])
    torch.set_float32_matmul_precision("high")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batches = torch.randn(4, 512, 4096, device="cuda")

    def step(_: int) -> None:
        for index, batch in enumerate(batches):
            is_local = args.variant == "cured" and index < len(batches) - 1
            with model.no_sync() if is_local else contextlib.nullcontext():
                model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
