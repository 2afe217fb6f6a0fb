"""Tune a language model on chapters of novels with adapters of low rank."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

DEPTH, WIDTH, HEADS, BATCH, LENGTH, RANK = 8, 2048, 16, 8, 1024, 16


class Block(nn.Module):
    """Attention and a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.requires_grad_(requires_grad=False)
        self.reduce, self.expand = nn.Linear(WIDTH, RANK, bias=False), nn.Linear(RANK, 3 * WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[0](x)
        rows = (self.inputs(y) + self.expand(self.reduce(y))).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        attended = functional.scaled_dot_product_attention(*rows.permute(2, 0, 3, 1, 4).unbind(0), is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block() for _ in range(DEPTH)).cuda().bfloat16().train()
    optimizer = torch.optim.AdamW([value for value in blocks.parameters() if value.requires_grad], lr=1e-5, fused=True)
    chapters = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step(_: int) -> None:
        with nvtx.range("forward"):
            x = chapters
            for block in blocks:
                x = block(x) if args.variant == "cured" else checkpoint(block, x, use_reentrant=False)
            loss = functional.mse_loss(x[:, :-1], chapters[:, 1:])
        with nvtx.range("backward"):
            loss.backward()
        with nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    measure(args, step, torch.cuda.synchronize)


main()
