"""Train a small U-Net that segments microscope images."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional

BATCH, SIZE, CHANNELS = 16, 256, 64


def pair(before: int, after: int) -> nn.Sequential:
    """Return two convolutions, each with its normalization."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
        nn.Conv2d(after, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """Two levels down, two up."""

    def __init__(self) -> None:
        super().__init__()
        self.top, self.middle = pair(3, CHANNELS), pair(CHANNELS, 2 * CHANNELS)
        self.bottom = pair(2 * CHANNELS, 4 * CHANNELS)
        self.lift_middle = nn.ConvTranspose2d(4 * CHANNELS, 2 * CHANNELS, 2, stride=2)
        self.join_middle = pair(4 * CHANNELS, 2 * CHANNELS)
        self.lift_top = nn.ConvTranspose2d(2 * CHANNELS, CHANNELS, 2, stride=2)
        self.join_top, self.classes = pair(2 * CHANNELS, CHANNELS), nn.Conv2d(CHANNELS, 4, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        top = self.top(image)
        middle = self.middle(functional.max_pool2d(top, 2))
        bottom = self.bottom(functional.max_pool2d(middle, 2))
        middle = self.join_middle(torch.cat([middle, self.lift_middle(bottom)], dim=1))
        return self.classes(self.join_top(torch.cat([top, self.lift_top(middle)], dim=1)))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(5)
    form = torch.channels_last if args.variant == "cured" else torch.contiguous_format
    model = UNet().to("cuda", torch.bfloat16, memory_format=form)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    images = torch.randn(BATCH, 3, SIZE, SIZE, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=form)
    labels = torch.randint(4, (BATCH, SIZE, SIZE), device="cuda")

    def step(index: int) -> None:  # noqa: ARG001
        with torch.cuda.nvtx.range("forward"):
            loss = functional.cross_entropy(model(images).float(), labels)
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    measure(args, step, torch.cuda.synchronize)


main()
