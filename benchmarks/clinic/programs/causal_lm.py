"""Train a small causal language model in BF16.

Ailing: attention is written out as product, scale, mask, softmax, product.
Cured: torch.nn.functional.scaled_dot_product_attention.
"""

import math

import harness
import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LENGTH = 1024, 16, 1024


class Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, *, is_fused: bool) -> None:
        super().__init__()
        self.is_fused = is_fused
        self.norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(self.norm(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        if self.is_fused:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
            weights = scores.masked_fill(self.mask, float("-inf")).softmax(-1)
            mixed = weights @ value
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.mlp_norm(x))


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    layers = [Layer(is_fused=args.variant == "cured") for _ in range(3)]
    model = nn.Sequential(nn.Embedding(8192, WIDTH), *layers, nn.Linear(WIDTH, 8192)).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, 8192, (8, LENGTH + 1), device="cuda")

    def step(_: int) -> None:
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
