"""Embed recordings of different lengths with a convolutional network.

Ailing: each batch has a new length, for which cuDNN searches its algorithms again (cudnn.benchmark).
Cured: lengths are padded up to a multiple of 4096.
"""

import harness
import torch
from torch import nn
from torch.nn import functional


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(
        nn.Conv1d(1, 128, 11, stride=5),
        nn.GELU(),
        nn.Conv1d(128, 256, 5, stride=2),
        nn.GELU(),
        nn.Conv1d(256, 256, 5, stride=2),
        nn.GELU(),
        nn.Conv1d(256, 256, 3, stride=2),
    )
    model = model.cuda().half().eval()
    recordings = torch.randn(16, 1, 32768, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step(index: int) -> torch.Tensor:
        length = 16385 + index * 379 % 16383
        batch = recordings[:, :, :length]
        if args.variant == "cured":
            batch = functional.pad(batch, (0, -length % 4096))
        return model(batch).mean(-1)

    warmup = 5 if args.variant == "ailing" else 60
    harness.measure(args, step, torch.cuda.synchronize, warmup=warmup)


if __name__ == "__main__":
    main()
