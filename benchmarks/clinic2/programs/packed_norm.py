"""Normalization of packed sequences with a Triton kernel; each batch has another number of tokens."""

import torch
import triton
import triton.language as tl
from harness import arguments, measure

WIDTH = 4096

args = arguments(__doc__)


@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (4, 8)],
    key=["width"] if args.variant == "cured" else ["tokens", "width"],
)
@triton.jit
def rms_norm(source, weight, result, tokens, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(source + row * width + columns, mask=columns < width, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values) / width + 1e-6)
    factors = tl.load(weight + columns, mask=columns < width, other=0).to(tl.float32)
    tl.store(result + row * width + columns, (values * scale * factors).to(tl.bfloat16), mask=columns < width)


torch.manual_seed(0)
storage = torch.randn(65536, WIDTH, device="cuda", dtype=torch.bfloat16)
output = torch.empty_like(storage)
weight = torch.ones(WIDTH, device="cuda", dtype=torch.bfloat16)


def step(index: int) -> None:
    tokens = 49152 + 16 * (index * 37 % 1000)
    for _ in range(4):
        rms_norm[(tokens,)](storage, weight, output, tokens, WIDTH, BLOCK=WIDTH)


measure(args, step, torch.cuda.synchronize, 2 if args.variant == "ailing" else 5)
