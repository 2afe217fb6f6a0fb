"""Keep running features of eight million customers: each batch of events updates a few rows of a table."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from harness import arguments, measure

CUSTOMERS, FEATURES, EVENTS, BATCHES = 8_000_000, 64, 8192, 8


def absorb(table: jax.Array, rows: jax.Array, events: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Move the events' rows towards the events; score each event against the previous row."""
    previous = table[rows]
    scores = jnp.sum((previous @ weights) * events, axis=1)
    change = 0.05 * (jnp.tanh(events) - previous)
    return table.at[rows].add(change), jax.nn.sigmoid(scores)


def main() -> None:
    args = arguments(__doc__)
    run = jax.jit(absorb, donate_argnums=(0,) if args.variant == "cured" else ())
    keys = jax.random.split(jax.random.key(15), 3)
    rows = [jax.random.randint(key, (EVENTS,), 0, CUSTOMERS) for key in jax.random.split(keys[0], BATCHES)]
    events = [jax.random.normal(key, (EVENTS, FEATURES)) for key in jax.random.split(keys[1], BATCHES)]
    weights = jax.random.normal(keys[2], (FEATURES, FEATURES)) / FEATURES
    state = [jnp.zeros((CUSTOMERS, FEATURES)), jnp.zeros(EVENTS)]

    def step(index: int) -> None:
        batch = index % BATCHES
        state[:] = run(state[0], rows[batch], events[batch], weights)

    measure(args, step, lambda: jax.block_until_ready(state))


main()
