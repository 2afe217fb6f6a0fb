"""Relax: temperature of a plate, relaxed until it changes little."""

import jax
import jax.numpy as jnp
from harness import arguments, measure

SIDE, SWEEPS, LIMIT = 512, 200, 1e-9

args = arguments(__doc__)
sweeps_per_check = 50 if args.variant == "cured" else 1
heat = jax.random.uniform(jax.random.key(0), (SIDE, SIDE))


def sweep(plate: jax.Array) -> jax.Array:
    neighbor_sum = jnp.roll(plate, 1, 0) + jnp.roll(plate, -1, 0) + jnp.roll(plate, 1, 1) + jnp.roll(plate, -1, 1)
    return 0.25 * neighbor_sum


@jax.jit
def solve(plate: jax.Array) -> jax.Array:
    def goes_on(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return (state[1] > LIMIT) & (state[2] < SWEEPS)

    def body(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        plate, _, count = state
        for _ in range(sweeps_per_check - 1):
            plate = sweep(plate)
        new = sweep(plate)
        return new, jnp.max(jnp.abs(new - plate)), count + sweeps_per_check

    return jax.lax.while_loop(goes_on, body, (plate, jnp.float32(1), 0))[0]


result = solve(heat)


def step(index: int) -> None:
    global result  # noqa: PLW0603
    result = solve(heat + 0.01 * index)


measure(args, step, lambda: jax.block_until_ready(result), 2)
