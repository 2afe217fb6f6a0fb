"""One decoder of eight layers in three forms, for comparisons layer by layer, and its training.

    python3 forms.py eager|compiled|fused|train [--profile STEPS]

eager: a module for each operation. compiled: torch.compile of the same module. fused: one product for query, key and
value, one for gate and up, and Triton kernels for the residual with the norm and for the gated activation.
train: the eager form in training, with FLOPs per step from the sizes of its matrix products.

The traces form_*.sqlite.xz have five steps on an H100, captured as those of corpus.toml. A step of train took
28.66 ms, and 29.22 ms while nsys recorded.
"""

from __future__ import annotations

import argparse
import json
import time

import harness
import torch
import triton
from torch import nn
from torch.nn import functional
from triton import language as tl

LAYERS, WIDTH, HEADS, INNER, BATCH, LENGTH = 8, 2048, 16, 5632, 4, 1024


@triton.jit
def add_norm(x, part, weight, total, normed, width: tl.constexpr):
    """Write x + part and its RMS norm."""
    row = tl.program_id(0)
    columns = tl.arange(0, width)
    value = tl.load(x + row * width + columns).to(tl.float32) + tl.load(part + row * width + columns).to(tl.float32)
    tl.store(total + row * width + columns, value.to(tl.bfloat16))
    scale = tl.rsqrt(tl.sum(value * value) / width + 1e-6)
    tl.store(normed + row * width + columns, (value * scale * tl.load(weight + columns).to(tl.float32)).to(tl.bfloat16))


@triton.jit
def gated(gate_and_up, output, width, block: tl.constexpr):
    """Write silu(gate) * up."""
    row, columns = tl.program_id(0), tl.program_id(1) * block + tl.arange(0, block)
    gate = tl.load(gate_and_up + row * 2 * width + columns, mask=columns < width).to(tl.float32)
    up = tl.load(gate_and_up + row * 2 * width + width + columns, mask=columns < width).to(tl.float32)
    tl.store(output + row * width + columns, (gate * tl.sigmoid(gate) * up).to(tl.bfloat16), mask=columns < width)


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the RMS norm, an operation at a time."""
    value = x.float()
    return (value * torch.rsqrt(value.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


class Layer(nn.Module):
    """A layer with separate products."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ParameterList([torch.ones(WIDTH), torch.ones(WIDTH)])
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def attend(self, projected: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the output of the attention."""
        query, key, value = (part.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for part in projected)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: torch.Tensor = self.out(attended.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return result

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the hidden state after this layer."""
        hidden = norm(x, self.norms[0])
        x = x + self.attend((self.query(hidden), self.key(hidden), self.value(hidden)))
        hidden = norm(x, self.norms[1])
        result: torch.Tensor = x + self.down(functional.silu(self.gate(hidden)) * self.up(hidden))
        return result


class Fused(nn.Module):
    """The same layers with fewer kernels."""

    def __init__(self, layers: list[Layer]) -> None:
        super().__init__()
        self.layers = layers
        self.projections = [torch.cat([layer.query.weight, layer.key.weight, layer.value.weight]) for layer in layers]
        self.gates = [torch.cat([layer.gate.weight, layer.up.weight]) for layer in layers]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the hidden state after all layers."""
        part = torch.zeros_like(x)
        for layer, projection, gate in zip(self.layers, self.projections, self.gates, strict=True):
            x, hidden = self.add_norm(x, part, layer.norms[0])
            part = layer.attend(functional.linear(hidden, projection).chunk(3, dim=-1))
            x, hidden = self.add_norm(x, part, layer.norms[1])
            gate_and_up = functional.linear(hidden, gate)
            activated = torch.empty(BATCH, LENGTH, INNER, device="cuda", dtype=torch.bfloat16)
            gated[(BATCH * LENGTH, triton.cdiv(INNER, 1024))](gate_and_up, activated, INNER, 1024)
            part = layer.down(activated)
        return x + part

    def add_norm(self, x: torch.Tensor, part: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return x + part and its norm."""
        total, normed = torch.empty_like(x), torch.empty_like(x)
        add_norm[(BATCH * LENGTH,)](x, part, weight, total, normed, WIDTH)
        return total, normed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=["eager", "compiled", "fused", "train"])
    parser.add_argument("--profile", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    layers = [Layer() for _ in range(LAYERS)]
    model: nn.Module = nn.Sequential(*layers).to("cuda", torch.bfloat16)
    x = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    weights = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * INNER)
    attention = LAYERS * 4 * BATCH * LENGTH * LENGTH * WIDTH  # both products, not halved for the causal mask
    flops = 2 * weights * BATCH * LENGTH + attention
    if args.form == "train":
        flops *= 3
    elif args.form == "compiled":
        model = torch.compile(model)
    elif args.form == "fused":
        model = Fused(layers)

    def step() -> None:
        if args.form == "train":
            model(x).float().square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with torch.no_grad():
                model(x)

    for _ in range(10):
        step()
    torch.cuda.synchronize()
    if args.profile:
        harness.profiler("Start")
    count = args.profile or 50
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    if args.profile:
        harness.profiler("Stop")
    result = {"form": args.form, "profiled": bool(args.profile), "ms_per_step": 1e3 * seconds / count}
    print(json.dumps(result | {"flops_per_step": flops, "tflops": flops * count / seconds / 1e12}), flush=True)


if __name__ == "__main__":
    main()
