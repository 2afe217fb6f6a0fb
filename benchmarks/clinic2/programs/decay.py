"""Decay curves: fit of amplitudes and rates to many samples curves by gradient descent in JAX."""

from functools import partial

import jax
import jax.numpy as jnp
from harness import arguments, measure

CURVES, SAMPLES, TERMS = 4096, 512, 4

args = arguments(__doc__)
times = jnp.linspace(0, 5, SAMPLES)
keys = jax.random.split(jax.random.key(0), 2)
samples = jnp.exp(-times) + 0.01 * jax.random.normal(keys[0], (CURVES, SAMPLES))


def loss(parameters: dict[str, jax.Array], curves: jax.Array) -> jax.Array:
    terms = parameters["amplitude"][:, :, None] * jnp.exp(-parameters["rate"][:, :, None] * times)
    return jnp.mean((terms.sum(1) - curves) ** 2)


def descend(parameters: dict[str, jax.Array], curves: jax.Array, speed: float) -> dict[str, jax.Array]:
    gradients = jax.grad(loss)(parameters, curves)
    return jax.tree.map(lambda value, gradient: value - speed * gradient, parameters, gradients)


update = jax.jit(descend) if args.variant == "cured" else partial(jax.jit, static_argnames="speed")(descend)
state = {
    "amplitude": jnp.full((CURVES, TERMS), 1 / TERMS),
    "rate": 0.5 + jax.random.uniform(keys[1], (CURVES, TERMS)),
}


def step(index: int) -> None:
    global state  # noqa: PLW0603
    state = update(state, samples, speed=10.0 * 0.99**index)


measure(args, step, lambda: jax.block_until_ready(state), 3)
