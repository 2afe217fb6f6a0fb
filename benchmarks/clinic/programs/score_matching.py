"""Train a small network on a score function.

Ailing: the step is not jitted: each operation is compiled and dispatched on its own.
Cured: jax.jit over the full step.
"""

import harness
import jax
import jax.numpy as jnp


def predict(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    """Run the network."""
    for weight in weights[:-1]:
        x = jax.nn.gelu(x @ weight)
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x @ weights[-1]


def loss(weights: list[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the mean squared error."""
    return ((predict(weights, x) - y) ** 2).mean()


def update(weights: list[jax.Array], x: jax.Array, y: jax.Array) -> list[jax.Array]:
    """Take one gradient step."""
    gradients = jax.grad(loss)(weights, x, y)
    return [w - 1e-3 * g for w, g in zip(weights, gradients, strict=True)]


def main() -> None:
    args = harness.arguments(__doc__)
    keys = jax.random.split(jax.random.key(0), 6)
    weights = [jax.random.normal(key, (256, 256)) * 0.06 for key in keys[:4]]
    x, y = jax.random.normal(keys[4], (1024, 256)), jax.random.normal(keys[5], (1024, 256))
    function = jax.jit(update) if args.variant == "cured" else update

    def step(_: int) -> None:
        nonlocal weights
        weights = function(weights, x, y)

    harness.measure(args, step, lambda: jax.block_until_ready(weights))


if __name__ == "__main__":
    main()
