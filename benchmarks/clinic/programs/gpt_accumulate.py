"""Train a small GPT on two GPUs with six micro-batches a step.

Ailing: DistributedDataParallel reduces the gradients after each micro-batch.
Cured: no_sync() in all but the last one.
"""

import argparse
import contextlib
from collections.abc import Callable

import harness
import ranks
import torch
from torch import nn
from torch.nn import functional


class Gpt(nn.Module):
    """Embedding, layers with causal attention, logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16384, 1536)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(1536, 12, 6144, dropout=0.0, batch_first=True, norm_first=True) for _ in range(6)
        )
        self.logits = nn.Linear(1536, 16384, bias=False)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        logits: torch.Tensor = self.logits(hidden)
        return logits


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    model = nn.parallel.DistributedDataParallel(Gpt().cuda(), device_ids=[rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = torch.randint(16384, (6, 2, 512), device="cuda")
    mask = nn.Transformer.generate_square_subsequent_mask(512, device=torch.device("cuda"))

    def step(_: int) -> None:
        for index, batch in enumerate(batches):
            is_local = args.variant == "cured" and index < len(batches) - 1
            with model.no_sync() if is_local else contextlib.nullcontext():
                with torch.autocast("cuda", torch.bfloat16):
                    loss = functional.cross_entropy(model(batch, mask).flatten(0, 1).float(), batch.flatten())
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
