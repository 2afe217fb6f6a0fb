"""Score passages with a small transformer.

Ailing: CUDA_LAUNCH_BLOCKING=1 was left on after debugging, so each launch waits for its kernel.
Cured: the variable is not set.
"""

import os

import harness
import torch
from torch import nn


def main() -> None:
    args = harness.arguments(__doc__)
    if args.variant == "ailing":
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().half()
    passages = torch.randn(16, 128, 512, device="cuda", dtype=torch.half)
    weights = torch.randn(512, 1, device="cuda", dtype=torch.half)

    def step(_: int) -> torch.Tensor:
        with torch.no_grad():
            return (model(passages).mean(1) @ weights).sigmoid()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
