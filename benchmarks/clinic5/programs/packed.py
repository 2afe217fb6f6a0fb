"""Apply bias, activation and gate to packed sequences: each batch holds another number of tokens."""

from functools import partial

import torch
import triton
import triton.language as tl
from harness import arguments, measure
from triton.testing import do_bench

WIDTH, MINIMUM, MAXIMUM = 2048, 4096, 12288
CONFIGS = [
    triton.Config({"ROWS": rows, "COLUMNS": columns}, num_warps=warps)
    for rows, columns, warps in [(1, 1024, 4), (2, 512, 4), (4, 512, 8), (8, 256, 8)]
]


def gated(inputs, gates, bias, output, tokens, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows[:, None] < tokens) & (columns[None, :] < width)
    offsets = rows[:, None] * width + columns[None, :]
    value = tl.load(inputs + offsets, mask=mask, other=0.0).to(tl.float32)
    gate = tl.load(gates + offsets, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + columns, mask=columns < width, other=0.0)[None, :].to(tl.float32)
    value *= tl.sigmoid(1.702 * value) * gate
    tl.store(output + offsets, value.to(tl.bfloat16), mask=mask)


def tuned(key):
    """Return the kernel with a set of shapes, measured for each value of the key."""
    return triton.autotune(configs=CONFIGS, key=key, do_bench=partial(do_bench, warmup=1, rep=2))(triton.jit(gated))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(18)
    kernel = tuned(["width"] if args.variant == "cured" else ["tokens", "width"])
    inputs = torch.randn(MAXIMUM, WIDTH, device="cuda", dtype=torch.bfloat16)
    gates, output = torch.randn_like(inputs), torch.empty_like(inputs)
    bias = torch.randn(WIDTH, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH**0.5

    def step(index):
        tokens = MINIMUM + 16 * (index * 181 % ((MAXIMUM - MINIMUM) // 16))
        with torch.cuda.nvtx.range(f"batch of {tokens} tokens"):
            hidden = inputs[:tokens] @ weight
            kernel[lambda meta: (triton.cdiv(tokens, meta["ROWS"]), triton.cdiv(WIDTH, meta["COLUMNS"]))](
                hidden, gates, bias, output, tokens, WIDTH
            )

    measure(args, step, torch.cuda.synchronize)


main()
