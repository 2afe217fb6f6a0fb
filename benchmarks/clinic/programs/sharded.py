"""Train a deep network whose parameters are sharded over two GPUs.

Ailing: each layer is a unit of its own, and the host needs longer to gather, free and reduce the small units than the
GPU needs to compute.
Cured: the network is one unit. Its parameters are gathered before the first layer, and its gradients reduced after the
last one, which no computation hides.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def program(args: argparse.Namespace, _: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    layers = [nn.Sequential(nn.Linear(4096, 4096), nn.LayerNorm(4096), nn.GELU()) for _ in range(16)]
    model = nn.Sequential(*layers).cuda()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if args.variant == "ailing":
        for layer in model:
            fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    inputs = torch.randn(4096, 4096, device="cuda")

    def step(_: int) -> None:
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
