"""Programs with one chain of kernels each, unfused as PyTorch runs it and fused, to test the predictions of `fusion`.

    python3 cases.py --capture NAME      run the unfused program; its steps are between cudaProfilerStart and -Stop
    python3 cases.py --time FILE.json    time all programs, unfused and fused, without a profiler

A program has four blocks of product, chain, product. Each step has its own NVTX range. Half of the cases were held out:
their measurements were not used before the bounds were final.
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
# Rows and width of the tensor of the chain: bound by launches, fits the cache, larger than the cache.
SIZES = {"small": (16, 1024), "middle": (4096, 2048), "large": (32768, 2048)}
FLOAT, HALF = torch.float32, torch.bfloat16

Step = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A chain at one size: its number of kernels, whether each step waits for the GPU, and whether it was held out."""

    chain: str
    size: str
    kernels: int
    dtype: torch.dtype
    waits: bool
    is_held_out: bool

    @property
    def name(self) -> str:
        return f"{self.chain}_{self.size}"


CASES = {
    case.name: case
    for case in (
        Case("layer_norm", "small", 9, HALF, waits=True, is_held_out=False),
        Case("layer_norm", "large", 9, FLOAT, waits=True, is_held_out=True),
        Case("rms_norm", "small", 8, HALF, waits=False, is_held_out=True),
        Case("rms_norm", "large", 8, HALF, waits=False, is_held_out=False),
        Case("gelu_new", "small", 8, HALF, waits=True, is_held_out=True),
        Case("gelu_new", "large", 8, HALF, waits=False, is_held_out=False),
        Case("gelu_fast", "small", 9, FLOAT, waits=False, is_held_out=False),
        Case("gelu_fast", "middle", 9, FLOAT, waits=True, is_held_out=True),
        Case("silu_mul", "small", 2, HALF, waits=True, is_held_out=False),
        Case("silu_mul", "large", 2, HALF, waits=True, is_held_out=True),
        Case("bias_relu", "small", 2, FLOAT, waits=False, is_held_out=True),
        Case("bias_relu", "large", 2, FLOAT, waits=False, is_held_out=False),
        Case("residual_norm", "small", 9, HALF, waits=True, is_held_out=True),
        Case("residual_norm", "middle", 9, HALF, waits=True, is_held_out=False),
        Case("residual_norm", "large", 9, HALF, waits=True, is_held_out=True),
        Case("masked_softmax", "small", 5, HALF, waits=False, is_held_out=False),
        Case("masked_softmax", "middle", 5, HALF, waits=False, is_held_out=True),
        Case("polynomial", "small", 6, FLOAT, waits=True, is_held_out=False),
        Case("polynomial", "middle", 6, HALF, waits=False, is_held_out=True),
        Case("polynomial", "large", 6, FLOAT, waits=True, is_held_out=False),
    )
}


class Chain:
    """A chain, unfused and fused, on tensors of one size."""

    def __init__(self, case: Case) -> None:
        self.rows, self.width = SIZES[case.size]
        self.dtype = case.dtype
        self.weight, self.bias = (torch.ones(self.width, device=DEVICE, dtype=case.dtype) * v for v in (1.0, 0.1))
        self.mask = torch.zeros(self.width, device=DEVICE, dtype=case.dtype)
        self.mask[self.width // 2 :] = -10000.0
        self.unfused: Callable[..., torch.Tensor] = getattr(self, case.chain)
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
        x, chain = self.input, self.chain.fused if fused else self.chain.unfused
        for up, down in self.weights:
            x = chain(x @ up, x) @ down
        return x

    def step(self, *, fused: bool) -> None:
        with torch.cuda.nvtx.range("step"):
            x = self.forward(fused=fused)
            if self.case.waits:
                x[0, 0].item()

    def check(self) -> None:
        """Exit if the fused chain computes something else."""
        x, y = self.input @ self.weights[0][0], self.input
        expected, actual = self.chain.unfused(x, y).float(), self.chain.fused(x, y).float()
        error = ((actual - expected).abs().max() / expected.abs().max()).item()
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


def measure_us(step: Step, times: int) -> float:
    """Return the time of one step in µs, from CUDA events around `times` steps."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


def capture_graph(step: Step) -> Step:
    """Capture the step in a CUDA graph, which excludes the time of the host. Return its replay."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def time_case(case: Case) -> dict[str, object]:
    """Return the medians of rounds in which the unfused and the fused program take turns."""
    program = Program(case)
    program.check()
    variants = {
        "before": lambda: program.step(fused=False),
        "after": lambda: program.step(fused=True),
        "graph_before": capture_graph(lambda: program.forward(fused=False)),
        "graph_after": capture_graph(lambda: program.forward(fused=True)),
    }
    runs: dict[str, list[float]] = {variant: [] for variant in variants}
    times = {variant: max(5, min(100, round(30_000 / measure_us(step, 5)))) for variant, step in variants.items()}
    for turn in range(ROUNDS + 1):
        for variant, step in variants.items():
            step_us = measure_us(step, times[variant])
            if turn:
                runs[variant].append(step_us)
    medians = {variant: {"median": statistics.median(us), "runs": us} for variant, us in runs.items()}
    return {"held": case.is_held_out, "kernels": case.kernels, **medians}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--capture", choices=CASES, metavar="NAME")
    parser.add_argument("--time", metavar="FILE")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--names", action="store_true", help="Print the names of all cases")
    arguments = parser.parse_args()
    if arguments.names:
        print(*CASES, sep="\n")
        return
    torch.set_float32_matmul_precision("high")
    with torch.no_grad():
        if arguments.capture:
            capture(CASES[arguments.capture], arguments.steps)
            return
        results = {}
        for name, case in CASES.items():
            results[name] = time_case(case)
            versions = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
            Path(arguments.time).write_text(json.dumps({**versions, "us_per_step": results}, indent=1))
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
