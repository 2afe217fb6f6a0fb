"""Solve the Poisson equation by conjugate gradients; a step is ten iterations.

Ailing: the dot products are read back as Python floats twice an iteration.
Cured: they stay on the device as arrays of one element.
"""

import cupy as cp
import harness

laplace = cp.ElementwiseKernel(
    "raw T field, int32 width, int32 height",
    "T result",
    """
    int row = i / width, column = i % width;
    T neighbors = (column ? field[i - 1] : 0) + (column + 1 < width ? field[i + 1] : 0)
             + (row ? field[i - width] : 0) + (row + 1 < height ? field[i + width] : 0);
    result = 4 * field[i] - neighbors;
    """,
    "laplace",
)

add = cp.ElementwiseKernel(
    "T sign, T over, T under, T change", "T value", "value += sign * over / under * change", "add"
)
turn = cp.ElementwiseKernel(
    "T latest, T earlier, T rest", "T direction", "direction = rest + latest / earlier * direction", "turn"
)


def main() -> None:
    args = harness.arguments(__doc__)
    cp.random.seed(0)
    size = 2048
    x = cp.zeros(size * size)
    residual = cp.random.standard_normal(size * size)
    direction, product = residual.copy(), cp.empty_like(residual)
    old = cp.dot(residual, residual)

    def scalar(value: cp.ndarray) -> cp.ndarray | float:
        return value if args.variant == "cured" else float(value)

    old = scalar(old)

    def step(_: int) -> None:
        nonlocal old
        for _iteration in range(10):
            laplace(direction, size, size, product)
            curvature = scalar(cp.dot(direction, product))
            add(1.0, old, curvature, direction, x)
            add(-1.0, old, curvature, product, residual)
            new = scalar(cp.dot(residual, residual))
            turn(new, old, residual, direction)
            old = new

    harness.measure(args, step, cp.cuda.Device().synchronize)


if __name__ == "__main__":
    main()
