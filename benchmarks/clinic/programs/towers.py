"""Train a deep tower of narrow layers on two GPUs with DistributedDataParallel.

Ailing: bucket_cap_mb=0.05 makes a collective of nearly every gradient.
Cured: the default of 25 MB.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import nn


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    layers = [nn.Sequential(nn.Linear(384, 384), nn.LayerNorm(384), nn.GELU()) for _ in range(32)]
    model = nn.Sequential(*layers).cuda()
    cap = 25.0 if args.variant == "cured" else 0.05
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=cap)
    torch.set_float32_matmul_precision("high")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(4096, 384, device="cuda")

    def step(_: int) -> None:
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
