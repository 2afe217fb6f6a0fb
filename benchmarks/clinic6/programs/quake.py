"""Propagate the waves of an earthquake through a model of the ground (JAX, finite differences)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from harness import arguments, measure

SIDE, INNER = 256, 20

Waves = tuple[jax.Array, jax.Array]


@jax.jit
def propagate(waves: Waves, speed: jax.Array) -> Waves:
    def advance(_: int, state: Waves) -> Waves:
        now, before = state
        total = sum((jnp.roll(now, shift, axis) for axis in range(3) for shift in (-1, 1)), -6 * now)
        return 2 * now - before + 0.1 * speed * speed * total, now

    return jax.lax.fori_loop(0, INNER, advance, waves)


def main() -> None:
    args = arguments(__doc__)
    ground = np.linspace(0.2, 1, SIDE**3, dtype=np.float32).reshape(SIDE, SIDE, SIDE)
    speed = jax.device_put(ground) if args.variant == "cured" else ground
    first = jnp.zeros((SIDE, SIDE, SIDE)).at[SIDE // 2, SIDE // 2, SIDE // 2].set(1)
    waves: Waves = (first, first)

    def step(_: int) -> None:
        nonlocal waves
        waves = propagate(waves, speed)

    measure(args, step, lambda: jax.block_until_ready(waves))


main()
