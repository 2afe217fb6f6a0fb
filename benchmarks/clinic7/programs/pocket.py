"""A language model whose weights are stored in four bits: the next token of 16 requests."""

import harness
import torch
from torch import nn
from torch.nn import functional as f

REQUESTS, CONTEXT, WIDTH, HEADS, INNER, LAYERS, GROUP, WORDS, TOKENS = 16, 256, 2048, 16, 5632, 8, 128, 32000, 2


class Packed(nn.Module):
    """A linear layer of four-bit weights with a scale for each group of 128."""

    def __init__(self, inputs: int, outputs: int, *, unpack_once: bool) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randint(0, 256, (outputs, inputs // 2), dtype=torch.uint8, device="cuda"))
        scales = torch.full((outputs, inputs // GROUP, 1), 0.2 / inputs**0.5, dtype=torch.bfloat16, device="cuda")
        self.register_buffer("scales", scales)
        self.weight = self.unpack() if unpack_once else None

    def unpack(self) -> torch.Tensor:
        """Return the weights as bfloat16."""
        low, high = self.codes & 15, self.codes >> 4
        values = torch.stack([low, high], -1).flatten(1).to(torch.bfloat16) - 8
        return (values.view(*self.scales.shape[:2], GROUP) * self.scales).flatten(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product."""
        return f.linear(x, self.unpack() if self.weight is None else self.weight)


class Layer(nn.Module):
    """A decoder layer with a cache of keys and values of fixed length."""

    def __init__(self, *, unpack_once: bool) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = (
            Packed(WIDTH, 3 * WIDTH, unpack_once=unpack_once),
            Packed(WIDTH, WIDTH, unpack_once=unpack_once),
        )
        self.gate_up, self.down = (
            Packed(WIDTH, 2 * INNER, unpack_once=unpack_once),
            Packed(INNER, WIDTH, unpack_once=unpack_once),
        )
        self.register_buffer("cache", torch.randn(2, REQUESTS, HEADS, CONTEXT, WIDTH // HEADS))

    def forward(self, x: torch.Tensor, place: int) -> torch.Tensor:
        """Return the layer's output for one token at a place."""
        q, k, v = self.qkv(self.norm_1(x)).view(REQUESTS, 3, HEADS, 1, -1).unbind(1)
        self.cache[0, :, :, place : place + 1] = k
        self.cache[1, :, :, place : place + 1] = v
        x = x + self.out(f.scaled_dot_product_attention(q, self.cache[0], self.cache[1]).flatten(1))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, -1)
        return x + self.down(f.silu(gate) * up)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: two tokens of each request."""
    torch.manual_seed(0)
    words = nn.Embedding(WORDS, WIDTH, dtype=torch.bfloat16, device="cuda")
    layers = nn.ModuleList(Layer(unpack_once=not ailing) for _ in range(LAYERS)).cuda()
    for layer in layers:
        layer.cache = layer.cache.bfloat16()
        layer.norm_1.bfloat16()
        layer.norm_2.bfloat16()
    state = {"tokens": torch.arange(REQUESTS, device="cuda")}

    @torch.inference_mode()
    def step(number: int) -> None:
        for token in range(TOKENS):
            x = words(state["tokens"])
            for layer in layers:
                x = layer(x, (number * TOKENS + token) % CONTEXT)
            state["tokens"] = (x @ words.weight.T).argmax(-1)

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
