"""Encode sentences of different lengths with a jitted model.

Ailing: each new length compiles the model again.
Cured: sentences are padded to a multiple of 128 and masked.
"""

import harness
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def encode(table: jax.Array, weights: jax.Array, ids: jax.Array, count: jax.Array) -> jax.Array:
    """Return the mean of the hidden states of the first words."""
    x = table[ids]
    for weight in weights:
        x = x + jnp.tanh(x @ weight)
    valid = (jnp.arange(ids.shape[1]) < count)[None, :, None]
    return (x * valid).sum(1) / count


def main() -> None:
    args = harness.arguments(__doc__)
    table = jax.random.normal(jax.random.key(0), (4096, 512))
    weights = jax.random.normal(jax.random.key(1), (3, 512, 512)) * 0.04
    words = np.random.default_rng(0).integers(0, 4096, (32, 512), dtype=np.int32)
    result = None

    def step(index: int) -> None:
        nonlocal result
        length = 129 + index * 67 % 383
        size = -(-length // 128) * 128 if args.variant == "cured" else length
        result = encode(table, weights, words[:, :size], length)

    warmup = 30 if args.variant == "cured" else 3
    harness.measure(args, step, lambda: jax.block_until_ready(result), warmup=warmup)


if __name__ == "__main__":
    main()
