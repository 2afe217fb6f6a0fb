"""Blur: large pictures smoothed before stars are searched."""

import cupy as cp
from cupyx.scipy import ndimage
from harness import arguments, measure

SIDE, RADIUS = 2048, 20

args = arguments(__doc__)
pictures = cp.random.default_rng(0).standard_normal((2, SIDE, SIDE), dtype=cp.float32)
line = cp.exp(-0.5 * (cp.arange(-RADIUS, RADIUS + 1, dtype=cp.float32) / 6) ** 2)
line /= line.sum()
square = line[:, None] * line


def step(index: int) -> cp.ndarray:
    picture = pictures[index % 2]
    if args.variant == "cured":
        smooth = ndimage.convolve1d(ndimage.convolve1d(picture, line, 0), line, 1)
    else:
        smooth = ndimage.convolve(picture, square)
    return cp.where(picture - smooth > 3, picture, 0)


measure(args, step, cp.cuda.Device().synchronize)
