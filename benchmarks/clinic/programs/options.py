"""Price options with the Black-Scholes formula.

Ailing: each arithmetic operation is a kernel of its own over arrays of 8 million elements.
Cured: cupy.fuse makes one kernel of the formula.
"""

import cupy as cp
import harness


def price(spot: cp.ndarray, strike: cp.ndarray, years: cp.ndarray) -> cp.ndarray:
    """Return the price of a call, with a logistic approximation of the normal distribution."""
    rate, volatility = 0.03, 0.25
    spread = volatility * cp.sqrt(years)
    upper = (cp.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    lower = upper - spread
    return spot / (1 + cp.exp(-1.702 * upper)) - strike * cp.exp(-rate * years) / (1 + cp.exp(-1.702 * lower))


def main() -> None:
    args = harness.arguments(__doc__)
    cp.random.seed(0)
    ranges = ((80, 120), (80, 120), (0.1, 2))
    spot, strike, years = (cp.random.uniform(low, high, 1 << 23).astype(cp.float32) for low, high in ranges)
    function = cp.fuse(price) if args.variant == "cured" else price

    def step(_: int) -> None:
        function(spot, strike, years)

    harness.measure(args, step, cp.cuda.Device().synchronize)


if __name__ == "__main__":
    main()
