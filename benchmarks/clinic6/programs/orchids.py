"""Fit a mixture of normal distributions to measurements of orchids by expectation maximization (JAX)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from harness import arguments, measure

FLOWERS, TRAITS, KINDS = 500_000, 8, 16

Model = tuple[jax.Array, jax.Array, jax.Array]


def improve(data: jax.Array, model: Model) -> Model:
    shares, means, variances = model
    offsets = data[:, None, :] - means[None]
    fits = (
        -0.5 * jnp.sum(offsets * offsets / variances[None] + jnp.log(variances)[None], axis=-1) + jnp.log(shares)[None]
    )
    top = jnp.max(fits, axis=1, keepdims=True)
    weights = jnp.exp(fits - top)
    weights = weights / jnp.sum(weights, axis=1, keepdims=True)
    totals = jnp.sum(weights, axis=0) + 1e-6
    means = weights.T @ data / totals[:, None]
    variances = weights.T @ (data * data) / totals[:, None] - means * means
    return totals / data.shape[0], means, jnp.maximum(variances, 1e-3)


def main() -> None:
    args = arguments(__doc__)
    keys = jax.random.split(jax.random.key(0), 3)
    centres = 3 * jax.random.normal(keys[0], (KINDS, TRAITS))
    kinds = jax.random.randint(keys[1], (FLOWERS,), 0, KINDS)
    data = centres[kinds] + jax.random.normal(keys[2], (FLOWERS, TRAITS))
    model: Model = jnp.full(KINDS, 1 / KINDS), data[:KINDS], jnp.full((KINDS, TRAITS), 4.0)
    advance = jax.jit(improve) if args.variant == "cured" else improve

    def step(_: int) -> None:
        nonlocal model
        model = advance(data, model)

    measure(args, step, lambda: jax.block_until_ready(model))


main()
