"""Train a small transformer encoder that labels tokens.

Ailing: the matrix products are FP32 and do not use the tensor cores.
Cured: torch.set_float32_matmul_precision("high") lets them run as TF32.
"""

import harness
import torch
from torch import nn
from torch.nn import functional


def main() -> None:
    args = harness.arguments(__doc__)
    if args.variant == "cured":
        torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(768, 16)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(32, 256, 768, device="cuda")
    targets = torch.randint(0, 16, (32 * 256,), device="cuda")

    def step(_: int) -> None:
        loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
