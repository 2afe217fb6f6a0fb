"""Draw samples from an energy model by Langevin steps.

Ailing: torch.cuda.empty_cache() at the end of each step gives all memory back, and the next step allocates it again.
Cured: the cache is left alone.
"""

import harness
import torch
from torch import nn


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 4096), nn.SiLU(), nn.Linear(4096, 4096), nn.SiLU(), nn.Linear(4096, 1))
    model = model.cuda().bfloat16().requires_grad_(requires_grad=False)
    state = torch.randn(8192, 1024, device="cuda", dtype=torch.bfloat16)

    def step(_: int) -> None:
        position = state.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(model(position).sum(), position)
        state.add_(gradient, alpha=-0.05).add_(torch.randn_like(state), alpha=0.1)
        del position, gradient
        if args.variant == "ailing":
            torch.cuda.empty_cache()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
