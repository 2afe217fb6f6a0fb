"""Train replicas of a wide network on two GPUs.

Ailing: the gradients are reduced one by one after the backward pass.
Cured: DistributedDataParallel reduces buckets while the backward pass runs.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import distributed, nn


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    layers = [nn.Sequential(nn.Linear(2048, 2048), nn.LayerNorm(2048), nn.GELU()) for _ in range(16)]
    model: nn.Module = nn.Sequential(*layers).cuda()
    torch.set_float32_matmul_precision("high")
    is_cured = args.variant == "cured"
    if is_cured:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(2048, 2048, device="cuda")

    def step(_: int) -> None:
        model(inputs).square().mean().backward()
        if not is_cured:
            for p in model.parameters():
                distributed.all_reduce(p.grad)
                p.grad /= 2
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
