"""Optimal transport between two sets of points: Sinkhorn's iterations."""

import harness
import torch
from torch.cuda import nvtx

POINTS, WIDTH, ITERATIONS, BLUR = 4096, 32, 40, 0.5


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the transport cost of one pair of sets."""
    torch.manual_seed(0)
    pairs = [[torch.randn(POINTS, WIDTH, device="cuda") / WIDTH**0.5 for _ in range(2)] for _ in range(4)]
    a = torch.full((POINTS,), 1 / POINTS, device="cuda")
    b = torch.full((POINTS,), 1 / POINTS, device="cuda")

    def scale_afresh(cost: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = torch.ones_like(b)
        for _ in range(ITERATIONS):
            kernel = torch.exp(-cost / BLUR)
            u = a / (kernel @ v)
            v = b / (kernel.T @ u)
        return u, v, kernel

    def scale_once(cost: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kernel = torch.exp(-cost / BLUR)
        v = torch.ones_like(b)
        for _ in range(ITERATIONS):
            u = a / (kernel @ v)
            v = b / (kernel.T @ u)
        return u, v, kernel

    @torch.inference_mode()
    def step(number: int) -> None:
        x, y = pairs[number % len(pairs)]
        with nvtx.range("transport"):
            with nvtx.range("cost"):
                cost = torch.cdist(x, y).square()
            with nvtx.range("sinkhorn"):
                u, v, kernel = (scale_afresh if ailing else scale_once)(cost)
            with nvtx.range("value"):
                (u @ ((kernel * cost) @ v)).item()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
