"""Shallow water in a closed basin: finite differences on a large grid in JAX."""

import jax
import jax.numpy as jnp
from harness import arguments, measure

SIZE = 6144

args = arguments(__doc__)


def slope(field: jax.Array, axis: int) -> jax.Array:
    return (jnp.roll(field, -1, axis) - jnp.roll(field, 1, axis)) * 0.5


@jax.jit
def advance(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
    height, east, north = state
    east = east - 0.05 * slope(height, 1)
    north = north - 0.05 * slope(height, 0)
    return height - 0.05 * (slope(east, 1) + slope(north, 0)), east, north


axis = jnp.linspace(-1, 1, SIZE)
bump = jnp.exp(-50 * (axis[:, None] ** 2 + axis**2))
state = (bump, jnp.zeros_like(bump), jnp.zeros_like(bump))


def step(_: int) -> None:
    global state  # noqa: PLW0603
    for _ in range(4):
        state = advance(state)


measure(args, step, lambda: jax.block_until_ready(state))
