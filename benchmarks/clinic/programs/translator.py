"""Decode with a feed-forward stack of FP32 weights under autocast.

Ailing: autocast casts all weights to BF16 in each step.
Cured: the model is converted to BF16 once.
"""

import contextlib

import harness
import torch
from torch import nn


class Layer(nn.Module):
    """A feed-forward layer with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    model = nn.Sequential(*[Layer(2048) for _ in range(8)]).cuda().eval()
    tokens = torch.randn(64, 2048, device="cuda")
    if args.variant == "cured":
        model, tokens = model.bfloat16(), tokens.bfloat16()

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        cast = torch.autocast("cuda", torch.bfloat16) if args.variant == "ailing" else contextlib.nullcontext()
        with cast:
            return model(tokens)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
