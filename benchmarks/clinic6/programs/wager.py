"""Speculative decoding: a small model proposes tokens, the large model checks them."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch.cuda import nvtx
from torch.nn import functional

PROMPT, ROOM, GUESSES, WORDS, HEAD = 1024, 512, 5, 32000, 64


def weight(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * columns**-0.5


class Model:
    """A decoder with room for its keys and values."""

    def __init__(self, layers: int, width: int) -> None:
        self.width, self.heads, self.table = width, width // HEAD, weight(WORDS, width)
        shapes = (3 * width, width), (width, width), (4 * width, width), (width, 4 * width)
        self.layers = [[weight(*shape) for shape in shapes] for _ in range(layers)]
        store = (layers, 2, 1, self.heads, PROMPT + ROOM, HEAD)
        self.store = torch.randn(store, device="cuda", dtype=torch.bfloat16)
        self.mask = torch.ones(PROMPT + ROOM, PROMPT + ROOM, device="cuda", dtype=torch.bool).tril()

    def __call__(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        count = tokens.shape[1]
        end, x = start + count, functional.embedding(tokens, self.table)
        for past, (inputs, output, up, down) in zip(self.store, self.layers, strict=True):
            rows = functional.linear(functional.rms_norm(x, (self.width,)), inputs)
            rows = rows.view(1, count, 3, self.heads, HEAD).permute(2, 0, 3, 1, 4)
            past[:, :, :, start:end] = rows[1:]
            keys, values = past[:, :, :, :end].unbind(0)
            attended = functional.scaled_dot_product_attention(
                rows[0], keys, values, attn_mask=self.mask[start:end, :end]
            )
            x = x + functional.linear(attended.transpose(1, 2).reshape(x.shape), output)
            x = x + functional.linear(
                functional.silu(functional.linear(functional.rms_norm(x, (self.width,)), up)), down
            )
        return functional.linear(x, self.table).argmax(-1)


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)  # it would build a plan for each new length
    small, large = Model(2, 512), Model(16, 2048)
    last = torch.randint(WORDS, (1, 1), device="cuda")
    accepted = 0

    def check(proposals: torch.Tensor, start: int) -> torch.Tensor:
        if args.variant == "cured":
            return large(proposals, start)
        return torch.cat([large(proposals[:, i : i + 1], start + i) for i in range(GUESSES)], dim=1)

    @torch.inference_mode()
    def step(index: int) -> None:
        nonlocal last, accepted
        start = PROMPT + index * GUESSES % (ROOM - GUESSES)
        with nvtx.range("propose"):
            proposals = [last]
            for i in range(GUESSES - 1):
                proposals.append(small(proposals[-1], start + i))
        with nvtx.range("check"):
            verified = check(torch.cat(proposals, dim=1), start)
            right = (verified[:, :-1] == torch.cat(proposals[1:], dim=1)).cumprod(1).sum()
        accepted += int(right)
        last = verified[:, -1:]

    measure(args, step, torch.cuda.synchronize)


main()
