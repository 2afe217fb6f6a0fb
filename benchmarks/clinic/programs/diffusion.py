"""Denoise latents step by step with a schedule of coefficients.

Ailing: each coefficient is a Python float that becomes a tensor on the GPU in the loop: many copies of 4 bytes.
Cured: the schedule lies on the device and is indexed there.
"""

import math

import harness
import torch
from torch import nn

STAGES = 12


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = nn.Sequential(nn.Linear(256, 512), nn.SiLU(), nn.Linear(512, 256)).to(device).half()
    latents = torch.randn(256, 256, device=device, dtype=torch.half)
    levels = [math.cos(math.pi / 2 * stage / (STAGES + 1)) for stage in range(STAGES)]
    table = torch.tensor([(a, math.sqrt(1 - a * a), a / 2) for a in levels], device=device, dtype=torch.half)

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        x = latents
        for stage, level in enumerate(levels):
            if args.variant == "cured":
                signal, noise, shift = table[stage].unbind()
            else:
                signal = torch.tensor(level, device=device, dtype=torch.half)
                noise = torch.tensor(math.sqrt(1 - level * level), device=device, dtype=torch.half)
                shift = torch.tensor(level / 2, device=device, dtype=torch.half)
            x = signal * x + noise * model(x) - shift
        return x

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
