"""Run a compiled stack whose layers rescale large activations.

Ailing: an if on the data in each layer breaks the compiled graph and reads one byte back.
Cured: torch.where instead of the if, and the model is one graph.
"""

import harness
import torch
from torch import nn


class Layer(nn.Module):
    """A linear layer that keeps its output in range."""

    def __init__(self, width: int, *, branches: bool) -> None:
        super().__init__()
        self.linear, self.branches = nn.Linear(width, width), branches

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.silu(self.linear(x))
        peak = hidden.abs().amax()
        if not self.branches:
            return torch.where(peak > 4, hidden / peak, hidden) + x
        if peak > 4:
            hidden = hidden / peak
        return hidden + x


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    is_cured = args.variant == "cured"
    model = nn.Sequential(*[Layer(1024, branches=not is_cured) for _ in range(8)]).cuda().half()
    compiled = torch.compile(model, fullgraph=is_cured)
    x = torch.randn(1024, 1024, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        return compiled(x)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
