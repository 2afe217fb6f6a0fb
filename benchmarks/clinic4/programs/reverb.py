"""Reverb: long impulse responses of a hall applied to tracks of sound."""

import torch
from harness import arguments, measure

TRACKS, SAMPLES, TAPS = 8, 1 << 17, 8192

args = arguments(__doc__)
torch.manual_seed(0)
tracks = torch.randn(4, TRACKS, 1, SAMPLES, device="cuda")
response = torch.randn(1, 1, TAPS, device="cuda") * torch.linspace(1, 0, TAPS, device="cuda")


def step(index: int) -> torch.Tensor:
    sound = tracks[index % 4]
    if args.variant == "cured":
        size = SAMPLES + TAPS
        spectrum = torch.fft.rfft(sound, size) * torch.fft.rfft(response.flip(2), size)
        wet = torch.fft.irfft(spectrum, size)[..., TAPS - 1 : SAMPLES]
    else:
        wet = torch.nn.functional.conv1d(sound, response)
    return wet.abs().amax(2)


measure(args, step, torch.cuda.synchronize)
