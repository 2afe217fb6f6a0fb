"""Training of a wide network of two layers in bfloat16 on large batches."""

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional as F  # noqa: N812

BATCH, WIDTH, HIDDEN = 8192, 4096, 16384

args = arguments(__doc__)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(inplace=True), nn.Linear(HIDDEN, WIDTH)).cuda().bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
inputs = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)
targets = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)


def step(_: int) -> torch.Tensor:
    torch.cuda.nvtx.range_push("train")
    loss = F.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.nvtx.range_pop()
    return loss


measure(args, step, torch.cuda.synchronize)
