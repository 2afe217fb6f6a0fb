"""Run layers of experts that are distributed over two GPUs.

Ailing: the router sends four fifths of the tokens to the experts of the first GPU.
Cured: it sends about as many to each expert.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import distributed, nn

LAYERS, EXPERTS, TOKENS, WIDTH = 6, 8, 8192, 2048


class Layer(nn.Module):
    """The experts of a layer that a rank has."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH, bias=False))
            for _ in range(EXPERTS // 2)
        )

    def forward(self, x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        """Return what the chosen experts make of the tokens."""
        order = choice.argsort()
        counts_sent = torch.bincount(choice, minlength=EXPERTS)
        received = torch.empty_like(counts_sent)
        distributed.all_to_all_single(received, counts_sent)
        counts = torch.stack([counts_sent, received]).view(2, 2, EXPERTS // 2).tolist()
        sizes = [[sum(part) for part in side] for side in counts]
        tokens = x.new_empty(sum(sizes[1]), WIDTH)
        distributed.all_to_all_single(tokens, x[order], sizes[1], sizes[0])
        pieces = tokens.split(counts[1][0] + counts[1][1])
        results: list[torch.Tensor] = [torch.empty(0)] * EXPERTS
        for index, expert in enumerate(self.experts):
            own_tokens = torch.cat([pieces[index], pieces[index + EXPERTS // 2]])
            results[index], results[index + EXPERTS // 2] = expert(own_tokens).split(
                [counts[1][0][index], counts[1][1][index]]
            )
        back = torch.empty_like(x)
        distributed.all_to_all_single(back, torch.cat(results), sizes[0], sizes[1])
        return x.index_add(0, order, back)


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    model = nn.ModuleList(Layer() for _ in range(LAYERS)).to("cuda", torch.bfloat16)
    x = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    weights = torch.ones(EXPERTS, device="cuda")
    if args.variant == "ailing":
        weights[: EXPERTS // 2] = 4
    torch.manual_seed(rank)
    choices = [torch.multinomial(weights, TOKENS, replacement=True) for _ in range(LAYERS)]

    @torch.no_grad()
    def step(_: int) -> None:
        hidden = x
        for layer, choice in zip(model, choices, strict=True):
            hidden = layer(hidden, choice)

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
