"""Train a recommender: a table of eight million items and a small network over a click history."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional

ITEMS, WIDTH, BATCH, HISTORY = 8_000_000, 64, 4096, 20


class Ranker(nn.Module):
    """The mean of the history's vectors, then three layers."""

    def __init__(self, *, is_sparse: bool) -> None:
        super().__init__()
        self.items = nn.EmbeddingBag(ITEMS, WIDTH, mode="sum", sparse=is_sparse)
        self.tower = nn.Sequential(
            nn.Linear(WIDTH + 16, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
        )

    def forward(self, history: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        return self.tower(torch.cat([self.items(history), context], dim=1)).squeeze(1)


def main() -> None:
    args = arguments(__doc__)
    is_sparse = args.variant == "cured"
    torch.manual_seed(2)
    with torch.device("cuda"):
        model = Ranker(is_sparse=is_sparse)
        history = torch.randint(ITEMS, (16, BATCH, HISTORY))
        context = torch.randn(16, BATCH, 16)
        clicks = torch.randint(2, (16, BATCH)).float()
    optimizers: list[torch.optim.Optimizer]
    if is_sparse:
        optimizers = [
            torch.optim.SparseAdam(model.items.parameters(), lr=1e-3),
            torch.optim.Adam(model.tower.parameters(), lr=1e-3, fused=True),
        ]
    else:
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)]

    def step(index: int) -> None:
        batch = index % len(history)
        with torch.cuda.nvtx.range("forward"):
            loss = functional.binary_cross_entropy_with_logits(model(history[batch], context[batch]), clicks[batch])
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()

    measure(args, step, torch.cuda.synchronize)


main()
