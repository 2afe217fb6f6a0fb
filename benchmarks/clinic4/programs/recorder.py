"""Recorder: measurements written row by row into a long history on the GPU."""

import jax
import jax.numpy as jnp
from harness import arguments, measure

ROWS, WIDTH = 1 << 17, 1024

args = arguments(__doc__)
keep = {"donate_argnums": 0} if args.variant == "cured" else {}


def record(history: jax.Array, row: jax.Array, values: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice(history, jnp.tanh(values)[None], (row, 0))


write = jax.jit(record, **keep)
history = jnp.zeros((ROWS, WIDTH))
values = jax.random.normal(jax.random.key(0), (WIDTH,))


def step(index: int) -> None:
    global history  # noqa: PLW0603
    history = write(history, index % ROWS, values)


measure(args, step, lambda: jax.block_until_ready(history), 3)
