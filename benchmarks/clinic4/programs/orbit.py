"""Orbit: a network that corrects orbits, with inputs that come from NumPy."""

import numpy as np
import torch
from harness import arguments, measure

BATCH, WIDTH, DEPTH = 8192, 2048, 4

args = arguments(__doc__)
source = np.random.default_rng(0)
kind = np.float32 if args.variant == "cured" else np.float64
torch.set_float32_matmul_precision("high")
weights = [
    torch.from_numpy((source.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(kind)).cuda() for _ in range(DEPTH)
]
states = torch.from_numpy(source.standard_normal((2, BATCH, WIDTH)).astype(kind)).cuda()


@torch.no_grad()
def step(index: int) -> torch.Tensor:
    x = states[index % 2]
    for weight in weights:
        x = torch.tanh(x @ weight)
    return x


measure(args, step, torch.cuda.synchronize)
