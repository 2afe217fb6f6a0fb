"""A state space model for long sequences of measurements: layers with a linear recurrence over time, in JAX."""

import functools

import harness
import jax
import jax.numpy as jnp

BATCH, TIMES, WIDTH, INNER, LAYERS = 64, 96, 1024, 2048, 2

LAST: list[jax.Array] = []  # what the last step returned


def recur_by_step(decay: jax.Array, inputs: jax.Array) -> jax.Array:
    """Return the states of h = decay * h + input, one time after the other."""

    def advance(state: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        state = now[0] * state + now[1]
        return state, state

    return jax.lax.scan(advance, jnp.zeros_like(inputs[0]), (decay, inputs))[1]


def recur_by_pair(decay: jax.Array, inputs: jax.Array) -> jax.Array:
    """Return the same states by a parallel scan."""

    def combine(left: tuple[jax.Array, jax.Array], right: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return left[0] * right[0], right[0] * left[1] + right[1]

    return jax.lax.associative_scan(combine, (decay, inputs))[1]


@functools.partial(jax.jit, static_argnames="by_step")
def predict(weights: list[dict[str, jax.Array]], x: jax.Array, *, by_step: bool) -> jax.Array:
    """Return the predictions for x of shape (times, batch, width)."""
    for layer in weights:
        wide = x @ layer["in"]
        decay = jax.nn.sigmoid((x @ layer["decay"]).astype(jnp.float32))
        recur = recur_by_step if by_step else recur_by_pair
        states = recur(decay, (1 - decay) * wide.astype(jnp.float32)).astype(x.dtype)
        x = x + (states * jax.nn.silu(x @ layer["gate"])) @ layer["out"]
    return x


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the predictions for 64 sequences of 96 times."""
    keys = iter(jax.random.split(jax.random.key(0), 64))

    def draw(*shape: int) -> jax.Array:
        return (jax.random.normal(next(keys), shape) / shape[0] ** 0.5).astype(jnp.bfloat16)

    weights = [
        {"in": draw(WIDTH, INNER), "decay": draw(WIDTH, INNER), "gate": draw(WIDTH, INNER), "out": draw(INNER, WIDTH)}
        for _ in range(LAYERS)
    ]
    batches = [draw(TIMES, BATCH, WIDTH) for _ in range(3)]

    def step(number: int) -> None:
        LAST[:] = [predict(weights, batches[number % len(batches)], by_step=ailing)]

    return step


def wait() -> None:
    """Wait for the last step."""
    jax.block_until_ready(LAST)


if __name__ == "__main__":
    harness.run(build, wait)
