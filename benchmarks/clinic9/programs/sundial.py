"""Forecast of sunshine at many places: gated layers with a short causal filter for each channel (Triton), inference."""
# ruff: noqa: ANN001, ANN201, N803, PLR0913, PLR0917

import harness
import torch
import triton
import triton.language as tl
from torch import nn
from torch.nn import functional

BATCH, LENGTH, WIDTH, TAPS, LAYERS = 8, 4096, 1024, 4, 6


@triton.jit
def taps(
    x, weights, y, x_batch, x_time, x_channel, y_batch, y_time, y_channel,
    TAPS: tl.constexpr, TIMES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Filter a tile of times and channels, then x * sigmoid(x)."""
    time = tl.program_id(0) * TIMES + tl.arange(0, TIMES)[:, None]
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    x += tl.program_id(2) * x_batch + channel * x_channel
    total = tl.zeros((TIMES, CHANNELS), tl.float32)
    for tap in tl.static_range(TAPS):
        sample = time - (TAPS - 1) + tap
        value = tl.load(x + sample * x_time, mask=sample >= 0, other=0.0).to(tl.float32)
        total += value * tl.load(weights + channel * TAPS + tap).to(tl.float32)
    y += tl.program_id(2) * y_batch + channel * y_channel
    tl.store(y + time * y_time, (total * tl.sigmoid(total)).to(tl.bfloat16))


def filtered(x: torch.Tensor, weights: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Write the filtered x (batch, time, channel, with any strides) to y."""
    grid = (LENGTH // 64, WIDTH // 64, BATCH)
    taps[grid](x, weights, y, *x.stride(), *y.stride(), TAPS=TAPS, TIMES=64, CHANNELS=64, num_warps=8)
    return y


class Layer(nn.Module):
    """A linear layer, a filter on one half of its result, a gate by the other half, and a linear layer."""

    def __init__(self, *, ailing: bool) -> None:
        super().__init__()
        self.ailing = ailing
        self.inputs, self.output = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.weights = nn.Parameter(torch.randn(WIDTH, TAPS) / TAPS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the series after the layer."""
        half, gate = self.inputs(functional.rms_norm(x, (WIDTH,))).chunk(2, dim=-1)
        if self.ailing:
            rows = half.transpose(1, 2).contiguous().transpose(1, 2)  # a row of times for each channel
            half = filtered(rows, self.weights, torch.empty_like(rows)).contiguous()
        else:
            half = filtered(half, self.weights, torch.empty(BATCH, LENGTH, WIDTH, device="cuda", dtype=x.dtype))
        return x + self.output(half * torch.sigmoid(gate))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the forecast for one batch."""
    torch.manual_seed(0)
    network = nn.Sequential(*(Layer(ailing=ailing) for _ in range(LAYERS))).cuda().bfloat16()
    series = torch.randn(3, BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)

    @torch.inference_mode()
    def step(number: int) -> torch.Tensor:
        return network(series[number % len(series)])[:, -1]

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize, 200)
