"""Train a student on small images while a mentor follows it as the moving average of its weights."""

from __future__ import annotations

import copy

import torch
from harness import arguments, measure
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

BATCH, DECAY = 128, 0.999


class Block(nn.Module):
    """Two convolutions and a skip connection."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        )
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norms[0](self.first(x)), inplace=True)
        return functional.relu(self.norms[1](self.second(y)) + self.short(x), inplace=True)


def network() -> nn.Module:
    sizes = [(32, 32, 1)] * 6 + [(32, 64, 2)] + [(64, 64, 1)] * 5 + [(64, 128, 2)] + [(128, 128, 1)] * 5
    blocks = [Block(*size) for size in sizes]
    stem = nn.Conv2d(3, 32, 3, padding=1)
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    student = network().cuda().to(memory_format=torch.channels_last).train()
    mentor = copy.deepcopy(student).requires_grad_(requires_grad=False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9, fused=True)
    images = torch.randn(BATCH, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(100, (BATCH,), device="cuda")

    @torch.no_grad()
    def follow() -> None:
        now, average = student.state_dict(), mentor.state_dict()
        names = [name for name, value in now.items() if value.is_floating_point()]
        if args.variant == "cured":
            torch._foreach_lerp_([average[name] for name in names], [now[name] for name in names], 1 - DECAY)
            return
        for name in names:
            average[name].copy_(DECAY * average[name] + (1 - DECAY) * now[name])

    def step(_: int) -> None:
        with nvtx.range("forward"):
            loss = functional.cross_entropy(student(images), labels)
        with nvtx.range("backward"):
            loss.backward()
        with nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        with nvtx.range("mentor"):
            follow()

    measure(args, step, torch.cuda.synchronize)


main()
