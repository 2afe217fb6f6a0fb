"""Send each token to the best of 32 experts: a layer of a mixture of experts."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional

TOKENS, WIDTH, INNER, EXPERTS, LAYERS = 4096, 1024, 2048, 32, 1
CAPACITY = 2 * TOKENS // EXPERTS


class Mixture(nn.Module):
    """A gate and its experts."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS)
        self.rise = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER) / WIDTH**0.5)
        self.fall = nn.Parameter(torch.randn(EXPERTS, INNER, WIDTH) / INNER**0.5)

    def by_expert(self, hidden: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        """Visit the experts one after the other."""
        result = torch.zeros_like(hidden)
        for expert in range(EXPERTS):
            members = torch.where(choice == expert)[0]
            inner = functional.gelu(hidden[members] @ self.rise[expert])
            result.index_add_(0, members, inner @ self.fall[expert])
        return result

    def at_once(self, hidden: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        """Give each expert a table of the same size, and multiply all of them together."""
        order = choice.argsort()
        experts = choice[order]
        counts = torch.zeros(EXPERTS, dtype=torch.int64, device=choice.device)
        counts.scatter_add_(0, choice, torch.ones_like(choice))
        place = torch.arange(TOKENS, device=choice.device) - (counts.cumsum(0) - counts)[experts]
        slot = torch.where(place < CAPACITY, experts * CAPACITY + place, EXPERTS * CAPACITY)
        tables = hidden.new_zeros(EXPERTS * CAPACITY + 1, WIDTH)
        tables[slot] = hidden[order]
        inner = functional.gelu(torch.bmm(tables[:-1].view(EXPERTS, CAPACITY, WIDTH), self.rise))
        tables[:-1] = torch.bmm(inner, self.fall).view(-1, WIDTH)
        result = torch.empty_like(hidden)
        result[order] = tables[slot]
        return result

    def forward(self, hidden: torch.Tensor, *, is_cured: bool) -> torch.Tensor:
        with torch.cuda.nvtx.range("gate"):
            score, choice = self.gate(hidden).softmax(dim=1).max(dim=1)
        with torch.cuda.nvtx.range("experts"):
            mixed = self.at_once(hidden, choice) if is_cured else self.by_expert(hidden, choice)
        return functional.layer_norm(hidden + score[:, None] * mixed, (WIDTH,))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(12)
    with torch.device("cuda"):
        layers = nn.ModuleList(Mixture() for _ in range(LAYERS)).to(torch.bfloat16).eval()
        batches = torch.randn(8, TOKENS, WIDTH, dtype=torch.bfloat16)

    @torch.inference_mode()
    def step(index: int) -> None:
        hidden = batches[index % len(batches)]
        for layer in layers:
            hidden = layer(hidden, is_cured=args.variant == "cured")

    measure(args, step, torch.cuda.synchronize)


main()
