"""Language model: two attention blocks read a batch of long prompts."""

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional as F  # noqa: N812

BATCH, LENGTH, HEADS, WIDTH = 4, 4096, 16, 1024

args = arguments(__doc__)
torch.manual_seed(0)
mask = torch.full((LENGTH, LENGTH), float("-inf"), device="cuda", dtype=torch.bfloat16).triu(1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.inputs(self.norm(x)).view(BATCH, LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if args.variant == "cured":
            y = F.scaled_dot_product_attention(*parts, is_causal=True)
        else:
            y = F.scaled_dot_product_attention(*parts, attn_mask=mask)
        return x + self.output(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))


model = nn.Sequential(Block(), Block()).cuda().bfloat16()
tokens = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)


@torch.no_grad()
def step(_: int) -> torch.Tensor:
    return model(tokens)


measure(args, step, torch.cuda.synchronize)
