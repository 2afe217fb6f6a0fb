"""Separate the phases of an alloy: a Cahn-Hilliard equation whose time step grows as the field settles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from harness import arguments, measure

SIZE, SUBSTEPS, GRADIENT = 1024, 1, 0.5


def laplacian(field: jax.Array) -> jax.Array:
    """Compute the Laplacian on a torus."""
    neighbours = jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) + jnp.roll(field, 1, 1) + jnp.roll(field, -1, 1)
    return neighbours - 4 * field


def advance(field: jax.Array, interval: float) -> tuple[jax.Array, jax.Array]:
    """Advance by explicit steps; return the field and its free energy."""
    for _ in range(SUBSTEPS):
        potential = field**3 - field - GRADIENT * laplacian(field)
        field = field + interval * laplacian(potential)
    energy = jnp.sum((field**2 - 1) ** 2) / 4
    return field, energy


def interval_at(index: int) -> float:
    """Return the step's length in time: it grows towards a bound."""
    return 0.02 * (1 - 0.9 ** (1 + index / 50)) + 1e-9 * index


def main() -> None:
    args = arguments(__doc__)
    static = () if args.variant == "cured" else ("interval",)
    run = jax.jit(advance, static_argnames=static)
    state = [0.1 * jax.random.normal(jax.random.key(14), (SIZE, SIZE)), jnp.zeros(())]

    def step(index: int) -> None:
        state[:] = run(state[0], interval=interval_at(index))

    measure(args, step, lambda: jax.block_until_ready(state))


main()
