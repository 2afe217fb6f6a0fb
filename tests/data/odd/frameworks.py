"""A small step of JAX, of CuPy, and of torch.compile with CUDA graphs: python3 frameworks.py jax|cupy|graphs."""

from __future__ import annotations

import sys


def run_cupy() -> None:
    """Run 100 iterations of a few operations on arrays of one size."""
    import cupy

    first = cupy.random.rand(1 << 20, dtype=cupy.float32)
    second = first.copy()

    @cupy.fuse
    def hypotenuse(x, y):
        return cupy.sqrt(x * x + y * y)

    code = """extern "C" __global__ void mine(float *x, int n) {
        int i = blockIdx.x * 256 + threadIdx.x;
        if (i < n) x[i] *= 2;
    }"""
    kernel = cupy.RawKernel(code, "mine")
    for _ in range(100):
        result = hypotenuse(first + second, first * 2)
        kernel((4096,), (256,), (result, 1 << 20))
        first.reshape(1024, 1024) @ second.reshape(1024, 1024)
        cupy.sort(result[:4096])
        float(result.sum())


def run_jax() -> None:
    """Run a compiled step 60 times."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(weights, rows):
        for _ in range(4):
            hidden = jnp.tanh(rows @ weights)
            rows = jax.nn.softmax(hidden, -1) + jnp.sin(hidden).cumsum(-1) * 0.01
        return rows

    weights = jnp.ones((1024, 1024), jnp.bfloat16)
    rows = step(weights, jnp.ones((256, 1024), jnp.bfloat16))
    for _ in range(60):
        rows = step(weights, rows)
    rows.block_until_ready()


def run_graphs() -> None:
    """Run a compiled model 40 times in the capture range, and read a number back each time."""
    import torch

    layers = [
        torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)) for _ in range(4)
    ]
    model = torch.compile(torch.nn.Sequential(*layers).cuda().half(), mode="reduce-overhead")
    inputs = [torch.randn(64, 512, device="cuda", dtype=torch.half) for _ in range(8)]
    with torch.no_grad():
        for rows in inputs:
            model(rows)
            torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        for number in range(40):
            model(inputs[number % 8]).float().mean().item()
        torch.cuda.cudart().cudaProfilerStop()


{"cupy": run_cupy, "jax": run_jax, "graphs": run_graphs}[sys.argv[1]]()
