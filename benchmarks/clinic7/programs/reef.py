"""Seismic imaging of the sea floor: migration at constant speed by a filter of the spectrum, in CuPy."""

import cupy as cp
import harness
import numpy as np

SHOTS, ACROSS, TIMES, SPACING, INTERVAL, SPEED, DEPTH = 24, 1024, 2048, 5.0, 0.002, 1800.0, 400.0


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the images of 24 shots at one depth."""
    precision = np.float64 if ailing else np.float32  # NumPy's and CuPy's own precision is float64
    random = np.random.default_rng(0)
    sections = cp.asarray(random.standard_normal((SHOTS, ACROSS, TIMES)), dtype=precision)
    gain = cp.linspace(0, 1, TIMES, dtype=precision) ** 2
    wave_numbers = 2 * np.pi * cp.fft.fftfreq(ACROSS, SPACING)[:, None]
    vertical = cp.sqrt(cp.maximum((2 * np.pi * cp.fft.rfftfreq(TIMES, INTERVAL) / SPEED) ** 2 - wave_numbers**2, 0))
    shift = cp.exp(1j * vertical * DEPTH).astype(np.result_type(precision, np.complex64))
    image = cp.zeros((ACROSS, TIMES), dtype=precision)

    def step(_: int) -> None:
        spectrum = cp.fft.rfft2(sections * gain)
        spectrum *= shift
        image[...] += cp.fft.irfft2(spectrum).sum(axis=0)

    return step


if __name__ == "__main__":
    harness.run(build, cp.cuda.Device().synchronize)
