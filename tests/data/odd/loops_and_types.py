"""python3 loops_and_types.py MODE: loops of JAX, a benchmark of Triton, and products of several types."""

import os
import sys
import time
from functools import partial

mode = sys.argv[1]
if mode in ("known", "unknown"):
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.2"
    import jax
    import jax.numpy as jnp

    def advance(x):
        return jnp.tanh(x @ matrix) + 0.01 * x

    matrix = jax.random.normal(jax.random.key(0), (1024, 1024)) * 0.02
    start = jax.random.normal(jax.random.key(1), (1024, 1024))
    if mode == "known":
        step = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, y: advance(y), x))
    else:
        # The limit is a number of the data: 50 iterations, which the compiler cannot know.
        def has_more(state):
            count, y, limit = state
            return (count < limit) & (jnp.max(jnp.abs(y)) < 1e6)

        step = jax.jit(
            lambda x: jax.lax.while_loop(
                has_more, lambda state: (state[0] + 1, advance(state[1]), state[2]), (0, x, 50 + (x[0, 0] > 1e6))
            )
        )
    for _ in range(3):
        jax.block_until_ready(step(start))
    begin = time.perf_counter()
    for _ in range(20):
        jax.block_until_ready(step(start))
    print(f"{mode}: {(time.perf_counter() - begin) / 20 * 1e6:.1f} us per step, JAX {jax.__version__}")
    sys.exit()

import torch  # noqa: E402 - JAX takes the GPU alone

torch.manual_seed(0)
if mode == "bench":
    import triton

    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    triton.testing.do_bench(lambda: a @ b, warmup=5, rep=5)
    torch.cuda.cudart().cudaProfilerStart()
    ms = triton.testing.do_bench(lambda: a @ b, warmup=10, rep=40)
    print(f"bench: {ms * 1e3:.1f} us per product, Triton {triton.__version__}")
if mode == "types":
    n = 4096
    single, other = (torch.randn(n, n, device="cuda") for _ in range(2))
    unit_scale = torch.ones((), device="cuda")

    def as_tf32(call):
        torch.backends.cuda.matmul.allow_tf32 = True
        call()
        torch.backends.cuda.matmul.allow_tf32 = False

    fp8 = single.to(torch.float8_e4m3fn), other.to(torch.float8_e4m3fn).t().contiguous().t()
    int8 = tuple((x * 20).to(torch.int8) for x in (single, other))
    products = {
        "fp32": lambda: single @ other,
        "tf32": lambda: as_tf32(lambda: single @ other),
        **{
            name: partial(torch.matmul, single.to(dtype), other.to(dtype))
            for name, dtype in (
                ("fp16", torch.float16),
                ("bf16", torch.bfloat16),
                ("fp64", torch.float64),
                ("complex64", torch.complex64),
            )
        },
        "fp8": lambda: torch._scaled_mm(*fp8, scale_a=unit_scale, scale_b=unit_scale, out_dtype=torch.bfloat16),
        "int8": lambda: torch._int_mm(*int8),
    }
    for call in products.values():
        call()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for name, call in products.items():
        with torch.cuda.nvtx.range(name):
            begin = time.perf_counter()
            for _ in range(5):
                call()
            torch.cuda.synchronize()
            seconds = (time.perf_counter() - begin) / 5
            print(f"{name}: {seconds * 1e6:.0f} us, {2 * n**3 / seconds / 1e12:.0f} TFLOP/s")
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStop()
