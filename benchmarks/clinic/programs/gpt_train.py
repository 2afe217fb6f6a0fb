"""Train a compiled language model in BF16 with fused attention and a fused optimizer.

Healthy: large products on the tensor cores, compiled elementwise work, no waits. There is no cure.
"""

import harness
import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LENGTH, BATCH, WORDS = 2048, 16, 2048, 8, 16384


class Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mlp_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(self.norm(x)).view(BATCH, LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(functional.gelu(self.up(self.mlp_norm(x))))


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *[Layer() for _ in range(4)], nn.Linear(WIDTH, WORDS, bias=False))
    model = model.cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, WORDS, (BATCH, LENGTH + 1), device="cuda")

    @torch.compile
    def loss_of(ids: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    def step(_: int) -> None:
        loss_of(tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
