"""Seismic imaging (Kirchhoff migration in two dimensions) of the sea floor, one frequency of a shot at a time, in CuPy."""

import cupy as cp
import harness
import numpy as np
from cupyx.scipy.special import j0, y0

DEPTHS, ACROSS, RECEIVERS, SPACING, SPEED = 256, 512, 320, 5.0, 1800.0


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the image of one frequency."""
    precision = np.float64 if ailing else np.float32  # NumPy's and CuPy's own precision is float64
    random = np.random.default_rng(0)
    spectra = cp.asarray(random.standard_normal((4, 2, RECEIVERS)), dtype=precision)
    x = cp.linspace(0, SPACING * ACROSS, ACROSS, dtype=precision)[None, None, :]
    z = cp.linspace(SPACING, SPACING * DEPTHS, DEPTHS, dtype=precision)[None, :, None]
    receivers = cp.linspace(100, 2400, RECEIVERS, dtype=precision)[:, None, None]
    image = cp.zeros(DEPTHS * ACROSS, dtype=precision)

    def step(number: int) -> None:
        wave_number = 2 * np.pi * (5 + number % 60) / SPEED
        across, down = (wave_number * (x - receivers)) ** 2, (wave_number * z) ** 2
        phase = cp.sqrt(across + down).reshape(RECEIVERS, -1)
        real, imaginary = spectra[number % len(spectra)]
        image[...] += real @ j0(phase) - imaginary @ y0(phase)

    return step


if __name__ == "__main__":
    harness.run(build, cp.cuda.Device().synchronize)
