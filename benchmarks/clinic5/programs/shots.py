"""Whiten the spectra of seismic shots before they are stacked; each was cut to a length that transforms well."""

from __future__ import annotations

import cupy as cp
from cupy.cuda import nvtx
from harness import arguments, measure

RECEIVERS, SHOTS, SMOOTH = 48, 24, 1e-3


def is_smooth(length: int) -> bool:
    """Tell whether a transform of this length needs no prime beyond seven."""
    for prime in (2, 3, 5, 7):
        while length % prime == 0:
            length //= prime
    return length == 1


def whiten(shot: cp.ndarray) -> cp.ndarray:
    """Divide each receiver's spectrum by its size."""
    spectrum = cp.fft.rfft(shot, axis=1)
    spectrum /= cp.abs(spectrum) + SMOOTH
    return cp.fft.irfft(spectrum, n=shot.shape[1], axis=1)


def main() -> None:
    args = arguments(__doc__)
    if args.variant == "cured":
        cp.fft.config.get_plan_cache().set_size(4 * SHOTS)
    generator = cp.random.default_rng(16)
    lengths = [length for length in range(4000, 9000, 8) if is_smooth(length)][:SHOTS]
    shots = [generator.standard_normal((RECEIVERS, length), dtype=cp.float32) for length in lengths]
    stack = cp.zeros((RECEIVERS, min(lengths)), dtype=cp.float32)

    def step(index: int) -> None:  # noqa: ARG001
        stack.fill(0)
        for number, shot in enumerate(shots):
            nvtx.RangePush(f"shot {number}")
            cp.add(stack, whiten(shot)[:, : stack.shape[1]], out=stack)
            nvtx.RangePop()

    measure(args, step, cp.cuda.Device().synchronize)


main()
