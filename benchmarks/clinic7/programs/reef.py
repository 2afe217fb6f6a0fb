"""Seismic imaging (Kirchhoff migration) of the sea floor, one shot at a time, in CuPy."""

import cupy as cp
import harness
import numpy as np

DEPTHS, ACROSS, RECEIVERS, SAMPLES, SPACING, SPEED, INTERVAL = 256, 512, 240, 2000, 5.0, 1800.0, 0.002


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the image of one shot."""
    precision = np.float64 if ailing else np.float32  # NumPy's and CuPy's own precision is float64
    random = np.random.default_rng(0)
    shots = [cp.asarray(random.standard_normal((RECEIVERS, SAMPLES)), dtype=precision) for _ in range(4)]
    x = cp.linspace(0, SPACING * ACROSS, ACROSS, dtype=precision)[None, None, :]
    z = cp.linspace(SPACING, SPACING * DEPTHS, DEPTHS, dtype=precision)[None, :, None]
    receivers = cp.linspace(100, 2400, RECEIVERS, dtype=precision)[:, None, None]
    rows = cp.arange(RECEIVERS)[:, None, None]
    image = cp.zeros((DEPTHS, ACROSS), dtype=precision)

    def step(number: int) -> None:
        source = 200.0 + 50.0 * (number % 40)
        down = cp.sqrt((x - source) ** 2 + z**2)
        up = cp.sqrt((x - receivers) ** 2 + z**2)
        time = (down + up) / SPEED
        sample = cp.minimum(time / INTERVAL, SAMPLES - 2)
        before = cp.floor(sample)
        part = sample - before
        place = before.astype(cp.int32)
        traces = shots[number % len(shots)]
        value = traces[rows, place] * (1 - part) + traces[rows, place + 1] * part
        image[...] += (value * (z / up) / cp.sqrt(up)).sum(axis=0)

    return step


if __name__ == "__main__":
    harness.run(build, cp.cuda.Device().synchronize)
