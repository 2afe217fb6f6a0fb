"""Value Asian options by simulation: each scenario draws the paths of its own seed, so that it can be repeated."""

from __future__ import annotations

import cupy as cp
from cupy.cuda import nvtx
from harness import arguments, measure

PATHS, DATES, SCENARIOS = 200_000, 24, 4
RATE, VOLATILITY, YEARS, SPOT = 0.02, 0.25, 1.0, 100.0

payoff = cp.ReductionKernel(
    "float32 mean, float32 strike",
    "float64 total",
    "fmaxf(mean - strike, 0.0f)",
    "a + b",
    "total = a",
    "0.0",
    "asian_payoff",
)


def price(normals: cp.ndarray, strike: float) -> cp.ndarray:
    """Return the discounted mean payoff of an average-price call."""
    interval = YEARS / DATES
    moves = (RATE - VOLATILITY**2 / 2) * interval + VOLATILITY * interval**0.5 * normals
    means = SPOT * cp.exp(cp.cumsum(moves, axis=0)).mean(axis=0)
    return payoff(means, cp.float32(strike)) * (cp.exp(-RATE * YEARS) / PATHS)


def main() -> None:
    args = arguments(__doc__)
    shared = cp.random.RandomState(17) if args.variant == "cured" else None
    prices = cp.zeros(SCENARIOS)

    def step(index: int) -> None:
        for scenario in range(SCENARIOS):
            nvtx.RangePush("paths")
            generator = shared or cp.random.RandomState(seed=1000 * index + scenario)
            normals = generator.standard_normal((DATES, PATHS), dtype=cp.float32)
            nvtx.RangePop()
            nvtx.RangePush("price")
            prices[scenario] = price(normals, 90.0 + 5 * scenario)
            nvtx.RangePop()

    measure(args, step, cp.cuda.Device().synchronize)


main()
