"""Heat in a furnace: diffusion in a section of 1024 x 1024 cells, and radiation with a measured emissivity."""

from functools import partial

import harness
import jax
import jax.numpy as jnp
import numpy as np

CELLS, INTERVALS, DIFFUSIONS = 1024, 8, 4
TABLE_T = np.linspace(300, 2500, 220, dtype=np.float32)
TABLE_E = (0.3 + 0.5 * np.exp(-((TABLE_T - 1400) ** 2) / 3e5)).astype(np.float32)
latest: dict[str, jax.Array] = {}


def look_up(temperature: np.ndarray) -> np.ndarray:
    """Return the emissivity of each layer by the table."""
    return np.interp(temperature, TABLE_T, TABLE_E).astype(np.float32)


@partial(jax.jit, static_argnames="ailing")
def advance(t: jax.Array, flame: jax.Array, *, ailing: bool) -> jax.Array:
    """Return the temperatures after eight intervals."""

    def diffuse(_: int, t: jax.Array) -> jax.Array:
        neighbors = jnp.roll(t, 1, 0) + jnp.roll(t, -1, 0) + jnp.roll(t, 1, 1) + jnp.roll(t, -1, 1)
        return t + 0.2 * (neighbors - 4 * t) + flame

    def interval(t: jax.Array, _: None) -> tuple[jax.Array, None]:
        t = jax.lax.fori_loop(0, DIFFUSIONS, diffuse, t)
        layers = t.mean(axis=1)
        if ailing:
            emissivity = jax.pure_callback(look_up, jax.ShapeDtypeStruct(layers.shape, layers.dtype), layers)
        else:
            place = (layers - TABLE_T[0]) / (TABLE_T[1] - TABLE_T[0])
            lower = jnp.clip(place.astype(int), 0, len(TABLE_T) - 2)
            table = jnp.asarray(TABLE_E)
            emissivity = table[lower] + (place - lower) * (table[lower + 1] - table[lower])
        return t - (2e-11 * emissivity * layers**4)[:, None], None

    return jax.lax.scan(interval, t, None, length=INTERVALS)[0]


def build(*, ailing: bool) -> harness.Step:
    """Return the step: eight intervals of time."""
    random = np.random.default_rng(0)
    flames = [jnp.asarray(random.random((CELLS, CELLS), dtype=np.float32)) for _ in range(3)]
    latest["t"] = jnp.asarray(1200 + 400 * random.random((CELLS, CELLS), dtype=np.float32))

    def step(number: int) -> jax.Array:
        latest["t"] = advance(latest["t"], flames[number % len(flames)], ailing=ailing)
        return latest["t"]

    return step


if __name__ == "__main__":
    harness.run(build, lambda: jax.block_until_ready(latest))
