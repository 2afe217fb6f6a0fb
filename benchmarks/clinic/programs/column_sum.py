"""Normalize a matrix by the sum of its squares, with Triton kernels.

Ailing: one program instance sums all of the matrix.
Cured: each instance sums a part, and a second kernel sums the parts.
"""

import harness
import torch
import triton
import triton.language as tl


@triton.jit
def square_sum(x, result, count, BLOCK: tl.constexpr):
    """Sum the squares of the part of this instance."""
    total = tl.zeros([BLOCK], tl.float32)
    share = tl.cdiv(count, tl.num_programs(0))
    first = tl.program_id(0) * share
    for offset in range(0, share, BLOCK):
        index = offset + tl.arange(0, BLOCK)
        value = tl.load(x + first + index, mask=(index < share) & (first + index < count), other=0)
        total += value * value
    tl.store(result + tl.program_id(0), tl.sum(total))


@triton.jit
def normalize(x, y, total, count, BLOCK: tl.constexpr):
    """Divide by the root of the total."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < count)
    tl.store(y + index, value / tl.sqrt(tl.load(total) + 1e-6), mask=index < count)


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    x = torch.randn(2048, 1024, device="cuda")
    y, parts, count = torch.empty_like(x), torch.empty(1024, device="cuda"), x.numel()

    def step(_: int) -> None:
        if args.variant == "cured":
            square_sum[(1024,)](x, parts, count, BLOCK=1024)
            total = parts.sum()
        else:
            square_sum[(1,)](x, parts, count, BLOCK=4096, num_warps=8)
            total = parts
        normalize[(triton.cdiv(count, 1024),)](x, y, total, count, BLOCK=1024)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
