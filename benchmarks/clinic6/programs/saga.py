"""Decode a batch of long stories token by token (transformer decoder with a key-value cache)."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch.cuda import nvtx
from torch.nn import functional

LAYERS, BATCH, HEADS, HEAD, PROMPT, ROOM = 8, 24, 16, 64, 4096, 512
WIDTH = HEADS * HEAD


def weight(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * columns**-0.5


class Layer:
    """A decoder layer and the keys and values of all tokens so far."""

    def __init__(self, *, is_cured: bool) -> None:
        self.is_cured = is_cured
        self.inputs, self.output = weight(3 * WIDTH, WIDTH), weight(WIDTH, WIDTH)
        self.up, self.down = weight(4 * WIDTH, WIDTH), weight(WIDTH, 4 * WIDTH)
        shape = (BATCH, HEADS, PROMPT + ROOM if is_cured else PROMPT, HEAD)
        self.stores = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2)]

    def past(self, new: tuple[torch.Tensor, ...], length: int) -> list[torch.Tensor]:
        if self.is_cured:
            for store, rows in zip(self.stores, new, strict=True):
                store[:, :, length : length + 1] = rows
            return [store[:, :, : length + 1] for store in self.stores]
        old = [store[:, :, :length] for store in self.stores]
        self.stores = [torch.cat((rows, last), dim=2) for rows, last in zip(old, new, strict=True)]
        return self.stores

    def __call__(self, x: torch.Tensor, length: int) -> torch.Tensor:
        with nvtx.range("attention"):
            rows = functional.linear(functional.layer_norm(x, (WIDTH,)), self.inputs)
            query, *new = rows.view(BATCH, 1, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4).unbind(0)
            keys, values = self.past(tuple(new), length)
            attended = functional.scaled_dot_product_attention(query, keys, values)
            x = x + functional.linear(attended.transpose(1, 2).reshape(BATCH, 1, WIDTH), self.output)
        with nvtx.range("mlp"):
            inner = functional.gelu(functional.linear(functional.layer_norm(x, (WIDTH,)), self.up))
            return x + functional.linear(inner, self.down)


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)  # it would build a plan for each new length
    layers = [Layer(is_cured=args.variant == "cured") for _ in range(LAYERS)]
    table = weight(32000, WIDTH)
    tokens = torch.randint(32000, (BATCH, 1), device="cuda")

    @torch.inference_mode()
    def step(index: int) -> None:
        nonlocal tokens
        length = PROMPT + index % ROOM
        with nvtx.range("token"):
            x = functional.embedding(tokens, table)
            for layer in layers:
                x = layer(x, length)
            tokens = functional.linear(x, table).argmax(-1)

    measure(args, step, torch.cuda.synchronize)


main()
