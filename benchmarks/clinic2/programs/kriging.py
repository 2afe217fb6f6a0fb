"""Gaussian process: likelihood of measured values for the length scales that an optimizer tries."""

import torch
from harness import arguments, measure

POINTS = 2048

args = arguments(__doc__)
torch.manual_seed(0)
points = torch.rand(POINTS, 3, device="cuda", dtype=torch.float64)
values = torch.sin(6 * points).sum(1, keepdim=True) + 0.1 * torch.randn(POINTS, 1, device="cuda", dtype=torch.float64)


def likelihood(covariance: torch.Tensor) -> torch.Tensor:
    if args.variant == "cured":
        factor = torch.linalg.cholesky(covariance)
        weights = torch.cholesky_solve(values, factor)
        logarithm = 2 * factor.diagonal().log().sum()
    else:
        weights = torch.linalg.inv(covariance) @ values
        logarithm = torch.linalg.slogdet(covariance)[1]
    return -0.5 * ((values * weights).sum() + logarithm)


def step(index: int) -> torch.Tensor:
    scale = 0.2 + 0.01 * (index % 20)
    covariance = torch.exp(-0.5 * (torch.cdist(points, points) / scale) ** 2)
    covariance.diagonal().add_(0.01)
    return likelihood(covariance)


measure(args, step, torch.cuda.synchronize)
