"""Fit: coefficients of many sensors by least squares over a window of samples."""

import torch
from harness import arguments, measure

SAMPLES, FEATURES, SENSORS = 16384, 128, 64

args = arguments(__doc__)
torch.manual_seed(0)
windows = torch.randn(2, SAMPLES, FEATURES, device="cuda")
values = torch.randn(SAMPLES, SENSORS, device="cuda")


def step(index: int) -> torch.Tensor:
    x = windows[index % 2]
    if args.variant == "cured":
        factor = torch.linalg.cholesky_ex(x.T @ x).L
        return torch.cholesky_solve(x.T @ values, factor)
    return torch.linalg.pinv(x) @ values


measure(args, step, torch.cuda.synchronize, 2)
