"""Rank a few candidates with a compiled model of many small layers.

Ailing: the compiled kernels are launched one by one, and launching takes longer than running them.
Cured: mode="reduce-overhead" replays them as a CUDA graph.
"""

import harness
import torch
from torch import nn


class Layer(nn.Module):
    """A small layer with two branches."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normal = self.norm(x)
        return x + torch.tanh(self.left(normal)) * torch.sigmoid(self.right(normal))


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    model = nn.Sequential(*[Layer(256) for _ in range(24)]).cuda().half()
    compiled = torch.compile(model, mode="reduce-overhead" if args.variant == "cured" else None)
    candidates = torch.randn(32, 256, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        return compiled(candidates)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
