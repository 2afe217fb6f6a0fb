"""Embed the proteins of an interaction graph: the maximum over sampled neighbors (GraphSAGE)."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

PROTEINS, NEIGHBORS, WIDTH, HIDDEN, LAYERS = 60_000, 16, 128, 256, 3


class Layer(nn.Module):
    """The maximum over the neighbors, added to the features."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, WIDTH), nn.ReLU())
        self.self_weight, self.pool_weight = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, neighbors: torch.Tensor, *, is_cured: bool) -> torch.Tensor:
        with nvtx.range("neighbors"):
            rows = self.pool(x)[neighbors] if is_cured else self.pool(x[neighbors])
            best = rows.amax(1)
        with nvtx.range("update"):
            return functional.relu(self.self_weight(x) + self.pool_weight(best))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    layers = nn.ModuleList(Layer() for _ in range(LAYERS)).cuda().bfloat16().eval()
    features = torch.randn(PROTEINS, WIDTH, device="cuda", dtype=torch.bfloat16)
    neighbors = torch.randint(PROTEINS, (PROTEINS, NEIGHBORS), device="cuda")

    @torch.inference_mode()
    def step(_: int) -> None:
        x = features
        for layer in layers:
            x = layer(x, neighbors, is_cured=args.variant == "cured")

    measure(args, step, torch.cuda.synchronize)


main()
