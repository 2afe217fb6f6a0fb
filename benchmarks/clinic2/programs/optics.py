"""Optics: light fields travel through a lens by a product in frequency space, many fields at once."""

import torch
from harness import arguments, measure

FIELDS, SIZE = 16, 2048

args = arguments(__doc__)
torch.manual_seed(0)
fields = torch.randn(FIELDS, SIZE, SIZE, device="cuda", dtype=torch.complex64)
rows = torch.fft.fftfreq(SIZE, device="cuda")[:, None]
columns = torch.fft.fftfreq(SIZE, device="cuda")[None]
lens = torch.exp(-40j * (rows**2 + columns**2)).to(torch.complex64) / SIZE**2


@torch.no_grad()
def step(_: int) -> torch.Tensor:
    spectrum = torch.fft.fft2(fields)
    spectrum.mul_(lens)
    return torch.fft.ifft2(spectrum, norm="forward")


measure(args, step, torch.cuda.synchronize)
