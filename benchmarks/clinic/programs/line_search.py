"""Minimize a function by gradient steps whose length depends on the progress.

Ailing: Python decides after each iteration, so each iteration reads a value back.
Cured: jax.lax.cond decides on the device.
"""

import harness
import jax
import jax.numpy as jnp


def value(x: jax.Array, matrix: jax.Array) -> jax.Array:
    """Return the value to minimize."""
    return jnp.log1p(jnp.square(matrix @ x - 1)).mean() + 1e-3 * jnp.square(x).sum()


@jax.jit
def propose(x: jax.Array, matrix: jax.Array, rate: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the next point and whether it is better."""
    gradient = jax.grad(value)(x, matrix)
    candidate = x - rate * gradient
    return candidate, value(candidate, matrix) < value(x, matrix)


@jax.jit
def iterate(x: jax.Array, matrix: jax.Array, rate: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Take the proposal if it is better, halve the rate otherwise."""
    candidate, is_better = propose(x, matrix, rate)
    return jax.lax.cond(is_better, lambda: (candidate, rate * 1.1), lambda: (x, rate * 0.5))


def main() -> None:
    args = harness.arguments(__doc__)
    matrix = jax.random.normal(jax.random.key(0), (1024, 512)) * 0.04
    x, rate = jnp.zeros(512), jnp.asarray(0.5)

    def step(_: int) -> None:
        nonlocal x, rate
        if args.variant == "cured":
            x, rate = iterate(x, matrix, rate)
            return
        candidate, is_better = propose(x, matrix, rate)
        if is_better:
            x, rate = candidate, rate * 1.1
        else:
            rate = rate * 0.5

    harness.measure(args, step, lambda: jax.block_until_ready(x), warmup=20)


if __name__ == "__main__":
    main()
