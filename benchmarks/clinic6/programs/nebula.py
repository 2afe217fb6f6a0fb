"""Sharpen the exposures of a nebula: calibrate, remove the stripes of the rows, deconvolve (CuPy)."""

from __future__ import annotations

import cupy
from cupyx.profiler import time_range
from harness import arguments, measure

SIDE, ROUNDS = 2048, 30


def main() -> None:
    args = arguments(__doc__)
    random = cupy.random.default_rng(0)
    exposures = random.random((4, SIDE, SIDE), dtype=cupy.float32) + 1
    dark = random.random((SIDE, SIDE), dtype=cupy.float32) * 0.1
    flat = random.random((SIDE, SIDE), dtype=cupy.float32) * 0.2 + 0.9
    offset = cupy.minimum(cupy.arange(SIDE), SIDE - cupy.arange(SIDE)).astype(cupy.float32)
    blur = cupy.exp(-(offset[:, None] ** 2 + offset[None] ** 2) / 8)
    lens = cupy.fft.rfft2(blur / blur.sum())

    def level(image: cupy.ndarray) -> cupy.ndarray:
        if args.variant == "cured":
            return image - image.mean(axis=1, keepdims=True) + 1
        host_image = cupy.asnumpy(image)
        host_image = host_image - host_image.mean(axis=1, keepdims=True) + 1
        return cupy.asarray(host_image)

    def sharpen(image: cupy.ndarray) -> cupy.ndarray:
        guess = image
        for _ in range(ROUNDS):
            blurred = cupy.fft.irfft2(cupy.fft.rfft2(guess) * lens, s=image.shape)
            ratio = image / cupy.maximum(blurred, 1e-3)
            guess = guess * cupy.fft.irfft2(cupy.fft.rfft2(ratio) * lens.conj(), s=image.shape)
        return guess

    def step(index: int) -> None:
        with time_range("calibrate"):
            image = (exposures[index % 4] - dark) / flat
        with time_range("stripes"):
            image = level(image)
        with time_range("deconvolve"):
            sharpen(image)

    measure(args, step, cupy.cuda.Device().synchronize)


main()
