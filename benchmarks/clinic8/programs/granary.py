"""Training with stored activations of eight bits: an output is packed in groups of 128 numbers, in Triton."""

import harness
import torch
import triton
import triton.language as tl
from torch.cuda import nvtx

TOKENS, WIDTH, INPUTS, GROUP = 16_384, 4096, 1024, 128


@triton.jit
def store(x, packed, scales, ROWS: tl.constexpr, GROUP: tl.constexpr):
    """Round groups of numbers to eight bits."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = row[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    numbers = tl.load(x + place).to(tl.float32)
    scale = tl.max(tl.abs(numbers), 1) / 127 + 1e-12
    tl.store(packed + place, tl.floor(numbers / scale[:, None] + 0.5).to(tl.int8))
    tl.store(scales + row, scale)


@triton.jit
def restore(packed, scales, y, ROWS: tl.constexpr, GROUP: tl.constexpr):
    """Return the numbers of the groups."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = row[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    numbers = tl.load(packed + place).to(tl.float32) * tl.load(scales + row)[:, None]
    tl.store(y + place, numbers.to(tl.bfloat16))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: a linear map, its packed output, and the gradient of the weights of the next layer."""
    torch.manual_seed(0)
    batches = [torch.randn(TOKENS, INPUTS, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    weights = torch.randn(INPUTS, WIDTH, device="cuda", dtype=torch.bfloat16) / INPUTS**0.5
    gradient = torch.randn(TOKENS, INPUTS, device="cuda", dtype=torch.bfloat16)
    groups = TOKENS * WIDTH // GROUP
    rows = 1 if ailing else 32  # groups for each program

    @torch.no_grad()
    def step(number: int) -> torch.Tensor:
        with nvtx.range("forward"):
            y = torch.relu(batches[number % len(batches)] @ weights)
            packed = torch.empty(TOKENS, WIDTH, device="cuda", dtype=torch.int8)
            scales = torch.empty(groups, device="cuda")
            store[(groups // rows,)](y, packed, scales, ROWS=rows, GROUP=GROUP)
        with nvtx.range("backward"):
            again = torch.empty(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
            restore[(groups // rows,)](packed, scales, again, ROWS=rows, GROUP=GROUP)
            return again.T @ gradient

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
