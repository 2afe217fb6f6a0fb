"""Programs of one chain of kernels each, as PyTorch runs it and fused, to try what `fusion` predicts.

    python3 cases.py --capture NAME      the unfused program; its steps are between cudaProfilerStart and -Stop
    python3 cases.py --time FILE.json    all of them, unfused and fused, timed without a profiler

A program is four blocks of product, chain, product, in steps of their own NVTX range. Half of the cases were `held`
out: nobody looked at what they measured until the bounds were settled.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

DEVICE = "cuda"
BLOCKS, ROUNDS = 4, 9
# Rows and width of the tensor that the chain works on: bound by launches, within the cache, beyond the cache.
SIZES = {"small": (16, 1024), "middle": (4096, 2048), "large": (32768, 2048)}
FLOAT, HALF = torch.float32, torch.bfloat16

Step = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A chain at one size: how many kernels it has, whether each step waits, and whether it was held out."""

    chain: str
    size: str
    kernels: int
    dtype: torch.dtype
    waits: bool
    held: bool

    @property
    def name(self) -> str:
        return f"{self.chain}_{self.size}"


CASES = {
    case.name: case
    for case in (
        Case("layer_norm", "small", 9, HALF, waits=True, held=False),
        Case("layer_norm", "large", 9, FLOAT, waits=True, held=True),
        Case("rms_norm", "small", 8, HALF, waits=False, held=True),
        Case("rms_norm", "large", 8, HALF, waits=False, held=False),
        Case("gelu_new", "small", 8, HALF, waits=True, held=True),
        Case("gelu_new", "large", 8, HALF, waits=False, held=False),
        Case("gelu_fast", "small", 9, FLOAT, waits=False, held=False),
        Case("gelu_fast", "middle", 9, FLOAT, waits=True, held=True),
        Case("silu_mul", "small", 2, HALF, waits=True, held=False),
        Case("silu_mul", "large", 2, HALF, waits=True, held=True),
        Case("bias_relu", "small", 2, FLOAT, waits=False, held=True),
        Case("bias_relu", "large", 2, FLOAT, waits=False, held=False),
        Case("residual_norm", "small", 9, HALF, waits=True, held=True),
        Case("residual_norm", "middle", 9, HALF, waits=True, held=False),
        Case("residual_norm", "large", 9, HALF, waits=True, held=True),
        Case("masked_softmax", "small", 5, HALF, waits=False, held=False),
        Case("masked_softmax", "middle", 5, HALF, waits=False, held=True),
        Case("polynomial", "small", 6, FLOAT, waits=True, held=False),
        Case("polynomial", "middle", 6, HALF, waits=False, held=True),
        Case("polynomial", "large", 6, FLOAT, waits=True, held=False),
    )
}


