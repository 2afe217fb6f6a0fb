"""Seismic imaging (Kirchhoff migration) of the sea floor, one frequency of a shot at a time, in CuPy."""

import cupy as cp
import harness
import numpy as np

DEPTHS, ACROSS, RECEIVERS, SPACING, SPEED = 256, 512, 240, 5.0, 1800.0


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the image of one frequency."""
    precision = np.float64 if ailing else np.float32  # NumPy's and CuPy's own precision is float64
    random = np.random.default_rng(0)
    parts = random.standard_normal((2, 4, RECEIVERS, 1, 1))
    spectra = cp.asarray(parts[0] + 1j * parts[1], dtype=np.result_type(precision, np.complex64))
    x = cp.linspace(0, SPACING * ACROSS, ACROSS, dtype=precision)[None, None, :]
    z = cp.linspace(SPACING, SPACING * DEPTHS, DEPTHS, dtype=precision)[None, :, None]
    receivers = cp.linspace(100, 2400, RECEIVERS, dtype=precision)[:, None, None]
    image = cp.zeros((DEPTHS, ACROSS), dtype=precision)

    def step(number: int) -> None:
        source = 200.0 + 50.0 * (number % 40)
        wave_number = 2 * np.pi * (5 + number % 60) / SPEED
        down = cp.sqrt((x - source) ** 2 + z**2)
        up = cp.sqrt((x - receivers) ** 2 + z**2)
        wave = cp.exp(1j * (wave_number * (down + up)))
        value = spectra[number % len(spectra)] * wave * (z / up)
        image[...] += value.sum(axis=0).real

    return step


if __name__ == "__main__":
    harness.run(build, cp.cuda.Device().synchronize)
