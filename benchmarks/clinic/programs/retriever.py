"""Run attention layers of a retriever in BF16.

Ailing: attention is written out with einsum and softmax.
Cured: jax.nn.dot_product_attention with the cuDNN kernel.
"""

from functools import partial

import harness
import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames="is_fused")
def forward(weights: jax.Array, x: jax.Array, *, is_fused: bool) -> jax.Array:
    """Run all layers."""
    batch, length, width = x.shape
    for weight in weights:
        query, key, value = jnp.moveaxis((x @ weight).reshape(batch, length, 3, 8, width // 8), 2, 0)
        if is_fused:
            mixed = jax.nn.dot_product_attention(query, key, value, implementation="cudnn")
        else:
            scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (width // 8) ** 0.5
            mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores.astype(jnp.float32)).astype(x.dtype), value)
        x = x + mixed.reshape(batch, length, width)
    return x


def main() -> None:
    args = harness.arguments(__doc__)
    weights = jax.random.normal(jax.random.key(0), (4, 512, 1536), jnp.bfloat16) * 0.04
    x = jax.random.normal(jax.random.key(1), (8, 2048, 512), jnp.bfloat16)
    result = x

    def step(_: int) -> None:
        nonlocal result
        result = forward(weights, x, is_fused=args.variant == "cured")

    harness.measure(args, step, lambda: jax.block_until_ready(result))


if __name__ == "__main__":
    main()
