"""Waves in a lagoon: height and flow of shallow water on a grid, forty time steps for each picture."""

import harness
import jax
import jax.numpy as jnp

ROWS, COLUMNS, TIMES = 2560, 3072, 40
DT, DRAG = 0.1, 1e-4
latest: dict[str, jax.Array] = {}


def advance(state: jax.Array) -> jax.Array:
    """Return height and flow after a time step."""
    height, east, north = state
    east = (1 - DRAG) * east - DT * (jnp.roll(height, -1, 1) - height)
    north = (1 - DRAG) * north - DT * (jnp.roll(height, -1, 0) - height)
    height = height - DT * ((east - jnp.roll(east, 1, 1)) + (north - jnp.roll(north, 1, 0)))
    return jnp.stack([height, east, north])


@jax.jit
def states(state: jax.Array) -> jax.Array:
    """Return the water after each of the time steps."""

    def body(state: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        state = advance(state)
        return state, state

    return jax.lax.scan(body, state, None, length=TIMES)[1]


@jax.jit
def last(state: jax.Array) -> jax.Array:
    """Return the water after all time steps."""
    return jax.lax.scan(lambda state, _: (advance(state), None), state, None, length=TIMES)[0]


@jax.jit
def picture(state: jax.Array) -> jax.Array:
    """Return the mean height in squares of 16 by 16."""
    return state[0].reshape(ROWS // 16, 16, COLUMNS // 16, 16).mean((1, 3))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: forty time steps and a picture."""
    row, column = jnp.arange(ROWS)[:, None], jnp.arange(COLUMNS)[None, :]
    drop = jnp.exp(-((row - ROWS / 3) ** 2 + (column - COLUMNS / 2) ** 2) / 5000)
    water = {"state": jnp.stack([drop, jnp.zeros_like(drop), jnp.zeros_like(drop)])}

    def step(_number: int) -> jax.Array:
        water["state"] = states(water["state"])[-1] if ailing else last(water["state"])
        latest["picture"] = picture(water["state"])
        return latest["picture"]

    return step


if __name__ == "__main__":
    harness.run(build, lambda: jax.block_until_ready(latest), 200)
