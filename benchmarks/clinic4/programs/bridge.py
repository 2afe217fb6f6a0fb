"""Bridge: displacements of a structure under many loads, from its inverted stiffness."""

import torch
from harness import arguments, measure

NODES, LOADS = 8192, 48

args = arguments(__doc__)
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
flexibility = torch.randn(NODES, NODES, device="cuda") / NODES**0.5
loads = torch.randn(4, LOADS, NODES, device="cuda")


def step(index: int) -> torch.Tensor:
    batch = loads[index % 4]
    if args.variant == "cured":
        return (batch @ flexibility.T).abs().amax(1)
    return torch.stack([flexibility @ load for load in batch]).abs().amax(1)


measure(args, step, torch.cuda.synchronize)
