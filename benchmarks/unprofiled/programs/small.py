"""Python programs that are timed without nsys, attached to it, and inside a capture.

small.py torch|compiled|jax|cupy alone
small.py torch|compiled|jax|cupy nsys      under nsys profile --capture-range-end=repeat

ONLY, a list of names in the environment, selects programs. Each line of the output is JSON: the program, where it was
timed, and the microseconds of a step in each repetition.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[], object]
    # Programs by name: the step, and how many steps are captured.
    Programs = dict[str, tuple[Step, int]]


def profiler(verb: str) -> None:
    """Call cudaProfilerStart or cudaProfilerStop."""
    libraries = [Path(place) / "nvidia" / "cu13" / "lib" / "libcudart.so.13" for place in sys.path if place]
    name = next((str(path) for path in libraries if path.exists()), "libcudart.so.13")
    getattr(ctypes.CDLL(name), f"cudaProfiler{verb}")()


def make_blocks(torch: Any, count: int, width: int) -> Any:
    """Return layers of four small operations each."""
    nn = torch.nn
    return nn.Sequential(
        *(nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)) for _ in range(count))
    ).cuda()


def torch_programs() -> tuple[Programs, Step]:  # noqa: C901, PLR0915 - a function for each program
    import torch
    import triton
    import triton.language as tl

    torch.manual_seed(0)
    small, middle = torch.ones(1024, device="cuda"), torch.ones(1 << 22, device="cuda")
    big = torch.ones(1 << 26, device="cuda")
    square = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16)
    pinned = torch.ones(256).pin_memory()
    row = torch.ones(1, 256, device="cuda")
    blocks, trained = make_blocks(torch, 16, 256), make_blocks(torch, 8, 256)
    sgd = torch.optim.SGD(trained.parameters(), lr=1e-4)
    weights = [torch.nn.Parameter(torch.ones(256, device="cuda")) for _ in range(100)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    adam = torch.optim.Adam(weights, foreach=False)
    graph_input, graph = row.clone(), torch.cuda.CUDAGraph()

    @triton.jit
    def scale(x, size, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202, N803
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + place, tl.load(x + place, mask=place < size) * 0.5, mask=place < size)

    def chain() -> None:
        y = small
        for _ in range(5):
            y = y * 2
            y = y + 1

    @torch.no_grad()
    def decode() -> None:
        blocks(row).sum().item()

    def train() -> None:
        sgd.zero_grad()
        trained(row.expand(32, 256)).square().mean().backward()
        sgd.step()

    def products() -> None:
        for _ in range(6):
            square @ square

    def middles() -> None:
        y = middle
        for _ in range(40):
            y = y + 1

    def copies() -> None:
        for _ in range(30):
            small[:256].copy_(pinned, non_blocking=True)
            small.add_(1)

    def items() -> None:
        for _ in range(20):
            (small * 2)[0].item()

    @torch.no_grad()
    def ranges() -> None:
        y = row
        for block in blocks:
            for layer in block:
                torch.cuda.nvtx.range_push("layer")
                y = layer(y)
                torch.cuda.nvtx.range_pop()
        y.sum().item()

    def triton_small() -> None:
        for _ in range(30):
            scale[(1,)](small, 1024, BLOCK=1024)

    def triton_big() -> None:
        for _ in range(5):
            scale[(1 << 16,)](big, 1 << 26, BLOCK=1024)

    with torch.no_grad():
        blocks(graph_input)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            blocks(graph_input)
    return {
        "torch_chain": (chain, 40),
        "torch_decode": (decode, 24),
        "torch_adam": (adam.step, 8),
        "torch_train": (train, 16),
        "torch_products": (products, 20),
        "torch_middle": (middles, 20),
        "torch_copies": (copies, 24),
        "torch_items": (items, 24),
        "torch_ranges": (ranges, 24),
        "torch_graph": (graph.replay, 40),
        "triton_small": (triton_small, 30),
        "triton_big": (triton_big, 20),
    }, torch.cuda.synchronize


def compiled_programs() -> tuple[Programs, Step]:
    import torch

    torch.manual_seed(0)
    row = torch.ones(8, 256, device="cuda")
    blocks = make_blocks(torch, 16, 256)
    compiled = torch.compile(blocks)

    @torch.no_grad()
    def decode() -> None:
        compiled(row)

    @torch.no_grad()
    def wait() -> None:
        compiled(row).sum().item()

    return {"compiled_blocks": (decode, 24), "compiled_wait": (wait, 24)}, torch.cuda.synchronize


def jax_programs() -> tuple[Programs, Step]:
    import jax
    import jax.numpy as jnp

    x, wide = jnp.ones(1024), jnp.ones((64, 256))
    weights = [jnp.ones((256, 256)) / 256 for _ in range(12)]
    add = jax.jit(lambda y: y * 1.5 + 1)
    state = {"last": x}

    @jax.jit
    def layers(y: Any) -> Any:
        for weight in weights:
            y = jnp.tanh(y @ weight) + y
            y = y / jnp.linalg.norm(y, axis=1, keepdims=True)
        return y

    loss = jax.jit(jax.grad(lambda w: jnp.square(jnp.tanh(wide @ w)).mean()))

    def calls() -> None:
        y = x
        for _ in range(50):
            y = add(y)
        state["last"] = y

    def forward() -> None:
        state["last"] = layers(wide)

    def gradients() -> None:
        for weight in weights[:4]:
            state["last"] = loss(weight).block_until_ready()

    return {"jax_calls": (calls, 16), "jax_layers": (forward, 40), "jax_gradients": (gradients, 24)}, (
        lambda: state["last"].block_until_ready()  # noqa: PLW0108 - not the array of now
    )


def cupy_programs() -> tuple[Programs, Step]:
    import cupy as cp

    x, wide = cp.ones(1024), cp.ones(1 << 24)
    matrices = [cp.eye(64) * 2 + 0.1 for _ in range(4)]

    def chain() -> None:
        y = x
        for _ in range(20):
            y = y * 0.5
            y = y + 1

    def solves() -> None:
        for matrix in matrices:
            cp.linalg.solve(matrix, x[:64])

    def sums() -> None:
        for _ in range(10):
            float((x * 2).sum())

    def big() -> None:
        y = wide
        for _ in range(6):
            y = y + 1

    return {
        "cupy_chain": (chain, 24), "cupy_solves": (solves, 16), "cupy_sums": (sums, 24), "cupy_big": (big, 20),
    }, cp.cuda.runtime.deviceSynchronize  # fmt: skip


MAKERS = {"torch": torch_programs, "compiled": compiled_programs, "jax": jax_programs, "cupy": cupy_programs}


def time_us(step: Step, synchronize: Step, steps: int) -> float:
    """Return the microseconds of a step; the program waits for the GPU only at the ends."""
    synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    synchronize()
    return (time.perf_counter() - begin) * 1e6 / steps


def report(name: str, where: str, times: list[float]) -> None:
    print(json.dumps({"program": name, "where": where, "step_us": [round(time, 3) for time in times]}), flush=True)


def main() -> None:
    is_profiled = sys.argv[2] == "nsys"
    programs, synchronize = MAKERS[sys.argv[1]]()
    if only := os.environ.get("ONLY"):
        programs = {name: program for name, program in programs.items() if name in only.split(",")}
    for name, (step, captured) in programs.items():
        time_us(step, synchronize, 10)
        steps = max(captured, min(1000, int(20_000 / time_us(step, synchronize, 10))))
        times = [time_us(step, synchronize, steps) for _ in range(5 if is_profiled else 9)]
        report(name, "attached" if is_profiled else "alone", times)
    if not is_profiled:
        return
    for name, (step, captured) in programs.items():
        time_us(step, synchronize, 10)
        profiler("Start")
        times = [time_us(step, synchronize, captured)]
        profiler("Stop")
        report(name, "captured", times)
        time.sleep(0.7)  # a range that begins while nsys ends the last one may be missed


if __name__ == "__main__":
    main()
