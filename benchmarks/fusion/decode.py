"""A Llama-shaped decoder with random weights, one token at a time, with selected chains of kernels fused by hand.

    python3 decode.py --variant norm --mode eager|graph       decode --tokens tokens; the loop is between
                                                              cudaProfilerStart and cudaProfilerStop
    python3 decode.py --time FILE.json                        time the loop of every variant without a profiler

Eager PyTorch runs RMSNorm, the rotary embedding and the gated MLP as several kernels each. Every variant replaces such
chains by one Triton kernel each. First, it checks its logits against the eager ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import kernels
import torch
import torch.nn.functional as F
import triton

VARIANTS = {
    "base": "",
    "norm": "norm",
    "rope": "rope",
    "silu_mul": "silu_mul",
    "residual_norm": "residual_norm",
    "all": "rope,silu_mul,residual_norm",
}
LAYERS, HIDDEN, HEADS, VOCABULARY, PROMPT, CONTEXT = 4, 512, 8, 32000, 64, 128
HEAD = HIDDEN // HEADS
INNER = int(HIDDEN * 2.75) // 64 * 64
DEVICE, DTYPE = "cuda", torch.bfloat16

Loop = Callable[[int, Callable[[], object]], None]
"""Decodes a number of tokens, and calls the callback at the start of the timed part."""


class Decoder:
    """The model. Each chain named in `fuse` runs as one kernel."""

    def __init__(self, fuse: set[str]) -> None:
        torch.manual_seed(0)
        self.fuse = fuse

        def weights(*shape: int) -> torch.Tensor:
            return (torch.randn(*shape, device=DEVICE) * 0.02).to(DTYPE)

        self.embedding, self.head = weights(VOCABULARY, HIDDEN), weights(VOCABULARY, HIDDEN)
        self.unit_weight = torch.ones(HIDDEN, device=DEVICE, dtype=DTYPE)
        square, wide = (HIDDEN, HIDDEN), (INNER, HIDDEN)
        shapes = {"q": square, "k": square, "v": square, "o": square, "g": wide, "u": wide, "d": wide[::-1]}
        cache = (1, HEADS, CONTEXT, HEAD)
        self.layers = [
            {name: weights(*shape) for name, shape in shapes.items()}
            | {name: torch.zeros(cache, device=DEVICE, dtype=DTYPE) for name in ("kc", "vc")}
            for _ in range(LAYERS)
        ]
        inverse = 1.0 / (10000 ** (torch.arange(0, HEAD, 2, device=DEVICE).float() / HEAD))
        angles = torch.arange(CONTEXT, device=DEVICE).float()[:, None] * inverse[None]
        self.cos, self.sin = (torch.cat([f(angles)] * 2, -1).to(DTYPE) for f in (torch.cos, torch.sin))
        self.positions = torch.arange(CONTEXT, device=DEVICE)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        if "norm" in self.fuse:
            out = torch.empty_like(x)
            kernels.rms_norm[(x.numel() // HIDDEN,)](x, self.unit_weight, out, HIDDEN)
            return out
        variance = x.float().pow(2).mean(-1, keepdim=True)
        return (x.float() * torch.rsqrt(variance + 1e-6)).to(DTYPE) * self.unit_weight

    def add_norm(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if "residual_norm" in self.fuse:
            total, out = torch.empty_like(x), torch.empty_like(x)
            kernels.add_rms_norm[(x.numel() // HIDDEN,)](x, y, self.unit_weight, total, out, HIDDEN)
            return total, out
        x = x + y
        return x, self.norm(x)

    def rope(self, x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        if "rope" in self.fuse:
            _, heads, tokens, width = x.shape
            out = torch.empty(x.shape, device=DEVICE, dtype=DTYPE)
            kernels.rope[(heads, tokens)](x, c, s, out, x.stride(1), x.stride(2), tokens, width)
            return out
        half = x.shape[-1] // 2
        return x * c + torch.cat([-x[..., half:], x[..., :half]], -1) * s

    def gated(self, gate: torch.Tensor, weight: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        if "silu_mul" in self.fuse:
            up = F.linear(h, weight)
            out = torch.empty_like(gate)
            kernels.silu_mul[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), 1024)
            return out
        return F.silu(gate) * F.linear(h, weight)

    def forward(self, token: torch.Tensor, place: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = F.embedding(token, self.embedding)
        count = token.shape[1]
        c, s = self.cos[place][None, None], self.sin[place][None, None]
        h = self.norm(x)
        for number, layer in enumerate(self.layers):
            with torch.cuda.nvtx.range(f"layer_{number}"):
                q, k, v = (F.linear(h, layer[n]).view(1, count, HEADS, HEAD).transpose(1, 2) for n in "qkv")
                q, k = self.rope(q, c, s), self.rope(k, c, s)
                layer["kc"].index_copy_(2, place, k)
                layer["vc"].index_copy_(2, place, v)
                o = F.scaled_dot_product_attention(q, layer["kc"], layer["vc"], attn_mask=mask)
                x, h = self.add_norm(x, F.linear(o.transpose(1, 2).reshape(1, count, HIDDEN), layer["o"]))
                inner = self.gated(F.linear(h, layer["g"]), layer["u"], h)
                x, h = self.add_norm(x, F.linear(inner, layer["d"]))
        return F.linear(h[:, -1:], self.head)

    def prefill(self) -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(1)
        tokens = torch.randint(0, VOCABULARY, (1, PROMPT), device=DEVICE)
        place = self.positions[:PROMPT]
        logits = self.forward(tokens, place, (self.positions[None, :] <= place[:, None])[None, None])
        return logits[:, -1], logits.argmax(-1)[:, -1:]

    def eager(self) -> Loop:
        """Return the decode loop with a separate launch of every kernel."""

        def loop(tokens: int, begin: Callable[[], object]) -> None:
            token = self.prefill()[1]
            torch.cuda.synchronize()
            begin()
            for i in range(tokens):
                with torch.cuda.nvtx.range("decode_step"):
                    place = torch.tensor([PROMPT + i], device=DEVICE)
                    token = self.forward(token, place, (self.positions <= place)[None, None, None]).argmax(-1)
                    token.item()

        return loop

    def graph(self) -> Loop:
        """Return the decode loop with the forward pass captured once in a CUDA graph."""
        token, place = self.prefill()[1].clone(), torch.tensor([PROMPT], device=DEVICE)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            self.forward(token, place, (self.positions <= place)[None, None, None])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            next_token = self.forward(token, place, (self.positions <= place)[None, None, None]).argmax(-1)

        def loop(tokens: int, begin: Callable[[], object]) -> None:
            token.copy_(self.prefill()[1])
            place.fill_(PROMPT)
            torch.cuda.synchronize()
            begin()
            for _ in range(tokens):
                with torch.cuda.nvtx.range("decode_step"):
                    graph.replay()
                    token.copy_(next_token)
                    place.add_(1)
                    next_token.item()

        return loop


def make_checked_decoder(variant: str) -> Decoder:
    """Return the decoder of a variant. Exit if its logits differ from the eager ones."""
    expected = Decoder(set()).prefill()[0].float()
    decoder = Decoder(set(filter(None, VARIANTS[variant].split(","))))
    error = ((decoder.prefill()[0].float() - expected).abs().max() / expected.abs().max()).item()
    if error > 0.05:
        raise SystemExit(f"{variant}: the fused logits are off by {error:.1%}")
    return decoder


def time_variants(tokens: int, rounds: int) -> dict[str, object]:
    """Return the time per token in µs of every variant and mode, without a profiler. The variants take turns."""
    start_s = 0.0

    def begin() -> None:
        nonlocal start_s
        start_s = time.perf_counter()

    loops: dict[str, Loop] = {}
    for variant in VARIANTS:
        decoder = make_checked_decoder(variant)
        loops[f"eager_{variant}"] = decoder.eager()
        loops[f"graph_{variant}"] = decoder.graph()
    runs: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(rounds + 1):
        for name, loop in loops.items():
            loop(tokens, begin)
            torch.cuda.synchronize()
            if turn:
                runs[name].append((time.perf_counter() - start_s) / tokens * 1e6)
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "us_per_token": {name: {"median": statistics.median(us), "runs": us} for name, us in runs.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=VARIANTS, default="base")
    parser.add_argument("--mode", choices=["eager", "graph"], default="eager")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--time", metavar="FILE")
    arguments = parser.parse_args()
    with torch.no_grad():
        if arguments.time:
            result = time_variants(48, 9)
            Path(arguments.time).write_text(json.dumps(result, indent=1))
            return
        loop = getattr(make_checked_decoder(arguments.variant), arguments.mode)()
        loop(arguments.tokens, lambda: None)
        torch.cuda.synchronize()
        loop(arguments.tokens, torch.cuda.cudart().cudaProfilerStart)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    main()
