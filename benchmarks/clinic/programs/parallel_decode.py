"""Decode tokens with a network whose layers are split over two GPUs (tensor parallel).

Ailing: each kernel and each small all-reduce is launched on its own.
Cured: a CUDA graph of the step.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import distributed, nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, HEAD, BATCH, PAST = 20, 2048, 8, 128, 8, 1024


class Layer(nn.Module):
    """The half of a decoder layer that a rank has."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * HEADS * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.past = nn.Buffer(torch.randn(2, BATCH, HEADS, PAST, HEAD))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the hidden state after this layer."""
        query, key, value = self.qkv(self.norms[0](x)).view(BATCH, 1, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        self.past[0, :, :, -1:] = key
        self.past[1, :, :, -1:] = value
        attended = functional.scaled_dot_product_attention(query, self.past[0], self.past[1])
        part = self.out(attended.transpose(1, 2).reshape(BATCH, HEADS * HEAD))
        distributed.all_reduce(part)
        x = x + part
        part = self.down(functional.silu(self.up(self.norms[1](x))))
        distributed.all_reduce(part)
        return x + part


def program(args: argparse.Namespace, _: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    model = nn.Sequential(*(Layer() for _ in range(LAYERS))).to("cuda", torch.bfloat16)
    state = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def decode(_: int) -> None:
        state.copy_(functional.normalize(model(state), dim=-1))

    if args.variant == "ailing":
        return decode
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for index in range(3):
            decode(index)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        decode(0)
    return lambda _: graph.replay()


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
