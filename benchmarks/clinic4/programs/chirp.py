"""Chirp: spectra of echoes with a prime number of samples each."""

import cupy as cp
from harness import arguments, measure

ECHOES, SAMPLES, SIZE = 2048, 16381, 16384

args = arguments(__doc__)
source = cp.random.default_rng(0)
echoes = source.standard_normal((2, ECHOES, SAMPLES), dtype=cp.float32)
window = cp.hanning(SAMPLES).astype(cp.float32)
size = SIZE if args.variant == "cured" else SAMPLES


def step(index: int) -> cp.ndarray:
    return cp.abs(cp.fft.rfft(echoes[index % 2] * window, size, axis=1)).max(axis=1)


measure(args, step, cp.cuda.Device().synchronize)
