"""Mixture: a layer of experts, two for each token, without gradients."""

import torch
from harness import arguments, measure

TOKENS, WIDTH, INNER, EXPERTS = 2048, 1024, 2048, 32

args = arguments(__doc__)
torch.manual_seed(0)
half = torch.bfloat16
router = torch.randn(WIDTH, EXPERTS, device="cuda", dtype=half) / WIDTH**0.5
up = torch.randn(EXPERTS, WIDTH, INNER, device="cuda", dtype=half) / WIDTH**0.5
down = torch.randn(EXPERTS, INNER, WIDTH, device="cuda", dtype=half) / INNER**0.5
tokens = torch.randn(4, TOKENS, WIDTH, device="cuda", dtype=half)


def one_by_one(x: torch.Tensor, choice: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for expert in range(EXPERTS):
        rows, slot = torch.where(choice == expert)
        hidden = torch.nn.functional.silu(x[rows] @ up[expert]) @ down[expert]
        out.index_add_(0, rows, hidden * weight[rows, slot, None])
    return out


def run_groups(x: torch.Tensor, choice: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    order = choice.flatten().argsort()
    ends = torch.bincount(choice.flatten(), minlength=EXPERTS).cumsum(0).int()
    hidden = torch._grouped_mm(x[order // 2], up, ends)  # noqa: SLF001
    hidden = torch._grouped_mm(torch.nn.functional.silu(hidden), down, ends)  # noqa: SLF001
    out = torch.zeros_like(x)
    return out.index_add_(0, order // 2, hidden * weight.flatten()[order, None])


layer = run_groups if args.variant == "cured" else one_by_one


@torch.no_grad()
def step(index: int) -> torch.Tensor:
    x = tokens[index % 4]
    weight, choice = (x @ router).softmax(1).topk(2, dim=1)
    return layer(x, choice, weight)


measure(args, step, torch.cuda.synchronize)
