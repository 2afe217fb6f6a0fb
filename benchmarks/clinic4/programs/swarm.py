"""Swarm: forces between all particles of two sets, from their distances."""

import torch
from harness import arguments, measure

LEFT, RIGHT, WIDTH = 4096, 8192, 64

args = arguments(__doc__)
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
left = torch.randn(4, LEFT, WIDTH, device="cuda")
right = torch.randn(RIGHT, WIDTH, device="cuda")


def distances(points: torch.Tensor) -> torch.Tensor:
    if args.variant == "cured":
        return torch.cdist(points, right)
    return (points[:, None] - right).square().sum(2).sqrt()


def step(index: int) -> torch.Tensor:
    return (-distances(left[index % 4])).exp().sum(1)


measure(args, step, torch.cuda.synchronize)
