"""Train a perceptron with dropout.

Ailing: dropout is written out: random numbers, a comparison, a cast, a product, a division, each in FP32.
Cured: torch.nn.functional.dropout, one kernel.
"""

import harness
import torch
from torch import nn
from torch.nn import functional


def drop(x: torch.Tensor, rate: float) -> torch.Tensor:
    """Set a share of the elements to zero and scale the others."""
    keep = (torch.rand(x.shape, device=x.device) > rate).float()
    return (x.float() * keep / (1 - rate)).to(x.dtype)


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    function = functional.dropout if args.variant == "cured" else drop
    layers = nn.ModuleList([nn.Linear(2048, 2048) for _ in range(6)]).cuda().bfloat16()
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(16384, 2048, device="cuda", dtype=torch.bfloat16)

    def step(_: int) -> None:
        x = inputs
        for layer in layers:
            x = function(torch.relu(layer(x)), 0.1)
        x.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
