"""Train a text encoder with clipped gradients, and keep a journal of the gradients' norms."""

from __future__ import annotations

import math

import torch
from harness import arguments, measure
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

LAYERS, WIDTH, BATCH, LENGTH, LIMIT, PERIOD = 20, 512, 16, 128, 1.0, 50


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False).cuda().bfloat16().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    inputs = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)
    targets = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)
    journal: dict[int, dict[str, float]] = {}
    names = [name for name, _ in model.named_parameters()]

    def clip_on_host(index: int, grads: list[torch.Tensor]) -> None:
        entry, total = {}, 0.0
        for name, grad in zip(names, grads, strict=True):
            entry[name] = grad.norm().item()
            total += entry[name] ** 2
        if index % PERIOD == 0:
            journal[index] = entry
        torch._foreach_mul_(grads, min(1.0, LIMIT / (math.sqrt(total) + 1e-6)))

    def clip_on_device(index: int, grads: list[torch.Tensor]) -> None:
        norms = torch.stack(torch._foreach_norm(grads))  # noqa: SLF001
        torch._foreach_mul_(grads, (LIMIT / (norms.norm() + 1e-6)).clamp(max=1.0))
        if index % PERIOD == 0:
            journal[index] = dict(zip(names, norms.tolist(), strict=True))

    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            functional.mse_loss(model(inputs), targets).backward()
    torch.cuda.synchronize()
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        functional.mse_loss(model(inputs), targets).backward()

    def step(index: int) -> None:
        with nvtx.range("forward and backward"):
            graph.replay()
        grads = [value.grad for value in model.parameters() if value.grad is not None]
        with torch.no_grad(), nvtx.range("clip and log"):
            (clip_on_device if args.variant == "cured" else clip_on_host)(index, grads)
        with nvtx.range("optimizer"):
            optimizer.step()

    measure(args, step, torch.cuda.synchronize)


main()
