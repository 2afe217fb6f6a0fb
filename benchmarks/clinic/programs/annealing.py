"""Anneal a field with a Triton kernel whose temperature falls with each step.

Ailing: the temperature is a constexpr, so each step compiles and loads a new kernel.
Cured: it is an ordinary argument.
"""

import harness
import torch
import triton
import triton.language as tl


@triton.jit
def relax_fixed(x, noise, count, temperature: tl.constexpr, BLOCK: tl.constexpr):
    """Relax the field and add noise."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < count)
    kick = tl.load(noise + index, mask=index < count)
    tl.store(x + index, value - 0.1 * (value * value * value - value) + temperature * kick, mask=index < count)


@triton.jit
def relax(x, noise, count, temperature, BLOCK: tl.constexpr):
    """Relax the field and add noise."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < count)
    kick = tl.load(noise + index, mask=index < count)
    tl.store(x + index, value - 0.1 * (value * value * value - value) + temperature * kick, mask=index < count)


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    x, noise = (torch.randn(1 << 22, device="cuda") for _ in range(2))
    kernel = relax if args.variant == "cured" else relax_fixed
    grid = (triton.cdiv(x.numel(), 1024),)

    def step(index: int) -> None:
        noise.normal_()
        kernel[grid](x, noise, x.numel(), temperature=0.5 / (1 + 0.01 * index), BLOCK=1024)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
