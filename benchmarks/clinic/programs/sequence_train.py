"""Train a convolutional sequence model with clipped gradients.

Ailing: the gradient norm is summed on the host, with one .item() for each parameter.
Cured: torch.nn.utils.clip_grad_norm_ keeps it on the device.
"""

import harness
import torch
from torch import nn
from torch.nn import functional


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Conv1d(128, 128, 3, padding=1), nn.GroupNorm(8, 128), nn.SiLU()) for _ in range(10)]
    model = nn.Sequential(*blocks, nn.Conv1d(128, 32, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=True)
    inputs = torch.randn(32, 128, 512, device="cuda")
    targets = torch.randint(0, 32, (32, 512), device="cuda")

    def step(_: int) -> None:
        functional.cross_entropy(model(inputs), targets).backward()
        if args.variant == "cured":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            total = sum(p.grad.norm().item() ** 2 for p in model.parameters()) ** 0.5
            if total > 1.0:
                for p in model.parameters():
                    p.grad.mul_(1.0 / total)
        optimizer.step()
        optimizer.zero_grad()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
