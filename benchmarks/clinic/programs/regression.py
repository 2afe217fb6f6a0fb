"""Fit a wide network on tables with JAX.

Ailing: jax_default_matmul_precision is "highest", so the products are FP32 without tensor cores.
Cured: "tensorfloat32".
"""

import harness
import jax
import jax.numpy as jnp


def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Return the mean squared output."""
    for weight in weights:
        x = jax.nn.relu(x @ weight)
    return jnp.square(x).mean()


@jax.jit
def update(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Take one gradient step."""
    return weights - 1e-3 * jax.grad(loss)(weights, x)


def main() -> None:
    args = harness.arguments(__doc__)
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if args.variant == "cured" else "highest")
    weights = jax.random.normal(jax.random.key(0), (6, 2048, 2048)) * 0.02
    x = jax.random.normal(jax.random.key(1), (8192, 2048))

    def step(_: int) -> None:
        nonlocal weights
        weights = update(weights, x)

    harness.measure(args, step, lambda: jax.block_until_ready(weights))


if __name__ == "__main__":
    main()
