"""Extract features from batches of images with a residual network in FP16.

Ailing: the tensors are NCHW, so cuDNN converts the layout around each convolution.
Cured: model and images are in the channels_last format.
"""

import harness
import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first_norm(self.first(images)))
        return torch.relu(images + self.second_norm(self.second(hidden)))


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    stages: list[nn.Module] = [nn.Conv2d(3, 64, 7, stride=2, padding=3)]
    for channels in (64, 128, 256):
        stages += [Block(channels), Block(channels), nn.Conv2d(channels, channels * 2, 1, stride=2)]
    model = nn.Sequential(*stages).cuda().half().eval()
    images = torch.randn(64, 3, 224, 224, device="cuda", dtype=torch.half)
    if args.variant == "cured":
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        return model(images).mean((2, 3))

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
