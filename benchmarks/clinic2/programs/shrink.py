"""Weights become bytes: a Triton kernel finds the scale of each group of weights and rounds the group."""

import torch
import triton
import triton.language as tl
from harness import arguments, measure

GROUPS, LENGTH, BLOCK = 12, 1 << 23, 8192

args = arguments(__doc__)


@triton.jit
def shrink_group(source, scales, result, length, BLOCK: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    largest = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, length, BLOCK):
        values = tl.load(source + group * length + first + columns).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(values))
    scale = tl.max(largest) / 127
    tl.store(scales + group, scale)
    for first in range(0, length, BLOCK):
        values = tl.load(source + group * length + first + columns).to(tl.float32)
        tl.store(result + group * length + first + columns, (values / scale).to(tl.int8))


@triton.jit
def find_scale(source, scales, length, BLOCK: tl.constexpr):
    group = tl.program_id(1).to(tl.int64)
    place = group * length + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_max(scales + group, tl.max(tl.abs(tl.load(source + place).to(tl.float32))) / 127)


@triton.jit
def divide(source, scales, result, length, BLOCK: tl.constexpr):
    group = tl.program_id(1).to(tl.int64)
    place = group * length + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + place).to(tl.float32) / tl.load(scales + group)
    tl.store(result + place, values.to(tl.int8))


torch.manual_seed(0)
weights = torch.randn(GROUPS, LENGTH, device="cuda", dtype=torch.bfloat16)
scales = torch.zeros(GROUPS, device="cuda")
packed = torch.empty(GROUPS, LENGTH, device="cuda", dtype=torch.int8)


def step(_: int) -> None:
    if args.variant == "ailing":
        shrink_group[(GROUPS,)](weights, scales, packed, LENGTH, BLOCK=BLOCK, num_warps=8)
        return
    grid = (LENGTH // BLOCK, GROUPS)
    scales.zero_()
    find_scale[grid](weights, scales, LENGTH, BLOCK=BLOCK, num_warps=8)
    divide[grid](weights, scales, packed, LENGTH, BLOCK=BLOCK, num_warps=8)


measure(args, step, torch.cuda.synchronize)
