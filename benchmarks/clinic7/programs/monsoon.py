"""A network for weather fields: layers that filter each channel by the Fourier transform, and mix channels by point."""

import harness
import torch
from torch import nn
from torch.nn import functional as f

BATCH, CHANNELS, ROWS, COLUMNS, LAYERS, FIELDS = 4, 64, 360, 720, 4, 20


class Layer(nn.Module):
    """A filter as large as the field, then a mix of the channels."""

    def __init__(self, *, full: bool) -> None:
        super().__init__()
        self.full = full
        response = torch.fft.fft2(torch.randn(CHANNELS, ROWS, COLUMNS) / (ROWS * COLUMNS) ** 0.5)
        self.response = nn.Parameter(response if full else response[..., : COLUMNS // 2 + 1].contiguous())
        self.mix = nn.Conv2d(CHANNELS, CHANNELS, 1)

    def filter(self, x: torch.Tensor) -> torch.Tensor:
        """Return the filtered fields."""
        if self.full:
            return torch.fft.ifft2(torch.fft.fft2(x) * self.response).real
        return torch.fft.irfft2(torch.fft.rfft2(x) * self.response, s=(ROWS, COLUMNS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's fields."""
        return x + f.gelu(self.mix(self.filter(x)))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the next state of four fields."""
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = True
    model = nn.Sequential(
        nn.Conv2d(FIELDS, CHANNELS, 1), *(Layer(full=ailing) for _ in range(LAYERS)), nn.Conv2d(CHANNELS, FIELDS, 1)
    )
    model.cuda().eval()
    states = [torch.randn(BATCH, FIELDS, ROWS, COLUMNS, device="cuda") for _ in range(3)]

    @torch.inference_mode()
    def step(number: int) -> None:
        model(states[number % len(states)])

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
