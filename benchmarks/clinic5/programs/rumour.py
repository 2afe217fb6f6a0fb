"""Spread labels over a social graph: four hops of personalized propagation after a small network."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn

NODES, EDGES, FEATURES, CLASSES, HOPS = 200_000, 3_000_000, 128, 32, 4


def propagate(adjacency: torch.Tensor, hidden: torch.Tensor, teleport: float = 0.1) -> torch.Tensor:
    """Propagate along the edges, with teleport."""
    start = hidden
    for hop in range(HOPS):
        with torch.cuda.nvtx.range(f"hop {hop}"):
            hidden = (1 - teleport) * torch.sparse.mm(adjacency, hidden) + teleport * start
    return hidden


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(7)
    network = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES)).to("cuda")
    features = torch.randn(NODES, FEATURES, device="cuda")
    edges = torch.stack(
        [
            torch.randint(NODES, (EDGES,), device="cuda"),
            (torch.rand(EDGES, device="cuda") ** 3 * NODES).long(),
        ]
    )
    degree = torch.bincount(edges[0], minlength=NODES).clamp(min=1).float()
    weights = 1 / degree[edges[0]]
    ready = torch.sparse_coo_tensor(edges, weights, (NODES, NODES)).coalesce()

    @torch.inference_mode()
    def step(index: int) -> None:  # noqa: ARG001
        with torch.cuda.nvtx.range("network"):
            hidden = network(features)
        adjacency = ready if args.variant == "cured" else torch.sparse_coo_tensor(edges, weights, (NODES, NODES))
        with torch.cuda.nvtx.range("propagate"):
            propagate(adjacency, hidden).argmax(dim=1)

    measure(args, step, torch.cuda.synchronize)


main()
