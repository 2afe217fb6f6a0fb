"""Channels of a river delta in a picture from space: smoothing that keeps edges, then curvatures on a grid."""

from functools import partial

import harness
import jax
import jax.numpy as jnp
import numpy as np

SIZE, ROUNDS, STRIDE = 2048, 20, 4
latest: dict[str, jax.Array] = {}


@partial(jax.jit, static_argnames="ailing")
def find(picture: jax.Array, *, ailing: bool) -> jax.Array:
    """Return how much each point of the grid looks like a channel."""

    def smooth(_: int, p: jax.Array) -> jax.Array:
        total = p
        for axis in (0, 1):
            for shift in (1, -1):
                difference = jnp.roll(p, shift, axis) - p
                total += 0.2 * difference * jnp.exp(-((difference / 0.3) ** 2))
        return total

    p = jax.lax.fori_loop(0, ROUNDS, smooth, picture)
    dy, dx = jnp.gradient(p)
    (yy, yx), (_, xx) = jnp.gradient(dy), jnp.gradient(dx)
    yy, yx, xx = (h[::STRIDE, ::STRIDE] for h in (yy, yx, xx))
    if ailing:
        bends = jnp.linalg.eigvalsh(jnp.stack([jnp.stack([yy, yx], -1), jnp.stack([yx, xx], -1)], -2))
        low, high = bends[..., 0], bends[..., 1]
    else:
        middle, away = (yy + xx) / 2, jnp.sqrt(((yy - xx) / 2) ** 2 + yx**2)
        low, high = middle - away, middle + away
    small, large = jnp.minimum(jnp.abs(low), jnp.abs(high)), jnp.maximum(jnp.abs(low), jnp.abs(high))
    return jnp.exp(-((small / (large + 1e-6)) ** 2) / 0.5) * (1 - jnp.exp(-(small**2 + large**2) / 0.02))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the channels in one picture."""
    random = np.random.default_rng(0)
    pictures = [jnp.asarray(random.random((SIZE, SIZE), dtype=np.float32)) for _ in range(3)]

    def step(number: int) -> jax.Array:
        latest["channels"] = find(pictures[number % len(pictures)], ailing=ailing)
        return latest["channels"]

    return step


if __name__ == "__main__":
    harness.run(build, lambda: jax.block_until_ready(latest))
