"""Run attention layers over padded documents.

Ailing: the mask is built by NumPy on the host and copied in each step.
Cured: it is built on the device from the lengths.
"""

import harness
import numpy as np
import torch
from torch.nn import functional

BATCH, HEADS, LENGTH, WIDTH = 4, 8, 2048, 64


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    query, key, value = (torch.randn(BATCH, HEADS, LENGTH, WIDTH, device="cuda").half() for _ in range(3))
    positions = torch.arange(LENGTH, device="cuda")

    def build(lengths: np.ndarray) -> torch.Tensor:
        if args.variant == "cured":
            ends = torch.from_numpy(lengths).cuda(non_blocking=True)
            return ((positions[None] <= positions[:, None])[None] & (positions < ends[:, None])[:, None])[:, None]
        mask = np.tril(np.ones((LENGTH, LENGTH), dtype=bool))[None] & (np.arange(LENGTH) < lengths[:, None])[:, None]
        return torch.from_numpy(mask[:, None]).cuda()

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        mask = build(generator.integers(LENGTH // 2, LENGTH, BATCH))
        x = query
        for _layer in range(4):
            x = functional.scaled_dot_product_attention(x, key, value, attn_mask=mask)
        return x

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
