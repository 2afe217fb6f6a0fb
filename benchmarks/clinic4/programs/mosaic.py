"""Mosaic: brightness of the pieces of a picture, added to the color that each piece is labelled with."""

import torch
import triton
import triton.language as tl
from harness import arguments, measure

SAMPLES, BINS = 1 << 24, 64

args = arguments(__doc__)
torch.manual_seed(0)
labels = torch.randint(0, BINS, (2, SAMPLES), device="cuda", dtype=torch.int32)
values = torch.randn(SAMPLES, device="cuda")
sums = torch.zeros(BINS, device="cuda")


@triton.jit
def add_direct(labels, values, sums, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sums + tl.load(labels + offsets), tl.load(values + offsets))


@triton.jit
def add_by_block(labels, values, sums, BLOCK: tl.constexpr, BINS: tl.constexpr, ROUNDS: tl.constexpr):
    bins = tl.arange(0, BINS)
    total = tl.zeros((BINS,), tl.float32)
    for turn in range(ROUNDS):
        offsets = (tl.program_id(0) * ROUNDS + turn) * BLOCK + tl.arange(0, BLOCK)
        label, value = tl.load(labels + offsets), tl.load(values + offsets)
        total += tl.sum(tl.where(label[:, None] == bins[None, :], value[:, None], 0.0), 0)
    tl.atomic_add(sums + bins, total)


def step(index: int) -> None:
    sums.zero_()
    if args.variant == "cured":
        add_by_block[(SAMPLES // 128 // 64,)](labels[index % 2], values, sums, BLOCK=128, BINS=BINS, ROUNDS=64)
    else:
        add_direct[(SAMPLES // 1024,)](labels[index % 2], values, sums, BLOCK=1024)


measure(args, step, torch.cuda.synchronize)
