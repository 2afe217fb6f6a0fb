"""Train a deep perceptron that tags records.

Ailing: AdamW updates one parameter at a time (foreach=False).
Cured: fused=True.
"""

import harness
import torch
from torch import nn
from torch.nn import functional


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(1024, 1024), nn.LayerNorm(1024), nn.GELU()) for _ in range(8)]
    model = nn.Sequential(*blocks, nn.Linear(1024, 64)).cuda().bfloat16()
    if args.variant == "cured":
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    inputs = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16)
    targets = torch.randint(0, 64, (4096,), device="cuda")

    def step(_: int) -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
