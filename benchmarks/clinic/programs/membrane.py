"""Integrate the wave equation on a small membrane; a step is five time steps.

Ailing: slices and operators launch a dozen small kernels for each time step.
Cured: one ElementwiseKernel does a time step.
"""

import cupy as cp
import harness

SIZE = 256

advance = cp.ElementwiseKernel(
    "raw T now, raw T before, int32 size",
    "T after",
    """
    int row = i / size, column = i % size;
    if (row == 0 || column == 0 || row == size - 1 || column == size - 1) { after = 0; return; }
    T laplacian = now[i - 1] + now[i + 1] + now[i - size] + now[i + size] - 4 * now[i];
    after = 1.999f * now[i] - 0.999f * before[i] + 0.2f * laplacian;
    """,
    "advance",
)


def main() -> None:
    args = harness.arguments(__doc__)
    cp.random.seed(0)
    before = cp.random.standard_normal((SIZE, SIZE), dtype=cp.float32)
    now = before.copy()

    def step(_: int) -> None:
        nonlocal before, now
        for _time in range(5):
            after = cp.zeros_like(now)
            if args.variant == "cured":
                advance(now, before, SIZE, after)
            else:
                inner = now[1:-1, 1:-1]
                laplacian = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - 4 * inner
                after[1:-1, 1:-1] = 1.999 * inner - 0.999 * before[1:-1, 1:-1] + 0.2 * laplacian
            before, now = now, after

    harness.measure(args, step, cp.cuda.Device().synchronize, is_marked=False)


if __name__ == "__main__":
    main()
