"""Synthesize speech in short pieces with a convolutional vocoder (HiFi-GAN)."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import remove_parametrizations

FRAMES, CHANNELS, KERNELS, DILATIONS = 32, 512, (3, 7, 11), (1, 3, 5)
RATES = ((8, 16), (8, 16), (2, 4), (2, 4))


def convolution(channels: int, size: int, dilation: int) -> nn.Module:
    return weight_norm(nn.Conv1d(channels, channels, size, dilation=dilation, padding=dilation * (size - 1) // 2))


class Residual(nn.Module):
    """Dilated convolutions of one size, each with a skip connection."""

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.wide = nn.ModuleList(convolution(channels, size, dilation) for dilation in DILATIONS)
        self.plain = nn.ModuleList(convolution(channels, size, 1) for _ in DILATIONS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for wide, plain in zip(self.wide, self.plain, strict=True):
            x = x + plain(functional.leaky_relu(wide(functional.leaky_relu(x, 0.1)), 0.1))
        return x


class Vocoder(nn.Module):
    """From the frames of a spectrogram to samples."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = weight_norm(nn.Conv1d(80, CHANNELS, 7, padding=3))
        self.ups, self.stages, channels = nn.ModuleList(), nn.ModuleList(), CHANNELS
        for rate, size in RATES:
            up = nn.ConvTranspose1d(channels, channels // 2, size, rate, padding=(size - rate) // 2)
            self.ups.append(weight_norm(up))
            channels //= 2
            self.stages.append(nn.ModuleList(Residual(channels, kernel) for kernel in KERNELS))
        self.end = weight_norm(nn.Conv1d(channels, 1, 7, padding=3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.begin(x)
        for number, (up, stage) in enumerate(zip(self.ups, self.stages, strict=True)):
            with nvtx.range(f"stage {number}"):
                x = up(functional.leaky_relu(x, 0.1))
                x = torch.stack([block(x) for block in stage]).mean(0)
        return torch.tanh(self.end(functional.leaky_relu(x, 0.1)))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    model = Vocoder().cuda().half().eval()
    if args.variant == "cured":
        for part in model.modules():
            if isinstance(part, nn.Conv1d | nn.ConvTranspose1d):
                remove_parametrizations(part, "weight")
    frames = torch.randn(1, 80, FRAMES, device="cuda", dtype=torch.float16)

    @torch.inference_mode()
    def step(_: int) -> None:
        with nvtx.range("piece"):
            model(frames)

    measure(args, step, torch.cuda.synchronize)


main()
