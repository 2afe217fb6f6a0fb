"""Training of a language model whose output layer is split over two GPUs: each holds half of the words.

Start one process for each GPU, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment.
"""

import os
from typing import Any

import harness
import torch
import torch.distributed as dist
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

POSITIONS, WIDTH, LAYERS, WORDS = 4096, 1024, 6, 131072
RANK, GPUS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
HALF = WORDS // GPUS


class Enter(torch.autograd.Function):
    """The same features for both halves of the output layer; their gradients are added."""

    @staticmethod
    def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Join(torch.autograd.Function):
    """The scores of all words from both halves; of their gradients each GPU takes its own half."""

    @staticmethod
    def forward(_ctx: Any, scores: torch.Tensor) -> torch.Tensor:
        parts = scores.new_empty(GPUS, *scores.shape)
        dist.all_gather_into_tensor(parts, scores)
        return torch.cat(list(parts), dim=-1)

    @staticmethod
    def backward(_ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient[:, RANK * HALF : (RANK + 1) * HALF].contiguous()


class SplitLoss(torch.autograd.Function):
    """Cross entropy from half of the scores: maximum, sum and score of the right word are joined."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        peak = scores.amax(-1).float()
        dist.all_reduce(peak, dist.ReduceOp.MAX)
        scores = scores.float() - peak[:, None]
        local_target = target - RANK * HALF
        is_local = (local_target >= 0) & (local_target < HALF)
        local_target = local_target.clamp(0, HALF - 1)
        joined = torch.stack([scores.gather(1, local_target[:, None])[:, 0] * is_local, scores.exp_().sum(-1)])
        dist.all_reduce(joined)
        ctx.save_for_backward(scores.div_(joined[1][:, None]), local_target, is_local)
        return (joined[1].log() - joined[0]).mean()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        chances, local_target, is_local = ctx.saved_tensors
        chances.scatter_add_(1, local_target[:, None], -is_local.float()[:, None])
        return (chances * (gradient / POSITIONS)).bfloat16(), None


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update of the model."""
    torch.cuda.set_device(RANK)
    dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
    torch.manual_seed(0)
    layers = (
        nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        for _ in range(LAYERS)
    )
    body = nn.Sequential(*layers).cuda().bfloat16()
    inputs = torch.randn(4, POSITIONS, WIDTH, device="cuda", dtype=torch.bfloat16)
    targets = torch.randint(WORDS, (4, POSITIONS), device="cuda")
    torch.manual_seed(1 + RANK)
    head = nn.Linear(WIDTH, HALF, bias=False).cuda().bfloat16()
    optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=1e-4, fused=True)

    def step(number: int) -> torch.Tensor:
        optimizer.zero_grad()
        with nvtx.range("body"):
            x = Enter.apply(body(inputs[number % 4]))
        with nvtx.range("words"):
            scores, target = head(x), targets[number % 4]
            loss = (
                functional.cross_entropy(Join.apply(scores).float(), target)
                if ailing
                else SplitLoss.apply(scores, target)
            )
        with nvtx.range("update"):
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize, 100)
    dist.destroy_process_group()
