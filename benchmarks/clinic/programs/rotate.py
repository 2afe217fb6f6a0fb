"""Rotate the phases of a large complex signal with a Triton kernel.

Ailing: an instance has one warp and handles 32 elements.
Cured: 1024 elements and four warps.
"""

import harness
import torch
import triton
import triton.language as tl


@triton.jit
def rotate(real, imaginary, phase, out_real, out_imaginary, count, BLOCK: tl.constexpr):
    """Multiply by exp(i phase)."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    in_range = index < count
    a, b, p = (
        tl.load(real + index, mask=in_range),
        tl.load(imaginary + index, mask=in_range),
        tl.load(phase + index, mask=in_range),
    )
    c, s = tl.cos(p), tl.sin(p)
    tl.store(out_real + index, a * c - b * s, mask=in_range)
    tl.store(out_imaginary + index, a * s + b * c, mask=in_range)


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    count = 1 << 24
    real, imaginary, phase = (torch.randn(count, device="cuda") for _ in range(3))
    outputs = torch.empty(2, count, device="cuda")
    block, warps = (1024, 4) if args.variant == "cured" else (32, 1)

    def step(_: int) -> None:
        rotate[(triton.cdiv(count, block),)](real, imaginary, phase, *outputs, count, BLOCK=block, num_warps=warps)
        outputs.mul_(0.5)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
