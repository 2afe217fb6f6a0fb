"""A Llama-shaped decoder with random weights, one token at a time, with chosen chains of kernels fused by hand.

    python3 decode.py --fuse norm,rope --mode eager|graph     decode --tokens tokens; the loop is between
                                                              cudaProfilerStart and cudaProfilerStop
    python3 decode.py --time FILE.json                        the loop of every variant timed without a profiler

Eager PyTorch runs RMSNorm, the rotary embedding and the gated MLP as several kernels each. Every variant replaces one
such chain by one Triton kernel, and checks its logits against the eager ones first.
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
"""Decodes so many tokens, and calls back where the timed part begins."""


class Decoder:
    """The model, with the chains named in `fuse` run as one kernel each."""

    def __init__(self, fuse: set[str]) -> None:
        torch.manual_seed(0)
        self.fuse = fuse

        def weights(*shape: int) -> torch.Tensor:
            return (torch.randn(*shape, device=DEVICE) * 0.02).to(DTYPE)

        self.embedding, self.head = weights(VOCABULARY, HIDDEN), weights(VOCABULARY, HIDDEN)
        self.ones = torch.ones(HIDDEN, device=DEVICE, dtype=DTYPE)
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
        self.places = torch.arange(CONTEXT, device=DEVICE)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        if "norm" in self.fuse:
            out = torch.empty_like(x)
            kernels.rms_norm[(x.numel() // HIDDEN,)](x, self.ones, out, HIDDEN)
            return out
        variance = x.float().pow(2).mean(-1, keepdim=True)
        return (x.float() * torch.rsqrt(variance + 1e-6)).to(DTYPE) * self.ones

    def add_norm(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if "residual_norm" in self.fuse:
            total, out = torch.empty_like(x), torch.empty_like(x)
            kernels.add_rms_norm[(x.numel() // HIDDEN,)](x, y, self.ones, total, out, HIDDEN)
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
        place = self.places[:PROMPT]
        logits = self.forward(tokens, place, (self.places[None, :] <= place[:, None])[None, None])
        return logits[:, -1], logits.argmax(-1)[:, -1:]

    def eager(self) -> Loop:
        """The decode loop, every kernel launched by itself."""

        def loop(tokens: int, begin: Callable[[], object]) -> None:
            token = self.prefill()[1]
            torch.cuda.synchronize()
            begin()
            for i in range(tokens):
                with torch.cuda.nvtx.range("decode_step"):
                    place = torch.tensor([PROMPT + i], device=DEVICE)
                    token = self.forward(token, place, (self.places <= place)[None, None, None]).argmax(-1)
                    token.item()

        return loop

    def graph(self) -> Loop:
        """The decode loop with the forward pass captured once in a CUDA graph."""
        token, place = self.prefill()[1].clone(), torch.tensor([PROMPT], device=DEVICE)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            self.forward(token, place, (self.places <= place)[None, None, None])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            following = self.forward(token, place, (self.places <= place)[None, None, None]).argmax(-1)

        def loop(tokens: int, begin: Callable[[], object]) -> None:
            token.copy_(self.prefill()[1])
            place.fill_(PROMPT)
            torch.cuda.synchronize()
            begin()
            for _ in range(tokens):
                with torch.cuda.nvtx.range("decode_step"):
                    graph.replay()
                    token.copy_(following)
                    place.add_(1)
                    following.item()

        return loop


def check(variant: str) -> Decoder:
    """The variant's decoder, after its logits were compared with the eager ones."""
    wanted = Decoder(set()).prefill()[0].float()
    decoder = Decoder(set(filter(None, VARIANTS[variant].split(","))))
    error = ((decoder.prefill()[0].float() - wanted).abs().max() / wanted.abs().max()).item()
    if error > 0.05:
        raise SystemExit(f"{variant}: the fused logits are off by {error:.1%}")
    return decoder


def timed(tokens: int, rounds: int) -> dict[str, object]:
    """µs per token of every variant and mode without a profiler, the variants interleaved."""
    began = 0.0

    def begin() -> None:
        nonlocal began
        began = time.perf_counter()

    loops: dict[str, Loop] = {}
    for variant in VARIANTS:
        decoder = check(variant)
        loops[f"eager_{variant}"] = decoder.eager()
        loops[f"graph_{variant}"] = decoder.graph()
    runs: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(rounds + 1):
        for name, loop in loops.items():
            loop(tokens, begin)
            torch.cuda.synchronize()
            if turn:
                runs[name].append((time.perf_counter() - began) / tokens * 1e6)
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
    asked = parser.parse_args()
    with torch.no_grad():
        if asked.time:
            result = timed(48, 9)
            Path(asked.time).write_text(json.dumps(result, indent=1))
            return
        loop = getattr(check(asked.variant), asked.mode)()
        loop(asked.tokens, lambda: None)
        torch.cuda.synchronize()
        loop(asked.tokens, torch.cuda.cudart().cudaProfilerStart)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    main()