class Chain:
    """A chain as written and fused, on tensors of one size."""

    def __init__(self, case: Case) -> None:
        self.rows, self.width = SIZES[case.size]
        self.dtype = case.dtype
        self.weight, self.bias = (torch.ones(self.width, device=DEVICE, dtype=case.dtype) * v for v in (1.0, 0.1))
        self.mask = torch.zeros(self.width, device=DEVICE, dtype=case.dtype)
        self.mask[self.width // 2 :] = -10000.0
        self.written: Callable[..., torch.Tensor] = getattr(self, case.chain)
        self.fused: Callable[..., torch.Tensor] = getattr(self, f"{case.chain}_fused")

    def layer_norm(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5) * self.weight + self.bias

    def layer_norm_fused(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (self.width,), self.weight, self.bias, 1e-5)

    def rms_norm(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        variance = wide.pow(2).mean(-1, keepdim=True)
        return self.weight * (wide * torch.rsqrt(variance + 1e-6)).to(self.dtype)

    def rms_norm_fused(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (self.width,), self.weight, 1e-6)

    def residual_norm(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.rms_norm(x + y, y)

    def residual_norm_fused(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        import kernels

        total, out = torch.empty_like(x), torch.empty_like(x)
        kernels.add_rms_norm[(self.rows,)](x, y, self.weight, total, out, self.width)
        return out

    def gelu_new(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

    def gelu_fast(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))

    def gelu_fused(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")

    gelu_new_fused = gelu_fast_fused = gelu_fused

    def silu_mul(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.silu(x) * y

    def silu_mul_fused(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        import kernels

        out = torch.empty_like(x)
        kernels.silu_mul[(-(-x.numel() // 1024),)](x, y, out, x.numel(), 1024)
        return out

    def bias_relu(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.bias)

    def bias_relu_fused(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        import kernels

        out = torch.empty_like(x)
        kernels.bias_relu[(-(-x.numel() // 1024),)](x, self.bias, out, x.numel(), self.width, 1024)
        return out

    def masked_softmax(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return torch.softmax((x * 0.125 + self.mask).float(), -1).to(self.dtype)

    def masked_softmax_fused(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        import kernels

        out = torch.empty_like(x)
        kernels.masked_softmax[(self.rows,)](x, self.mask, out, 0.125, self.width)
        return out

    def polynomial(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        w = (x * 0.5 + y) * x
        return w * torch.sigmoid(w) + y

    def polynomial_fused(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        import kernels

        out = torch.empty_like(x)
        kernels.polynomial[(-(-x.numel() // 1024),)](x, y, out, x.numel(), 1024)
        return out


class Program:
    """Four blocks of product, chain, product."""

    def __init__(self, case: Case) -> None:
        torch.manual_seed(0)
        self.case, self.chain = case, Chain(case)
        shape = (self.chain.width, self.chain.width)
        self.weights = [
            [(torch.randn(shape, device=DEVICE) / math.sqrt(shape[0])).to(case.dtype) for _ in range(2)]
            for _ in range(BLOCKS)
        ]
        self.input = torch.randn(self.chain.rows, self.chain.width, device=DEVICE).to(case.dtype)

    def forward(self, *, fused: bool) -> torch.Tensor:
        x, chain = self.input, self.chain.fused if fused else self.chain.written
        for up, down in self.weights:
            x = chain(x @ up, x) @ down
        return x

    def step(self, *, fused: bool) -> None:
        with torch.cuda.nvtx.range("step"):
            x = self.forward(fused=fused)
            if self.case.waits:
                x[0, 0].item()

    def check(self) -> None:
        """Refuse a fused chain that computes something else."""
        x, y = self.input @ self.weights[0][0], self.input
        wanted, given = self.chain.written(x, y).float(), self.chain.fused(x, y).float()
        error = ((given - wanted).abs().max() / wanted.abs().max()).item()
        if not error < 0.03:
            raise SystemExit(f"{self.case.name}: the fused chain is off by {error:.1%}")


def capture(case: Case, steps: int) -> None:
    """Run the unfused steps for the profiler."""
    program = Program(case)
    for _ in range(5):
        program.step(fused=False)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for _ in range(steps):
        program.step(fused=False)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def elapsed_us(step: Step, times: int) -> float:
    """µs of one step, from CUDA events around `times` of them."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


def in_graph(step: Step) -> Step:
    """The step in a CUDA graph, which leaves the host's time out."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def timed(case: Case) -> dict[str, object]:
    """Medians of rounds in which the unfused and the fused program take turns."""
    program = Program(case)
    program.check()
    ways = {
        "before": lambda: program.step(fused=False),
        "after": lambda: program.step(fused=True),
        "graph_before": in_graph(lambda: program.forward(fused=False)),
        "graph_after": in_graph(lambda: program.forward(fused=True)),
    }
    runs: dict[str, list[float]] = {way: [] for way in ways}
    times = {way: max(5, min(100, round(30_000 / elapsed_us(step, 5)))) for way, step in ways.items()}
    for turn in range(ROUNDS + 1):
        for way, step in ways.items():
            took = elapsed_us(step, times[way])
            if turn:
                runs[way].append(took)
    medians = {way: {"median": statistics.median(us), "runs": us} for way, us in runs.items()}
    return {"held": case.held, "kernels": case.kernels, **medians}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--capture", choices=CASES, metavar="NAME")
    parser.add_argument("--time", metavar="FILE")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--names", action="store_true", help="Print the names of all cases")
    asked = parser.parse_args()
    if asked.names:
        print(*CASES, sep="\n")
        return
    torch.set_float32_matmul_precision("high")
    with torch.no_grad():
        if asked.capture:
            capture(CASES[asked.capture], asked.steps)
            return
        found = {}
        for name, case in CASES.items():
            found[name] = timed(case)
            about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
            Path(asked.time).write_text(json.dumps({**about, "us_per_step": found}, indent=1))
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
