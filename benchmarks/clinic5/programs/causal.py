"""Train two blocks of a decoder on sequences of 4096 tokens."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional

BATCH, TOKENS, WIDTH, HEADS = 4, 4096, 1024, 16


class Block(nn.Module):
    """Causal attention and a feed-forward part."""

    def __init__(self, *, is_flagged: bool) -> None:
        super().__init__()
        self.is_flagged = is_flagged
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attend(self, hidden: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(hidden).view(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        if self.is_flagged:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            future = torch.full((TOKENS, TOKENS), float("-inf"), device=hidden.device, dtype=hidden.dtype).triu(1)
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=future)
        return self.out(mixed.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        with torch.cuda.nvtx.range("attention"):
            hidden = hidden + self.attend(self.first(hidden))
        with torch.cuda.nvtx.range("feed forward"):
            return hidden + self.feed(self.second(hidden))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(4)
    model = nn.Sequential(*[Block(is_flagged=args.variant == "cured") for _ in range(2)]).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    hidden = torch.randn(BATCH, TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    target = torch.randn_like(hidden)

    def step(index: int) -> None:  # noqa: ARG001
        loss = functional.mse_loss(model(hidden), target)
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    measure(args, step, torch.cuda.synchronize)


main()
