"""Correlator of a radio telescope: spectra of the voltages of the antennas, then products of all pairs of them."""

import cupy as cp
import harness
import numpy as np

ANTENNAS, SPECTRA, SAMPLES = 64, 256, 2048


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the visibilities of an interval."""
    generator = cp.random.default_rng(0)
    intervals = [generator.standard_normal((ANTENNAS, SPECTRA, SAMPLES), dtype=cp.float32) for _ in range(3)]
    window = np.hanning(SAMPLES)
    window = cp.asarray(window if ailing else window.astype(np.float32))

    def step(number: int) -> cp.ndarray:
        voltages = intervals[number % len(intervals)]
        spectra = cp.fft.rfft(voltages * window, axis=2)
        power = (cp.abs(spectra) ** 2).mean(axis=1)
        by_channel = cp.ascontiguousarray(spectra.transpose(2, 0, 1))
        visibilities = by_channel @ by_channel.conj().transpose(0, 2, 1) / SPECTRA
        scale = cp.sqrt(power).T
        return visibilities / (scale[:, :, None] * scale[:, None, :])

    return step


if __name__ == "__main__":
    harness.run(build, cp.cuda.Device().synchronize)
