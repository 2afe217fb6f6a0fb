"""Value Asian options by simulation: each scenario draws the paths of its own seed, so that it can be repeated."""

from __future__ import annotations

import math

import cupy as cp
from cupy.cuda import nvtx
from harness import arguments, measure

PATHS, DATES, SCENARIOS = 200_000, 24, 4
RATE, VOLATILITY, YEARS, SPOT = 0.02, 0.25, 1.0, 100.0

walk = cp.ElementwiseKernel(
    "raw float32 normals, int32 dates, int32 paths, float32 drift, float32 spread, float32 spot, float32 strike",
    "float32 payoff",
    """
    float logarithm = 0, sum = 0;
    for (int date = 0; date < dates; ++date) {
        logarithm += drift + spread * normals[(long long)date * paths + i];
        sum += __expf(logarithm);
    }
    payoff = fmaxf(spot * sum / dates - strike, 0.0f);
    """,
    "walk_asian_paths",
)


def price(normals: cp.ndarray, strike: float) -> cp.ndarray:
    """Return the discounted mean payoff of an average-price call."""
    interval = YEARS / DATES
    drift, spread = (RATE - VOLATILITY**2 / 2) * interval, VOLATILITY * interval**0.5
    payoffs = walk(normals, DATES, PATHS, drift, spread, SPOT, strike, size=PATHS)
    return payoffs.mean(dtype=cp.float64) * math.exp(-RATE * YEARS)


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
