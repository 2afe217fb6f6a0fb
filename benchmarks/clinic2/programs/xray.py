"""X-ray pictures: contrast is equalized and edges are sharpened, picture by picture, in CuPy."""

import cupy as cp
from harness import arguments, measure

HEIGHT, WIDTH = 3072, 3072

args = arguments(__doc__)
cp.random.seed(0)
pictures = cp.random.random((4, HEIGHT, WIDTH), dtype=cp.float32)
pool = cp.get_default_memory_pool()


def sharpen(picture: cp.ndarray) -> cp.ndarray:
    logarithm = cp.log1p(picture)
    blurred = logarithm.copy()
    blurred[1:-1] += logarithm[:-2] + logarithm[2:]
    blurred[:, 1:-1] += logarithm[:, :-2] + logarithm[:, 2:]
    edges = logarithm - 0.2 * blurred
    return cp.clip(logarithm + 0.5 * edges, 0, 1)


def step(index: int) -> cp.ndarray:
    result = sharpen(pictures[index % 4])
    summary = result.mean(axis=0)
    if args.variant == "ailing":
        del result
        pool.free_all_blocks()
    return summary


measure(args, step, cp.cuda.Device().synchronize)
