"""A summary of the columns of a table (payments by branch): moments and quantiles, in CuPy."""

import cupy as cp
import harness
from cupyx.profiler import time_range

ROWS, COLUMNS, QUANTILES = 60_000, 64, (5, 25, 50, 75, 95)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the summary of one part of the table."""
    generator = cp.random.default_rng(0)
    parts = [generator.standard_normal((COLUMNS, ROWS), dtype=cp.float32) for _ in range(4)]

    def step(number: int) -> None:
        part = parts[number % len(parts)]
        with time_range("summary"):
            with time_range("moments"):
                mean, spread = part.mean(axis=1), part.std(axis=1)
                skew = (((part - mean[:, None]) / spread[:, None]) ** 3).mean(axis=1)
            with time_range("quantiles"):
                if ailing:
                    quantiles = cp.stack([cp.percentile(part, q, axis=1) for q in QUANTILES])
                else:
                    quantiles = cp.percentile(part, QUANTILES, axis=1)
            cp.concatenate([mean[None], spread[None], skew[None], quantiles.astype(cp.float32)]).get()

    return step


if __name__ == "__main__":
    harness.run(build, cp.cuda.Device().synchronize)
