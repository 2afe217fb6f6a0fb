"""Read a long prompt with a BF16 transformer: large products and fused attention.

Healthy: the tensor cores are busy nearly all the time. There is no cure.
"""

import harness
import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LENGTH, BATCH = 4096, 32, 4096, 4


class Layer(nn.Module):
    """A transformer layer without biases."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mlp_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(self.norm(x)).view(BATCH, LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(functional.relu(self.up(self.mlp_norm(x)), inplace=True))


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    model = nn.Sequential(*[Layer() for _ in range(4)]).cuda().bfloat16()
    prompt = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        return model(prompt)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
