"""Train a network whose first half is on one GPU and whose second half is on another.

Ailing: the batch is one piece, so one GPU waits while the other works.
Cured: eight microbatches.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import distributed, nn

ROWS, WIDTH = 8192, 4096


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(8)))
    model.to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
    count = 8 if args.variant == "cured" else 1
    batch = torch.randn(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16).chunk(count)

    def first_half() -> None:
        outputs = []
        for part in batch:
            outputs.append(model(part))
            distributed.send(outputs[-1].detach(), 1)
        for output in outputs:
            gradient = torch.empty_like(output)
            distributed.recv(gradient, 1)
            output.backward(gradient)

    def second_half() -> None:
        inputs, losses = [], []
        for part in batch:
            inputs.append(torch.empty_like(part))
            distributed.recv(inputs[-1], 0)
            inputs[-1].requires_grad_()
            losses.append(model(inputs[-1]).float().square().mean() / count)
        for entry, loss in zip(inputs, losses, strict=True):
            loss.backward()
            distributed.send(entry.grad, 0)

    def step(_: int) -> None:
        second_half() if rank else first_half()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm().square()
        distributed.all_reduce(norm)
        scale = (1 / norm.sqrt()).clamp(max=1)
        torch._foreach_mul_([p.grad for p in model.parameters()], scale)
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
