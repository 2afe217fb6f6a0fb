"""Gauges: each row of a table of measurements is normalized by its own mean and deviation."""

import torch
import triton
import triton.language as tl
from harness import arguments, measure

ROWS, WIDTH = 512, 4096

args = arguments(__doc__)
torch.manual_seed(0)
tables = torch.randn(4, ROWS, WIDTH, device="cuda")
out = torch.empty(ROWS, WIDTH, device="cuda")


@triton.jit
def standardize(source, target, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    offsets = tl.arange(0, BLOCK)
    mask = offsets < width
    x = tl.load(source + row + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, 0) / width
    x = tl.where(mask, x - mean, 0.0)
    deviation = tl.sqrt(tl.sum(x * x, 0) / width)
    tl.store(target + row + offsets, x / deviation, mask=mask)


def step(index: int) -> None:
    table = tables[index % 4]
    if args.variant == "cured":
        standardize[(ROWS,)](table, out, WIDTH, BLOCK=4096)
    else:
        for row in range(ROWS):
            standardize[(1,)](table[row], out[row], WIDTH, BLOCK=4096)


measure(args, step, torch.cuda.synchronize)
