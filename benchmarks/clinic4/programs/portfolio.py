"""Portfolio: values of many portfolios under many scenarios, one function per portfolio."""

import jax
import jax.numpy as jnp
from harness import arguments, measure

PORTFOLIOS, SCENARIOS, ASSETS = 512, 256, 64

args = arguments(__doc__)
keys = jax.random.split(jax.random.key(0), 2)
weights = jax.random.normal(keys[0], (PORTFOLIOS, ASSETS))
returns = jax.random.normal(keys[1], (SCENARIOS, ASSETS)) * 0.02


def shortfall(weight: jax.Array) -> jax.Array:
    values = jnp.tanh(returns @ weight)
    return jnp.sort(values)[:12].mean() - values.mean()


@jax.jit
def value(weights: jax.Array) -> jax.Array:
    return jax.vmap(shortfall)(weights) if args.variant == "cured" else jax.lax.map(shortfall, weights)


result = value(weights)


def step(index: int) -> None:
    global result  # noqa: PLW0603
    result = value(weights + 0.001 * index)


measure(args, step, lambda: jax.block_until_ready(result), 3)
