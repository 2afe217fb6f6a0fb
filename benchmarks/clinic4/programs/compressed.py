"""Compressed: a feed-forward block with int8 weights, for a small batch of tokens."""

import torch
from harness import arguments, measure

TOKENS, WIDTH, INNER, LAYERS = 16, 4096, 14336, 4

args = arguments(__doc__)
torch.manual_seed(0)
half = torch.bfloat16


def make(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    weight = torch.randint(-127, 128, (rows, columns), device="cuda", dtype=torch.int8)
    return weight, torch.full((rows, 1), 1 / (127 * columns**0.5), device="cuda", dtype=half)


layers = [(make(INNER, WIDTH), make(WIDTH, INNER)) for _ in range(LAYERS)]
if args.variant == "cured":
    half_layers = [tuple(weight.to(half) * scale for weight, scale in layer) for layer in layers]
tokens = torch.randn(4, TOKENS, WIDTH, device="cuda", dtype=half)


def linear(x: torch.Tensor, layer: int, number: int) -> torch.Tensor:
    if args.variant == "cured":
        return x @ half_layers[layer][number].T
    weight, scale = layers[layer][number]
    return x @ (weight.to(half) * scale).T


@torch.no_grad()
def step(index: int) -> torch.Tensor:
    x = tokens[index % 4]
    for layer in range(LAYERS):
        x = x + linear(torch.nn.functional.silu(linear(x, layer, 0)), layer, 1)
    return x


measure(args, step, torch.cuda.synchronize)
