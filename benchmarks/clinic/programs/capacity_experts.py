"""Train layers of experts that are distributed over two GPUs, with a fixed capacity for each expert.

Ailing: the tokens are exchanged in FP32, and all of them before any is computed.
Cured: they are exchanged in BF16, in two parts. One is exchanged while the experts compute the other.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import distributed, nn

LAYERS, TOKENS, WIDTH = 4, 16384, 1024


class Layer(nn.Module):
    """The expert of a layer that a rank has."""

    def __init__(self, *, is_cured: bool) -> None:
        super().__init__()
        self.expert = nn.Sequential(nn.Linear(WIDTH, 8 * WIDTH), nn.GELU(), nn.Linear(8 * WIDTH, WIDTH)).bfloat16()
        self.count = 2 if is_cured else 1
        self.dtype = torch.bfloat16 if is_cured else torch.float32

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the experts make of the tokens."""
        parts = x.to(self.dtype).chunk(self.count)
        received = [torch.empty_like(part) for part in parts]
        works = [
            distributed.all_to_all_single(target, part, async_op=True)
            for target, part in zip(received, parts, strict=True)
        ]
        returned = [torch.empty_like(part) for part in parts]
        returning = []
        for work, target, back in zip(works, received, returned, strict=True):
            work.wait()
            result = self.expert(target.bfloat16()).to(self.dtype)
            returning.append(distributed.all_to_all_single(back, result, async_op=True))
        for work in returning:
            work.wait()
        return x + torch.cat(returned)


def program(args: argparse.Namespace, _: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    model = nn.Sequential(*(Layer(is_cured=args.variant == "cured") for _ in range(LAYERS))).cuda()
    x = torch.randn(TOKENS, WIDTH, device="cuda")

    @torch.no_grad()
    def step(_: int) -> None:
        model(x)

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
