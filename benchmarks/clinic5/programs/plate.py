"""Heat a plate: an implicit step in time solves the same dense boundary system for new right-hand sides."""

from __future__ import annotations

import cupy as cp
from cupy.cuda import nvtx
from cupyx.scipy.linalg import lu_factor, lu_solve
from harness import arguments, measure

PANELS, INTERVAL = 2048, 0.01


def boundary_operator() -> cp.ndarray:
    """Return the interaction of panels on a circle."""
    angle = 2 * cp.pi * cp.arange(PANELS) / PANELS
    distance = 2 * cp.abs(cp.sin((angle[:, None] - angle[None, :]) / 2))
    kernel = -cp.log(distance + 1.0 / PANELS) / PANELS
    return cp.eye(PANELS) + INTERVAL * (cp.diag(kernel.sum(axis=1)) - kernel)


def main() -> None:
    args = arguments(__doc__)
    operator = boundary_operator()
    factors = lu_factor(operator) if args.variant == "cured" else None
    heat = cp.exp(-(cp.linspace(-3, 3, PANELS) ** 2))
    source = cp.sin(cp.arange(PANELS) / 50) * INTERVAL
    history = cp.zeros((64, PANELS))

    def step(index: int) -> None:
        nonlocal heat
        nvtx.RangePush("source")
        right = heat + source * cp.cos(cp.float64(index * INTERVAL))
        nvtx.RangePop()
        nvtx.RangePush("solve")
        heat = lu_solve(factors, right, check_finite=False) if factors else cp.linalg.solve(operator, right)
        nvtx.RangePop()
        history[index % 64] = heat

    measure(args, step, cp.cuda.Device().synchronize)


main()
