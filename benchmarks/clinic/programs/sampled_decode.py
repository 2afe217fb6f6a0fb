"""Decode tokens with a network whose layers are split over two GPUs (tensor parallel).

Ailing: rank 0 copies the logits to the host, samples there with NumPy, and broadcasts the tokens.
Cured: it samples on the GPU.
"""

import argparse
from collections.abc import Callable

import harness
import numpy as np
import ranks
import torch
from torch import distributed, nn
from torch.nn import functional

LAYERS, WIDTH, BATCH, VOCABULARY = 8, 4096, 32, 32000


class Layer(nn.Module):
    """The half of a gated MLP that a rank has."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.down = nn.Linear(3 * WIDTH // 2, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the hidden state after this layer."""
        gate, value = self.up(self.norm(x)).chunk(2, dim=-1)
        part = self.down(functional.silu(gate) * value)
        distributed.all_reduce(part)
        return x + part


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    model = nn.Sequential(*(Layer() for _ in range(LAYERS))).to("cuda", torch.bfloat16)
    embedding = torch.randn(VOCABULARY, WIDTH, device="cuda", dtype=torch.bfloat16)
    tokens = torch.zeros(BATCH, device="cuda", dtype=torch.int64)
    generator = np.random.default_rng(0)

    def sample_on_host(logits: torch.Tensor) -> None:
        weights = logits.float().cpu().numpy()
        noise = generator.gumbel(size=weights.shape)
        tokens.copy_(torch.from_numpy((weights + noise).argmax(axis=1)))

    @torch.no_grad()
    def decode(_: int) -> None:
        hidden = functional.normalize(model(embedding[tokens]), dim=-1)
        if rank == 0:
            logits = hidden @ embedding.T
            if args.variant == "ailing":
                sample_on_host(logits)
            else:
                tokens.copy_(
                    (logits.float() - torch.empty_like(logits, dtype=torch.float32).exponential_().log()).argmax(1)
                )
        distributed.broadcast(tokens, 0)

    return decode


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
