"""Programs whose steps are NVTX ranges, each with a cure: what the cure saves without nsys.

python3 steps.py alone           time all programs, ailing and cured
python3 steps.py NAME            run the steps of the ailing program for a capture
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 60


def make_programs() -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Return the ailing and the cured step of each program."""
    nn = torch.nn
    row, graph_row = torch.ones(1, 512, device="cuda"), torch.ones(1, 512, device="cuda")
    layers = [layer for _ in range(12) for layer in (nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512), nn.Sigmoid())]
    blocks = nn.Sequential(*layers).cuda().requires_grad_(requires_grad=False)
    graph = torch.cuda.CUDAGraph()
    for _ in range(3):
        blocks(graph_row)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        blocks(graph_row)

    def make_optimizer(**options: bool) -> Callable[[], object]:
        weights = [nn.Parameter(torch.ones(4096, device="cuda")) for _ in range(60)]
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        return torch.optim.AdamW(weights, **options).step

    grads = [torch.ones(2048, device="cuda") for _ in range(60)]
    systems = torch.eye(32, device="cuda").repeat(40, 1, 1) * 2
    tokens = torch.arange(64, device="cuda")
    table = torch.ones(1000, 256, device="cuda")

    def solve_each() -> None:
        for system in systems:
            torch.linalg.solve(system, system)

    def look_up_each() -> None:
        y = torch.zeros(256, device="cuda")
        for token in range(64):
            y += table[tokens[token]]

    return {
        "layers": (lambda: blocks(row), graph.replay),
        "adamw": (make_optimizer(foreach=False), make_optimizer(fused=True)),
        "norms": (lambda: sum(grad.norm().item() for grad in grads), lambda: nn.utils.get_total_norm(grads).item()),
        "solves": (solve_each, lambda: torch.linalg.solve(systems, systems)),
        "look_ups": (look_up_each, lambda: table[tokens].sum(0)),
    }


def time_us(step: Callable[[], object]) -> float:
    """Return the median time of a step, of repetitions of several steps."""
    times = []
    for _ in range(8):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / 20 * 1e6)
    return median(times[1:])


def main() -> None:
    """Time the programs, or run one."""
    programs = make_programs()
    if sys.argv[1] == "alone":
        for name, (ailing, cured) in programs.items():
            print(json.dumps({"program": name, "ailing_us": time_us(ailing), "cured_us": time_us(cured)}), flush=True)
        return
    step = programs[sys.argv[1]][0]
    for number in range(STEPS):
        with torch.cuda.nvtx.range("warm-up" if number < STEPS // 4 else "step"):
            step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
