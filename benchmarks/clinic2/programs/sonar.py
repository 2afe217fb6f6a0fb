"""Sonar: echoes of many pings are compressed with the sent pulse in frequency space, in CuPy."""

import cupy as cp
from harness import arguments, measure

PINGS, SAMPLES = 384, 16384

args = arguments(__doc__)
cp.random.seed(0)
echoes = cp.random.standard_normal((PINGS, SAMPLES), dtype=cp.float32).astype(cp.complex64)
pulse = cp.conj(cp.fft.fft(cp.exp(1j * cp.linspace(0, 300, SAMPLES) ** 2).astype(cp.complex64)))


def compress(echoes: cp.ndarray) -> cp.ndarray:
    if args.variant == "cured":
        return cp.fft.ifft(cp.fft.fft(echoes, axis=1) * pulse, axis=1)
    result = cp.empty_like(echoes)
    for ping in range(PINGS):
        result[ping] = cp.fft.ifft(cp.fft.fft(echoes[ping]) * pulse)
    return result


def step(_: int) -> cp.ndarray:
    return cp.abs(compress(echoes)).max(axis=1)


measure(args, step, cp.cuda.Device().synchronize)
