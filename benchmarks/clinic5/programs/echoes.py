"""Mix long sequences with learned filters of the same length: a gated convolution by Fourier transform."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn

BATCH, CHANNELS, TOKENS = 8, 384, 8191  # 8192 tokens, minus one: the labels are shifted


class LongConvolution(nn.Module):
    """A filter for each channel, a gate and a projection."""

    def __init__(self, *, is_cured: bool) -> None:
        super().__init__()
        linear = 2 * TOKENS - 1
        self.length = 1 << (linear - 1).bit_length() if is_cured else linear
        self.filters = nn.Parameter(torch.randn(CHANNELS, TOKENS) / TOKENS)
        self.gate, self.project = nn.Linear(CHANNELS, CHANNELS), nn.Linear(CHANNELS, CHANNELS)

    def mix(self, signal: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(signal, n=self.length) * torch.fft.rfft(self.filters, n=self.length)
        return torch.fft.irfft(spectrum, n=self.length)[..., :TOKENS]

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        with torch.cuda.nvtx.range("mix"):
            mixed = self.mix(hidden.transpose(1, 2)).transpose(1, 2)
        with torch.cuda.nvtx.range("gate"):
            return hidden + self.project(torch.sigmoid(self.gate(hidden)) * mixed)


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(13)
    torch.set_float32_matmul_precision("high")
    model = nn.Sequential(*[LongConvolution(is_cured=args.variant == "cured") for _ in range(3)]).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    hidden = torch.randn(BATCH, TOKENS, CHANNELS, device="cuda")

    def step(index: int) -> None:  # noqa: ARG001
        with torch.cuda.nvtx.range("forward"):
            loss = model(hidden).square().mean()
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    measure(args, step, torch.cuda.synchronize)


main()
