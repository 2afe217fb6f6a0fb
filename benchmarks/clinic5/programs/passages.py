"""Turn short passages into vectors with a wide transformer encoder under automatic mixed precision."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional

BATCH, TOKENS, WIDTH, HEADS, LAYERS = 2, 32, 4096, 32, 6


class Layer(nn.Module):
    """Attention and feed-forward part of an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.rise, self.fall = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.first(hidden)).view(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))
        return hidden + self.fall(functional.gelu(self.rise(self.second(hidden))))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(11)
    with torch.device("cuda"):
        encoder = nn.Sequential(*[Layer() for _ in range(LAYERS)]).eval()
        passages = torch.randn(16, BATCH, TOKENS, WIDTH)
        vectors = torch.empty(16, BATCH, WIDTH)
    if args.variant == "cured":
        encoder, passages = encoder.to(torch.bfloat16), passages.to(torch.bfloat16)

    @torch.inference_mode()
    def step(index: int) -> None:
        place = index % len(passages)
        with (
            torch.cuda.nvtx.range("encode"),
            torch.autocast("cuda", torch.bfloat16, enabled=args.variant == "ailing"),
        ):
            hidden = encoder(passages[place])
        with torch.cuda.nvtx.range("pool"):
            vectors[place] = functional.normalize(hidden.float().mean(dim=1), dim=1)

    measure(args, step, torch.cuda.synchronize)


main()
